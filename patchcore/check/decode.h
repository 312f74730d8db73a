/* SPDX-License-Identifier: MIT */
/* Where instructions start, by Zydis. Private. */
#ifndef PATCHCORE_CHECK_DECODE_H
#define PATCHCORE_CHECK_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECODE_INSN_MAX 15 /* bytes of the longest instruction */

/* The instructions of a stretch of code. Bit i of a mask: at its byte i. */
struct layout {
	uint64_t starts;
	uint64_t after_jump; /* starts that no instruction before runs on into */
	uint64_t relative;   /* starts whose operand is relative to RIP */
	uint64_t nops;	     /* starts of 1-byte NOPs */
	uint8_t len[64];     /* of the instruction that starts there */
	size_t end;  /* of the last instruction; after an error where none could be decoded */
	bool leaves; /* the end is unknown: a jump led away, and nothing comes back */
};

/*
 * decode_layout - decode until an instruction ends at or behind `until`.
 * @code:    at most 64 bytes
 * @entries: starts that something else may jump to. NULL: every byte behind a
 *           jump may be one. Else what lies between a jump and the next of them
 *           is passed over, since nothing runs it.
 *
 * 0, -ENOEXEC (no instruction), -EFAULT (an instruction runs over the size).
 */
int decode_layout(struct layout *layout, const uint8_t *code, size_t size, size_t until,
		  const uint64_t *entries);

#endif
