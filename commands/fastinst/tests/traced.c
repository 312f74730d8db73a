/* SPDX-License-Identifier: MIT */
/*
 * What fastinst trace is tried on: arguments of many types, a signal, a thread, a child, another
 * program in its place. The arguments are used, or a compiler leaves out what it is. traced once
 *   traced often N  add() so often by each of four threads
 *   traced wait     prints its PID, and calls nothing() until stdin ends
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define USE(x)	 __asm__ volatile("" : : "g"(x) : "memory")

enum color {
	RED = -1,
	BLUE = 3
};

struct big {
	long a, b, c;
};

struct small {
	int a, b;
};

NOINLINE int add(int a, int b)
{
	USE(a);
	return a + b;
}

NOINLINE const char *greet(const char *name, unsigned char n, bool flag, char letter)
{
	USE(n);
	USE(flag);
	USE(letter);
	return name;
}

NOINLINE long seven(char a, short b, int c, long d, void *e, uint64_t f, int g)
{
	USE(g);
	return a + b + c + d + (long)f + (e != NULL);
}

NOINLINE double mixed(double x, int i, float y, const char *text)
{
	USE(text);
	return x + i + (double)y;
}

NOINLINE struct big huge(int a, struct big b, enum color color)
{
	b.a += a + (int)color;
	return b;
}

NOINLINE int little(struct small s, int x)
{
	USE(x);
	return s.a + s.b + x;
}

NOINLINE void nothing(void)
{
	USE(0);
}

NOINLINE int deep(int depth)
{
	return depth ? deep(depth - 1) + 1 : add(1, 2);
}

static void on_signal(int number)
{
	(void)number;
	nothing();
}

static void *in_thread(void *arg)
{
	for (long i = 0; i < (long)(intptr_t)arg; i++)
		USE(add((int)i, 9));
	return NULL;
}

NOINLINE void threads(unsigned n, long calls)
{
	pthread_t thread[4];

	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, in_thread, (void *)(intptr_t)calls))
			abort();
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

static inline __attribute__((always_inline)) void arguments(void)
{
	const struct big big = { 1, 2, 3 };
	const struct small small = { 1, 2 };

	USE(add(-5, 7));
	USE(greet("a \"b\"\n", 200, true, 'x'));
	USE(greet(NULL, 1, false, 'y'));
	USE(greet((const char *)16, 1, false, 0));
	USE(greet("sixty-four bytes of a string are taken along; what comes behind them is not", 0,
		  false, 0));
	USE(greet("\xff\xfe", 0, false, 0));
	USE(seven('a', -2, 3, -4, NULL, UINT64_MAX, 7));
	USE((int)mixed(1, 2, 3, "mixed"));
	USE((int)huge(1, big, RED).a);
	USE(little(small, 3));
}

static void wait_for_end(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (poll(&in, 1, 1) == 0)
		nothing();
}

/* 100,000 calls for each byte that comes. */
static void call_in_batches(void)
{
	char byte;

	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (read(0, &byte, 1) == 1) {
		for (int i = 0; i < 100000; i++)
			USE(add(i, 1));
		puts("batch");
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc > 2 && !strcmp(argv[1], "often")) {
		threads(4, atol(argv[2]));
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "batches")) {
		call_in_batches();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "wait")) {
		wait_for_end();
		return 0;
	}
	if (argc > 1) {
		USE(add(1000, 2000));
		return 0;
	}
	arguments();
	USE(deep(2));
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	threads(1, 3);
	child = fork();
	if (!child) {
		USE(add(100, 200));
		_exit(0);
	}
	waitpid(child, NULL, 0);
	child = fork();
	if (!child) {
		execl(argv[0], argv[0], "again", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	puts("done");
	return 3;
}
