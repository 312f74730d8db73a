/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/signals.h"
#include "patchcore/sigtrap/trap.h"
#include "patchcore/tests/step.h"
#include "patchcore/tests/trap_case.h"

static struct pc_signals report;

/* The thread sanitizer has a thread of its own, which blocks all signals. */
static void must_pass(child_fn *fn)
{
	if (CHILD_TSAN)
		skip();
	child_must_pass(fn, NULL);
}

/*
 * --- The handler of SIGTRAP
 * -----------------------------------------------------------------------
 */

static void nothing_wrong(const void *arg)
{
	(void)arg;
	start_without_conf();
	MUST(pc_check_signals(&report) == 0);
	MUST(report.owner == PC_TRAP_OURS && !report.guarded);
	MUST(report.threads == 1);
	MUST(report.threads_blocking == 0 && report.first_thread == 0);
	MUST(report.handlers_blocking == 0 && report.first_signal == 0);
	MUST(report.stack_need > getauxval(AT_MINSIGSTKSZ));
	MUST(pc_check_signals(NULL) == -EINVAL);
}

static void test_nothing_wrong(void **state)
{
	(void)state;
	must_pass(nothing_wrong);
}

static void must_be(enum pc_trap_owner owner, const char *advice)
{
	MUST(pc_check_signals(&report) == (owner == PC_TRAP_OURS ? 0 : -EBUSY));
	MUST(report.owner == owner && strstr(report.advice, advice));
}

static void owners(const void *arg)
{
	struct sigaction ours;

	(void)arg;
	must_be(PC_TRAP_DEFAULT, "default");
	start_without_conf();
	must_be(PC_TRAP_OURS, "");
	MUST(sigaction(SIGTRAP, NULL, &ours) == 0);
	signal(SIGTRAP, earlier_plain);
	must_be(PC_TRAP_OTHER, "another handler");
	signal(SIGTRAP, SIG_IGN);
	must_be(PC_TRAP_IGNORED, "ignored");
	MUST(sigaction(SIGTRAP, &ours, NULL) == 0);
	must_be(PC_TRAP_OURS, "");
	MUST(pc_fini() == 0);
	must_be(PC_TRAP_DEFAULT, "default");
}

static void test_owners(void **state)
{
	(void)state;
	must_pass(owners);
}

/* --- Threads and handlers that block it ------------------------------------------------------ */

static atomic_int blocking;
static _Atomic(pid_t) blocking_thread;
static atomic_bool end;

static void block_trap(int how)
{
	sigset_t trap;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	MUST(pthread_sigmask(how, &trap, NULL) == 0);
}

static void *stay_blocking(void *unused)
{
	block_trap(SIG_BLOCK);
	blocking_thread = (pid_t)syscall(SYS_gettid);
	blocking++;
	while (!end)
		usleep(1000);
	return unused;
}

static void threads(const void *arg)
{
	pthread_t thread[3];

	(void)arg;
	start_without_conf();
	MUST(pthread_create(&thread[0], NULL, stay_blocking, NULL) == 0);
	while (blocking < 1)
		sched_yield();
	MUST(pc_check_signals(&report) == -EBUSY);
	MUST(report.owner == PC_TRAP_OURS && report.threads_blocking == 1);
	MUST(report.first_thread == blocking_thread && strstr(report.advice, "blocked"));
	for (int i = 1; i < 3; i++)
		MUST(pthread_create(&thread[i], NULL, stay_blocking, NULL) == 0);
	while (blocking < 3)
		sched_yield();
	MUST(pc_check_signals(&report) == -EBUSY);
	MUST(report.threads >= 4 && report.threads_blocking == 3);
	end = true;
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	/* A thread that was joined may still be listed for a moment. */
	while (pc_check_signals(&report) != 0)
		usleep(1000);
	MUST(report.threads_blocking == 0);
}

static void test_threads(void **state)
{
	(void)state;
	must_pass(threads);
}

/*
 * Blocked for a moment only, as in a thread that starts or ends: this one
 * unblocks it while the look is asleep. A busy machine may be too slow for that
 * now and then, but not always.
 */
static atomic_bool looked;

static bool is_asleep(pid_t tid)
{
	char name[64], text[256] = "";
	FILE *file;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(name, "re");
	MUST(file && fgets(text, sizeof(text), file));
	fclose(file);
	return strstr(text, ") S");
}

