/* SPDX-License-Identifier: MIT */
/* Threads of another process, stopped by ptrace(2) and let go. */
#include "agent/launch/steps.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"

#define PATIENCE_STOP 2.0 /* seconds: until a thread has stopped */
#define TRAP_STOP     (PTRACE_EVENT_STOP << 8 | SIGTRAP)
#define RESTART	      219 /* restart_syscall(2) */

/* Values of rax by which the kernel says how it means to restart a system call. */
enum restart {
	RESTART_SYS = 512,
	RESTART_NOINTR = 513,
	RESTART_NOHAND = 514,
	RESTART_BLOCK = 516,
};

void pause_us(long us)
{
	const struct timespec pause = { .tv_nsec = us * 1000 };

	nanosleep(&pause, NULL);
}

struct threads list_threads(const struct target *target)
{
	struct threads all = { 0 };
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)target->pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (*entry->d_name != '.' && ARRAY_ADD(all.id, all.n, (pid_t)atoi(entry->d_name))) {
			all.n = 0;
			break;
		}
	if (dir)
		closedir(dir);
	return all;
}

int wait_stop(pid_t thread, double patience)
{
	const struct timespec slice = { .tv_nsec = 5000000 };
	double until = seconds_now() + patience;
	sigset_t child;
	int status;
	pid_t got;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	/* SIGCHLD is blocked, and stays pending until it is taken here. */
	while (!(got = waitpid(thread, &status, __WALL | WNOHANG)) && seconds_now() < until)
		sigtimedwait(&child, NULL, &slice);
	return got == thread && WIFSTOPPED(status) ? status >> 8 : -1;
}

bool interrupt_thread(pid_t thread)
{
	double until = seconds_now() + PATIENCE_STOP;
	int stop;

	if (ptrace(PTRACE_INTERRUPT, thread, 0, 0) < 0)
		return false;
	while ((stop = wait_stop(thread, PATIENCE_STOP)) >= 0 && seconds_now() < until) {
		if (stop == TRAP_STOP)
			return true;
		if (stop >> 8 == PTRACE_EVENT_STOP)
			return false; /* all of the process was stopped by a signal */
		if (ptrace(PTRACE_CONT, thread, 0, stop & 0xff) < 0)
			return false;
	}
	return false;
}

void resume_call(struct user_regs_struct *regs)
{
	if ((long)regs->orig_rax >= 0 && target_waits(regs) && (long)regs->rax == -EINTR)
		regs->rax = (uint64_t)-RESTART_NOHAND;
}

void restart_call(struct user_regs_struct *regs)
{
	long meant = (long)regs->orig_rax < 0 ? 0 : -(long)regs->rax;

	if (meant != RESTART_SYS && meant != RESTART_NOINTR && meant != RESTART_NOHAND &&
	    meant != RESTART_BLOCK)
		return;
	regs->rax = meant == RESTART_BLOCK ? RESTART : regs->orig_rax;
	regs->rip -= 2;
}

void release_thread(pid_t thread)
{
	struct user_regs_struct regs;

	if (!ptrace(PTRACE_GETREGS, thread, 0, &regs)) {
		resume_call(&regs);
		ptrace(PTRACE_SETREGS, thread, 0, &regs);
	}
	ptrace(PTRACE_DETACH, thread, 0, 0);
}
