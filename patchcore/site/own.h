/* SPDX-License-Identifier: MIT */
/*
 * The library's own code, which it does not change. Private.
 */
#ifndef PATCHCORE_SITE_OWN_H
#define PATCHCORE_SITE_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All code of the shared library. In a program that has the library linked into it, the NOPATCH
 * code (sys.h): the rest is between the program's own functions, and may be changed like them.
 */
extern uintptr_t own_start, own_end;

/* own_overlaps - is some of it in [addr, addr + len)? Async-signal-safe. */
static inline bool own_overlaps(const void *addr, size_t len)
{
	return (uintptr_t)addr < own_end && (uintptr_t)addr + len > own_start;
}

#endif
