/* SPDX-License-Identifier: MIT */
/*
 * Code mappings: how the library may write to pages that are not writable.
 *
 * There are three ways (enum pc_text_way), and the caller chooses.
 *
 * Every function returns 0 or a negative errno, and is thread-safe: -ESHUTDOWN
 * before pc_init() and after pc_fini(); -EAGAIN while another thread forks, and sleeps for a
 * minute. None is async-signal-safe, and none may be called in the child of vfork(2).
 *
 * Each looks at how the range is mapped, and so does a change of a page that is not open. Since
 * Linux 6.11 that takes as long as the range has mappings (PROCMAP_QUERY); before, as long as there
 * are mappings below its end.
 *
 * Close a range before it is unmapped, or pc_forget() it. Else pages that show another file since,
 * or are not writable any more, are noticed when they are next opened, closed, borrowed by a
 * change, copied by fork(2), or given back by pc_fini(), and left as they are. Memory of no file,
 * mapped there anew with the protection that the library gave, is taken for the old, and a change
 * of a page that is open does not look.
 *
 * -ENOTSUP: under PC_POLICY_QUIET none of them opens or closes anything.
 */
#ifndef PATCHCORE_MAPPING_H
#define PATCHCORE_MAPPING_H

#include <stddef.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* How a change of some code is written. */
enum pc_text_way {
	/*
	 * Without a choice: mprotect(2) around it, about four system calls for each change, and the
	 * pages are writable meanwhile.
	 */
	PC_TEXT_PROTECT = 0,
	/* pc_text_open(): the pages are kept writable. The fastest, no system call. */
	PC_TEXT_OPEN = 1,
	/*
	 * pc_text_alias(): the pages are mapped a second time, writable and not executable, at
	 * another address: as fast, and no page is ever both.
	 */
	PC_TEXT_ALIAS = 2,
};

/*
 * pc_text_open - keep the pages of [addr, addr + len) writable until closed.
 *
 * Also the way to tell the library about code mapped writable by the caller (a JIT). Nests. Pages
 * that have an alias keep it. Huge pages (MAP_HUGETLB) are opened whole.
 *
 * -EINVAL: len is 0, or the range wraps. -EFAULT: not mapped. -EACCES: refused;
 * pc_text_way() says why. -EPERM: a shared mapping, see pc_text_open_shared().
 * -ENOMEM: also if it is longer than 4 GiB. Then no page is open that was not before.
 */
int pc_text_open(void *addr, size_t len);

/*
 * pc_text_open_shared - the same, also for shared mappings (MAP_SHARED, of a file or not).
 *
 * What is patched there changes the file, or the memory, for all that map it: other
 * processes run it, too, and children of fork(2). None of them is reached by what keeps
 * this process's threads from running half of a change: a wait and membarrier are for
 * threads of this process, and an INT3 of this library is a SIGTRAP that no process
 * there expects. So it is for a caller who knows that no other process runs that code
 * while it changes. All other ways to change such a mapping fail with -EPERM: pc_text_open(), and
 * every patch of a page that is not opened by this, or written through an alias.
 *
 * Errors as pc_text_open(), but -EPERM: this process maps the same executable at other addresses,
 * too, where a thread would meet an INT3 that the library knows nothing of. To be asked for last:
 * such a mapping that is made later goes unnoticed.
 */
int pc_text_open_shared(void *addr, size_t len);

/*
 * pc_text_alias - give the pages of [addr, addr + len) an alias to write to.
 *
 * Copies them into memory of their own (memfd_create(2)), and maps that in
 * their place, with the protection they had but never writable, and once more
 * at another address, writable and never executable. Threads may run the code
 * meanwhile. Nests, also over pages that have an alias already.
 *
 * Where the system forbids pages that are writable and executable (PR_SET_MDWE,
 * a seccomp filter, SELinux's execmem and execmod), this may still be allowed.
 * The pages no longer show the file that they came from: /proc/PID/maps names
 * "memfd:patchcore". Huge pages become small ones. A shared mapping is no longer
 * shared: what others write to it does not show here any more, and the reverse.
 *
 * fork(2) gives parent and child each their own copy, which costs a copy of all pages with an
 * alias, and one file descriptor meanwhile. Where that copy cannot be made, and after a fork that
 * skips the handlers of pthread_atfork(3), the child shares the code with its parent: what is
 * patched there shows in both, so that in the child patches fail with -EACCES. vfork(2) and
 * posix_spawn(3) cost nothing.
 *
 * -EBUSY: a page is open, or a change there is under way or in flight; or a page of a file has an
 * INT3 where the file has none: a uprobe's, or a debugger's, which would stay in the copy and end
 * the program. It is noticed where the file can still be opened by its name. -EINVAL, -EFAULT,
 * -EACCES (refused), -ENOMEM (as pc_text_open()), -EMFILE, -ENFILE. Then nothing has changed.
 */
int pc_text_alias(void *addr, size_t len);

/*
 * pc_text_close - undo one of the above, of the same addr and len.
 *
 * Pages that no caller has open any more get the protection back that they had
 * before, or keep the one that the program gave them since; with an alias, they become private
 * memory again, as they read now. Changes of these pages that are under way are waited for, and
 * those in flight are finished.
 *
 * -ETIMEDOUT: a thread in the middle of a change has slept for a second, as under a
 * debugger, or has got no CPU for 16. Then the pages are still open, to be closed later.
 * -EAGAIN (another thread forks), -ENOMEM (by membarrier): the same.
 *
 * -ENOENT: not open, or forgotten since the code was unmapped, or made read-only. -EINVAL: len is
 * 0, or the range wraps. -EACCES, -ENOMEM, -EMFILE, -ENFILE: closed, but the kernel refused to give
 * some page its protection back. The library tries again when such a page is next opened and
 * closed, or patched.
 */
int pc_text_close(void *addr, size_t len);

/*
 * pc_text_way - how a change of [addr, addr + len) would be written, and why.
 * @way:    out: of several pages, the way of the slowest
 * @reason: out: one line, may be NULL
 * @size:   of reason, bytes; 128 hold any
 *
 * Finds out by trying: where no caller has them open, the pages are made writable
 * and get their protection back.
 *
 * -EACCES, -EPERM, -ENOMEM, -EAGAIN (a child of fork(2) still runs the pages), -ENOTSUP: a change
 * there would fail so; way and reason say which was refused and by whom. -EFAULT: not mapped, or
 * behind the end of its file; reason says so. -EINVAL: way is NULL, len is 0, or the range wraps.
 * With -EINVAL and -ESHUTDOWN, way and reason are as they were.
 */
int pc_text_way(void *addr, size_t len, enum pc_text_way *way, char *reason, size_t size);

__END_DECLS
#endif