static void *block_for_a_moment(void *unused)
{
	block_trap(SIG_BLOCK);
	blocking = 1;
	while (!looked && !is_asleep(getpid()))
		;
	block_trap(SIG_UNBLOCK);
	return unused;
}

static bool sees_none(void)
{
	pthread_t thread;
	int ret;

	looked = false;
	blocking = 0;
	MUST(pthread_create(&thread, NULL, block_for_a_moment, NULL) == 0);
	while (!blocking)
		;
	ret = pc_check_signals(&report);
	looked = true;
	pthread_join(thread, NULL);
	return ret == 0;
}

static void moment(const void *arg)
{
	int tries = 0;

	(void)arg;
	start_without_conf();
	while (!sees_none())
		MUST(++tries < 200);
}

static void test_moment(void **state)
{
	(void)state;
	must_pass(moment);
}

static void caller_blocks(const void *arg)
{
	(void)arg;
	start_without_conf();
	block_trap(SIG_BLOCK);
	MUST(pc_check_signals(&report) == -EBUSY && report.first_thread == getpid());
	block_trap(SIG_UNBLOCK);
	MUST(pc_check_signals(&report) == 0);
}

static void test_caller_blocks(void **state)
{
	(void)state;
	must_pass(caller_blocks);
}

static void handlers(const void *arg)
{
	struct sigaction action = { .sa_handler = earlier_plain };

	(void)arg;
	start_without_conf();
	sigfillset(&action.sa_mask);
	MUST(sigaction(SIGUSR2, &action, NULL) == 0);
	MUST(sigaction(SIGTERM, &action, NULL) == 0);
	action.sa_handler = SIG_IGN;
	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
	MUST(pc_check_signals(&report) == 0);
	MUST(report.handlers_blocking == 2 && report.first_signal == SIGUSR2);
	MUST(strstr(report.advice, "sa_mask"));
}

static void test_handlers(void **state)
{
	(void)state;
	must_pass(handlers);
}

/* --- Stacks, and what cannot be read ---------------------------------------------------------- */

static void alternate_stack(const void *arg)
{
	stack_t stack = { .ss_size = getauxval(AT_MINSIGSTKSZ) };

	(void)arg;
	start_without_conf();
	MUST(pc_check_signals(&report) == 0);
	stack.ss_sp = malloc(2 * report.stack_need);
	if (sigaltstack(&stack, NULL) < 0)
		child_skip("no stack as small as that");
	MUST(pc_check_signals(&report) == 0);
	MUST(report.alternate_size == stack.ss_size && strstr(report.advice, "alternate stack"));
	stack.ss_size = 2 * report.stack_need;
	MUST(sigaltstack(&stack, NULL) == 0);
	MUST(pc_check_signals(&report) == 0);
	MUST(report.alternate_size == stack.ss_size && !report.advice[0]);
}

static void test_alternate_stack(void **state)
{
	(void)state;
	must_pass(alternate_stack);
}

static void no_proc(const void *arg)
{
	(void)arg;
	start_without_conf();
	child_filter(SYS_openat, 0, 0, SECCOMP_RET_ERRNO | EACCES);
	MUST(pc_check_signals(&report) == -EACCES);
}

/* --- The program's own disposition ------------------------------------------------------------ */

static void set_chained(const void *arg)
{
	struct sigaction plain = { .sa_handler = earlier_plain },
			 ignore = { .sa_handler = SIG_IGN };
	struct sigaction old, now;

	(void)arg;
	MUST(pc_set_chained_trap(&plain, &old) == -ESHUTDOWN);
	start_without_conf();
	sigaddset(&plain.sa_mask, SIGUSR1);
	MUST(pc_set_chained_trap(&plain, &old) == 0 && old.sa_handler == SIG_DFL);
	MUST(trap_is_ours());
	MUST(code_run(foreign_trap()) == CODE_OLD);
	MUST(earlier.count == 1 && earlier.usr1_held);
	MUST(pc_set_chained_trap(NULL, &old) == 0 && old.sa_handler == earlier_plain);
	MUST(sigismember(&old.sa_mask, SIGUSR1) == 1 && sigismember(&old.sa_mask, SIGUSR2) == 0);
	MUST(pc_set_chained_trap(&ignore, NULL) == 0);
	MUST(raise(SIGTRAP) == 0 && earlier.count == 1);
	MUST(pc_set_chained_trap(&plain, NULL) == 0);
	MUST(pc_fini() == 0);
	MUST(sigaction(SIGTRAP, NULL, &now) == 0 && now.sa_handler == earlier_plain);
	MUST(pc_set_chained_trap(&plain, NULL) == -ESHUTDOWN);
}

