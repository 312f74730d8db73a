/* SPDX-License-Identifier: MIT */
/*
 * A library put into a process that runs, by ptrace(2).
 *
 * One thread of the process is stopped, for less than a millisecond where all goes well, and calls
 * pthread_create() of its C library. The new thread loads the library and calls a function of it.
 * No other thread is stopped.
 *
 * Why pthread_create() and not clone(2): dlopen() needs thread-local storage (errno, the loader's
 * exceptions, malloc's caches), which a thread made by clone(2) shares with the one that was
 * interrupted, in any state. Why not dlopen() by the interrupted thread itself: it would
 * wait there for locks of the loader, run constructors on a stack of unknown size, and be stopped
 * for all that time. pthread_create() takes the lock of malloc and two of the C library's own. A
 * thread at a place that target_safe() accepts holds none of them, and other threads run on and
 * give theirs back.
 */
#ifndef AGENT_LAUNCH_INJECT_H
#define AGENT_LAUNCH_INJECT_H

#include <sys/types.h>

#include "agent/launch/target.h"

struct inject {
	pid_t pid;
	const char *library; /* absolute path, the same in the process */
	const char *entry;   /* a function of it: int entry(const char *text) */
	const char *text;
	const char *unload; /* another text, or NULL */
	/* --- what came of it --- */
	int result;	      /* of the entry function */
	double stopped;	      /* seconds that a thread of the process was stopped, in all */
	pid_t inside;	      /* after -EBUSY: a thread that is in that code */
	unsigned attempts;    /* moments that were looked at */
	char why[TARGET_WHY]; /* after an error: one line */
};

/*
 * inject_library - 0: the entry function has returned, result is what. Else a negative errno, and
 * why. The process runs on as before, unless why says what is left behind. Takes five seconds at
 * most to find a moment, and ten more for the library. Signals that come meanwhile wait for its
 * end.
 *
 * With unload it is the other way round: where the entry function has returned 0, its text is the
 * size of pieces of code that it made, and where each is, as hexadecimal numbers. All threads are
 * stopped, each at a place where it holds no lock, is not in fork(), and does not come back to such
 * a piece or to the library. Then the entry function is called with that other text, and returns
 * how often the library was opened before; it is closed so often, and the threads go on. -EBUSY: a
 * thread came to no such place within three seconds.
 */
int inject_library(struct inject *inject);

/* inject_complain - "cannot DO process PID", with why, or the error of ret. Returns 1. */
int inject_complain(const struct inject *inject, int ret, const char *what);

#endif
