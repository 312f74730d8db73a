/* SPDX-License-Identifier: MIT */
/*
 * Signals that end a process (SIGHUP, SIGINT, SIGQUIT, SIGTERM), and what a command has to do
 * before it ends.
 */
#ifndef AGENT_LAUNCH_ENDING_H
#define AGENT_LAUNCH_ENDING_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * ending_hold - blocks these signals: there is something to remove, and what does it is not ready.
 * ending_let - unblocks them. Both in the calling thread; each may be called again.
 */
void ending_hold(void);
void ending_let(void);

/*
 * ending_wait - waits for a child, as waitpid(2), and unblocks the signals. One that is sent to
 * this process alone is passed on to the child; those of the terminal reach both. None ends this
 * process before the child. Signals that were ignored stay so.
 */
int ending_wait(pid_t child, int *status);

/* ending_is_over - a process has ended, and may be a zombie. */
bool ending_is_over(pid_t pid);

/*
 * ending_note - unblocks the signals, and notes them. Those that were ignored stay so.
 * ending_noted - one has come.
 * ending_until - waits until one comes, the process has ended, or so many seconds are over (0: as
 * long as it takes).
 */
void ending_note(void);
bool ending_noted(void);
void ending_until(pid_t pid, double seconds);

/* ending_ignore - a signal, by a handler, which programs that are run do not inherit. */
void ending_ignore(int number);

#endif
