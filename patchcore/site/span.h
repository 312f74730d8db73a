/* SPDX-License-Identifier: MIT */
/*
 * A stretch of code that is changed, and where it is written. Private; text.h begins one and ends
 * it.
 */
#ifndef PATCHCORE_SITE_SPAN_H
#define PATCHCORE_SITE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#include "patchcore/kernel/sys.h"

#define TEXT_PAGE 4096u

/*
 * Where one patch writes. The code of [addr, addr + len) runs at addr and is
 * written at addr + shift: shift[0] for bytes on the first page, shift[1] for
 * those on the last (the same page, if it does not cross). 0 unless the page has
 * an alias.
 */
struct text_span {
	uint8_t *addr;
	size_t len;
	ptrdiff_t shift[2];
	uint64_t loan; /* made writable for this patch alone: by text_borrow(); else 0 */
};

/* text_at - where the byte that runs at addr, of a span, is written. */
NOPATCH_INLINE uint8_t *text_at(const struct text_span *span, const uint8_t *addr)
{
	bool first = ((uintptr_t)addr & ~(uintptr_t)(TEXT_PAGE - 1)) ==
		     ((uintptr_t)span->addr & ~(uintptr_t)(TEXT_PAGE - 1));

	return (uint8_t *)(uintptr_t)addr + span->shift[first ? 0 : 1];
}

#endif
