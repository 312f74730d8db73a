/* SPDX-License-Identifier: MIT */
/*
 * The self-test at start-up: it must find out what is wrong with INT3, and
 * leave no trace of itself.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/sigtrap/trap.h"
#include "patchcore/tests/trap_case.h"

/* --- Under a tracer ---------------------------------------------------------------------- */

/* What it makes of each SIGTRAP of its tracee. */
struct tracer {
	bool follows; /* children too */
	int passes;   /* this signal instead, 0: none */
	int code;     /* si_code, 0: as it is */
	const char *reason;
};

static void pass_on(pid_t pid, int signal, const struct tracer *tracer)
{
	siginfo_t info;

	if (signal == SIGTRAP) {
		signal = tracer->passes;
		if (tracer->code && ptrace(PTRACE_GETSIGINFO, pid, 0, &info) == 0) {
			info.si_code = tracer->code;
			ptrace(PTRACE_SETSIGINFO, pid, 0, &info);
		}
	}
	ptrace(PTRACE_CONT, pid, 0, (long)signal);
}

/* Returns how the tracee ended, as waitpid() tells it. */
static int trace(pid_t tracee, const struct tracer *tracer)
{
	const long follow = PTRACE_O_TRACECLONE | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEFORK;
	pid_t pid;
	int status;

	MUST(waitpid(tracee, &status, 0) == tracee && WIFSTOPPED(status));
	MUST(ptrace(PTRACE_SETOPTIONS, tracee, 0,
		    PTRACE_O_EXITKILL | (tracer->follows ? follow : 0)) == 0);
	ptrace(PTRACE_CONT, tracee, 0, 0);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (pid == tracee && !WIFSTOPPED(status))
			return status;
		if (!WIFSTOPPED(status))
			continue;
		/* A child's first stop, or an event: nothing that it was sent. */
		if (WSTOPSIG(status) == SIGSTOP || status >> 16)
			ptrace(PTRACE_CONT, pid, 0, 0);
		else
			pass_on(pid, WSTOPSIG(status), tracer);
	}
	return -1;
}

/* With a handler of its own, the tracee would survive any SIGTRAP. */
static void be_traced(const struct tracer *tracer)
{
	struct pc_status status;

	MUST(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 && raise(SIGSTOP) == 0);
	start_without_conf();
	MUST(pc_get_status(&status) == 0);
	if (!tracer->reason) {
		MUST(!strstr(status.reason, "INT3"));
		return;
	}
	MUST(strstr(status.reason, tracer->reason));
	MUST(status.in_use == PC_POLICY_AUTO);
	MUST(pc_patch(site, new_code, CODE_LEN) == -ENOTSUP);
	MUST(pc_set_policy(PC_POLICY_MEMBARRIER) == -ENOTSUP);
	MUST(code_run(site) == CODE_OLD);
	/* What needs no INT3 still works. */
	MUST(pc_patch(page, new_code, CODE_LEN) == 0);
	MUST(pc_fini() == 0);
}

static void traced(const void *arg)
{
	const struct tracer *tracer = arg;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		be_traced(tracer);
		_exit(0);
	}
	status = trace(pid, tracer);
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void must_find(struct tracer tracer)
{
	child_must_pass(traced, &tracer);
}

static void test_tracer_passes(void **state)
{
	(void)state;
	must_find((struct tracer){ .passes = SIGTRAP });
	must_find((struct tracer){ .passes = SIGTRAP, .follows = true });
}

static void test_tracer_swallows(void **state)
{
	(void)state;
	must_find((struct tracer){ .passes = 0, .reason = "swallows" });
	must_find((struct tracer){ .passes = 0, .follows = true, .reason = "swallows" });
}

/* As an encrypted guest has seen it, and as emulators do it. */
static void test_other_signal(void **state)
{
	(void)state;
	must_find((struct tracer){ .passes = SIGILL, .follows = true, .reason = "#UD" });
	must_find((struct tracer){ .passes = SIGSEGV, .follows = true, .reason = "SIGSEGV" });
	must_find(
		(struct tracer){ .passes = SIGKILL, .follows = true, .reason = "ends a process" });
}

static void test_other_code(void **state)
{
	(void)state;
	must_find((struct tracer){
		.passes = SIGTRAP, .code = TRAP_BRKPT, .follows = true, .reason = "si_code" });
}

/* --- Beside what a program does with its signals and children -------------------------------- */

static volatile sig_atomic_t children;

static void on_child(int signal)
{
	(void)signal;
	children++;
}

static void must_work(void)
{
	struct pc_status status;

	start_without_conf();
	MUST(pc_get_status(&status) == 0 && !strstr(status.reason, "INT3"));
}

static void no_trace(const void *arg)
{
	(void)arg;
	signal(SIGCHLD, on_child);
	set_earlier(earlier_plain);
	must_work();
	MUST(children == 0 && earlier.count == 0 && trap_count() == 0);
	MUST(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	MUST(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
}

static void children_ignored(const void *arg)
{
	(void)arg;
	signal(SIGCHLD, SIG_IGN);
	must_work();
}

static void all_blocked(const void *arg)
{
	sigset_t all, now;

	(void)arg;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	must_work();
	sigprocmask(SIG_SETMASK, NULL, &now);
	MUST(sigismember(&now, SIGTRAP) && sigismember(&now, SIGUSR1));
}

/* A handler of the program must not run in the child, which has its memory. */
static volatile sig_atomic_t strangers;
static pid_t self;

static void note_process(int signal)
{
	(void)signal;
	strangers += getpid() != self;
}

static void *send_to_group(void *unused)
{
	for (int i = 0; i < 20000; i++)
		kill(0, SIGUSR1);
	return unused;
}

static void group_signals(const void *arg)
{
	pthread_t thread;
	char why[200];

	(void)arg;
	self = getpid();
	setpgid(0, 0);
	signal(SIGUSR1, note_process);
	must_work();
	MUST(pthread_create(&thread, NULL, send_to_group, NULL) == 0);
	for (int i = 0; i < 300; i++)
		MUST(probe_int3(why, sizeof(why)) == 0);
	pthread_join(thread, NULL);
	MUST(strangers == 0);
}

static void test_group_signals(void **state)
{
	(void)state;
	if (CHILD_TSAN) /* It calls handlers when it likes. */
		skip();
	child_must_pass(group_signals, NULL);
}

/* A sandbox may have no child. Then nothing is known, so nothing is risked. */
static void no_child(const void *arg)
{
	struct pc_status status;

	(void)arg;
	child_filter(SYS_clone, 0, CLONE_VFORK, SECCOMP_RET_ERRNO | EPERM);
	start_without_conf();
	MUST(pc_get_status(&status) == 0);
	MUST(strstr(status.reason, "could not be tested") &&
	     strstr(status.reason, strerror(EPERM)));
	MUST(pc_patch(site, new_code, CODE_LEN) == -ENOTSUP);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tracer_passes),
		cmocka_unit_test(test_tracer_swallows),
		cmocka_unit_test(test_other_signal),
		cmocka_unit_test(test_other_code),
		child_unit_test(no_trace),
		child_unit_test(children_ignored),
		child_unit_test(all_blocked),
		cmocka_unit_test(test_group_signals),
		child_unit_test(no_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
