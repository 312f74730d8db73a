/* SPDX-License-Identifier: MIT */
/*
 * Tests in a child process: its signals, settings and threads end with it, and a crash or a hang
 * is a failure of that test alone. For cmocka tests, which include cmocka.h first.
 */
#ifndef PATCHCORE_TESTS_CHILD_H
#define PATCHCORE_TESTS_CHILD_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 120 /* then it is held to hang; a nice test may have a tenth of a CPU */
#define CHILD_SKIPPED 77

#ifdef __has_feature
#define CHILD_FEATURE(name) __has_feature(name)
#else
#define CHILD_FEATURE(name) 0
#endif

/* It takes signals, and delivers them, at times of its own. */
#if defined(__SANITIZE_THREAD__) || CHILD_FEATURE(thread_sanitizer)
#define CHILD_TSAN 1
#else
#define CHILD_TSAN 0
#endif

#if defined(__SANITIZE_ADDRESS__) || CHILD_FEATURE(address_sanitizer)
#define CHILD_ASAN 1
#else
#define CHILD_ASAN 0
#endif

typedef void child_fn(const void *arg);

/* In a child only, from any of its threads. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static inline void child_skip(const char *why)
{
	dprintf(2, "skipped: %s\n", why);
	_exit(CHILD_SKIPPED);
}

/* The status as waitpid() tells it. */
static inline int child_run(child_fn *fn, const void *arg)
{
	static const struct rlimit no_core;
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		/* cmocka would go on with the next test. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		setrlimit(RLIMIT_CORE, &no_core);
		alarm(CHILD_SECONDS);
		fn(arg);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	return status;
}

static inline void child_must_pass(child_fn *fn, const void *arg)
{
	int status = child_run(fn, arg);

	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED)
		skip();
	if (WIFSIGNALED(status))
		fail_msg("the child died of signal %d", WTERMSIG(status));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

struct child_case {
	child_fn *fn;
	const void *arg;
};

static inline void child_test(void **state)
{
	child_must_pass((child_fn *)*state, NULL);
}

static inline void child_case_test(void **state)
{
	const struct child_case *test = *state;

	child_must_pass(test->fn, test->arg);
}

/* In the place of cmocka_unit_test(): a test that is all child. */
#define child_unit_test(fn)                                                                        \
	{                                                                                          \
		"test_" #fn, child_test, NULL, NULL, (void *)(fn)                                  \
	}

/* The same for one of several, each with a name and an argument. */
#define child_unit_case(name, fn, arg)                                                             \
	{                                                                                          \
		name, child_case_test, NULL, NULL, &(struct child_case)                            \
		{                                                                                  \
			fn, arg                                                                    \
		}                                                                                  \
	}

/* A deliberately broken variant: some MUST() notices. */
static inline void child_must_fail(child_fn *fn, const void *arg)
{
	int status = child_run(fn, arg);

	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

static inline void child_must_die_of(child_fn *fn, const void *arg, int signal)
{
	int status = child_run(fn, arg);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), signal);
}

/*
 * What a system call shall do from now on, in this process: SECCOMP_RET_ERRNO
 * with a number, or SECCOMP_RET_TRAP for a SIGSYS. Only when the argument that
 * is looked at has all the bits of the mask.
 */
static inline void child_filter(long call, unsigned argument, uint32_t mask, uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (uint32_t)offsetof(struct seccomp_data, args) + 8 * argument),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, mask, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		child_skip("no seccomp filter to be had");
}

#endif
