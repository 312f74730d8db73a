/* SPDX-License-Identifier: MIT */
/* A program that was linked with libpatchcore_guard, and blocks, takes and awaits SIGTRAP. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/signals.h"
#include "patchcore/tests/step.h"
#include "patchcore/tests/trap_case.h"

static struct pc_signals report;
static volatile sig_atomic_t handled;

/* Sanitizers wrap the same functions, and start before the guard does. */
static void must_pass(child_fn *fn, const void *arg)
{
	if (CHILD_ASAN || CHILD_TSAN)
		skip();
	child_must_pass(fn, arg);
}

static void start_guarded(void)
{
	start_without_conf();
	pc_check_signals(&report);
	MUST(report.guarded);
}

/* The patcher is another thread, since an executor does not wait for its own INT3. */
static void *hold_until_trapped(void *unused)
{
	uint64_t count = trap_count();
	struct word *word = put_int3();

	while (trap_count() == count)
		sched_yield();
	put_rest(word);
	return unused;
}

/* An executor runs into INT3, in the state in which the thread is. */
static void must_survive_int3(void)
{
	pthread_t thread;

	MUST(pc_check_signals(&report) == 0 && report.guarded);
	code_put(site, CODE_OLD);
	MUST(pthread_create(&thread, NULL, hold_until_trapped, NULL) == 0);
	while (*(volatile uint8_t *)site != CODE_INT3)
		sched_yield();
	MUST(code_run(site) == CODE_NEW);
	pthread_join(thread, NULL);
}

static bool kernel_blocks_trap(void)
{
	uint64_t mask = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask));
	return mask >> (SIGTRAP - 1) & 1;
}

/* --- Handlers of SIGTRAP ------------------------------------------------------------------- */

static void later_handler(const void *arg)
{
	struct sigaction action = { .sa_sigaction = earlier_info, .sa_flags = SA_SIGINFO }, now;

	(void)arg;
	set_earlier(earlier_plain);
	start_guarded();
	MUST(sigaction(SIGTRAP, &action, &now) == 0 && now.sa_handler == earlier_plain);
	MUST(sigaction(SIGTRAP, NULL, &now) == 0 && now.sa_sigaction == earlier_info);
	MUST(now.sa_flags & SA_SIGINFO);
	MUST(trap_is_ours());
	must_survive_int3();
	MUST(earlier.count == 0);
	MUST(code_run(foreign_trap()) == CODE_OLD);
	MUST(earlier.count == 1 && earlier.code == SI_KERNEL);
	MUST(pc_fini() == 0);
	MUST(sigaction(SIGTRAP, NULL, &now) == 0 && now.sa_sigaction == earlier_info);
	MUST(raise(SIGTRAP) == 0 && earlier.count == 2 && earlier.code == SI_TKILL);
}

static void test_later_handler(void **state)
{
	(void)state;
	must_pass(later_handler, NULL);
}

/* No header has it any more; a program of long ago may. */
void (*bsd_signal(int signal, void (*handler)(int)))(int);

static void later_signal(const void *arg)
{
	(void)arg;
	start_guarded();
	MUST(signal(SIGTRAP, earlier_plain) == SIG_DFL);
	MUST(signal(SIGTRAP, SIG_IGN) == earlier_plain);
	MUST(raise(SIGTRAP) == 0 && earlier.count == 0);
	MUST(bsd_signal(SIGTRAP, SIG_DFL) == SIG_IGN && ssignal(SIGTRAP, SIG_IGN) == SIG_DFL);
	MUST(trap_is_ours());
	MUST(sysv_signal(SIGTRAP, earlier_plain) == SIG_IGN);
	must_survive_int3();
	MUST(raise(SIGTRAP) == 0 && earlier.count == 1 && !earlier.trap_held);
	MUST(signal(SIGTRAP, SIG_DFL) == SIG_DFL); /* System V: for one time */
	MUST(signal(SIGTRAP, SIG_ERR) == SIG_ERR && errno == EINVAL);
	MUST(signal(12345, SIG_DFL) == SIG_ERR && errno == EINVAL);
}

static void test_later_signal(void **state)
{
	(void)state;
	must_pass(later_signal, NULL);
}

