/* SPDX-License-Identifier: MIT */
/*
 * How a change would be written, in words.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "patchcore/mapping.h"
#include "patchcore/site/cancel.h"
#include "patchcore/site/fork.h"
#include "patchcore/text/alias.h"
#include "patchcore/text/text.h"
#include "patchcore/text/text_page.h"

#ifndef PR_GET_MDWE
#define PR_GET_MDWE 66 /* Linux 6.3 */
#endif

struct line {
	char *text;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static void say(const struct line *line, const char *format,
						      ...)
{
	va_list args;

	if (!line->text)
		return;
	va_start(args, format);
	vsnprintf(line->text, line->size, format, args);
	va_end(args);
}

/* --- What has forbidden it -------------------------------------------------------------------- */

static bool has_filter(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	int mode = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	if (file)
		fclose(file);
	return mode > 0;
}

static bool has_selinux(void)
{
	FILE *file = fopen("/sys/fs/selinux/enforce", "re");
	int enforcing = file ? getc(file) == '1' : 0;

	if (file)
		fclose(file);
	return enforcing;
}

/* What of this process could have forbidden it; the kernel does not say which. */
static const char *suspect(void)
{
	if (prctl(PR_GET_MDWE, 0, 0, 0, 0) > 0)
		return "PR_SET_MDWE is in force";
	if (has_filter())
		return "a seccomp filter is in force";
	if (has_selinux())
		return "SELinux is enforcing";
	return "a security module, perhaps";
}

/* --- The way --------------------------------------------------------------------------------- */

/* All of it is open. */
static int say_open(uintptr_t start, uintptr_t end, enum pc_text_way *way, const struct line *line)
{
	const struct page *aliased = NULL;

	for (uintptr_t p = start; p < end; p += TEXT_PAGE) {
		struct page *page = page_find(p);

		if (!page_may_be_written(page)) {
			*way = PC_TEXT_ALIAS;
			say(line, "the alias is shared with the parent process: %s",
			    page->callers ? "it is the caller's, and is not copied"
					  : "no copy was made when it forked");
			return -EACCES;
		}
		if (page_shift(page))
			aliased = page;
	}
	*way = aliased ? PC_TEXT_ALIAS : PC_TEXT_OPEN;
	if (aliased)
		say(line, "written through an alias at %p",
		    (void *)(aliased->entry.addr + (uintptr_t)page_shift(aliased)));
	else
		say(line, "the pages are kept writable");
	return 0;
}

static int say_refused(int ret, const struct line *line)
{
	const char *name = strerrorname_np(text_refused_with);

	if (ret == -EFAULT)
		say(line, "some of it is not mapped");
	else if (ret == -EPERM)
		say(line, "a shared mapping: a change shows wherever the same is mapped, see "
			  "pc_text_open_shared()");
	else if (ret == -EACCES && text_refused_with)
		say(line, "mprotect was denied with %s: %s", name ? name : "?", suspect());
	else if (ret == -EACCES)
		say(line, "/proc/self/maps cannot be read");
	else
		say(line, "no memory for it, or too many mappings");
	return ret;
}

static int say_protect(uintptr_t start, uintptr_t end, const struct line *line)
{
	uint64_t loan;
	int ret = text_borrow(start, end, &loan), prot;

	if (ret < 0)
		return say_refused(ret, line);
	prot = page_find(start)->prot;
	text_return(start, end, loan);
	if (prot & PROT_WRITE)
		say(line, "the pages are writable already, which each change looks up");
	else
		say(line, "each change makes the pages writable and gives their protection back");
	return 0;
}

static int say_way(uintptr_t start, uintptr_t end, enum pc_text_way *way, const struct line *line)
{
	text_forget_unmapped();
	if (text_is_open(start, end))
		return say_open(start, end, way, line);
	*way = PC_TEXT_PROTECT;
	return say_protect(start, end, line);
}

int pc_text_way(void *addr, size_t len, enum pc_text_way *way, char *reason, size_t size)
{
	const struct line line = { size ? reason : NULL, size };
	uintptr_t start, end;
	int ret = way ? text_asked(addr, len, &start, &end) : -EINVAL, cancel;
	struct thread *self;

	if (ret < 0)
		return ret;
	ret = fork_enter(&self);
	if (ret < 0)
		return ret;
	cancel = cancel_hold();
	ret = say_way(start, end, way, &line);
	cancel_let(cancel);
	fork_leave(self);
	return ret;
}
