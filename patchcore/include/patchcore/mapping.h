/* SPDX-License-Identifier: MIT */
/*
 * How the library may write to pages that are not writable: three ways, of which the caller
 * chooses. See pc_text(3).
 *
 * Every function returns 0 or a negative errno, and is thread-safe. None is async-signal-safe, and
 * none may be called in the child of vfork(2). Close a range before it is unmapped, or pc_forget()
 * it.
 */
#ifndef PATCHCORE_MAPPING_H
#define PATCHCORE_MAPPING_H

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* How a change of some code is written. */
enum pc_text_way {
	/* Without a choice: mprotect(2) around each change; the pages are writable meanwhile. */
	PC_TEXT_PROTECT = 0,
	/* pc_text_open(): the pages are kept writable. The fastest, no system call. */
	PC_TEXT_OPEN = 1,
	/* pc_text_alias(): written where they are mapped once more: as fast, no page is both. */
	PC_TEXT_ALIAS = 2,
};

/*
 * pc_text_open - keep the pages of [addr, addr + len) writable until closed.
 *
 * Also the way to tell the library about code mapped writable by the caller (a JIT). Nests. Pages
 * that have an alias keep it. Huge pages (MAP_HUGETLB) are opened whole. -EINVAL, -EFAULT, -EACCES,
 * -ENOMEM; -EPERM: a shared mapping. Then no page is open that was not before.
 */
int pc_text_open(void *addr, size_t len);

/*
 * pc_text_open_shared - the same, also for shared mappings: of a file, or of memory.
 *
 * What is patched there shows in all processes that map it, and nothing keeps them from running
 * half of a change: for a caller who knows that no other process runs that code meanwhile. Without
 * it a change of such a mapping fails with -EPERM. So does this, where this process maps the same
 * executable at other addresses, too.
 */
int pc_text_open_shared(void *addr, size_t len);

/*
 * pc_text_alias - give the pages of [addr, addr + len) an alias to write to.
 *
 * Copies them into memory of their own (memfd_create(2)), and maps that in their place, with the
 * protection they had but never writable, and once more at another address, writable and never
 * executable. Threads may run the code meanwhile. Nests. A file or shared memory that was mapped
 * there does not show any more, and huge pages become small ones.
 *
 * fork(2) gives parent and child each their own copy. Where that cannot be made, and after a fork
 * that skips the handlers of pthread_atfork(3), patches in the child fail with -EACCES.
 *
 * -EBUSY: a page is open, a change there is under way, or a uprobe or a debugger has an INT3 there.
 * -EINVAL, -EFAULT, -EACCES, -ENOMEM, -EMFILE, -ENFILE. Then nothing has changed.
 */
int pc_text_alias(void *addr, size_t len);

/*
 * pc_text_close - undo one of the above, of the same addr and len.
 *
 * Pages that no caller has open any more get the protection back that they had before, or keep the
 * one that the program gave them since; with an alias, they become private memory again, as they
 * read now. Changes of these pages that are under way are waited for, and those in flight are
 * finished.
 *
 * -ETIMEDOUT (a thread in the middle of a change sleeps, or has no CPU), -EAGAIN: the pages are
 * still open, to be closed later. -ENOENT: not open, or forgotten. -EINVAL. -EACCES, -ENOMEM,
 * -EMFILE, -ENFILE: closed, but some page could not get its protection back yet.
 */
int pc_text_close(void *addr, size_t len);

/*
 * pc_text_way - how a change of [addr, addr + len) would be written, and why.
 * @way:    out: of several pages, the way of the slowest
 * @reason: out: one line, may be NULL
 * @size:   of reason, bytes; 128 hold any
 *
 * Finds out by trying: where no caller has them open, the pages are made writable and get their
 * protection back. After -EACCES, -EPERM, -ENOMEM, -EAGAIN and -EFAULT a change there would fail
 * so, and way and reason say what was refused and by whom. With -EINVAL and -ESHUTDOWN they are as
 * they were.
 */
int pc_text_way(void *addr, size_t len, enum pc_text_way *way, char *reason, size_t size);

__END_DECLS
#endif
