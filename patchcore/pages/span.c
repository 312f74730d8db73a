/* SPDX-License-Identifier: MIT */
/* What one patch writes: its pages, and where they are written. */
#include "patchcore/pages/text.h"

#include <errno.h>

#include "patchcore/pages/text_page.h"
#include "patchcore/site/fork.h"

NOPATCH bool text_is_stale(uintptr_t addr)
{
	const struct page *page = page_find(addr);

	return page && !page_may_be_written(page);
}

NOPATCH bool text_span_is_ours(const struct text_span *span)
{
	uintptr_t addr = (uintptr_t)span->addr;

	return (!span->shift[0] || !text_is_stale(addr)) &&
	       (!span->shift[1] || !text_is_stale(addr + span->len - 1));
}

NOPATCH bool text_follow_alias(const struct text_span *span)
{
	bool ours;

	/* Asked last, and so right before the store. */
	do {
		if (fork_is_new())
			fork_adopt();
		ours = text_span_is_ours(span);
	} while (fork_is_new());
	return ours;
}

/* The bytes of both ends, which may be on one page. */
static int set_shifts(struct text_span *span, const struct page *first, const struct page *last)
{
	const struct page *const ends[] = { first, last };

	for (int i = 0; i < 2; i++) {
		if (!page_may_be_written(ends[i]))
			return -EACCES;
		if (page_shift(ends[i]) && text_child_is_late())
			return -EAGAIN;
		span->shift[i] = page_shift(ends[i]);
	}
	return 0;
}

/* Across two pages, or on one that is not open. */
__attribute__((noinline)) static int begin_anywhere(struct text_span *span)
{
	uintptr_t start = page_of((uintptr_t)span->addr), end;
	int ret = 0;

	/* The last pages are no program's, and sums of addresses wrap there. */
	if ((uintptr_t)span->addr > UINTPTR_MAX - 2 * TEXT_PAGE) {
		fork_leave(thread_here);
		return -EFAULT;
	}
	end = page_of((uintptr_t)span->addr + span->len - 1) + TEXT_PAGE;
	if (!text_is_open(start, end))
		ret = text_borrow(start, end, &span->loan);
	if (ret == 0)
		ret = set_shifts(span, page_find((uintptr_t)span->addr),
				 page_find((uintptr_t)span->addr + span->len - 1));
	if (ret < 0)
		text_end(span);
	return ret;
}

/* As a rule one page, open, which is found once. */
int text_begin(struct text_span *span, void *addr, size_t len)
{
	const struct page *page = page_find((uintptr_t)addr);
	struct thread *self;
	int ret = fork_enter_in_handler(&self);

	if (ret < 0)
		return ret;
	*span = (struct text_span){ .addr = addr, .len = len };
	if (!page_is_open(page) || (uintptr_t)addr % TEXT_PAGE + len > TEXT_PAGE)
		return begin_anywhere(span);
	if (page_shift(page))
		ret = set_shifts(span, page, page);
	if (ret < 0)
		text_end(span);
	return ret;
}

void text_return_kept(struct text_span *span)
{
	uintptr_t start, end;

	/* For this very thread the gate of a fork is open: see alias.c. */
	if (__builtin_expect(fork_is_mine(thread_here), 0))
		text_copy_again(span);
	if (span->loan && text_range(span->addr, span->len, &start, &end) == 0)
		text_return(start, end, span->loan);
	span->loan = 0;
}

void text_end(struct text_span *span)
{
	struct thread *self = thread_here;

	if (__builtin_expect(span->loan || fork_is_mine(self), 0))
		text_return_kept(span);
	fork_leave(self);
}
