/* SPDX-License-Identifier: MIT */
/*
 * Would a thread that meets an INT3 of ours survive it?
 */
#include "patchcore/signals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "patchcore/patchcore.h"
#include "patchcore/trap.h"

#define TRAP_BIT (UINT64_C(1) << (SIGTRAP - 1))

#define MOMENTS 3 /* milliseconds */

/* The frame that the kernel writes where it does not tell: AVX-512 and a margin. */
#define FRAME_DEFAULT 4096u

static int read_file(int dir, const char *name, char *text, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t len;
	int ret;

	if (fd < 0)
		return -errno;
	len = read(fd, text, size - 1);
	ret = len < 0 ? -errno : 0;
	close(fd);
	text[len < 0 ? 0 : len] = '\0';
	return ret;
}

/* 1: it has SIGTRAP blocked, 0: not, -ESRCH: it is ending or has ended. */
static int is_blocking(int dir, const char *tid)
{
	char name[32], status[4096];
	const char *line;
	int ret;

	snprintf(name, sizeof(name), "%.12s/status", tid);
	ret = read_file(dir, name, status, sizeof(status));
	if (ret < 0)
		return ret == -ENOENT ? -ESRCH : ret;
	line = strstr(status, "\nSigBlk:");
	/* Who has no memory any more runs no code. */
	if (!line || !strstr(status, "\nVmSize:"))
		return -ESRCH;
	return (strtoull(line + 8, NULL, 16) & TRAP_BIT) != 0;
}

/* libc blocks all signals for a moment in threads that start and end. */
static int is_blocking_for_long(int dir, const char *tid)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	int ret = is_blocking(dir, tid);

	for (int i = 0; ret == 1 && i < MOMENTS; i++) {
		nanosleep(&moment, NULL);
		ret = is_blocking(dir, tid);
	}
	return ret;
}

static int look_at_thread(int dir, const char *tid, struct pc_signals *report)
{
	int ret = is_blocking_for_long(dir, tid);

	if (ret < 0)
		return ret == -ESRCH ? 0 : ret;
	report->threads++;
	if (ret && report->threads_blocking++ == 0)
		report->first_thread = (pid_t)strtol(tid, NULL, 10);
	return 0;
}

static int look_at_all(DIR *tasks, struct pc_signals *report)
{
	struct dirent *entry;
	int ret = 0;

	while (ret == 0 && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			ret = look_at_thread(dirfd(tasks), entry->d_name, report);
	return ret;
}

static int look_at_threads(struct pc_signals *report)
{
	DIR *tasks = opendir("/proc/self/task");
	int ret;

	if (!tasks)
		return -errno;
	ret = look_at_all(tasks, report);
	closedir(tasks);
	return ret;
}

static bool is_handler(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* That of SIGTRAP itself is the owner's business. libc keeps two of its own to itself. */
static void look_at_handlers(struct pc_signals *report)
{
	for (int signal = 1; signal < NSIG; signal++) {
		struct sigaction action;

		if (signal == SIGTRAP || trap_see(signal, &action) < 0)
			continue;
		if (!is_handler(&action) || sigismember(&action.sa_mask, SIGTRAP) != 1)
			continue;
		if (report->handlers_blocking++ == 0)
			report->first_signal = signal;
	}
}

static int look_at_owner(struct pc_signals *report)
{
	struct sigaction now;
	int ret = trap_now(&now);

	if (ret < 0)
		return ret;
	if (ret > 0)
		report->owner = PC_TRAP_OURS;
	else if (is_handler(&now))
		report->owner = PC_TRAP_OTHER;
	else
		report->owner = now.sa_handler == SIG_IGN ? PC_TRAP_IGNORED : PC_TRAP_DEFAULT;
	return 0;
}

static void look_at_stack(struct pc_signals *report)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);
	stack_t stack;

	report->stack_need = (frame ? frame : FRAME_DEFAULT) + TRAP_STACK;
	if (sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_DISABLE))
		report->alternate_size = stack.ss_size;
}

/* The deadly first. */
static void advise(struct pc_signals *report)
{
	static const char *const owners[] = {
		[PC_TRAP_OTHER] = "has another handler, installed after pc_init()",
		[PC_TRAP_DEFAULT] = "has its default action",
		[PC_TRAP_IGNORED] = "is ignored",
	};
	char *text = report->advice;
	size_t size = sizeof(report->advice);

	if (report->owner != PC_TRAP_OURS)
		snprintf(text, size, "SIGTRAP %s: call pc_init(), last, or use libpatchcore_guard",
			 owners[report->owner]);
	else if (report->threads_blocking)
		snprintf(text, size,
			 "thread %d has SIGTRAP blocked: unblock it, or use libpatchcore_guard",
			 (int)report->first_thread);
	else if (report->handlers_blocking)
		snprintf(text, size,
			 "the handler of signal %d runs with SIGTRAP blocked: take it out of "
			 "sa_mask if it may run patched code",
			 report->first_signal);
	else if (report->alternate_size && report->alternate_size < report->stack_need)
		snprintf(text, size, "the alternate stack has %zu bytes and a trap needs %zu",
			 report->alternate_size, report->stack_need);
}

int pc_check_signals(struct pc_signals *report)
{
	int ret;

	if (!report)
		return -EINVAL;
	*report = (struct pc_signals){ .guarded = trap_is_guarded() };
	ret = look_at_owner(report);
	if (ret == 0)
		ret = look_at_threads(report);
	if (ret < 0)
		return ret;
	look_at_handlers(report);
	look_at_stack(report);
	advise(report);
	return report->owner != PC_TRAP_OURS || report->threads_blocking ? -EBUSY : 0;
}