static void later_default(const void *arg)
{
	(void)arg;
	set_earlier(earlier_plain);
	start_guarded();
	signal(SIGTRAP, SIG_DFL);
	must_survive_int3();
	code_run(foreign_trap());
}

static void test_later_default(void **state)
{
	(void)state;
	if (CHILD_ASAN || CHILD_TSAN)
		skip();
	child_must_die_of(later_default, NULL, SIGTRAP);
}

/* --- Masks ----------------------------------------------------------------------------------- */

typedef int mask_fn(int, const sigset_t *, sigset_t *);

static void must_read_back(mask_fn *set_mask, bool blocked)
{
	sigset_t now;

	MUST(set_mask(SIG_BLOCK, NULL, &now) == 0);
	MUST(sigismember(&now, SIGTRAP) == blocked);
	MUST(!kernel_blocks_trap());
	must_survive_int3();
}

static void masks(const void *arg)
{
	mask_fn *set_mask = *(mask_fn *const *)arg;
	sigset_t all, trap, old;

	start_guarded();
	sigfillset(&all);
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	must_read_back(set_mask, false);
	MUST(set_mask(SIG_SETMASK, &all, &old) == 0 && !sigismember(&old, SIGTRAP));
	must_read_back(set_mask, true);
	MUST(set_mask(SIG_UNBLOCK, &trap, &old) == 0 && sigismember(&old, SIGTRAP));
	MUST(sigismember(&old, SIGUSR1));
	must_read_back(set_mask, false);
	MUST(set_mask(SIG_BLOCK, &trap, NULL) == 0);
	must_read_back(set_mask, true);
	sigemptyset(&trap);
	MUST(set_mask(SIG_BLOCK, &trap, NULL) == 0);
	must_read_back(set_mask, true);
	MUST(set_mask(SIG_SETMASK, &trap, NULL) == 0);
	must_read_back(set_mask, false);
}

static void test_masks(void **state)
{
	mask_fn *both[] = { sigprocmask, pthread_sigmask };

	(void)state;
	must_pass(masks, &both[0]);
	must_pass(masks, &both[1]);
}

static void masks_fail(const void *arg)
{
	sigset_t all;

	(void)arg;
	start_guarded();
	sigfillset(&all);
	MUST(sigprocmask(99, &all, NULL) == -1 && errno == EINVAL);
	MUST(pthread_sigmask(99, &all, NULL) == EINVAL);
	must_read_back(sigprocmask, false);
}

static void test_masks_fail(void **state)
{
	(void)state;
	must_pass(masks_fail, NULL);
}

/* Blocked, as far as the program knows: then what is sent must not arrive. */
static void pending(const void *arg)
{
	sigset_t all, none, now;

	(void)arg;
	set_earlier_info();
	start_guarded();
	sigfillset(&all);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &all, NULL);
	MUST(sigqueue(getpid(), SIGTRAP, (union sigval){ .sival_int = 4711 }) == 0);
	MUST(sigqueue(getpid(), SIGTRAP, (union sigval){ .sival_int = 4712 }) == 0);
	MUST(earlier.count == 0);
	MUST(sigpending(&now) == 0 && sigismember(&now, SIGTRAP));
	must_survive_int3();
	sigprocmask(SIG_SETMASK, &none, NULL);
	MUST(earlier.count == 1 && earlier.code == SI_QUEUE && earlier.value == 4711);
	MUST(sigpending(&now) == 0 && !sigismember(&now, SIGTRAP));
	/* A trap of the thread itself is another matter: it cannot wait. */
	MUST(code_run(foreign_trap()) == CODE_OLD && earlier.count == 2);
}

static void test_pending(void **state)
{
	(void)state;
	must_pass(pending, NULL);
}

static void *execute_in_thread(void *unused)
{
	must_survive_int3();
	return unused;
}

/* A thread that is to start with all signals blocked. */
static void in_attributes(const void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;

	(void)arg;
	start_guarded();
	sigfillset(&all);
	MUST(pthread_attr_init(&attr) == 0 && pthread_attr_setsigmask_np(&attr, &all) == 0);
	MUST(pthread_create(&thread, &attr, execute_in_thread, NULL) == 0);
	pthread_join(thread, NULL);
}

