/* SPDX-License-Identifier: MIT */
#ifndef PROBES_KEEPS_KEEPS_H
#define PROBES_KEEPS_KEEPS_H

#include <stdbool.h>
#include <stdint.h>

/* What a function changes of vector, mask, x87 and MMX registers, and their control words. */
enum keeps {
	KEEPS_UNKNOWN, /* it may change any */
	KEEPS_UPPER,   /* the lower 16 bytes of the first KEEPS_XMM vectors, and flags in MXCSR */
	KEEPS_FLAGS,   /* only these 16 bytes each */
	KEEPS_ALL      /* none of them */
};

#define KEEPS_XMM 8

/*
 * keeps_look - what the function can be seen to change. In doubt, and without a decoder:
 * KEEPS_UNKNOWN, and it has to stay where it is.
 *
 * Seen are small functions, of KEEPS_BYTES, that call nothing and jump nowhere else: all their
 * paths are decoded. Nothing in them may be a site that this library or its user could change
 * later: no call, no jump of five bytes, nor a NOP of five, nor the short jump that stands for a
 * call. SSE instructions leave the upper parts of a vector as they are, those of AVX do not. Not
 * thread-safe: it remembers the last function, with its bytes.
 */
#define KEEPS_BYTES    128
#define KEEPS_RELATIVE 8

struct leaf {
	enum keeps keeps;
	/*
	 * A copy of its first bytes does the same elsewhere, and leaves them at their end: it
	 * changes no vector, makes no use of the stack, and its only RET is behind them.
	 */
	bool moves;
	uint8_t size;	 /* of these bytes */
	uint16_t reads;	 /* bit i: the general register i, by its number in machine code */
	uint16_t writes; /* the same */
	/* Where in them a distance of four bytes is, to something that stays where it is. */
	uint8_t relative[KEEPS_RELATIVE];
	uint8_t relatives;
};

struct leaf keeps_look(uintptr_t function);

#endif
