/* SPDX-License-Identifier: MIT */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#include "patchcore/pages/text.h"
#include "patchcore/patchcore.h"
#include "patchcore/syscall/task.h"

#define THREADS_MAX 4096u
#define STOP_MS	    1000 /* how long all threads may take to stop */

/* What the patcher is asked; it answers 0 or a negative errno, an int32_t. */
struct patcher_request {
	uintptr_t addr;
	uint64_t len;
	uint8_t bytes[PC_PATCH_MAX];
};

/* --- Stopping all threads ------------------------------------------------------------------- */

/* A thread that was asked to stop. */
struct stopped_thread {
	pid_t tid;
	bool gone;     /* it runs no code of the program any more, or never did */
	unsigned pass; /* the last one that found it */
	int signal;    /* that it was about to take, handed on when it is let go */
	uintptr_t pc;  /* where it stands */
	atomic_bool stands;
};

static struct stopped_thread threads[THREADS_MAX];
static _Atomic(unsigned) count;

struct way_to_stop {
	/* 0, or a negative errno. */
	int (*ask)(struct stopped_thread *thread);
	/* Does it stand, or is it gone? is_late: it has not for a while. */
	bool (*stands)(struct stopped_thread *thread, bool is_late);
	unsigned spins;
};

struct stopping_pass {
	const struct way_to_stop *way;
	unsigned number;
	int error;
};

static bool meet_thread(pid_t tid, void *arg)
{
	struct stopping_pass *pass = arg;
	unsigned n = count;

	for (unsigned i = 0; i < n; i++) {
		if (threads[i].tid != tid)
			continue;
		threads[i].pass = pass->number;
		return true;
	}
	if (n == THREADS_MAX) {
		pass->error = -ENOMEM;
		return false;
	}
	threads[n] = (struct stopped_thread){ .tid = tid, .pass = pass->number };
	count = n + 1;
	pass->error = pass->way->ask(&threads[n]);
	return pass->error == 0;
}

static int await_stop(const struct way_to_stop *way, struct stopped_thread *thread,
		      int64_t deadline)
{
	for (unsigned i = 0; !thread->gone && !way->stands(thread, i > way->spins); i++) {
		if (i <= way->spins)
			continue;
		if (clock_ns() > deadline)
			return -ETIMEDOUT;
		nap();
	}
	return 0;
}

/*
 * Of a process, 0: of this one. Until a look at the list finds no new thread: then none runs that
 * could make one. A list that is read while threads end may leave others out.
 */
static int stop_all(pid_t process, const struct way_to_stop *way)
{
	int64_t deadline = clock_ns() + STOP_MS * CLOCK_MS;
	struct stopping_pass pass = { .way = way };
	unsigned before;
	bool again;

	count = 0;
	do {
		before = count;
		pass.number++;
		if (task_list(process, meet_thread, &pass) < 0)
			return -EPERM;
		for (unsigned i = before; i < count && pass.error == 0; i++)
			pass.error = await_stop(way, &threads[i], deadline);
		again = count > before;
		for (unsigned i = 0; i < count; i++)
			again |= threads[i].pass + 1 == pass.number;
	} while (pass.error == 0 && again);
	return pass.error;
}

static bool any_inside(uintptr_t addr, size_t len)
{
	for (unsigned i = 0; i < count; i++)
		if (threads[i].pc > addr && threads[i].pc < addr + len)
			return true;
	return false;
}

/* --- The patcher, a child ------------------------------------------------------------------- */

/*
 * It is asked over a socket, and uses neither heap nor locks. After each request every thread is
 * detached again, so no tracer has to stay to pass on their signals.
 */
static pid_t process; /* that is patched */

static int seize_thread(struct stopped_thread *thread)
{
	char state;

	if (ptrace(PTRACE_SEIZE, thread->tid, 0, 0) == 0) {
		ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0);
		return 0;
	}
	state = errno == ESRCH ? 'X' : task_state(thread->tid);
	thread->gone = !state || state == 'Z' || state == 'X';
	return thread->gone ? 0 : -EPERM;
}

static bool is_traced_and_stands(struct stopped_thread *thread, bool is_late)
{
	struct user_regs_struct regs;
	int status = 0;
	pid_t pid = waitpid(thread->tid, &status, __WALL | WNOHANG);

	(void)is_late;
	if (pid == 0)
		return false;
	thread->gone = pid < 0 || !WIFSTOPPED(status);
	if (thread->gone)
		return true;
	if (status >> 16 != PTRACE_EVENT_STOP)
		thread->signal = WSTOPSIG(status);
	if (ptrace(PTRACE_GETREGS, thread->tid, 0, &regs) == 0)
		thread->pc = regs.rip;
	return true;
}

static const struct way_to_stop by_ptrace = { seize_thread, is_traced_and_stands, 200 };

/* False: not all threads can be let go by name, so this process has to end. */
static bool serve_request(int socket, const struct patcher_request *request)
{
	int32_t answer = -EACCES;
	bool stopped = false;
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)process);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory >= 0)
		answer = stop_all(process, &by_ptrace);
	stopped = memory >= 0 && answer == 0;
	if (stopped && any_inside(request->addr, request->len))
		answer = -EBUSY;
	else if (stopped && pwrite(memory, request->bytes, request->len, (off_t)request->addr) !=
				    (ssize_t)request->len)
		answer = -EFAULT;
	for (unsigned i = 0; i < count && stopped; i++)
		if (!threads[i].gone)
			ptrace(PTRACE_DETACH, threads[i].tid, 0, (long)threads[i].signal);
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
	while (waitpid(patcher, NULL, 0) < 0 && errno == EINTR)
		;
	patcher = 0;
}

