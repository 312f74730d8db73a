/* SPDX-License-Identifier: MIT */
/*
 * The signal by which threads are looked at is one that the program has no use for, and
 * takes nothing from it.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/merge.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/asleep.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define FIRST (SIGRTMAX - 1) /* the one that is taken where nothing speaks against it */
#define RUN   5u
#define VALUE 4711

static const uint8_t nops[RUN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
static uint8_t one[CODE_LEN], *site;
static atomic_bool stop;
static sem_t ready;

static void *spin(void *arg)
{
	sem_post(&ready);
	while (!stop)
		;
	return arg;
}

static pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, run, arg) == 0);
	MUST(sem_wait(&ready) == 0);
	return thread;
}

static void prepare(void)
{
	if (CHILD_TSAN)
		child_skip("the thread sanitizer delivers signals when it likes");
	conf_use_none();
	MUST(pc_init() == 0 && sem_init(&ready, 0, 0) == 0);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	site = code_map(1, RWX) + CODE_PAGE / 2 - 2;
	code_load(one, CODE_NEW);
	code_put(site, 0);
	memcpy(site, nops, RUN);
}

static void merge(void)
{
	MUST(pc_patch_merge(site, one, RUN, PC_CHECK_THREADS) == 0);
	MUST(pc_patch(site, nops, RUN) == 0);
}

static void block(int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
}

static bool is_default(int signal)
{
	struct sigaction now;

	MUST(sigaction(signal, NULL, &now) == 0);
	return now.sa_handler == SIG_DFL;
}

/* --- Signals that a program waits for ------------------------------------------------------ */

static void queue(int signal)
{
	MUST(sigqueue(getpid(), signal, (union sigval){ .sival_int = VALUE }) == 0);
}

static void queue_to(pthread_t thread, int signal)
{
	MUST(pthread_sigqueue(thread, signal, (union sigval){ .sival_int = VALUE }) == 0);
}

static void must_be_queued(int signal)
{
	static const struct timespec second = { .tv_sec = 1 };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	MUST(sigtimedwait(&set, &info, &second) == signal && info.si_value.sival_int == VALUE);
}

/* Blocked by all threads, to be taken by sigwait(). */
static void queued(const void *arg)
{
	(void)arg;
	prepare();
	block(FIRST);
	start(spin, NULL);
	queue(FIRST);
	merge();
	must_be_queued(FIRST);
	MUST(is_default(FIRST));
}

static void *spin_open(void *arg)
{
	sigset_t none;

	sigemptyset(&none);
	MUST(pthread_sigmask(SIG_SETMASK, &none, NULL) == 0);
	return spin(arg);
}

/* One thread has it blocked, and the one queued is for that thread. */
static void queued_for_thread(const void *arg)
{
	(void)arg;
	prepare();
	block(FIRST);
	start(spin_open, NULL);
	queue_to(pthread_self(), FIRST);
	merge();
	must_be_queued(FIRST);
}

static void *block_all_and_wait(void *arg)
{
	block_all();
	sem_post(&ready);
	while (!stop)
		usleep(1000);
	must_be_queued(FIRST);
	return arg;
}

/* A thread that has all blocked does not say which it means; that one is pending does. */
static void queued_among_all(const void *arg)
{
	pthread_t thread;

	(void)arg;
	prepare();
	block_all();
	start(spin_open, NULL);
	thread = start(block_all_and_wait, NULL);
	queue_to(thread, FIRST);
	merge();
	MUST(is_default(FIRST));
	stop = true;
	MUST(pthread_join(thread, NULL) == 0);
}

/* The library has it by then: what is queued stays all the same, and another is taken. */
static void queued_later(const void *arg)
{
	(void)arg;
	prepare();
	start(spin_open, NULL);
	merge();
	MUST(!is_default(FIRST) && is_default(FIRST - 1));
	block(FIRST);
	queue_to(pthread_self(), FIRST);
	merge();
	MUST(!is_default(FIRST - 1));
	must_be_queued(FIRST);
}

static void test_queued(void **state)
{
	(void)state;
	child_must_pass(queued, NULL);
	child_must_pass(queued_for_thread, NULL);
	child_must_pass(queued_among_all, NULL);
	child_must_pass(queued_later, NULL);
}

static _Atomic(pid_t) waiter;

static void *wait_for_first(void *arg)
{
	sigset_t set;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, FIRST);
	waiter = (pid_t)syscall(SYS_gettid);
	sem_post(&ready);
	MUST(sigwaitinfo(&set, &info) == FIRST && info.si_value.sival_int == VALUE);
	return arg;
}

/* While a thread waits for it, the kernel does not count it as blocked. */
static void waited_for(const void *arg)
{
	pthread_t thread;

	(void)arg;
	prepare();
	block_all();
	thread = start(wait_for_first, NULL);
	start(spin_open, NULL);
	await_asleep(waiter, SYS_rt_sigtimedwait);
	merge();
	MUST(is_default(FIRST) && !is_default(FIRST - 1));
	queue_to(thread, FIRST);
	MUST(pthread_join(thread, NULL) == 0);
}

