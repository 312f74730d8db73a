/* SPDX-License-Identifier: MIT */
/*
 * profiled ROUNDS - functions that are called rarely, often, by several threads, recursively, left
 * by longjmp(), in signal handlers and in children; prints how often each was, and a sum. Exits
 * with 3.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N __attribute__((noinline))

static _Atomic unsigned long count[8];
enum {
	RARE,
	OFTEN,
	DEEP,
	JUMPS,
	SIGNALS,
	TASK,
	BURST,
	MIXED
};
static _Atomic unsigned long sum;

#define COUNT(which) atomic_fetch_add_explicit(&count[which], 1, memory_order_relaxed)

N static double mixed(double x, int i)
{
	COUNT(MIXED);
	return x * 1.0000001 + i;
}

N static double often(double x, int i)
{
	COUNT(OFTEN);
	for (int k = 0; k < 40; k++)
		x = x * 0.5 + (double)(i ^ k);
	return i % 3 ? x : mixed(x, i);
}

N static int deep(int n)
{
	COUNT(DEEP);
	return n ? deep(n - 1) + 1 : 0;
}

N static void jumps(jmp_buf *back, int n)
{
	COUNT(JUMPS);
	if (!n)
		longjmp(*back, 1);
	jumps(back, n - 1);
	atomic_fetch_add(&sum, 1);
}

N static void rare(void)
{
	jmp_buf back;

	COUNT(RARE);
	if (!setjmp(back))
		jumps(&back, 3);
}

N static void on_signal(int signal)
{
	(void)signal;
	COUNT(SIGNALS);
}

N static void burst(void)
{
	COUNT(BURST);
}

N static void *task(void *data)
{
	long rounds = (long)data;
	double x = 0;

	COUNT(TASK);
	for (long i = 0; i < rounds; i++) {
		x = often(x, (int)i);
		if (i % 50 == 0)
			deep(5);
		if (i % 20000 == 0)
			raise(SIGUSR1);
	}
	atomic_fetch_add(&sum, (unsigned long)x);
	return NULL;
}

static int child(void)
{
	for (int i = 0; i < 4; i++)
		rare();
	_exit(0);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "rare",	  "often", "deep",  "jumps",
					     "on_signal", "task",  "burst", "mixed" };
	long rounds = argc > 1 ? atol(argv[1]) : 100000;
	pthread_t threads[2];
	int status = 0;
	pid_t pid;

	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 7; i++)
		rare();
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, task, (void *)rounds);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 5000; i++)
		burst();
	pid = fork();
	if (!pid)
		child();
	waitpid(pid, &status, 0);
	count[RARE] += 4;
	count[JUMPS] += 16;
	for (int i = 0; i < 8; i++)
		printf("%s %lu\n", names[i], count[i]);
	printf("sum %lu %d\n", sum, status);
	return 3;
}
