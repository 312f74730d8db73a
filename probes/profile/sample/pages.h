/* SPDX-License-Identifier: MIT */
/*
 * Pages of code that are kept writable: turning probes off and on costs no system call then.
 *
 * Of the caller who has the lock of epochs.
 */
#ifndef PROBES_PROFILE_SAMPLE_PAGES_H
#define PROBES_PROFILE_SAMPLE_PAGES_H

#include <stdint.h>

#include "probes/include/fastinst.h"

/* Probes of one object that come one behind the other. */
struct pages_range {
	const char *object;
	uintptr_t from, to;
};

/* pages_note - one more; *range begins as zeros. Where another object begins the range before is
 * opened, by pages_open() as the last one is. */
void pages_note(struct pages_range *range, const struct fi_probe *probe);

/* pages_open - where it is refused, each change has its system calls. Nothing is from == to. */
void pages_open(uintptr_t from, uintptr_t to);

/*
 * pages_close - all of them. What cannot be closed now, as a thread of the program is about to
 * store there, stays listed. So does what is closed, and has not got its protection back: the next
 * try finds it closed. Negative errno.
 */
int pages_close(void);

#endif
