/* SPDX-License-Identifier: MIT */
/*
 * What is known of a page of code. Shared by text*.c and alias.c alone.
 */
#ifndef PATCHCORE_TEXT_PAGE_H
#define PATCHCORE_TEXT_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patchcore/forklock.h"
#include "patchcore/table.h"
#include "patchcore/text.h"
#include "patchcore/text_maps.h"

/* All but the atomics is protected by text_lock. */
struct page {
	struct entry entry;
	int prot;	      /* to be given back */
	unsigned users;	      /* opens and borrowers */
	bool owed;	      /* without users, yet not given back: that failed */
	size_t granule;	      /* bytes whose protection changes together */
	struct origin origin; /* what it showed when last looked at; with an alias: of that */
	struct page *next;    /* the next in order that has an alias */
	size_t copied_at;     /* in the copy for a child: bytes from its start */
	/* Written under text_lock, read without. */
	atomic_uint opens;	  /* stored with release, after the shift; acquired */
	_Atomic(ptrdiff_t) shift; /* from here to its alias, 0 if it has none */
	atomic_bool stale;	  /* the alias is the parent's: this process may not write */
};

extern struct table text_pages;
extern struct forklock text_lock; /* nests outside text_pages.lock */

static inline uintptr_t page_of(uintptr_t addr)
{
	return addr & ~(uintptr_t)(TEXT_PAGE - 1);
}

static inline struct page *page_find(uintptr_t addr)
{
	return (struct page *)table_find(&text_pages, page_of(addr));
}

static inline ptrdiff_t page_shift(const struct page *page)
{
	return atomic_load_explicit(&page->shift, memory_order_relaxed);
}

/* Acquire: who sees it open may use its shift, or write to it. */
static inline bool page_is_open(const struct page *page)
{
	return page && atomic_load_explicit(&page->opens, memory_order_acquire) > 0;
}

/*
 * What mprotect(2) refused the last text_borrow() of this thread with; 0 if it
 * was not that.
 */
extern __thread int text_refused_with __attribute__((tls_model("initial-exec")));

/* text_is_open - is there somebody who has all these pages open? Async-signal-safe. */
bool text_is_open(uintptr_t start, uintptr_t end);

/* text_range - the pages of [addr, addr + len). -EINVAL: none, or it wraps. */
int text_range(const void *addr, size_t len, uintptr_t *start, uintptr_t *end);

/* text_borrow, text_return - one user more or less for whole pages. 0 or -errno. */
int text_borrow(uintptr_t start, uintptr_t end);
void text_return(uintptr_t start, uintptr_t end);

#endif
