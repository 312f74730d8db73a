/* SPDX-License-Identifier: MIT */
/*
 * Pages of code that are kept writable: turning probes off and on costs no system call then.
 *
 * Of the caller who has the lock of epochs.
 */
#ifndef PROBES_PROFILE_SAMPLE_PAGES_H
#define PROBES_PROFILE_SAMPLE_PAGES_H

#include <stdint.h>

/* pages_open - where it is refused, each change has its system calls. Nothing is from == to. */
void pages_open(uintptr_t from, uintptr_t to);

/*
 * pages_close - all of them. What cannot be closed now, as a thread of the program is about to
 * store there, stays listed. So does what is closed, and has not got its protection back: the next
 * try finds it closed. Negative errno.
 */
int pages_close(void);

#endif
