/* SPDX-License-Identifier: MIT */
/*
 * A thread that stands at one place of code: another process stops it there, as a pre-emption
 * would, and lets it go when a look waits for it, or the code is changed. For tests in a child.
 */
#ifndef PATCHCORE_TESTS_STAND_H
#define PATCHCORE_TESTS_STAND_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <time.h>

#include "patchcore/tests/child.h"

/* The kernel's id of the thread, which runs the code again and again. */
static _Atomic(pid_t) stander;

struct stand {
	const uint8_t *at;	/* where it is to stand */
	bool interrupt;		/* and then be in a handler of SIGUSR1 */
	bool in_look;		/* or at the beginning of the look's handler, and not be let go */
	const uint8_t *changed; /* it is let go when these len bytes stand there */
	const uint8_t *bytes;
	size_t len;
};

/* Which of the two it was. */
enum {
	STAND_SAW_SIGNAL = 1,
	STAND_SAW_CHANGE = 2
};

static inline bool stand_has_signal(pid_t tid)
{
	char path[64], line[256];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)getppid(), (int)tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "SigPnd:", 7) == 0 &&
		    strtoull(line + 7, NULL, 16) >> (SIGRTMIN - 1))
			found = true;
	if (file)
		fclose(file);
	return found;
}

static inline bool stand_sees_change(const struct stand *stand)
{
	for (size_t i = 0; i < stand->len; i++)
		if ((uint8_t)ptrace(PTRACE_PEEKTEXT, stander, stand->changed + i, 0) !=
		    stand->bytes[i])
			return false;
	return true;
}

static inline void stand_step(const struct stand *stand)
{
	struct user_regs_struct regs;
	pid_t tid = stander;
	int status;

	MUST(ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 && ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0);
	for (;;) {
		MUST(waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status));
		MUST(ptrace(PTRACE_GETREGS, tid, 0, &regs) == 0);
		if (regs.rip == (uintptr_t)stand->at)
			return;
		MUST(ptrace(PTRACE_SINGLESTEP, tid, 0, 0) == 0);
	}
}

static inline void stand_in_look(const struct stand *stand)
{
	struct user_regs_struct regs;
	int status;

	while (!stand_has_signal(stander))
		usleep(1000);
	do {
		MUST(ptrace(PTRACE_CONT, stander, 0, 0) == 0);
		MUST(waitpid(stander, &status, __WALL) == stander && WIFSTOPPED(status));
	} while (WSTOPSIG(status) < SIGRTMIN);
	/* One step into the handler. */
	MUST(ptrace(PTRACE_SINGLESTEP, stander, 0, WSTOPSIG(status)) == 0);
	MUST(waitpid(stander, &status, __WALL) == stander && WIFSTOPPED(status));
	MUST(ptrace(PTRACE_GETREGS, stander, 0, &regs) == 0);
	MUST(regs.rip - (uintptr_t)stand->at > 4096);
	/* Until this one is killed, or the thread. */
	waitpid(stander, &status, __WALL);
	_exit(1);
}

static inline void stand_trace(const struct stand *stand, int report)
{
	static const struct timespec ms = { .tv_nsec = 1000000 };
	int saw = 0;

	stand_step(stand);
	/* Both signals are then taken at once, and the look comes upon a handler. */
	if (stand->interrupt)
		MUST(syscall(SYS_tgkill, getppid(), stander, SIGUSR1) == 0);
	MUST(write(report, "x", 1) == 1);
	if (stand->in_look)
		stand_in_look(stand);
	while (!saw) {
		if (stand_sees_change(stand))
			saw = STAND_SAW_CHANGE;
		else if (stand_has_signal(stander))
			saw = STAND_SAW_SIGNAL;
		else
			nanosleep(&ms, NULL);
	}
	MUST(ptrace(PTRACE_DETACH, stander, 0, 0) == 0);
	_exit(saw);
}

/*
 * stand_start - returns when the thread stands there. The tracer may trace us: by name where
 * Yama is, and not at all in some containers. stand_end - what it was let go for.
 */
static inline pid_t stand_start(const struct stand *stand)
{
	int report[2], go[2];
	char byte;
	pid_t pid;

	MUST(pipe(report) == 0 && pipe(go) == 0);
	pid = fork();
	if (pid == 0) {
		close(report[0]);
		MUST(read(go[0], &byte, 1) == 1);
		stand_trace(stand, report[1]);
	}
	close(report[1]);
	prctl(PR_SET_PTRACER, (unsigned long)pid, 0, 0, 0);
	MUST(pid > 0 && write(go[1], "x", 1) == 1);
	if (read(report[0], &byte, 1) != 1)
		child_skip("no process may trace another here");
	return pid;
}

static inline int stand_end(pid_t tracer)
{
	int status;

	MUST(waitpid(tracer, &status, 0) == tracer && WIFEXITED(status));
	return WEXITSTATUS(status);
}

#endif
