/* SPDX-License-Identifier: MIT */
/*
 * Signals that end a process (SIGHUP, SIGINT, SIGQUIT, SIGTERM), and what a command has to do
 * before it ends.
 */
#ifndef PROBES_LAUNCH_ENDING_H
#define PROBES_LAUNCH_ENDING_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * ending_hold - from now on they wait: there is something to remove, and what does it is not ready.
 * ending_let - they come. In the thread that calls; each may be called again.
 */
void ending_hold(void);
void ending_let(void);

/*
 * ending_wait - wait for a child, which gets those that are sent to this process alone: those of
 * the terminal it gets without. This process ends when the child has. Signals that were ignored
 * stay so. While they are held; afterwards they come, and end nothing but waits. As waitpid(2).
 */
int ending_wait(pid_t child, int *status);

/* ending_is_over - a process has ended, be it that nothing has reaped it yet. */
bool ending_is_over(pid_t pid);

/*
 * ending_note - from now on they come, and are noted. Those that were ignored stay so.
 * ending_noted - one has come.
 * ending_until - wait until one comes, the process has ended, or so many seconds are over (0: as
 * long as it takes).
 */
void ending_note(void);
bool ending_noted(void);
void ending_until(pid_t pid, double seconds);

/* ending_ignore - a signal, by a handler, which programs that are run do not inherit. */
void ending_ignore(int number);

#endif
