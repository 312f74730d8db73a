/* SPDX-License-Identifier: MIT */
/*
 * Pages of code: which are writable, and making them so. Private; the public
 * half is pc_text_open() and pc_text_close().
 */
#ifndef PATCHCORE_TEXT_H
#define PATCHCORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	bool borrowed; /* made writable for this patch alone */
};

/*
 * text_begin - let one patch write [addr, addr + len), at most a page long.
 *
 * Lock-free and async-signal-safe where a caller holds the pages open. Else the
 * pages are made writable and the span says so. -EFAULT, -EACCES, -ENOMEM:
 * nothing changed.
 */
int text_begin(struct text_span *span, void *addr, size_t len);

/*
 * text_end - that patch is written. Async-signal-safe unless span->borrowed.
 * May be called by another thread than text_begin() was.
 */
void text_end(struct text_span *span);

/* text_at - where the byte that runs at addr, of a span, is written. */
static inline uint8_t *text_at(const struct text_span *span, const uint8_t *addr)
{
	bool first = ((uintptr_t)addr & ~(uintptr_t)(TEXT_PAGE - 1)) ==
		     ((uintptr_t)span->addr & ~(uintptr_t)(TEXT_PAGE - 1));

	return (uint8_t *)(uintptr_t)addr + span->shift[first ? 0 : 1];
}

#endif
