/* SPDX-License-Identifier: MIT */
/*
 * The patcher process. After each request every thread is detached again, so no tracer has to
 * stay to pass on their signals.
 */
#include "patchcore/baseline/patcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "patchcore/word/word.h"

#define TRACEES_MAX 4096u
#define STOP_MS	    1000 /* how long all threads may take to stop */
#define POLL_MS	    1000 /* how often to see whether the process is still there */
#define SPINS	    200u

struct tracee {
	pid_t tid;
	int signal; /* that it was about to take, handed on when it is let go */
	bool gone;
};

static struct tracee tracees[TRACEES_MAX];
static unsigned count;
static pid_t process;
static int64_t deadline; /* ms */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* --- Stopping -------------------------------------------------------------------------- */

static bool thread_has_ended(pid_t tid)
{
	char path[64], text[512];
	const char *name_end;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)process, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return true;
	text[len] = '\0';
	/* The name may hold anything, brackets too. */
	name_end = strrchr(text, ')');
	return name_end && (name_end[2] == 'Z' || name_end[2] == 'X');
}

static void note_status(struct tracee *tracee, int status)
{
	tracee->gone = !WIFSTOPPED(status);
	if (!tracee->gone && status >> 16 != PTRACE_EVENT_STOP)
		tracee->signal = WSTOPSIG(status);
}

static int wait_stop(struct tracee *tracee)
{
	static const struct timespec pause = { .tv_nsec = 20000 };

	for (unsigned i = 0;; i++) {
		int status = 0;
		pid_t pid = waitpid(tracee->tid, &status, __WALL | WNOHANG);

		if (pid == tracee->tid) {
			note_status(tracee, status);
			return 0;
		}
		if (pid < 0) {
			tracee->gone = true;
			return 0;
		}
		if (now_ms() > deadline)
			return -ETIMEDOUT;
		if (i > SPINS)
			nanosleep(&pause, NULL);
	}
}

/* 1: it is new, and seized. 0: known, or not worth it. */
static int seize(pid_t tid)
{
	for (unsigned i = 0; i < count; i++)
		if (tracees[i].tid == tid && !tracees[i].gone)
			return 0;
	if (count == TRACEES_MAX)
		return -ENOMEM;
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0)
		return errno == ESRCH || thread_has_ended(tid) ? 0 : -EPERM;
	tracees[count++] = (struct tracee){ .tid = tid };
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	return 1;
}

/* How many of those listed are new. */
static int seize_some(const char *from, const char *end)
{
	int fresh = 0;

	while (from < end) {
		const struct dirent64 *entry = (const void *)from;
		int tid = atoi(entry->d_name), ret = tid > 0 ? seize(tid) : 0;

		if (ret < 0)
			return ret;
		fresh += ret;
		from += entry->d_reclen;
	}
	return fresh;
}

static int seize_listed(void)
{
	char path[64], buffer[4096] __attribute__((aligned(8)));
	int fd, fresh = 0;
	long len;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -EPERM;
	while ((len = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0) {
		int ret = seize_some(buffer, buffer + len);

		fresh = ret < 0 ? ret : fresh + ret;
		if (ret < 0)
			break;
	}
	close(fd);
	return len < 0 ? -EPERM : fresh;
}

/* Until a look at the list finds no new thread: then none runs that could make one. */
static int stop_all(void)
{
	unsigned stopped = 0;
	int fresh;

	count = 0;
	deadline = now_ms() + STOP_MS;
	do {
		fresh = seize_listed();
		for (; fresh >= 0 && stopped < count; stopped++) {
			int ret = wait_stop(&tracees[stopped]);

			if (ret < 0)
				return ret;
		}
	} while (fresh > 0);
	return fresh;
}

static void let_go(void)
{
	for (unsigned i = 0; i < count; i++)
		if (!tracees[i].gone)
			ptrace(PTRACE_DETACH, tracees[i].tid, 0, (long)tracees[i].signal);
}

/* --- Writing --------------------------------------------------------------------------- */

static bool anybody_inside(const struct patcher_request *request)
{
	struct user_regs_struct regs;

	for (unsigned i = 0; i < count; i++)
		if (!tracees[i].gone && ptrace(PTRACE_GETREGS, tracees[i].tid, 0, &regs) == 0 &&
		    regs.rip > request->addr && regs.rip < request->addr + request->len)
			return true;
	return false;
}

static int write_code(int memory, const struct patcher_request *request)
{
	ssize_t len = (ssize_t)request->len, done;
	off_t at = (off_t)request->addr;
	uint8_t old[PC_PATCH_MAX];

	if (pread(memory, old, request->len, at) != len)
		return -EFAULT;
	if (old[0] == WORD_INT3)
		return -EAGAIN;
	done = pwrite(memory, request->bytes, request->len, at);
	if (done == len)
		return 0;
	/* It crosses into a page that cannot be written. */
	if (done > 0 && pwrite(memory, old, (size_t)done, at) != done)
		return -EIO;
	return -EACCES;
}

/* False: not all can be let go by name, so this process has to end. */
static bool serve_request(int memory, const struct patcher_request *request, int32_t *answer)
{
	*answer = stop_all();
	if (*answer < 0)
		return false;
	if (request->len)
		*answer = anybody_inside(request) ? -EBUSY : write_code(memory, request);
	let_go();
	return true;
}

static bool next_request(int socket, struct patcher_request *request)
{
	struct pollfd ready = { .fd = socket, .events = POLLIN };

	/* The socket alone does not tell: a child of the process may hold it, too. */
	while (poll(&ready, 1, POLL_MS) == 0)
		if (getppid() != process)
			return false;
	return recv(socket, request, sizeof(*request), 0) == (ssize_t)sizeof(*request);
}

static void close_others(int socket)
{
	if (socket > 0)
		syscall(SYS_close_range, 0, socket - 1, 0);
	syscall(SYS_close_range, socket + 1, UINT_MAX, 0);
}

static bool answer_one(int socket, const struct patcher_request *request)
{
	char path[64];
	int32_t answer = -EPERM;
	bool go_on = false;
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)process);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory >= 0) {
		go_on = serve_request(memory, request, &answer);
		close(memory);
	}
	send(socket, &answer, sizeof(answer), MSG_NOSIGNAL);
	return go_on;
}

void patcher_run(int socket, pid_t of)
{
	struct patcher_request request;

	process = of;
	close_others(socket);
	while (next_request(socket, &request) && answer_one(socket, &request))
		;
	/* A thread that is still traced runs on without a tracer. */
	_exit(0);
}
