/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/baseline/baseline.h"
#include "patchcore/kernel/clock.h"
#include "patchcore/kernel/task.h"
#include "patchcore/merge/others.h"
#include "patchcore/patchcore.h"
#include "patchcore/text/text.h"
#include "patchcore/word/word.h"

#define TRACEES_MAX 4096u
#define STOP_MS	    1000 /* how long all threads may take to stop */
#define SPINS	    200u

/* What the patcher is asked; it answers 0 or a negative errno, an int32_t. */
struct patcher_request {
	uintptr_t addr;
	uint64_t len; /* 0: only stop all threads once */
	uint8_t bytes[PC_PATCH_MAX];
};

/* --- The patcher: a child made by clone(), which uses neither heap nor locks ---------------- */

/*
 * It is asked over a socket. After each request every thread is detached again, so no tracer has
 * to stay to pass on their signals.
 */
struct tracee {
	pid_t tid;
	int signal; /* that it was about to take, handed on when it is let go */
	bool gone;
};

static struct tracee tracees[TRACEES_MAX];
static unsigned count;
static pid_t process; /* that is patched */

/* *fresh counts those that are new, and seized; an error ends the list. */
static bool seize_thread(pid_t tid, void *fresh)
{
	int *ret = fresh;
	char state;

	for (unsigned i = 0; i < count; i++)
		if (tracees[i].tid == tid && !tracees[i].gone)
			return true;
	if (count == TRACEES_MAX) {
		*ret = -ENOMEM;
	} else if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0) {
		state = errno == ESRCH ? 'X' : task_state(tid);
		if (state && state != 'Z' && state != 'X')
			*ret = -EPERM;
	} else {
		tracees[count++] = (struct tracee){ .tid = tid };
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		++*ret;
	}
	return *ret >= 0;
}

/* Until a look at the list finds no new thread: then none runs that could make one. */
static int stop_all(void)
{
	int64_t deadline = clock_ns() + STOP_MS * CLOCK_MS;
	unsigned stopped = 0;
	int fresh;

	count = 0;
	do {
		fresh = 0;
		if (task_list(process, seize_thread, &fresh) < 0)
			return -EPERM;
		for (; fresh >= 0 && stopped < count; stopped++) {
			struct tracee *tracee = &tracees[stopped];
			int status = 0;
			pid_t pid;

			for (unsigned i = 0;; i++) {
				pid = waitpid(tracee->tid, &status, __WALL | WNOHANG);
				if (pid != 0)
					break;
				if (clock_ns() > deadline)
					return -ETIMEDOUT;
				if (i > SPINS)
					nap();
			}
			tracee->gone = pid < 0 || !WIFSTOPPED(status);
			if (!tracee->gone && status >> 16 != PTRACE_EVENT_STOP)
				tracee->signal = WSTOPSIG(status);
		}
	} while (fresh > 0);
	return fresh;
}

static bool any_inside(const struct patcher_request *request)
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

/* False: not all threads can be let go by name, so this process has to end. */
static bool serve_request(int socket, const struct patcher_request *request)
{
	int32_t answer = -EPERM;
	bool stopped = false;
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)process);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory >= 0) {
		answer = stop_all();
		stopped = answer >= 0;
	}
	if (stopped) {
		if (request->len)
			answer = any_inside(request) ? -EBUSY : write_code(memory, request);
		for (unsigned i = 0; i < count; i++)
			if (!tracees[i].gone)
				ptrace(PTRACE_DETACH, tracees[i].tid, 0, (long)tracees[i].signal);
	}
	if (memory >= 0)
		close(memory);
	send(socket, &answer, sizeof(answer), MSG_NOSIGNAL);
	return stopped;
}

/* --- The process that is patched ------------------------------------------------------------ */

static pid_t patcher; /* 0: none */
static int line;      /* to it */

