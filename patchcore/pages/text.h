/* SPDX-License-Identifier: MIT */
/* Pages of code: which are writable, and making them so. Private; the public half is mapping.h. */
#ifndef PATCHCORE_PAGES_TEXT_H
#define PATCHCORE_PAGES_TEXT_H

#include "patchcore/site/site.h"

/*
 * text_begin - enter the library (fork_enter()), and let one patch write [addr, addr + len), at
 * most a page long.
 *
 * Async-signal-safe where a caller holds the pages open or aliased; it waits only while another
 * thread forks. Else the pages are made writable and the span says so. -EFAULT, -EACCES,
 * -ENOMEM, -EPERM (others see what is changed there): nothing changed, and the caller is outside.
 *
 * text_end - that patch is written: leave. Async-signal-safe unless span->loan.
 */
int text_begin(struct text_span *span, void *addr, size_t len);
void text_end(struct text_span *span);

/*
 * text_return_kept - the same of a span whose thread has left the library (fork_leave()) before the
 * patch was written. The thread that writes it later is inside then: between the handlers of its
 * own fork the child's copy gets what was written, too.
 */
void text_return_kept(struct text_span *span);

/*
 * text_span_is_ours - may this process write there? Not in the child of a fork that could not have
 * a copy of the alias. text_is_stale - is that so for the page of addr? Async-signal-safe.
 */
bool text_span_is_ours(const struct text_span *span);
bool text_is_stale(uintptr_t addr);

/*
 * text_follow - right before a store of a change that has begun: the thread may have forked since
 * past the handlers, in the handler of a signal, and go on with the change in the child. There an
 * alias that is still the parent's is let go first: the store changes nothing, and this says false.
 */
bool text_follow_alias(const struct text_span *span);

NOPATCH_INLINE bool text_follow(const struct text_span *span)
{
	return __builtin_expect(!(span->shift[0] | span->shift[1]), 1) || text_follow_alias(span);
}

/*
 * text_read - copy len bytes of code, whose protection stays what it is. 0; 1: they are there, but
 * loads may fault (execute-only code). -EFAULT: not mapped, or cannot be read. -EACCES: the system
 * allows no such look. What changes meanwhile may be read in part. Async-signal-safe.
 */
int text_read(void *buffer, const void *addr, size_t len);

/*
 * text_forget - the owner of [start, end) has unmapped it or is about to. Pages that lie in it as a
 * whole count as closed, and their aliases are given up; memory that is mapped there is not
 * touched. No patch there may be under way. text_end_outside - text_end() of a change there that is
 * given up: pages beyond the range are given back, a huge page once, however many of its parts the
 * span has.
 */
void text_forget(uintptr_t start, uintptr_t end);
void text_end_outside(const struct text_span *span, uintptr_t start, uintptr_t end);

/*
 * text_give_back - close all that is open and lies there still; no patch is under way. 0, or as
 * pc_text_close().
 */
int text_give_back(void);

/*
 * For fork.c, in its order: copy the pages with an alias; wait for the child and drop the copy;
 * take the place of the parent, in the child (async-signal-safe); drop the copy there.
 * text_copy_again - what the forking thread has written since goes into the copy too.
 */
void text_before_fork(void);
void text_after_fork(void);
void text_adopt(void);
void text_drop_copy(void);
void text_copy_again(const struct text_span *span);

/*
 * text_child_is_late - is there a child that had its time after a fork and still runs this
 * process's pages? Then none with an alias is changed. Async-signal-safe. text_drop_late - in a
 * child.
 */
bool text_child_is_late(void);
void text_drop_late(void);

/*
 * text_give_back_borrowed - in a child: pages that threads had borrowed that are not here get their
 * protection back. After their changes are over, and if the calling thread has borrowed none.
 */
void text_give_back_borrowed(void);

/* --- What the kernel says is mapped where ----------------------------------------------------- */

/* What a page shows: a page of a file, or all 0 for private memory. Shared memory is a file too. */
struct origin {
	uint64_t device;
	uint64_t inode;
	uint64_t offset;
};

