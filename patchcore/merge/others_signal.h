/* SPDX-License-Identifier: MIT */
/*
 * The signal by which other threads are interrupted: which one it is, and its handler in the
 * kernel. Private to this room; others.h says by what rules. All is NOPATCH.
 */
#ifndef PATCHCORE_MERGE_OTHERS_SIGNAL_H
#define PATCHCORE_MERGE_OTHERS_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Its number; 0: none was ever taken. Chosen by the thread that has the round. */
extern int others_signal;

/* on_look_signal - its handler, in others.c. */
void on_look_signal(int signal, siginfo_t *info, void *context);

/* How it is now with the real-time signals of all threads. */
struct signal_use {
	uint64_t used;	  /* by some thread: see task_uses() */
	uint64_t pending; /* the library's own too, of rounds that are over */
};

/*
 * signal_will_do - without a look at the threads: the signal is ours, and as far as is known none
 * has a use for it. signal_choose - one that is in use by none. 0, or -EAGAIN: there is none.
 */
bool signal_will_do(void);
int signal_choose(const struct signal_use *now);

/* signal_pass_on - for the handler: this one was sent by another. */
void signal_pass_on(int signal, siginfo_t *info);

/* signal_give_back_all - those that were taken and are not pending get their default again. */
void signal_give_back_all(uint64_t pending);

/* signal_forked - no thread is changing a handler here. */
void signal_forked(void);

#endif