/*
 * Handlers of both kinds change places while foreign traps come: each must be
 * called as what it is, with its own mask.
 */
#define CHANGES 20000

static volatile unsigned wrong_kind, calls;

static void with_mask(int signal)
{
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	wrong_kind += signal != SIGTRAP || !sigismember(&mask, SIGUSR1);
	calls++;
}

static void with_info(int signal, siginfo_t *info, void *context)
{
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	wrong_kind += signal != SIGTRAP || !context || info->si_code != SI_KERNEL ||
		      sigismember(&mask, SIGUSR1);
	calls++;
}

static void *change_chained(void *unused)
{
	struct sigaction plain = { .sa_handler = with_mask };
	struct sigaction info = { .sa_sigaction = with_info, .sa_flags = SA_SIGINFO };

	sigaddset(&plain.sa_mask, SIGUSR1);
	for (int i = 0; i < CHANGES; i++)
		MUST(pc_set_chained_trap(i % 2 ? &plain : &info, NULL) == 0);
	end = true;
	return unused;
}

static void chained_changes(const void *arg)
{
	pthread_t thread;
	const uint8_t *at;

	(void)arg;
	signal(SIGTRAP, with_mask);
	start_without_conf();
	change_chained(NULL);
	end = false;
	at = foreign_trap();
	MUST(pthread_create(&thread, NULL, change_chained, NULL) == 0);
	while (!end)
		code_run(at);
	pthread_join(thread, NULL);
	MUST(calls > 0 && wrong_kind == 0);
}

/*
 * By turns and not by luck: two changes between any two instructions of a read,
 * which must give one of the three and no mix.
 */
static struct sigaction kinds[2];
static struct kernel_action whole;
static unsigned long change_at;

static void read_chained(void)
{
	trap_chain_get(&whole);
}

static bool change_twice(void)
{
	if (step_now.count < change_at)
		return true;
	for (int i = 0; i < 2; i++)
		MUST(pc_set_chained_trap(&kinds[i], NULL) == 0);
	return false;
}

static bool count_only(void)
{
	return true;
}

static void must_be_whole(void)
{
	bool usr1 = whole.mask & kernel_bit(SIGUSR1), usr2 = whole.mask & kernel_bit(SIGUSR2);

	if (whole.flags & SA_NODEFER)
		MUST(usr1 && !usr2);
	else if (whole.flags & SA_RESTART)
		MUST(!usr1 && usr2);
	else
		MUST(!usr1 && !usr2);
}

static void stepped_read(const void *arg)
{
	struct sigaction first;
	unsigned long steps;

	(void)arg;
	step_install();
	start_without_conf();
	MUST(pc_set_chained_trap(NULL, &first) == 0);
	kinds[0] = kinds[1] = first;
	kinds[0].sa_flags |= SA_NODEFER;
	sigaddset(&kinds[0].sa_mask, SIGUSR1);
	kinds[1].sa_flags |= SA_RESTART;
	sigaddset(&kinds[1].sa_mask, SIGUSR2);
	step_run(read_chained, count_only);
	steps = step_now.count;
	for (change_at = 1; change_at <= steps; change_at++) {
		MUST(pc_set_chained_trap(&first, NULL) == 0);
		step_run(read_chained, change_twice);
		must_be_whole();
	}
}

static void test_stepped_read(void **state)
{
	(void)state;
	must_pass(stepped_read);
}

/* From a signal handler that interrupts the very same function. */
static void on_alarm(int signal)
{
	struct sigaction now = { .sa_handler = with_mask };

	(void)signal;
	MUST(pc_set_chained_trap(&now, NULL) == 0);
	calls++;
}

static void async_signal_safe(const void *arg)
{
	const struct itimerspec often = { { 0, 50000 }, { 0, 50000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	timer_t timer;

	(void)arg;
	start_without_conf();
	signal(SIGUSR2, on_alarm);
	MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	MUST(timer_settime(timer, 0, &often, NULL) == 0);
	change_chained(NULL);
	while (calls < 20)
		change_chained(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_wrong),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_moment),
		cmocka_unit_test(test_stepped_read),
		cmocka_unit_test(test_caller_blocks),
		cmocka_unit_test(test_handlers),
		cmocka_unit_test(test_alternate_stack),
		child_unit_test(no_proc),
		child_unit_test(set_chained),
		child_unit_test(chained_changes),
		child_unit_test(async_signal_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
