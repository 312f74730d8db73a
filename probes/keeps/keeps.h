/* SPDX-License-Identifier: MIT */
#ifndef PROBES_KEEPS_KEEPS_H
#define PROBES_KEEPS_KEEPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * keeps_vectors - whether the function can be seen to change no vector, mask, x87 or MMX register,
 * nor a control word of them. In doubt, and without a decoder: false.
 *
 * Seen are small functions, of KEEPS_BYTES, that call nothing and jump nowhere else: all their
 * paths are decoded. Nothing in them may be a site that this library or its user could change
 * later: no call, no jump of five bytes, nor a NOP of five, nor the short jump that stands for a
 * call. Not thread-safe: it remembers the last function, with its bytes.
 */
#define KEEPS_BYTES 128
bool keeps_vectors(uintptr_t function);

#endif
