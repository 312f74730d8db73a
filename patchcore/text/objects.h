/* SPDX-License-Identifier: MIT */
/* The program and its shared libraries, as they come and go. Private. */
#ifndef PATCHCORE_TEXT_OBJECTS_H
#define PATCHCORE_TEXT_OBJECTS_H

#include <stdint.h>

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