/* --- A handler that comes in between ------------------------------------------------------- */

/*
 * A tracer stops the merging thread before and behind the system call that installs the
 * library's handler, and meanwhile another thread does what it has to.
 */
static struct {
	_Atomic(int) step;
} * shared;

enum {
	BEFORE = 1,    /* the tracer: it is about to be installed */
	INSTALLED = 2, /* the thread: ours is */
	BEHIND = 3,    /* the tracer: the library's is, over ours */
	SENT = 4,      /* the thread: a signal is on its way */
};

static void share(void)
{
	shared = mmap(NULL, CODE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared != MAP_FAILED);
}

static void await(int step)
{
	while (shared->step < step)
		usleep(100);
}

static _Atomic(int) handled;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)context;
	MUST(signal == FIRST && info->si_value.sival_int == VALUE && info->si_code == SI_QUEUE);
	handled++;
}

static void install(int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	MUST(sigaction(FIRST, &action, NULL) == 0);
}

static bool is_installed(void)
{
	struct sigaction now;

	return sigaction(FIRST, NULL, &now) == 0 && now.sa_sigaction == handler &&
	       (now.sa_flags & SA_SIGINFO);
}

static void *install_between(void *arg)
{
	const int *flags = arg;

	sem_post(&ready);
	await(BEFORE);
	install(*flags);
	shared->step = INSTALLED;
	await(BEHIND);
	shared->step = SENT;
	queue_to(pthread_self(), FIRST);
	return spin(NULL);
}

/* To its next stop at a system call. Is it the one that sets a handler of that signal? */
static bool stops_at(pid_t tid, uint8_t op)
{
	struct __ptrace_syscall_info info;
	struct user_regs_struct regs;
	int status;

	MUST(ptrace(PTRACE_SYSCALL, tid, 0, 0) == 0);
	MUST(waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status));
	if (WSTOPSIG(status) != (SIGTRAP | 0x80))
		return false;
	MUST(ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) > 0);
	MUST(ptrace(PTRACE_GETREGS, tid, 0, &regs) == 0);
	return info.op == op && regs.orig_rax == SYS_rt_sigaction &&
	       regs.rdi == (unsigned long long)FIRST && regs.rsi != 0;
}

static void stop_at_action(pid_t tid)
{
	while (!stops_at(tid, PTRACE_SYSCALL_INFO_ENTRY))
		;
	shared->step = BEFORE;
	await(INSTALLED);
	while (!stops_at(tid, PTRACE_SYSCALL_INFO_EXIT))
		;
	shared->step = BEHIND;
	await(SENT);
	usleep(20000);
	MUST(ptrace(PTRACE_DETACH, tid, 0, 0) == 0);
}

static void trace(pid_t tid, int report, void (*rest)(pid_t tid))
{
	int status;

	MUST(ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) == 0);
	MUST(ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0);
	MUST(waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status));
	MUST(write(report, "x", 1) == 1);
	rest(tid);
	_exit(0);
}

static pid_t start_tracer(pid_t tid, void (*rest)(pid_t tid))
{
	int report[2], go[2];
	char byte;
	pid_t pid;

	MUST(pipe(report) == 0 && pipe(go) == 0);
	pid = fork();
	if (pid == 0) {
		close(report[0]);
		MUST(read(go[0], &byte, 1) == 1);
		trace(tid, report[1], rest);
	}
	close(report[1]);
	prctl(PR_SET_PTRACER, (unsigned long)pid, 0, 0, 0);
	MUST(pid > 0 && write(go[1], "x", 1) == 1);
	if (read(report[0], &byte, 1) != 1)
		child_skip("no process may trace another here");
	return pid;
}

static void between(const void *arg)
{
	int status, flags = *(const int *)arg;
	pid_t tracer;

	prepare();
	share();
	start(install_between, &flags);
	tracer = start_tracer(getpid(), stop_at_action);
	merge();
	MUST(waitpid(tracer, &status, 0) == tracer && status == 0);
	MUST(sem_wait(&ready) == 0);
	MUST(handled == 1);
	MUST(flags & (int)SA_RESETHAND ? is_default(FIRST) : is_installed());
	/* And its number is left alone from now on. */
	if (!(flags & (int)SA_RESETHAND)) {
		merge();
		MUST(is_installed() && handled == 1);
	}
}

static void test_between(void **state)
{
	static const int plain = 0, once = (int)SA_RESETHAND, nested = SA_NODEFER | SA_ONSTACK;

	(void)state;
	child_must_pass(between, &plain);
	child_must_pass(between, &once);
	child_must_pass(between, &nested);
}

/* --- A signal of ours that meets a program's handler ---------------------------------------- */

/* One is on its way to a thread when the program installs a handler. */
static siginfo_t seen;
static _Atomic(pid_t) spinner;

