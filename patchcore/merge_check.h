/* SPDX-License-Identifier: MIT */
/*
 * Which changes would take instruction starts away from a run of 1-byte NOPs.
 * Private. Pure.
 */
#ifndef PATCHCORE_MERGE_CHECK_H
#define PATCHCORE_MERGE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MERGE_NOP 0x90

/* merge_nops - how many 1-byte NOPs the code begins with. */
static inline size_t merge_nops(const uint8_t *code, size_t len)
{
	size_t n = 0;

	/* Atomic, since others may be changing the code: then they hold it or it is theirs. */
	while (n < len && __atomic_load_n(&code[n], __ATOMIC_RELAXED) == MERGE_NOP)
		n++;
	return n;
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
	size_t were = merge_nops(old, len), kept = merge_nops(new, len);

	/* The instruction behind the NOPs that are kept begins where an old one did. */
	for (size_t i = kept + 1; i < were; i++)
		if (!(starts & 1u << i))
			return true;
	return false;
}

/* merge_needed - the same of a change that is one instruction. */
static inline bool merge_needed(const uint8_t *old, const uint8_t *new, size_t len)
{
	return merge_loses_starts(old, new, len, 1);
}

#endif
