/* SPDX-License-Identifier: MIT */
/* What /proc says of threads, as recorded and of threads of this process. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/merge.h"
#include "patchcore/merge/others.h"
#include "patchcore/signals.h"
#include "patchcore/syscall/kernel_signal.h"
#include "patchcore/syscall/task.c"
#include "patchcore/tests/asleep.h"
#include "patchcore/tests/io_worker.h"
#include "patchcore/tests/trap_case.h"

/* --- Text ------------------------------------------------------------------------------- */

static void test_text(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(proc_find("one\ntwo:\t3", "\ntwo:"), "\t3");
	assert_string_equal(proc_find("aab", "ab"), "");
	assert_null(proc_find("one", "onee"));
	assert_null(proc_find("", "x"));
	assert_string_equal(proc_last("a (b) c) d", ')'), ") d");
	assert_null(proc_last("abc", ')'));
	assert_string_equal(proc_field("a bb  c", 2), " c");
	assert_string_equal(proc_field("a bb", 0), "a bb");
	assert_null(proc_field("a bb", 2));
	assert_int_equal(proc_number("\t 42x", 10), 42);
	assert_int_equal(proc_number("0x7fFe 1", 16), 0x7ffe);
	assert_int_equal(proc_number("fffffffffffffffe", 16), UINT64_MAX - 1);
	assert_int_equal(proc_number("18446744073709551615", 10), UINT64_MAX);
	assert_int_equal(proc_number("", 10), 0);
	assert_int_equal(proc_number("-1", 10), 0);
	assert_ptr_equal(proc_put_number(proc_put(text, "a/"), 0), text + 3);
	assert_string_equal(text, "a/0");
	proc_put(proc_put_number(text, UINT32_MAX), "/b");
	assert_string_equal(text, "4294967295/b");
}

/* --- Recorded ------------------------------------------------------------------------------ */

/* Linux 6.18: a thread of io_uring, and the one that made it, by a name that misleads. */
static const char worker[] =
	"3538 (iou-wrk-3536) S 3473 3473 18107 0 -1 4210768 0 0 0 0 0 0 0 0 20 0 2 0 372945 "
	"2543616 345 18446744073709551615 94808129839104 94808129841029 140722867112672 0 0 "
	"0 2147221247 6 0 1 0 0 -1 1 0 0 0 0 0 94808129850832 94808129851568 94808132141056 "
	"140722867120591 140722867120600 140722867120600 140722867122159 0\n";
static const char maker[] =
	"3536 (a) S 1 (b) S 3473 3473 18107 0 -1 4194560 84 0 0 0 0 0 0 0 20 0 2 0 372945 "
	"2543616 345 18446744073709551615 94808129839104 94808129841029 140722867112672 0 0 "
	"0 65536 6 0 1 0 0 17 1 0 0 0 0 0 94808129850832 94808129851568 94808132141056 "
	"140722867120591 140722867120600 140722867120600 140722867122159 0\n";
/* A first thread that has ended before the others: no memory. */
static const char ended[] =
	"3669 (zz) Z 3473 3473 18107 0 -1 4227084 88 0 0 0 0 0 0 0 20 0 2 0 372960 0 0 "
	"18446744073709551615 0 0 0 0 0 0 0 6 0 1 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

static void test_recorded(void **state)
{
	struct task_stat stat;

	(void)state;
	assert_int_equal(task_stat_parse(worker, 6018, &stat), 0);
	assert_true(stat.is_kernel_thread && stat.has_memory);
	assert_int_equal(stat.started, 372945);
	assert_int_equal(task_stat_parse(worker, 5012, &stat), 0);
	assert_true(stat.is_kernel_thread);
	assert_int_equal(task_stat_parse(maker, 6018, &stat), 0);
	assert_true(!stat.is_kernel_thread && stat.has_memory);
	assert_int_equal(stat.started, 372945);
	assert_int_equal(task_stat_parse(ended, 6018, &stat), 0);
	assert_true(!stat.is_kernel_thread && !stat.has_memory);
	assert_int_equal(task_stat_parse("1 (a) S 1 2", 6018, &stat), -ESRCH);
	assert_int_equal(task_stat_parse("", 6018, &stat), -ESRCH);
	assert_int_equal(task_stat_parse("1 (a", 6018, &stat), -ESRCH);
}

/* Before, the same bits were those of a thread that runs a guest, or waits for a driver. */
static void test_old_kernels(void **state)
{
	struct task_stat stat;

	(void)state;
	assert_int_equal(task_stat_parse(worker, 5010, &stat), 0);
	assert_false(stat.is_kernel_thread);
	assert_int_equal(task_stat_parse("1 (a) S 1 2 3 4 5 16384 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5",
					 6003, &stat),
			 0);
	assert_false(stat.is_kernel_thread);
	assert_int_equal(task_stat_parse("1 (a) S 1 2 3 4 5 16384 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5",
					 6004, &stat),
			 0);
	assert_true(stat.is_kernel_thread);
}

