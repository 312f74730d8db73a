/* SPDX-License-Identifier: MIT */
/*
 * many LIBRARY... - turns on all functions of these libraries, and off, and prints how many there
 * are, how many system calls each way took, and the time. The calls are counted by a parent that
 * traces it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probes/include/fastinst.h"

#define SAID 100 /* what the child ends with */

static double read_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void fail(const char *what, long error)
{
	fprintf(stderr, "many: %s: %ld\n", what, error);
	_exit(1);
}

static void change_all(bool on, const uint32_t *ids, size_t n)
{
	double start = read_ms();
	int ret;

	raise(SIGSTOP);
	ret = on ? fi_activate_batch(ids, n, NULL) : fi_deactivate_batch(ids, n);
	raise(SIGSTOP);
	if (ret < 0)
		fail(on ? "on" : "off", ret);
	fprintf(stderr, "%s: %.1f ms\n", on ? "on" : "off", read_ms() - start);
}

static void *sleep_on(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static _Noreturn void run_child(int argc, char **argv)
{
	uint32_t *ids = calloc(FI_PROBES_MAX, sizeof(*ids));
	pthread_t other;
	long n;

	for (int i = 1; i < argc; i++)
		if (!dlopen(argv[i], RTLD_NOW))
			fail(dlerror(), i);
	if (getenv("MANY_THREADS") && pthread_create(&other, NULL, sleep_on, NULL))
		fail("no thread", 0);
	if (!ids || fi_take_entries("libmany*") || fi_init())
		fail("no probes", 0);
	n = fi_find("libmany*:*", ids, FI_PROBES_MAX);
	if (n <= 0)
		fail("none found", n);
	printf("sites %ld\n", n);
	fflush(stdout);
	change_all(true, ids, (size_t)n);
	change_all(false, ids, (size_t)n);
	_exit(SAID);
}

/* Until it stops itself, ends, or dies of a signal: the system calls it made. */
static long count_calls(pid_t child, bool trace, int *status)
{
	long stops = 0;
	int signal = 0;

	for (;;) {
		ptrace(trace ? PTRACE_SYSCALL : PTRACE_CONT, child, 0, signal);
		if (waitpid(child, status, 0) != child || !WIFSTOPPED(*status))
			return stops / 2;
		signal = WSTOPSIG(*status);
		if (signal == SIGSTOP)
			return stops / 2;
		if (signal == (SIGTRAP | 0x80)) {
			signal = 0;
			stops++;
		}
	}
}

int main(int argc, char **argv)
{
	int status;
	pid_t child = fork();

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		run_child(argc, argv);
	}
	waitpid(child, &status, 0);
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	count_calls(child, false, &status);
	printf("on %ld\n", count_calls(child, getenv("MANY_UNTRACED") == NULL, &status));
	count_calls(child, false, &status);
	printf("off %ld\n", count_calls(child, getenv("MANY_UNTRACED") == NULL, &status));
	count_calls(child, false, &status);
	return WIFEXITED(status) && WEXITSTATUS(status) == SAID ? 0 : 1;
}
