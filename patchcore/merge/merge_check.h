/* SPDX-License-Identifier: MIT */
/* Which changes would take instruction starts away, and from what. Private. Pure. */
#ifndef PATCHCORE_MERGE_MERGE_CHECK_H
#define PATCHCORE_MERGE_MERGE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "patchcore/syscall/sys.h"

#define MERGE_NOP 0x90

/* merge_nops - how many 1-byte NOPs the code begins with. */
NOPATCH_INLINE size_t merge_nops(const uint8_t *code, size_t len)
{
	size_t n = 0;

	/* Atomic, since other patchers may be changing the code: then they hold it. */
	while (n < len && __atomic_load_n(&code[n], __ATOMIC_RELAXED) == MERGE_NOP)
		n++;
	return n;
}

/* merge_denies_nops - does the old code begin with 1-byte NOPs that are not all named as starts? */
NOPATCH_INLINE bool merge_denies_nops(const uint8_t *old, size_t len, unsigned old_starts)
{
	size_t were = merge_nops(old, len);

	for (size_t i = 1; i < were; i++)
		if (!(old_starts & 1u << i))
			return true;
	return false;
}

/*
 * merge_loses_starts - would the change turn some of the 1-byte NOPs that the old
 * code begins with into the middle of an instruction? A thread may stand between
 * any two of them, and would go on there (AMD APM vol. 2, 7.6.1: A-X).
 *
 * starts: bit i, an instruction starts at byte i in old and new code, says the
 * caller; bit 0 is set. NOPs that the new code begins with are seen without. What
 * follows them is taken for one instruction.
 */
static inline bool merge_loses_starts(const uint8_t *old, const uint8_t *new, size_t len,
				      unsigned starts)
{
	/* The instruction behind the NOPs that are kept begins where an old one did. */
	unsigned kept = (2u << merge_nops(new, len)) - 1;

	return merge_denies_nops(old, len, starts | kept);
}

/* Does an instruction of at most len bytes push where it goes on? CALL, of any kind. */
NOPATCH_INLINE bool merge_is_call(const uint8_t *code, size_t len)
{
	size_t i = 0;

	/* Prefixes. */
	while (i < len && ((code[i] & 0xf0) == 0x40 || (code[i] & 0xe7) == 0x26 ||
			   (code[i] & 0xfc) == 0x64 || (code[i] & 0xfe) == 0xf2))
		i++;
	if (i < len && code[i] == 0xe8)
		return true;
	return i + 1 < len && code[i] == 0xff && (code[i + 1] >> 3 & 6) == 2;
}

/*
 * merge_returns_inside - is there a call that comes back to an old start which the new code does
 * not have? A thread may be anywhere else, with no more than that address on its stack.
 * merge_makes_threads - may a new thread begin inside, behind a system call?
 */
NOPATCH_INLINE bool merge_returns_inside(const uint8_t *old, size_t len, unsigned old_starts,
					 unsigned new_starts)
{
	for (size_t i = 0, next = 1; next < len; next++) {
		if (!(old_starts & 1u << next))
			continue;
		if (!(new_starts & 1u << next) && merge_is_call(old + i, next - i))
			return true;
		i = next;
	}
	return false;
}

NOPATCH_INLINE bool merge_makes_threads(const uint8_t *old, size_t len, unsigned old_starts)
{
	for (size_t i = 0; i + 2 < len; i++)
		if ((old_starts >> i & 3) == 1 && old_starts >> (i + 2) && old[i] == 0x0f &&
		    old[i + 1] == 0x05)
			return true;
	return false;
}

#endif
