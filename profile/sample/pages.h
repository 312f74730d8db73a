/* SPDX-License-Identifier: MIT */
/*
 * Pages of code that are kept writable: turning probes off and on costs no system call then.
 *
 * Of the caller who has the lock of epochs.
 */
#ifndef PROFILE_SAMPLE_PAGES_H
#define PROFILE_SAMPLE_PAGES_H

/*
 * pages_note - a site that is to be in open pages, after those of the same object.
 * pages_open - open the pages of all that were noted. Where that is refused, each change has its
 * system calls.
 */
void pages_note(const char *object, const void *site);
void pages_open(void);

/*
 * pages_close - all of them. What cannot be closed now, as a thread of the program is about to
 * store there, stays listed. So does what is closed, and has not got its protection back: the next
 * try finds it closed. Negative errno.
 */
int pages_close(void);

#endif
