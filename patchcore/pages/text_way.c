/* SPDX-License-Identifier: MIT */
/* How a change would be written, in words. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "patchcore/machine/identity.h"
#include "patchcore/mapping.h"
#include "patchcore/pages/text.h"
#include "patchcore/pages/text_page.h"
#include "patchcore/site/fork.h"

#ifndef PR_GET_MDWE
#define PR_GET_MDWE 66 /* Linux 6.3 */
#endif

/* What of this process could have forbidden it; the kernel does not say which. */
static const char *suspect(void)
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

/* All of it is open. */
static int say_open(uintptr_t start, uintptr_t end, enum pc_text_way *way, char *reason,
		    size_t size)
{
	const struct page *aliased = NULL;

	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		if (!page_may_be_written(page)) {
			*way = PC_TEXT_ALIAS;
			snprintf(reason, size,
				 "the alias is shared with the parent process: no copy was made "
				 "when it forked");
			return -EACCES;
		}
		if (page_shift(page))
			aliased = page;
	}
	*way = aliased ? PC_TEXT_ALIAS : PC_TEXT_OPEN;
	if (aliased && text_child_is_late()) {
		snprintf(reason, size, "a child of fork() still runs these pages");
		return -EAGAIN;
	}
	if (aliased)
		snprintf(reason, size, "written through an alias at %p",
			 (void *)page_alias(aliased));
	else
		snprintf(reason, size, "the pages are kept writable");
	return 0;
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
			 suspect());
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
