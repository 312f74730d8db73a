/* SPDX-License-Identifier: MIT */
#ifndef PROBES_KEEPS_KEEPS_H
#define PROBES_KEEPS_KEEPS_H

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
 * keeps_what - what the function can be seen to change. In doubt, and without a decoder:
 * KEEPS_UNKNOWN.
 *
 * Seen are small functions, of KEEPS_BYTES, that call nothing and jump nowhere else: all their
 * paths are decoded. Nothing in them may be a site that this library or its user could change
 * later: no call, no jump of five bytes, nor a NOP of five, nor the short jump that stands for a
 * call. SSE instructions leave the upper parts of a vector as they are, those of AVX do not. Not
 * thread-safe: it remembers the last function, with its bytes.
 */
#define KEEPS_BYTES 128
enum keeps keeps_what(uintptr_t function);

#endif