/* One stretch of /proc/self/maps. */
struct mapping {
	uintptr_t start;
	uintptr_t end;
	int prot;
	bool shared;	      /* a change shows in other mappings of the same */
	size_t page_size;     /* bytes; before Linux 6.11 2 MiB if that could be */
	struct origin origin; /* of its first page */
};

typedef int mapping_fn(const struct mapping *map, void *arg);
enum mapping_kind {
	MAPPING_ANY,
	MAPPING_SHARED
};

/*
 * mappings_each - call fn for those that share a byte with [start, end), in order, until it returns
 * non-zero, and return that; or 0, -EACCES, -ENOMEM. Takes no lock and no memory. Before Linux
 * 6.11 all mappings below end are read as text; since then only these are asked for.
 */
int mappings_each(uintptr_t start, uintptr_t end, enum mapping_kind kind, mapping_fn *fn,
		  void *arg);

/* For tests: as before Linux 6.11. */
extern bool mappings_by_text;

/* mapping_origin - what the page at addr, inside it, shows. */
struct origin mapping_origin(const struct mapping *map, uintptr_t addr);

static inline bool origin_same(struct origin a, struct origin b)
{
	return a.device == b.device && a.inode == b.inode && a.offset == b.offset;
}

/* A file without a name, mapped for writing. */
struct memory {
	int fd;	     /* -1: there is none */
	uint8_t *at; /* NULL: not mapped */
	size_t len;
	struct origin origin;
};

/*
 * memory_make - all of it is there. 0, or -ENOMEM, -EMFILE, -ENFILE, -EINVAL, -EACCES and there is
 * none. memory_drop - unmap and close what there is.
 */
int memory_make(struct memory *memory, size_t len);
void memory_drop(struct memory *memory);

/* mapping_page_size - of the mapping at addr. The usual where there is none. */
size_t mapping_page_size(uintptr_t addr);

/* --- Protection keys in signal handlers ------------------------------------------------------- */

/*
 * The kernel runs a handler with the rights that a thread has at first: to key 0 and no other.
 * Execute-only code has a key of its own, and a program may give its code one by pkey_mprotect(2):
 * a handler that reads such code, or writes to it, must first allow itself to.
 */

/* Do the processor and the kernel have them? Looked up when the library is loaded. */
extern bool pkeys_on;

NOPATCH_INLINE void pkeys_set(uint32_t rights)
{
	__asm__ volatile(".byte 0x0f, 0x01, 0xef" : : "a"(rights), "c"(0), "d"(0) : "memory");
}

/*
 * pkeys_open - the calling thread may read and write all that the pages' protection allows.
 * pkeys_close - as before, which is what the other returned. Nothing, without protection keys.
 * Async-signal-safe.
 */
NOPATCH_INLINE uint32_t pkeys_open(void)
{
	uint32_t rights, zero;

	if (!pkeys_on)
		return 0;
	__asm__ volatile(".byte 0x0f, 0x01, 0xee" : "=a"(rights), "=d"(zero) : "c"(0) : "memory");
	pkeys_set(0);
	return rights;
}

NOPATCH_INLINE void pkeys_close(uint32_t rights)
{
	if (pkeys_on)
		pkeys_set(rights);
}

/* --- The program and its shared libraries, as they come and go -------------------------------- */

/*
 * objects_each_gone - call gone for each object that was loaded at the last call and is not any
 * more, with the addresses that it covered. An object of another file or build-id at the same
 * address is not the same; the same file, loaded again at the same place, is.
 *
 * To be called before anything is noted down about an address, so that every object is known
 * that something was noted about. Cheap when nothing was loaded or unloaded. Waits for the dynamic
 * linker's lock, so the caller must hold none that a callback of dl_iterate_phdr(3) might want. 0
 * or -ENOMEM. Does nothing in the child of a process that had threads: one of them may have left
 * the linker's lock behind.
 */
int objects_each_gone(void (*gone)(uintptr_t start, uintptr_t end));

/*
 * forget_gone - in life/: forget what is in flight in objects that dlclose() took away. To be
 * called, with no lock held, before a site becomes known. As cheap. Not async-signal-safe.
 */
void forget_gone(void);

/* For fork.c: in the parent before fork(), and in the child. */
void objects_before_fork(void);
void objects_in_child(void);

#endif