void baseline_ptrace_close(void)
{
	if (!patcher)
		return;
	close(line);
	kill(patcher, SIGKILL);
	while (waitpid(patcher, NULL, __WALL) < 0 && errno == EINTR)
		;
	patcher = 0;
}

static int ask_patcher(const struct patcher_request *request)
{
	int32_t answer = -ESHUTDOWN;
	ssize_t len;

	if (send(line, request, sizeof(*request), MSG_NOSIGNAL) == (ssize_t)sizeof(*request)) {
		do
			len = recv(line, &answer, sizeof(answer), 0);
		while (len < 0 && errno == EINTR);
		answer = len == (ssize_t)sizeof(answer) ? answer : -ESHUTDOWN;
	}
	/* If some thread could not be stopped, the patcher has ended, which lets go. */
	if (answer == -ETIMEDOUT || answer == -EPERM || answer == -ENOMEM || answer == -ESHUTDOWN)
		baseline_ptrace_close();
	return answer;
}

/*
 * A child without an exit signal: the program's SIGCHLD handler and its wait()
 * do not notice it. All signals are blocked in it.
 */
int baseline_ptrace_open(void)
{
	static const struct patcher_request try;
	struct patcher_request request;
	pid_t pid;
	sigset_t all, before;
	int pair[2];

	if (patcher)
		return -EALREADY;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	process = getpid();
	pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == process &&
		       recv(pair[1], &request, sizeof(request), 0) == (ssize_t)sizeof(request) &&
		       serve_request(pair[1], &request))
			;
		/* A thread that is still traced runs on without a tracer. */
		_exit(0);
	}
	if (pid < 0)
		pid = -errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return pid;
	}
	patcher = pid;
	line = pair[0];
	/* Yama lets a process be traced by whom it names; elsewhere this fails, and is not needed.
	 */
	prctl(PR_SET_PTRACER, (unsigned long)pid, 0, 0, 0);
	/* A first try tells whether the patcher may trace this process. */
	return ask_patcher(&try);
}

int baseline_ptrace_patch(void *addr, const void *bytes, size_t len)
{
	struct patcher_request request = { .addr = (uintptr_t)addr, .len = len };

	if (len < 1 || len > PC_PATCH_MAX || !bytes || *(const uint8_t *)bytes == WORD_INT3)
		return -EINVAL;
	if (!patcher)
		return -ESHUTDOWN;
	memcpy(request.bytes, bytes, len);
	return ask_patcher(&request);
}

/* --- Stop the world by signals --------------------------------------------------------------- */

/* In the handlers of the stopped. */
struct site_range {
	uintptr_t start;
	uintptr_t end;
	atomic_bool inside; /* does some thread stand behind the start? */
};

static void look_inside(ucontext_t *context, struct others_room *unused, void *arg)
{
	uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	struct site_range *range = arg;

	(void)unused;
	if (pc > range->start && pc < range->end)
		atomic_store_explicit(&range->inside, true, memory_order_relaxed);
}

int baseline_stop_patch(void *addr, const void *bytes, size_t len)
{
	struct site_range range = { (uintptr_t)addr, (uintptr_t)addr + len, false };
	struct text_span span;
	sigset_t all, before;
	int ret;

	if (len < 1 || len > PC_PATCH_MAX || !bytes || *(const uint8_t *)bytes == WORD_INT3)
		return -EINVAL;
	ret = text_begin(&span, addr, len);
	if (ret < 0)
		return ret;
	/* A handler of this thread's might need a lock that a stopped thread holds. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = others_stop(look_inside, &range);
	if (ret == 0) {
		if (atomic_load_explicit(&range.inside, memory_order_relaxed))
			ret = -EBUSY;
		else if (*span.addr == WORD_INT3)
			ret = -EAGAIN;
		/* No other thread runs, so any way to write will do. */
		for (size_t i = 0; ret == 0 && i < len; i++)
			*(volatile uint8_t *)text_at(&span, span.addr + i) =
				((const uint8_t *)bytes)[i];
		others_resume();
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	text_end(&span);
	return ret;
}
