/* SPDX-License-Identifier: MIT */
/*
 * Pages of code that are kept writable: turning probes off and on costs no system call then.
 *
 * Of the caller who has the lock of epochs.
 */
#ifndef PROFILE_SAMPLE_PAGES_H
#define PROFILE_SAMPLE_PAGES_H

/*
 * pages_note - a site that is to be in open pages, after those of the same object. pages_open -
 * open all that were noted. Where that is refused, each change has its system calls.
 */
void pages_note(const char *object, const void *site);
void pages_open(void);

/*
 * pages_close - all. What cannot be closed or protected now stays listed, for the next try: a
 * thread may be about to store there. Negative errno.
 */
int pages_close(void);

#endif