/* --- Signals ------------------------------------------------------------------------------- */

#define TOP KERNEL_SIGNALS

static void test_uses(void **state)
{
	const uint64_t all = ~UINT64_C(0);

	(void)state;
	assert_int_equal(task_uses(kernel_bit(50), 0), kernel_bit(50));
	assert_int_equal(task_uses(all, 0), 0);
	assert_int_equal(task_uses(all & ~(kernel_bit(32) | kernel_bit(33) | kernel_bit(40)), 0),
			 0);
	assert_int_equal(task_uses(0, kernel_bit(60)), kernel_bit(60));
	assert_int_equal(task_uses(all, kernel_bit(60)), kernel_bit(60));
	assert_int_equal(task_uses(kernel_bit(SIGTRAP) | kernel_bit(SIGUSR1), 0), 0);
}

static void mine(struct task_signals *signals)
{
	MUST(task_signals((pid_t)syscall(SYS_gettid), signals) == 0);
}

static void real(const void *arg)
{
	struct task_signals signals;
	gid_t groups[2000];
	sigset_t set;

	(void)arg;
	mine(&signals);
	MUST(!(signals.blocked & kernel_bit(TOP)) && !signals.pending);
	sigemptyset(&set);
	sigaddset(&set, TOP);
	sigaddset(&set, 1);
	MUST(sigprocmask(SIG_SETMASK, &set, NULL) == 0 && raise(TOP) == 0);
	MUST(kill(getpid(), 1) == 0);
	mine(&signals);
	MUST(signals.blocked == (kernel_bit(TOP) | kernel_bit(1)));
	MUST(signals.pending == (kernel_bit(TOP) | kernel_bit(1)));
	/* In front of all that there may be thousands of groups. */
	for (int n = 1; n <= 2000; n++) {
		for (int i = 0; i < n; i++)
			groups[i] = 1000000u + (unsigned)i;
		if (setgroups((size_t)n, groups) < 0)
			child_skip("no leave to set groups");
		mine(&signals);
		MUST(signals.blocked == (kernel_bit(TOP) | kernel_bit(1)));
		MUST(signals.pending == signals.blocked);
	}
	MUST(task_signals(1 << 22, &signals) == -ENOENT);
}

static void test_real(void **state)
{
	(void)state;
	if (CHILD_TSAN)
		skip();
	child_must_pass(real, NULL);
}

/* --- Calls --------------------------------------------------------------------------------- */

/* One that lets signals in while it sleeps shows another mask than the handler has that calls it.
 */
struct sleep_call {
	long number;
	bool masks;
};

static _Atomic(pid_t) sleeper;

static void *sleep_in(void *arg)
{
	const struct sleep_call *call = arg;
	const struct timespec second = { .tv_sec = 100 };
	struct kernel_mask {
		const uint64_t *set;
		size_t size;
	} sixth;
	const uint64_t set = kernel_bit(SIGUSR2);
	int ends[2];
	char byte;

	sixth.set = &set;
	sixth.size = sizeof(set);
	MUST(pipe(ends) == 0);
	sleeper = (pid_t)syscall(SYS_gettid);
	switch (call->number) {
	case SYS_read:
		return (void *)syscall(SYS_read, ends[0], &byte, 1);
	case SYS_rt_sigsuspend:
		return (void *)syscall(SYS_rt_sigsuspend, &set, sizeof(set));
	case SYS_ppoll:
		return (void *)syscall(SYS_ppoll, NULL, 0, &second, &set, sizeof(set));
	case SYS_pselect6:
		return (void *)syscall(SYS_pselect6, 0, NULL, NULL, NULL, &second, &sixth);
	case SYS_rt_sigtimedwait:
		return (void *)syscall(SYS_rt_sigtimedwait, &set, NULL, &second, sizeof(set));
	default:
		return (void *)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &second, NULL);
	}
}

static void calls(const void *arg)
{
	const struct sleep_call *expected = arg;
	struct task_signals signals, later;
	struct task_call call;
	pthread_t thread;

	MUST(task_call((pid_t)syscall(SYS_gettid), &call) == 0);
	MUST(pthread_create(&thread, NULL, sleep_in, (void *)expected) == 0);
	while (!sleeper)
		sched_yield();
	await_asleep(sleeper, expected->number);
	MUST(task_signals(sleeper, &signals) == 0 && task_call(sleeper, &call) == 0);
	MUST(call.sleeps && call.pc && call.sp && call.masks == expected->masks);
	MUST(call.waits == (expected->number == SYS_rt_sigtimedwait));
	MUST(call.waited == (call.waits ? kernel_bit(SIGUSR2) : 0));
	/* As long as it sleeps, and no longer. */
	MUST(task_signals(sleeper, &later) == 0 && later.switches == signals.switches);
	MUST(signals.switches > 0 && pthread_cancel(thread) == 0);
}

