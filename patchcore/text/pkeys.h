/* SPDX-License-Identifier: MIT */
/*
 * Protection keys in signal handlers. Private.
 *
 * The kernel runs a handler with the rights that a thread has at first: to key 0 and no other.
 * Execute-only code has a key of its own, and a program may give its code one by pkey_mprotect(2):
 * a handler that reads such code, or writes to it, must first allow itself to.
 */
#ifndef PATCHCORE_TEXT_PKEYS_H
#define PATCHCORE_TEXT_PKEYS_H

#include <stdbool.h>

#include "patchcore/kernel/sys.h"

/* Do the processor and the kernel have them? Looked up when the library is loaded. */
extern bool pkeys_on;

NOPATCH_INLINE void pkeys_set(uint32_t rights)
{
	__asm__ volatile(".byte 0x0f, 0x01, 0xef" : : "a"(rights), "c"(0), "d"(0) : "memory");
}

/*
 * pkeys_open - the calling thread may read and write all that the pages' protection allows.
 * pkeys_close - as before, which is what the other returned. Nothing, without protection keys.
 * Async-signal-safe.
 */
NOPATCH_INLINE uint32_t pkeys_open(void)
{
	uint32_t rights, zero;

	if (!pkeys_on)
		return 0;
	__asm__ volatile(".byte 0x0f, 0x01, 0xee" : "=a"(rights), "=d"(zero) : "c"(0) : "memory");
	pkeys_set(0);
	return rights;
}

NOPATCH_INLINE void pkeys_close(uint32_t rights)
{
	if (pkeys_on)
		pkeys_set(rights);
}

#endif
