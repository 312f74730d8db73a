/* SPDX-License-Identifier: MIT */
/*
 * Executors that may not read the clock, or make no system call, meet the INT3 of a patcher at
 * work: neither is needed there.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/tests/flights.h"
#include "patchcore/tests/trap_case.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

#define SA_OWN_RESTORER 0x04000000

#define HITS 30u
/*
 * A patcher that loses its CPU in the middle of a change leaves its executors to nap. Some die of
 * that, but not one after the other.
 */
#define TRIES 2000

/* Forbids something to the calling thread. */
typedef void forbid_fn(void);

static forbid_fn *forbid;
static atomic_bool stop, is_forbidden, has_ended;
static char selector;	   /* 1: system calls are dispatched */
static atomic_long called; /* a system call that was dispatched; 0: none */
static atomic_bool is_torn;

/* --- What may be forbidden -------------------------------------------------------------------- */

static void forbid_clock(void)
{
	MUST(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0);
}

static void forbid_strictly(void)
{
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
}

static void forbid_by_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		child_skip("no seccomp filter to be had");
}

/* The way back from the handler of SIGSYS: the only call that is not dispatched. */
__asm__(".text\n"
	"	nop\n"
	".globl dispatched_return\n"
	"dispatched_return:\n"
	"	mov $15, %eax\n"
	"	syscall\n"
	"	nop\n"
	"	nop\n");
extern const char dispatched_return[];

/* The return of a handler is a call like others. All others fail. */
static void on_call(int signal, siginfo_t *info, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signal;
	if (info->si_syscall == SYS_rt_sigreturn) {
		gregs[REG_RIP] = (greg_t)dispatched_return;
		return;
	}
	gregs[REG_RAX] = -EPERM;
	if (info->si_syscall != SYS_exit) {
		called = info->si_syscall;
		return;
	}
	/* Let it be made where it is. */
	selector = 0;
	gregs[REG_RIP] -= 2;
	gregs[REG_RAX] = SYS_exit;
}

static void forbid_by_dispatch(void)
{
	struct {
		void (*handler)(int, siginfo_t *, void *);
		unsigned long flags;
		const char *restorer;
		uint64_t mask;
	} action = { on_call, SA_SIGINFO | SA_NODEFER | SA_OWN_RESTORER, dispatched_return, 0 };

	MUST(syscall(SYS_rt_sigaction, SIGSYS, &action, NULL, sizeof(action.mask)) == 0);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, dispatched_return, 16L, &selector) < 0)
		child_skip("the kernel has no syscall user dispatch");
	selector = 1;
}

/* --- Executors -------------------------------------------------------------------------------- */

static void *execute_forbidden(void *unused)
{
	forbid();
	is_forbidden = true;
	while (!stop) {
		uint32_t number = code_run(site);

		if (number != CODE_OLD && number != CODE_NEW)
			is_torn = true;
	}
	has_ended = true;
	/* Not by libc, which calls more. */
	__asm__ volatile("syscall" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
	return unused;
}

/* Has the executor survived so many INT3, and made no call? */
static bool survives(void)
{
	uint64_t before = trap_count();
	pthread_t thread;
	bool is_gone = false;

	stop = is_forbidden = has_ended = false;
	called = 0;
	MUST(pthread_create(&thread, NULL, execute_forbidden, NULL) == 0);
	while (!is_forbidden)
		sched_yield();
	for (unsigned i = 0; !is_gone && trap_count() - before < HITS; i++) {
		MUST(pc_patch(site, i % 2 ? old_code : new_code, CODE_LEN) == 0);
		is_gone = i % 64 == 0 && pthread_tryjoin_np(thread, NULL) == 0;
	}
	stop = true;
	if (!is_gone)
		pthread_join(thread, NULL);
	MUST(!is_torn);
	return has_ended && !called;
}

static void meet(const void *arg)
{
	int tries = 0;

	forbid = *(forbid_fn *const *)arg;
	if (CHILD_ASAN && forbid != forbid_clock)
		child_skip("the sanitizer makes calls when a thread ends");
	/* A clock that may not be read costs a nap nothing: there is one try. */
	while (!survives())
		MUST(++tries < TRIES && forbid != forbid_clock);
	dprintf(2, "%d tries were cut short by a nap\n", tries);
	MUST(pc_fini() == 0);
}

static void by_membarrier(const void *arg)
{
	if (CHILD_TSAN)
		child_skip("the thread sanitizer makes calls of its own");
	start_without_conf();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	meet(arg);
}

static void by_wait(const void *arg)
{
	if (CHILD_TSAN)
		child_skip("the thread sanitizer makes calls of its own");
	flights_use_wait(3000, 3000);
	start();
	meet(arg);
}

static forbid_fn *const clock_read = forbid_clock, *const strict = forbid_strictly,
			*const filter = forbid_by_filter, *const dispatch = forbid_by_dispatch;

int main(void)
{
	const struct CMUnitTest tests[] = {
		child_unit_case("clock, membarrier", by_membarrier, &clock_read),
		child_unit_case("clock, wait", by_wait, &clock_read),
		child_unit_case("strict, membarrier", by_membarrier, &strict),
		child_unit_case("strict, wait", by_wait, &strict),
		child_unit_case("filter, membarrier", by_membarrier, &filter),
		child_unit_case("filter, wait", by_wait, &filter),
		child_unit_case("dispatch, membarrier", by_membarrier, &dispatch),
		child_unit_case("dispatch, wait", by_wait, &dispatch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
