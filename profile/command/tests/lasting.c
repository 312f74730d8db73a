/* SPDX-License-Identifier: MIT */
/*
 * lasting - functions that take a known time of CPU, and leave in all the ways there are; prints
 * "NAME SELF TOTAL" in microseconds.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define N     __attribute__((noinline))
#define TIMES 60
#define SPIN  300 /* microseconds */

static volatile unsigned long work;

__attribute__((no_instrument_function)) static double cpu(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* A time of CPU, however busy the machine is. */
N static void spin(double microseconds)
{
	double until = cpu() + microseconds;

	while (cpu() < until)
		work = work + 1;
}

N static void inner(void)
{
	spin(SPIN);
	work = work + 1;
}

N static void outer(void)
{
	spin(2 * SPIN);
	inner();
	work = work + 1;
}

N static int deep(int n)
{
	spin(SPIN);
	return n ? deep(n - 1) + 1 : 0;
}

N static void sleeps(void)
{
	usleep(3 * SPIN);
	work = work + 1;
}

N static void jumps(jmp_buf *back)
{
	spin(SPIN);
	longjmp(*back, 1);
}

N static void catches(void)
{
	jmp_buf back;

	if (!setjmp(back))
		jumps(&back);
	work = work + 1;
}

/* By turns it leaves by longjmp() and by a return, at the same place of the stack. */
N static void by_turns(jmp_buf *back, int leave)
{
	spin(leave ? 10 * SPIN : SPIN);
	if (leave)
		longjmp(*back, 1);
	work = work + 1;
}

N static void catches_by_turns(void)
{
	jmp_buf back;

	for (volatile int i = 0; i < 2; i++)
		if (!setjmp(back))
			by_turns(&back, i == 0);
	work = work + 1;
}

N static void ends_with(void)
{
	spin(SPIN);
	inner();
}

N static void on_signal(int number)
{
	(void)number;
	spin(SPIN);
	work = work + 1;
}

N static void *thread(void *data)
{
	for (int i = 0; i < TIMES; i++)
		outer();
	work = work + 1;
	return data;
}

int main(void)
{
	pthread_t other;

	signal(SIGUSR1, on_signal);
	pthread_create(&other, NULL, thread, NULL);
	for (int i = 0; i < TIMES; i++) {
		outer();
		deep(3);
		sleeps();
		catches();
		catches_by_turns();
		ends_with();
		raise(SIGUSR1);
	}
	pthread_join(other, NULL);
	printf("outer %d %d\n", 0, 2 * TIMES * 3 * SPIN);
	printf("inner %d %d\n", 0, 3 * TIMES * SPIN);
	printf("deep %d %d\n", 0, TIMES * 4 * SPIN);
	printf("sleeps %d %d\n", 0, 0);
	printf("by_turns %d %d\n", 0, 2 * TIMES * SPIN);
	printf("on_signal %d %d\n", 0, TIMES * SPIN);
	printf("spin %d %d\n", (2 * 3 + 4 + 1 + 11 + 1 + 1 + 1) * TIMES * SPIN,
	       (2 * 3 + 4 + 1 + 11 + 1 + 1 + 1) * TIMES * SPIN);
	return 0;
}
