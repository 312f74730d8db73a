/* SPDX-License-Identifier: MIT */
/*
 * Pages of code: which are writable, and making them so. Private; the public
 * half is mapping.h.
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
 * Lock-free and async-signal-safe where a caller holds the pages open or aliased.
 * Else the pages are made writable and the span says so. -EFAULT, -EACCES,
 * -ENOMEM: nothing changed.
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

/* For text_store_begin() and text_store_end() alone. */
void text_gate_enter(void);
void text_gate_leave(const struct text_span *span);

/*
 * text_store_begin, text_store_end - around each store through text_at(), and
 * around nothing longer.
 *
 * Pages with an alias are copied when the process forks. A store that came in
 * between would be in one copy only, so it waits until the fork is over: at most
 * as long as fork(2) and the copy take. Async-signal-safe; they nest. Nothing,
 * where the span has no alias.
 */
static inline void text_store_begin(const struct text_span *span)
{
	if (span->shift[0] | span->shift[1])
		text_gate_enter();
}

static inline void text_store_end(const struct text_span *span)
{
	if (span->shift[0] | span->shift[1])
		text_gate_leave(span);
}

/*
 * text_forget - [start, end) was unmapped, or is about to be, by its owner. Its
 * pages are no longer open, and aliases are given up; what is mapped there is not
 * touched. No patch there may be under way.
 */
void text_forget(uintptr_t start, uintptr_t end);

/*
 * text_forget_unmapped - the same for pages of objects that dlclose() took away,
 * also where others are mapped there since. Costs next to nothing unless an
 * object was unloaded since the last call. Not async-signal-safe, and takes no
 * lock of the dynamic linker while it holds its own.
 */
void text_forget_unmapped(void);

/*
 * text_give_back - close whatever is open. No patch may be under way. 0, or what
 * pc_text_close() failed with.
 */
int text_give_back(void);

/*
 * text_watch_fork - be called around fork(). Happens by itself before main().
 * Handlers that call into text.c, or hold a lock while they do, must be
 * registered later: those run before these in the parent. 0 or -ENOMEM.
 */
int text_watch_fork(void);

#endif
