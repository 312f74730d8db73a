/* SPDX-License-Identifier: MIT */
#include "patchcore/threads_proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 4096u

static long open_file(const char *path, int flags)
{
	return syscall(SYS_openat, AT_FDCWD, path, flags | O_RDONLY | O_CLOEXEC, 0);
}

/* Length, -1 if there is no such file. Ends with a NUL. */
static long read_file(pid_t tid, const char *name, char text[TEXT_MAX])
{
	char path[64];
	long fd, len;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)tid, name);
	fd = open_file(path, 0);
	if (fd < 0)
		return -1;
	len = syscall(SYS_read, fd, text, TEXT_MAX - 1);
	syscall(SYS_close, fd);
	text[len > 0 ? len : 0] = '\0';
	return len > 0 ? len : -1;
}

static bool list_some(const char *from, const char *end, thread_met_fn *met, void *arg)
{
	while (from < end) {
		/* As the kernel has it, which is what the large files' readdir() has. */
		const struct dirent64 *entry = (const void *)from;
		int tid = atoi(entry->d_name);

		if (tid > 0 && !met(tid, arg))
			return false;
		from += entry->d_reclen;
	}
	return true;
}

int thread_list(thread_met_fn *met, void *arg)
{
	char buffer[TEXT_MAX] __attribute__((aligned(8)));
	long fd = open_file("/proc/self/task", O_DIRECTORY), len;

	if (fd < 0)
		return -EACCES;
	do
		len = syscall(SYS_getdents64, fd, buffer, sizeof(buffer));
	while (len > 0 && list_some(buffer, buffer + len, met, arg));
	syscall(SYS_close, fd);
	return len < 0 ? -EACCES : 0;
}

/* From the third field on. NULL: it is gone. The name before may hold anything, brackets too. */
static const char *read_stat(pid_t tid, char text[TEXT_MAX])
{
	const char *name_end = read_file(tid, "stat", text) > 0 ? strrchr(text, ')') : NULL;

	return name_end && name_end[1] ? name_end + 2 : NULL;
}

bool thread_has_ended(pid_t tid)
{
	char text[TEXT_MAX];
	const char *stat;

	if (syscall(SYS_tgkill, getpid(), tid, 0) < 0)
		return errno == ESRCH;
	stat = read_stat(tid, text);
	return stat && (*stat == 'Z' || *stat == 'X');
}

uint64_t thread_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 100 + (uint64_t)now.tv_nsec / 10000000;
}

uint64_t thread_started(pid_t tid)
{
	char text[TEXT_MAX];
	const char *stat = read_stat(tid, text);

	for (int field = 3; stat && field < 22; field++) {
		stat = strchr(stat, ' ');
		stat = stat ? stat + 1 : NULL;
	}
	return stat ? strtoull(stat, NULL, 10) : 0;
}

/* In sigtimedwait() the kernel counts what is waited for as not blocked. */
static bool waits_for_signals(pid_t tid)
{
	char text[TEXT_MAX];

	return read_file(tid, "syscall", text) > 0 && strtol(text, NULL, 10) == SYS_rt_sigtimedwait;
}

bool thread_takes(pid_t tid, int number)
{
	char text[TEXT_MAX];
	const char *line;

	if (read_file(tid, "status", text) < 0)
		return true;
	line = strstr(text, "\nSigBlk:");
	if (line && strtoull(line + 8, NULL, 16) >> (number - 1) & 1)
		return false;
	return !waits_for_signals(tid);
}

/* "running", or "-1 SP PC", or the number of the system call, its arguments, SP and PC. */
bool thread_sleeps(pid_t tid, uintptr_t *pc, uintptr_t *sp)
{
	char text[TEXT_MAX], *last;

	if (read_file(tid, "syscall", text) < 0 || text[0] == 'r')
		return false;
	last = strrchr(text, ' ');
	if (!last)
		return false;
	*pc = strtoull(last, NULL, 16);
	*last = '\0';
	last = strrchr(text, ' ');
	*sp = last ? strtoull(last, NULL, 16) : 0;
	return last;
}
