/* SPDX-License-Identifier: MIT */
/* What is known of a page of code. Shared by this room and pc_text_close() alone. */
#ifndef PATCHCORE_PAGES_TEXT_PAGE_H
#define PATCHCORE_PAGES_TEXT_PAGE_H

#include <sys/mman.h>

#include "patchcore/machine/policy.h"
#include "patchcore/pages/text.h"
#include "patchcore/site/lock.h"
#include "patchcore/site/site.h"

/* All but the atomics is protected by text_lock. */
struct page {
	struct entry entry;
	int prot;	      /* to be given back */
	unsigned users;	      /* opens and borrowers */
	bool owed;	      /* without users, yet not given back: that failed */
	bool shared;	      /* opened by a caller that knows that others see what changes */
	size_t granule;	      /* bytes whose protection changes together */
	struct origin origin; /* what it showed when last looked at; with an alias: of that */
	uint64_t copied_in;   /* the last copy for a child that it is in; 0: none */
	size_t copied_at;     /* in that: bytes from its start */
	int copied_prot;      /* the protection that it ran with then */
	/* Written under text_lock, read without. */
	_Atomic(uint64_t) forgotten; /* which of all times that a page was */
	atomic_uint opens;	     /* stored with release, after the shift; acquired */
	_Atomic(ptrdiff_t) shift;    /* from here to its alias, 0 if it has none */
	atomic_bool stale;	     /* the alias is the parent's: there was no copy */
};

extern struct table text_pages;
extern struct lock text_lock; /* nests outside text_pages.lock, inside drain_lock */

NOPATCH_INLINE uintptr_t page_of(uintptr_t addr)
{
	return addr & ~(uintptr_t)(TEXT_PAGE - 1);
}

NOPATCH_INLINE struct page *page_find(uintptr_t addr)
{
	return (struct page *)table_find(&text_pages, page_of(addr));
}

NOPATCH_INLINE ptrdiff_t page_shift(const struct page *page)
{
	return load_relaxed(&page->shift);
}

/* page_alias - where a page with an alias is written. */
NOPATCH_INLINE uint8_t *page_alias(const struct page *page)
{
	return (uint8_t *)(page->entry.addr + (uintptr_t)page_shift(page));
}

/* alias_prot - the protection with which an aliased page runs. */
NOPATCH_INLINE int alias_prot(const struct page *page)
{
	return page->prot & ~PROT_WRITE;
}

/* Acquire: a thread that sees it open may use its shift, or write to it. */
NOPATCH_INLINE bool page_is_open(const struct page *page)
{
	return page && load_acquire(&page->opens) > 0;
}

/*
 * page_find_plain - the page of addr if it is open and may be written where it runs, else NULL;
 * for a thread that is inside, and mostly meets the page that it met last. Memory of pages is never
 * freed, but may become another page's, once all threads have left that had found it open. So its
 * address is compared last.
 */
NOPATCH_INLINE const struct page *page_find_plain(struct thread *self, uintptr_t addr)
{
	struct page *page = self->recent;

	if (!page_is_open(page) ||
	    __atomic_load_n(&page->entry.addr, __ATOMIC_RELAXED) != page_of(addr)) {
		self->recent = page = page_find(addr);
		if (!page_is_open(page))
			return NULL;
	}
	return page_shift(page) || choice_is_quiet() ? NULL : page;
}

/* By this process? Not where its alias is the memory of the process that it was forked from. */
NOPATCH_INLINE bool page_may_be_written(const struct page *page)
{
	return !page_shift(page) || !load_relaxed(&page->stale);
}

/* text_range - the pages of [addr, addr + len). -EINVAL: none, or it wraps. */
int text_range(const void *addr, size_t len, uintptr_t *start, uintptr_t *end);

/*
 * text_compare - with text_lock: forget the pages of [start, end) where something else lies now
 * than what the library left there. The protection that the program gave one since is the one to be
 * given back. Where the kernel does not say what is mapped, all are held to be as they were.
 */
void text_compare(uintptr_t start, uintptr_t end);

/* text_is_open - does some caller have all these pages open? Async-signal-safe. */
bool text_is_open(uintptr_t start, uintptr_t end);

/*
 * text_enter - for a public function: the pages of [addr, addr + len), and enter the library
 * (fork_enter()). -EINVAL: none, or it wraps. -ESHUTDOWN, -EAGAIN.
 */
int text_enter(const void *addr, size_t len, uintptr_t *start, uintptr_t *end,
	       struct thread **self);

/*
 * text_borrow - one user more for whole pages. 0 or -errno. *loan: when it was.
 * text_refused_with - what mprotect(2) refused this thread's last text_borrow() with; 0 if it was
 * not that.
 */
int text_borrow(uintptr_t start, uintptr_t end, uint64_t *loan);
extern __thread int text_refused_with __attribute__((tls_model("initial-exec")));

/*
 * text_return - one user less for those whole pages that are still on that loan. A page that was
 * forgotten since, and is on another loan, is left alone. Loan 0 has no pages: then only owed pages
 * are given back. 0 or -errno; pages that could not be given back are tried again later.
 */
int text_return(uintptr_t start, uintptr_t end, uint64_t loan);

/*
 * For pc_text_close(): text_stop_using() makes patches find the pages closed (-ENOENT: they were
 * not open) and widens the range to the huge pages that were opened. Then text_return() closes
 * them, or text_use_again() makes patches find them open as before.
 */
int text_stop_using(uintptr_t *start, uintptr_t *end, uint64_t *loan);
void text_use_again(uintptr_t start, uintptr_t end, uint64_t loan);

/* --- Pages that are written through a second mapping (alias.c). All under text_lock ----------- */

/*
 * alias_make - for pages that are in the table, have none, and are all of that mapping. 0, or
 * -EACCES, -EINVAL (part of a huge page), -ENOMEM, -EMFILE, -ENFILE, -EFAULT (cannot be read),
 * -EBUSY (a breakpoint that is not in the file) and nothing has changed.
 *
 * alias_end - make them private memory with page->prot again, as they read now. All have one alias
 * and one protection. Errors as alias_make().
 */
int alias_make(uintptr_t start, uintptr_t end, const struct mapping *map);
int alias_end(uintptr_t start, uintptr_t end);

/* alias_forget - the page is gone, only its alias is still there. */
void alias_forget(struct page *page);

#endif