static void test_in_attributes(void **state)
{
	(void)state;
	must_pass(in_attributes, NULL);
}

/* --- Waiting for it --------------------------------------------------------------------------- */

static void *send_often(void *thread)
{
	for (int i = 0; i < 200; i++) {
		unsigned before = result;

		pthread_kill(*(pthread_t *)thread, SIGTRAP);
		while (result == before)
			sched_yield();
	}
	return NULL;
}

static void waited_for(const void *arg)
{
	const struct timespec none = { 0 };
	pthread_t thread, self = pthread_self();
	siginfo_t info;
	sigset_t set;
	int signal;

	(void)arg;
	set_earlier_info();
	start_guarded();
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	MUST(sigtimedwait(&set, &info, &none) == -1 && errno == EAGAIN);
	MUST(sigqueue(getpid(), SIGTRAP, (union sigval){ .sival_int = 4711 }) == 0);
	MUST(sigwaitinfo(&set, &info) == SIGTRAP && info.si_value.sival_int == 4711);
	MUST(sigtimedwait(&set, &info, &none) == -1 && errno == EAGAIN);
	MUST(raise(SIGUSR1) == 0 && sigwait(&set, &signal) == 0 && signal == SIGUSR1);
	MUST(pthread_create(&thread, NULL, send_often, &self) == 0);
	for (int i = 0; i < 200; i++) {
		MUST(sigwait(&set, &signal) == 0 && signal == SIGTRAP);
		MUST(!kernel_blocks_trap());
		result++;
	}
	pthread_join(thread, NULL);
	MUST(earlier.count == 0);
	must_read_back(sigprocmask, true);
}

static void test_waited_for(void **state)
{
	(void)state;
	must_pass(waited_for, NULL);
}

/* By turns and not by luck: it comes when the thread is about to enter the kernel. */
static void send_before_wait(int signal, siginfo_t *info, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *at = (const uint8_t *)gregs[REG_RIP];

	(void)signal;
	if (!step_is(info) || gregs[REG_RAX] != SYS_rt_sigtimedwait || at[0] != 0x0f ||
	    at[1] != 0x05)
		return;
	gregs[REG_EFL] &= ~STEP_FLAG;
	MUST(pthread_kill(pthread_self(), SIGTRAP) == 0);
	handled++;
}

static void sent_before_wait(const void *arg)
{
	struct sigaction action = { .sa_sigaction = send_before_wait, .sa_flags = SA_SIGINFO };
	const struct timespec soon = { .tv_sec = 3 };
	sigset_t set;
	int got;

	(void)arg;
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
	start_guarded();
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	__writeeflags(__readeflags() | STEP_FLAG);
	got = sigtimedwait(&set, NULL, &soon);
	__writeeflags(__readeflags() & ~(unsigned long long)STEP_FLAG);
	MUST(handled == 1 && got == SIGTRAP);
	MUST(!kernel_blocks_trap());
}

static void test_sent_before_wait(void **state)
{
	(void)state;
	must_pass(sent_before_wait, NULL);
}

/* --- Handlers of other signals, that block it while they run ---------------------------------- */

static void execute_in_handler(int signal)
{
	(void)signal;
	must_survive_int3();
	handled++;
}

static void other_handlers(const void *arg)
{
	struct sigaction action = { .sa_handler = execute_in_handler }, old;

	(void)arg;
	start_guarded();
	sigfillset(&action.sa_mask);
	MUST(sigaction(SIGUSR1, &action, &old) == 0 && !sigismember(&old.sa_mask, SIGTRAP));
	MUST(sigaction(SIGUSR1, NULL, &old) == 0 && sigismember(&old.sa_mask, SIGTRAP));
	MUST(pc_check_signals(&report) == 0 && report.handlers_blocking == 0);
	MUST(raise(SIGUSR1) == 0 && handled == 1);
	MUST(signal(SIGUSR1, execute_in_handler) == execute_in_handler);
	MUST(sigaction(SIGUSR1, NULL, &old) == 0 && !sigismember(&old.sa_mask, SIGTRAP));
}

