/* SPDX-License-Identifier: MIT */
/*
 * The real-time signal that a look at all threads is made by: which one is free, whose handler
 * stands there, what becomes of one that another has sent, and how it is given back. For others.c;
 * the thread that has the round calls all of this but look_signal_pass_on(). NOPATCH.
 */
#ifndef PATCHCORE_MERGE_LOOK_SIGNAL_H
#define PATCHCORE_MERGE_LOOK_SIGNAL_H

#include <signal.h>
#include <stdint.h>

extern int look_signal; /* 0: none was ever taken */

/*
 * look_signal_choose - take one that no thread uses or has pending, for the handler, always the
 * same: that of the last round if it will still do. 0 or -EAGAIN: none is free.
 */
int look_signal_choose(void (*handler)(int signal, siginfo_t *info, void *context), uint64_t used,
		       uint64_t pending);

/* look_signal_pass_on - in the handler: a signal that is not of the library. */
void look_signal_pass_on(int signal, siginfo_t *info);

/* look_signal_forget_change - in a child whose parent was changing a handler when it forked. */
void look_signal_forget_change(void);

/* look_signal_give_back - see others_give_back(). */
void look_signal_give_back(void);

#endif
