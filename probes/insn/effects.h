/* SPDX-License-Identifier: MIT */
/* What a small function reads and clobbers, as far as its instructions show it. */
#ifndef PROBES_INSN_EFFECTS_H
#define PROBES_INSN_EFFECTS_H

#include <stdbool.h>
#include <stdint.h>

/* Of vector, mask, x87 and MMX registers, and their control words. */
enum clobbers {
	CLOBBERS_ANY,	      /* in doubt */
	CLOBBERS_LOWER_FLAGS, /* the lower 16 bytes of the first EFFECTS_XMM vectors, MXCSR */
	CLOBBERS_LOWER,	      /* only these 16 bytes each */
	CLOBBERS_NONE
};

#define EFFECTS_XMM	 8
#define EFFECTS_BYTES	 128
#define EFFECTS_RELATIVE 8

struct effects {
	enum clobbers clobbers;
	/*
	 * A copy of its first bytes does the same elsewhere, and leaves them at their end: it
	 * changes no vector, makes no use of the stack, and its only RET is behind them.
	 */
	bool moves;
	uint8_t size;	 /* of these bytes */
	uint16_t reads;	 /* bit i: the general register i, by its number in machine code */
	uint16_t writes; /* the same */
	/* Where in them a distance of four bytes is, to something that stays where it is. */
	uint8_t relative[EFFECTS_RELATIVE];
	uint8_t relatives;
};

/*
 * effects_read - of a small function, of EFFECTS_BYTES, that calls nothing and jumps nowhere else:
 * all its paths are decoded. Of others, and without a decoder: CLOBBERS_ANY, and it does not move.
 *
 * Nothing in it may be a site that this library or its user could change later: no call, no jump of
 * five bytes, nor a NOP of five, nor the short jump that stands for a call. SSE instructions leave
 * the upper parts of a vector as they are, those of AVX do not. Not thread-safe: it remembers the
 * last function, with its bytes.
 */
struct effects effects_read(uintptr_t function);

#endif