static void note_seen(int signal, siginfo_t *info, void *context)
{
	(void)context;
	MUST(signal == FIRST);
	seen = *info;
	handled++;
	stop = true;
}

static void *spin_and_tell(void *arg)
{
	spinner = (pid_t)syscall(SYS_gettid);
	return spin(arg);
}

static void stop_at_signal(pid_t tid)
{
	int status;

	do {
		MUST(ptrace(PTRACE_CONT, tid, 0, 0) == 0);
		MUST(waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status));
	} while (WSTOPSIG(status) != FIRST);
	shared->step = BEFORE;
	await(INSTALLED);
	MUST(ptrace(PTRACE_DETACH, tid, 0, FIRST) == 0);
}

static void *install_meanwhile(void *arg)
{
	const struct sigaction action = { .sa_sigaction = note_seen, .sa_flags = SA_SIGINFO };

	block_all();
	sem_post(&ready);
	await(BEFORE);
	MUST(sigaction(FIRST, &action, NULL) == 0);
	shared->step = INSTALLED;
	return arg;
}

static void send_by_timer(void)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = FIRST };
	int id;

	event.sigev_value.sival_int = VALUE;
	MUST(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) == 0);
	MUST(syscall(SYS_timer_settime, id, 0, &soon, NULL) == 0);
}

/* What tells it from one of the program's timers. */
static void told_apart(const void *arg)
{
	pthread_t thread;
	pid_t tracer;
	int status;

	(void)arg;
	prepare();
	share();
	start(install_meanwhile, NULL);
	thread = start(spin_and_tell, NULL);
	tracer = start_tracer(spinner, stop_at_signal);
	/* As long as the tracer holds the thread it is not sent one. */
	while (waitpid(tracer, &status, WNOHANG) == 0)
		merge();
	MUST(status == 0);
	MUST(pthread_join(thread, NULL) == 0 && handled == 1);
	MUST(seen.si_code == SI_TIMER && seen.si_errno != 0);
	MUST((uintptr_t)seen.si_value.sival_ptr >> 32 == 0x74504d78);
	send_by_timer();
	while (handled < 2)
		usleep(100);
	MUST(seen.si_code == SI_TIMER && seen.si_errno == 0);
	MUST(seen.si_value.sival_int == VALUE);
}

/* --- Signals of others that meet the library's handler ------------------------------------- */

/* By default the signal ends the process, and with the library it still does. */
static void foreign(const void *arg)
{
	const bool *to_thread = arg;
	pthread_t thread;

	prepare();
	thread = start(spin, NULL);
	merge();
	MUST(!is_default(FIRST));
	if (*to_thread)
		pthread_kill(thread, FIRST);
	else
		kill(getpid(), FIRST);
	sleep(1);
}

static void test_foreign(void **state)
{
	static const bool process = false, thread = true;

	(void)state;
	if (CHILD_TSAN)
		skip();
	child_must_die_of(foreign, &process, FIRST);
	child_must_die_of(foreign, &thread, FIRST);
}

static struct sigaction before_ours;

static void handle_and_chain(int signal, siginfo_t *info, void *context)
{
	handler(signal, info, context);
	before_ours.sa_sigaction(signal, info, context);
}

/* One that was installed on top of it and calls it, as what was there before: nothing. */
static void chained(const void *arg)
{
	struct sigaction action = { .sa_sigaction = handle_and_chain, .sa_flags = SA_SIGINFO };

	(void)arg;
	prepare();
	start(spin, NULL);
	merge();
	MUST(sigaction(FIRST, &action, &before_ours) == 0);
	MUST(before_ours.sa_flags & SA_SIGINFO);
	queue(FIRST);
	while (handled != 1)
		usleep(100);
	/* The library keeps away from it. */
	for (int i = 0; i < 10; i++)
		merge();
	MUST(handled == 1 && !is_default(FIRST - 1));
}

/* --- The end -------------------------------------------------------------------------------- */

static void given_back(const void *arg)
{
	(void)arg;
	prepare();
	start(spin_open, NULL);
	merge();
	MUST(!is_default(FIRST));
	MUST(pc_fini() == 0 && is_default(FIRST));
	MUST(pc_init() == 0);
	merge();
	/* What another has put in its place stays. */
	install(0);
	MUST(pc_fini() == 0 && is_installed());
}

/* Of one that is pending the default would be the end, from any sender. */
static void kept_while_pending(const void *arg)
{
	(void)arg;
	prepare();
	start(spin_open, NULL);
	merge();
	block(FIRST);
	MUST(pthread_kill(pthread_self(), FIRST) == 0);
	MUST(pc_fini() == 0 && !is_default(FIRST));
}

static void test_given_back(void **state)
{
	(void)state;
	child_must_pass(given_back, NULL);
	child_must_pass(kept_while_pending, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queued),	   child_unit_test(waited_for),
		cmocka_unit_test(test_between),	   child_unit_test(told_apart),
		cmocka_unit_test(test_foreign),	   child_unit_test(chained),
		cmocka_unit_test(test_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
