/* SPDX-License-Identifier: MIT */
/*
 * A thread that is in the kernel's execve() when the library looks at all threads takes no signal
 * of that look into the new program, which would end by it.
 *
 * A tracer holds the thread where it enters execve(), until the signal is pending for it.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include <cmocka.h>

#include "patchcore/merge/others.h"
#include "patchcore/syscall/task.h"
#include "patchcore/tests/child.h"

/* Of the program that is run: what it finds pending is its exit status. */
#define CLEAN "what-is-pending"

static struct {
	_Atomic(pid_t) caller; /* the thread that calls execve() */
	atomic_bool go;	       /* the tracer: it may */
	atomic_bool held;      /* the tracer: it stands there */
} * shared;

static bool is_blocked;

static void *call_exec(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	if (is_blocked)
		MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	shared->caller = (pid_t)syscall(SYS_gettid);
	while (!shared->go)
		;
	execl("/proc/self/exe", "test_look_exec", CLEAN, (char *)NULL);
	MUST(!"execl");
	return arg;
}

static void on_trap(int signal)
{
	(void)signal;
}

/*
 * The thread's end, by the execve(), comes before that of the look. Where it blocks all, it is
 * sent the signal as if it were in the handler of SIGTRAP.
 */
static void look(void)
{
	struct sigaction action = { .sa_handler = on_trap };

	sigfillset(&action.sa_mask);
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
	others_look(NULL, NULL, NULL);
}

/* The broken variant: a signal as others.c has sent it once, by a program's own right. */
static void send_queued(void)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = SIGRTMAX - 1;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_value.sival_ptr = (void *)(uintptr_t)(OTHERS_MAGIC << 32);
	MUST(syscall(SYS_rt_tgsigqueueinfo, getpid(), shared->caller, SIGRTMAX - 1, &info) == 0);
}

static void run_program(void (*interrupt)(void))
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, call_exec, NULL) == 0);
	while (!shared->held)
		;
	interrupt();
	/* The execve() ends this thread. */
	for (;;)
		pause();
}

static void resume_until_stopped(pid_t tid, int how)
{
	int status;

	MUST(ptrace(how, tid, NULL, NULL) == 0);
	MUST(waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status));
}

/* A thread that it seizes enters execve(), and stays there. */
static void hold_at_exec(pid_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACESYSGOOD) < 0)
		child_skip("no thread may be traced");
	MUST(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0);
	MUST(waitpid(tid, NULL, __WALL) == tid);
	shared->go = true;
	do {
		resume_until_stopped(tid, PTRACE_SYSCALL);
		MUST(ptrace(PTRACE_GETREGS, tid, NULL, &regs) == 0);
	} while (regs.orig_rax != SYS_execve);
	shared->held = true;
}

static bool is_any_pending(pid_t pid, pid_t tid)
{
	char path[64], line[128];
	unsigned long pending = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	status = fopen(path, "r");
	MUST(status);
	while (fgets(line, sizeof(line), status) && sscanf(line, "SigPnd: %lx", &pending) != 1)
		;
	fclose(status);
	return pending;
}

/* How the new program ends. */
static int exec_during(void (*interrupt)(void))
{
	pid_t pid, tid;
	int status;

	if (CHILD_TSAN)
		child_skip("the thread sanitizer delivers signals when it likes");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	MUST(shared != MAP_FAILED);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_program(interrupt);
	}
	while ((tid = shared->caller) == 0)
		;
	hold_at_exec(tid);
	while (!is_any_pending(pid, tid))
		usleep(1000);
	MUST(ptrace(PTRACE_DETACH, tid, NULL, NULL) == 0);
	MUST(waitpid(pid, &status, 0) == pid);
	return status;
}

static void looked_at(const void *arg)
{
	is_blocked = arg;
	MUST(exec_during(look) == 0);
}

static void queued(const void *arg)
{
	int status;

	is_blocked = arg;
	status = exec_during(send_queued);
	if (is_blocked)
		MUST(WIFEXITED(status) && WEXITSTATUS(status) == SIGRTMAX - 1);
	else
		MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGRTMAX - 1);
}

static void test_looked_at(void **state)
{
	(void)state;
	child_must_pass(looked_at, NULL);
	child_must_pass(looked_at, "blocked");
}

static void test_broken(void **state)
{
	(void)state;
	child_must_pass(queued, NULL);
	child_must_pass(queued, "blocked");
}

static int tell_pending(void)
{
	sigset_t set;

	if (sigpending(&set) < 0)
		return 1;
	for (int i = 1; i <= SIGRTMAX; i++)
		if (sigismember(&set, i) == 1)
			return i;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looked_at),
		cmocka_unit_test(test_broken),
	};

	if (argc > 1 && strcmp(argv[1], CLEAN) == 0)
		return tell_pending();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