/* -ESHUTDOWN: it has ended, as after a thread that could not be stopped. */
static int ask_patcher(const struct patcher_request *request)
{
	int32_t answer = -ESHUTDOWN;
	ssize_t len;

	if (!patcher || send(line, request, sizeof(*request), MSG_NOSIGNAL) < 0)
		return -ESHUTDOWN;
	do
		len = recv(line, &answer, sizeof(answer), 0);
	while (len < 0 && errno == EINTR);
	return len == (ssize_t)sizeof(answer) ? answer : -ESHUTDOWN;
}

int baseline_ptrace_open(void)
{
	static const struct patcher_request try;
	struct patcher_request request;
	int pair[2];

	baseline_ptrace_close();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	process = getpid();
	patcher = fork();
	if (patcher == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		while (recv(pair[1], &request, sizeof(request), 0) == (ssize_t)sizeof(request) &&
		       serve_request(pair[1], &request))
			;
		/* A thread that is still traced runs on without a tracer. */
		_exit(0);
	}
	close(pair[1]);
	if (patcher < 0) {
		patcher = 0;
		close(pair[0]);
		return -EAGAIN;
	}
	line = pair[0];
	/* Yama lets the named process trace this one; elsewhere this fails, and is not needed. */
	prctl(PR_SET_PTRACER, (unsigned long)patcher, 0, 0, 0);
	/* A first try, of no bytes, tells whether the patcher may trace this process. */
	return ask_patcher(&try);
}

int baseline_ptrace_patch(void *addr, const void *bytes, size_t len)
{
	struct patcher_request request = { .addr = (uintptr_t)addr, .len = len };

	memcpy(request.bytes, bytes, len);
	return ask_patcher(&request);
}

/* --- Stop the world by signals --------------------------------------------------------------- */

static _Atomic(uint32_t) gate;	   /* futex, 1: threads stand at it */
static _Atomic(uint32_t) handlers; /* futex: threads in on_stop() */
static int stop_signal;

static void call_futex(_Atomic(uint32_t) *word, int operation, uint32_t value)
{
	sys_call(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* A late signal finds the gate open; at a shut gate another program's does as well as ours. */
static void on_stop(int signal, siginfo_t *info, void *context)
{
	pid_t tid = (pid_t)sys_call(SYS_gettid);
	unsigned a, b, c, d;

	(void)signal;
	(void)info;
	/* Counted before the gate is read, and let_go() opens it before it reads the count. */
	atomic_fetch_add(&handlers, 1);
	for (unsigned i = 0; gate && i < count; i++) {
		if (threads[i].tid != tid)
			continue;
		threads[i].pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
		threads[i].stands = true;
		while (gate)
			call_futex(&gate, FUTEX_WAIT_PRIVATE, 1);
	}
	__cpuid(0, a, b, c, d); /* serialises */
	(void)(a + b + c + d);
	if (atomic_fetch_sub(&handlers, 1) == 1)
		call_futex(&handlers, FUTEX_WAKE_PRIVATE, 1);
}

/* The signal stays taken. */
static int take_signal(void)
{
	struct sigaction ours = { .sa_sigaction = on_stop,
				  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	struct sigaction now;

	sigfillset(&ours.sa_mask);
	for (int i = SIGRTMAX - 1; i >= SIGRTMIN && !stop_signal; i--)
		if (sigaction(i, NULL, &now) == 0 && now.sa_handler == SIG_DFL &&
		    sigaction(i, &ours, NULL) == 0)
			stop_signal = i;
	return stop_signal ? 0 : -EAGAIN;
}

static int signal_thread(struct stopped_thread *thread)
{
	long ret = 0;

	thread->gone = thread->tid == sys_call(SYS_gettid);
	if (!thread->gone)
		ret = sys_call(SYS_tgkill, sys_call(SYS_getpid), thread->tid, stop_signal);
	thread->gone |= ret == -ESRCH;
	return thread->gone ? 0 : (int)ret;
}

static bool is_signalled_and_stands(struct stopped_thread *thread, bool is_late)
{
	if (thread->stands)
		return true;
	_mm_pause();
	/* A thread that has ended never answers. */
	thread->gone = is_late && task_has_ended(thread->tid);
	return thread->gone;
}

static const struct way_to_stop by_signal = { signal_thread, is_signalled_and_stands, 2000 };

/* Returns when all have left the handler. */
static void let_go(void)
{
	uint32_t left;

	gate = 0;
	call_futex(&gate, FUTEX_WAKE_PRIVATE, INT_MAX);
	while ((left = handlers) != 0)
		call_futex(&handlers, FUTEX_WAIT_PRIVATE, left);
}

int baseline_stop_patch(void *addr, const void *bytes, size_t len)
{
	struct text_span span;
	sigset_t all, before;
	int ret = take_signal();

	if (ret == 0)
		ret = text_begin(&span, addr, len);
	if (ret < 0)
		return ret;
	/* A handler of this thread's might need a lock that a stopped thread holds. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	gate = 1;
	ret = stop_all(0, &by_signal);
	if (ret == 0 && any_inside((uintptr_t)addr, len))
		ret = -EBUSY;
	/* No other thread runs, so any way to write will do. */
	for (size_t i = 0; ret == 0 && i < len; i++)
		*(volatile uint8_t *)text_at(&span, span.addr + i) = ((const uint8_t *)bytes)[i];
	let_go();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	text_end(&span);
	return ret;
}
