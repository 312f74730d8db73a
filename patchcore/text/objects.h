/* SPDX-License-Identifier: MIT */
/* The program and its shared libraries, as they come and go. Private. */
#ifndef PATCHCORE_TEXT_OBJECTS_H
#define PATCHCORE_TEXT_OBJECTS_H

#include <stddef.h>

#include "patchcore/site/lock.h"

struct object;

/* What was loaded at the last look. */
struct objects_view {
	struct lock lock;
	struct object *list;
	size_t count;
	uint64_t loads, unloads;
};

#define OBJECTS_VIEW_INIT                                                                          \
	{                                                                                          \
		.lock = LOCK_INIT                                                                  \
	}

/*
 * objects_each_gone - call gone for each object that was loaded when the view was last looked at
 * and is not any more, with the addresses that it covered, and look again. An object of another
 * base, file or build-id at the same address is not the same; the same file, loaded again at the
 * same place, is.
 *
 * To be called before anything is noted down about an address, so that the view knows every object
 * that something was noted about. Cheap when nothing was loaded or unloaded. Waits for the dynamic
 * linker's lock, so the caller must hold none that a callback of dl_iterate_phdr(3) might want. 0
 * or -ENOMEM. Does nothing in the child of a process that had threads: one of them may have left
 * the linker's lock behind.
 */
int objects_each_gone(struct objects_view *view, void (*gone)(uintptr_t start, uintptr_t end));

/*
 * forget_gone - in life/: forget what is in flight in objects that dlclose() took away. To be
 * called, with no lock held, before a site becomes known. As cheap. Not async-signal-safe.
 */
void forget_gone(void);

/* For fork.c: in the parent before fork(), and in the child. */
void objects_before_fork(void);
void objects_in_child(void);

#endif