static void test_other_handlers(void **state)
{
	(void)state;
	must_pass(other_handlers, NULL);
}

/* ppoll() of a program that is built with _FORTIFY_SOURCE=2. */
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *set, size_t size);

/* Handlers that come while a call waits with a mask of its own. */
static void in_wait(const void *arg)
{
	struct timespec soon = { .tv_sec = 20 };
	sigset_t usr1, wait;
	int fd = epoll_create1(0);
	struct pollfd none = { .fd = -1 };
	struct epoll_event event;

	(void)arg;
	start_guarded();
	signal(SIGUSR1, execute_in_handler);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	sigfillset(&wait);
	sigdelset(&wait, SIGUSR1);
	raise(SIGUSR1);
	MUST(sigsuspend(&wait) == -1 && errno == EINTR && handled == 1);
	raise(SIGUSR1);
	MUST(ppoll(NULL, 0, &soon, &wait) == -1 && errno == EINTR && handled == 2);
	raise(SIGUSR1);
	MUST(pselect(0, NULL, NULL, NULL, &soon, &wait) == -1 && errno == EINTR && handled == 3);
	raise(SIGUSR1);
	MUST(epoll_pwait(fd, &event, 1, 20000, &wait) == -1 && errno == EINTR && handled == 4);
	raise(SIGUSR1);
	MUST(__ppoll_chk(&none, 1, &soon, &wait, sizeof(none)) == -1 && handled == 5);
	raise(SIGUSR1);
	MUST(epoll_pwait2(fd, &event, 1, &soon, &wait) == -1 && errno == EINTR && handled == 6);
	soon.tv_sec = 0;
	MUST(ppoll(NULL, 0, &soon, NULL) == 0 && epoll_pwait(fd, &event, 1, 0, NULL) == 0);
	MUST(pselect(0, NULL, NULL, NULL, &soon, NULL) == 0);
}

static void test_in_wait(void **state)
{
	(void)state;
	must_pass(in_wait, NULL);
}

/* --- Children
 * --------------------------------------------------------------------------------------- */

static int exit_status(pid_t pid)
{
	int status;

	MUST(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

__attribute__((noinline)) static pid_t vfork_and_reset(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		sigset_t all;

		sigfillset(&all);
		signal(SIGTRAP, SIG_IGN);
		sigprocmask(SIG_SETMASK, &all, NULL);
		_exit(kernel_blocks_trap() ? 0 : 1);
	}
	return pid;
}

/* What the child of vfork() sets is its own, and nothing of it stays with us. */
static void vforked(const void *arg)
{
	struct sigaction now;

	(void)arg;
	set_earlier(earlier_plain);
	start_guarded();
	MUST(exit_status(vfork_and_reset()) == 0);
	MUST(sigaction(SIGTRAP, NULL, &now) == 0 && now.sa_handler == earlier_plain);
	MUST(trap_is_ours());
	must_read_back(sigprocmask, false);
}

static void test_vforked(void **state)
{
	(void)state;
	must_pass(vforked, NULL);
}

/* A child of fork() is as guarded as its parent. */
static void forked(const void *arg)
{
	pid_t pid;

	(void)arg;
	start_guarded();
	pid = fork();
	if (pid == 0) {
		MUST(signal(SIGTRAP, earlier_plain) == SIG_DFL);
		MUST(trap_is_ours());
		_exit(0);
	}
	MUST(exit_status(pid) == 0);
	MUST(signal(SIGTRAP, SIG_DFL) == SIG_DFL);
}

static void test_forked(void **state)
{
	(void)state;
	must_pass(forked, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_later_handler),  cmocka_unit_test(test_later_signal),
		cmocka_unit_test(test_later_default),  cmocka_unit_test(test_masks),
		cmocka_unit_test(test_masks_fail),     cmocka_unit_test(test_pending),
		cmocka_unit_test(test_waited_for),     cmocka_unit_test(test_sent_before_wait),
		cmocka_unit_test(test_other_handlers), cmocka_unit_test(test_in_wait),
		cmocka_unit_test(test_in_attributes),  cmocka_unit_test(test_vforked),
		cmocka_unit_test(test_forked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
