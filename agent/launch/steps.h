/* SPDX-License-Identifier: MIT */
/* Steps of inject.c that are in files of their own. */
#ifndef AGENT_LAUNCH_STEPS_H
#define AGENT_LAUNCH_STEPS_H

#include "agent/launch/inject.h"
#include "agent/launch/target.h"

/* --- stop.c: threads of another process, stopped by ptrace(2) and let go ---------------------- */

struct threads {
	pid_t *id;
	size_t n;
};

/* list_threads - to be freed. None: the process has ended, or there is no memory. */
struct threads list_threads(const struct target *target);

/* wait_stop - as waitpid() tells it; -1: the thread did not stop in time, or has ended. */
int wait_stop(pid_t thread, double patience);

/* interrupt_thread - stop a seized thread. Signals that stop it first are delivered to it. */
bool interrupt_thread(pid_t thread);

/* release_thread - let a thread go from where it was stopped. */
void release_thread(pid_t thread);

/*
 * resume_call - have the kernel start an interrupted system call again, unless a signal handler
 * runs. restart_call - do to the registers what the kernel does then.
 */
void resume_call(struct user_regs_struct *regs);
void restart_call(struct user_regs_struct *regs);

void pause_us(long us);

/*
 * read_answer - answer.c: wait for the answer of the entry function, and let the thread that was
 * made end, after unloading the library if inject->unload says so. 0 or an error, as
 * inject_library().
 */
int read_answer(struct inject *inject, struct target *target, struct letter *letter);

#endif