static void test_calls(void **state)
{
	static const struct sleep_call all[] = {
		{ SYS_read, false }, { SYS_clock_nanosleep, false }, { SYS_rt_sigsuspend, true },
		{ SYS_ppoll, true }, { SYS_pselect6, true },	     { SYS_rt_sigtimedwait, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		child_must_pass(calls, &all[i]);
}

/* --- Threads of the kernel's ----------------------------------------------------------------- */

static void count(ucontext_t *context, struct others_room *room, void *arg)
{
	(void)room;
	MUST(context);
	++*(atomic_uint *)arg;
}

static atomic_bool spins;

static void *spin(void *arg)
{
	spins = true;
	while (!*(atomic_bool *)arg)
		;
	return NULL;
}

/* Neither waited for nor sent anything, and not what pc_check_signals() warns of. */
static void passed_over(const void *arg)
{
	static atomic_bool stop;
	static atomic_uint asked;
	struct pc_signals report;
	struct task_signals signals;
	pthread_t thread;
	pid_t tid;

	(void)arg;
	start_without_conf();
	tid = io_worker_make();
	MUST(pthread_create(&thread, NULL, spin, &stop) == 0);
	/* A new thread has all signals blocked until it runs. */
	while (!spins)
		sched_yield();
	MUST(pc_check_signals(&report) == 0 && report.threads == 2 && !report.threads_blocking);
	for (unsigned i = 1; i <= 10; i++)
		MUST(others_look(count, NULL, &asked) == 0 && asked == i);
	MUST(io_worker_find() == tid && task_signals(tid, &signals) == 0 && !signals.pending);
	stop = true;
	MUST(pthread_join(thread, NULL) == 0);
}

/* With nothing but the public functions. */
static void merged(const void *arg)
{
	static const uint8_t nops[] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
	struct pc_signals report;

	(void)arg;
	start_without_conf();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	memcpy(site, nops, sizeof(nops));
	io_worker_make();
	MUST(pc_check_signals(&report) == 0 && report.threads == 1);
	MUST(pc_patch_merge(site, new_code, CODE_LEN, PC_CHECK_THREADS) == 0);
	MUST(code_run(site) == CODE_NEW);
}

static void test_kernels(void **state)
{
	(void)state;
	if (CHILD_TSAN)
		skip();
	child_must_pass(merged, NULL);
	child_must_pass(passed_over, NULL);
}

/* --- A /proc of another namespace ----------------------------------------------------------- */

static void *sleep_on(void *tid)
{
	*(_Atomic(pid_t) *)tid = (pid_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return NULL;
}

/* By system calls it has ids that /proc has for strangers, or for none. */
static void as_stranger(const void *arg)
{
	static const uint8_t nops[] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
	_Atomic(pid_t) tid = 0;
	unsigned count_down = 500;
	pthread_t thread;

	(void)arg;
	MUST(!task_ids_are_ours());
	start_without_conf();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	memcpy(site, nops, sizeof(nops));
	MUST(pthread_create(&thread, NULL, sleep_on, &tid) == 0);
	while (!tid)
		sched_yield();
	while (task_state(tid) != 'S' && count_down--)
		usleep(10000);
	MUST(task_state(tid) == 'S' && task_state((pid_t)syscall(SYS_gettid)) == 'R');
	MUST(others_may_look() == -EACCES);
	MUST(pc_patch_merge(site, new_code, CODE_LEN, PC_CHECK_THREADS) == -EACCES);
	MUST(memcmp(site, nops, sizeof(nops)) == 0);
	MUST(pc_patch_merge(site, new_code, CODE_LEN, PC_NOBODY_INSIDE) == 0);
	MUST(code_run(site) == CODE_NEW && pc_fini() == 0);
}

static void in_namespace(const void *arg)
{
	MUST(task_ids_are_ours());
	if (unshare(CLONE_NEWPID) < 0)
		child_skip("no pid namespace to be had");
	MUST(child_run(as_stranger, arg) == 0);
}

static void test_namespace(void **state)
{
	(void)state;
	child_must_pass(in_namespace, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),	    cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_old_kernels), cmocka_unit_test(test_uses),
		cmocka_unit_test(test_real),	    cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_namespace),   cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
