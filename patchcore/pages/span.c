/* SPDX-License-Identifier: MIT */
/* What one patch writes: its pages, where they are written, and how, in words. */
#include "patchcore/pages/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "patchcore/machine/identity.h"
#include "patchcore/machine/policy.h"
#include "patchcore/mapping.h"
#include "patchcore/pages/text_page.h"
#include "patchcore/site/fork.h"

#ifndef PR_GET_MDWE
#define PR_GET_MDWE 66 /* Linux 6.3 */
#endif

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
		if (!page_shift(ends[i]) && choice_is_quiet())
			return -ENOTSUP;
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
	if (page_shift(page) || choice_is_quiet())
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

/* --- In words --------------------------------------------------------------------------------- */

/* What of this process could have forbidden it; the kernel does not say which. */
static const char *guess_refuser(void)
{
	char enforcing[4];
	int filter;

	if (prctl(PR_GET_MDWE, 0, 0, 0, 0) > 0)
		return "PR_SET_MDWE is in force";
	filter = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	if (filter > 0 || (filter < 0 && errno != EINVAL))
		return "a seccomp filter is in force";
	identity_line(&identity_here, "/sys/fs/selinux/enforce", enforcing, sizeof(enforcing));
	return enforcing[0] == '1' ? "SELinux is enforcing" : "a security module, perhaps";
}

static const char only_aliases[] = "the policy interrupts no CPU: only code with an alias changes";

/* All of it is open. */
static int say_open(uintptr_t start, uintptr_t end, enum pc_text_way *way, char *reason,
		    size_t size)
{
	const struct page *aliased = NULL;
	bool is_stale = false, is_plain = false, is_late;

	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		is_stale |= text_is_stale(p);
		is_plain |= !page_shift(page_find(p));
		if (page_shift(page_find(p)))
			aliased = page_find(p);
	}
	*way = aliased ? PC_TEXT_ALIAS : PC_TEXT_OPEN;
	is_late = aliased && text_child_is_late();
	if (is_stale)
		snprintf(reason, size,
			 "the alias is shared with the parent process: no copy was made when it "
			 "forked");
	else if (is_plain && choice_is_quiet())
		snprintf(reason, size, "%s", only_aliases);
	else if (is_late)
		snprintf(reason, size, "a child of fork() still runs these pages");
	else if (aliased)
		snprintf(reason, size, "written through an alias at %p",
			 (void *)page_alias(aliased));
	else
		snprintf(reason, size, "the pages are kept writable");
	if (is_stale)
		return -EACCES;
	if (is_plain && choice_is_quiet())
		return -ENOTSUP;
	return is_late ? -EAGAIN : 0;
}

/* None is kept open: each change borrows the pages, as is done here. */
static int say_protect(uintptr_t start, uintptr_t end, char *reason, size_t size)
{
	uint64_t loan;
	int ret = text_borrow(start, end, &loan);
	const char *name = strerrorname_np(text_refused_with);
	const char *what = "no memory for it, or too many mappings";

	if (ret == 0) {
		what = page_find(start)->prot & PROT_WRITE
			       ? "the pages are writable already, which each change looks up"
			       : "each change makes the pages writable and gives their protection "
				 "back";
		text_return(start, end, loan);
	} else if (ret == -ENOTSUP) {
		what = only_aliases;
	} else if (ret == -EFAULT) {
		what = "some of it is not mapped, or behind the end of its file";
	} else if (ret == -EPERM) {
		what = "a shared mapping: a change shows wherever the same is mapped, see "
		       "pc_text_open_shared()";
	} else if (ret == -EACCES) {
		what = "/proc/self/maps cannot be read";
	}
	if (ret == -EACCES && text_refused_with)
		snprintf(reason, size, "mprotect was denied with %s: %s", name ? name : "?",
			 guess_refuser());
	else
		snprintf(reason, size, "%s", what);
	return ret;
}

int pc_text_way(void *addr, size_t len, enum pc_text_way *way, char *reason, size_t size)
{
	uintptr_t start, end;
	struct thread *self;
	int ret = way ? text_enter(addr, len, &start, &end, &self) : -EINVAL;

	if (ret < 0)
		return ret;
	signals_hold();
	if (!reason)
		size = 0;
	lock_take(&text_lock);
	if (text_is_open(start, end))
		text_compare(start, end);
	lock_drop(&text_lock);
	*way = PC_TEXT_PROTECT;
	ret = text_is_open(start, end) ? say_open(start, end, way, reason, size)
				       : say_protect(start, end, reason, size);
	signals_let();
	fork_leave(self);
	return ret;
}
