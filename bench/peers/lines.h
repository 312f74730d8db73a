/* SPDX-License-Identifier: MIT */
/*
 * What the peers share: their main(), an executor, and requests as lines, see bench/peers/peer.h.
 * Compiled with the peer where and when it is used, so it needs no more than the C library, and no
 * configure. To be included first, by a program that has the functions below.
 *
 *	PROGRAM PATCHER EXECUTOR	the CPUs of the two threads
 */
#ifndef BENCH_PEERS_LINES_H
#define BENCH_PEERS_LINES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#define LINES_REST  2000 /* ticks between two changes */
#define LINES_ROUND 200	 /* calls between two looks at whether to run */
#define OWN_LINES   __attribute__((aligned(128)))

/* Not to be instrumented: also where everything else is. */
#ifdef __clang__
#define LINES_PLAIN __attribute__((xray_never_instrument, unused)) static
#else
#define LINES_PLAIN __attribute__((unused)) static
#endif

/* --- What a program has --------------------------------------------------------------------- */

/*
 * traced - the function that can be switched. plain - one without anything. get_ready - NULL, or
 * why not. turn_traced - switch it; exits with a reason if that fails.
 */
void traced(void);
void plain(void);
static const char *get_ready(void);
static void turn_traced(bool on);

/* --- The executor --------------------------------------------------------------------------- */

static struct {
	_Atomic(uint64_t) rounds OWN_LINES;
	_Atomic(bool) run OWN_LINES;
	const char *cpu OWN_LINES;
	_Atomic(pid_t) id; /* of its thread, 0: there is none */
	pthread_t thread;
} executor;

/* After every earlier load, as the patcher's own clock is read that this is compared with. */
LINES_PLAIN uint64_t ticks_now(void)
{
	_mm_lfence();
	return __rdtsc();
}

LINES_PLAIN void give_up(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(1);
}

/* The calling thread. */
LINES_PLAIN void pin(const char *cpu)
{
	int number = atoi(cpu), ret = -1;
	cpu_set_t *set = CPU_ALLOC((size_t)number + 1);
	size_t size = CPU_ALLOC_SIZE((size_t)number + 1);

	if (set) {
		CPU_ZERO_S(size, set);
		CPU_SET_S((size_t)number, size, set);
		ret = sched_setaffinity(0, size, set);
		CPU_FREE(set);
	}
	if (ret)
		give_up("cannot pin a thread");
}

LINES_PLAIN void *execute(void *arg)
{
	pin(executor.cpu);
	atomic_store_explicit(&executor.id, gettid(), memory_order_release);
	while (atomic_load_explicit(&executor.run, memory_order_acquire)) {
		for (int i = 0; i < LINES_ROUND; i++)
			traced();
		atomic_fetch_add_explicit(&executor.rounds, 1, memory_order_release);
	}
	atomic_store_explicit(&executor.id, 0, memory_order_release);
	return arg;
}

LINES_PLAIN void await_rounds(uint64_t more)
{
	uint64_t until = atomic_load_explicit(&executor.rounds, memory_order_acquire) + more;
	uint64_t begin = ticks_now();

	while (atomic_load_explicit(&executor.rounds, memory_order_acquire) < until)
		if (ticks_now() - begin > 1000000)
			sched_yield();
}

LINES_PLAIN void start(void)
{
	atomic_store_explicit(&executor.run, true, memory_order_release);
	if (pthread_create(&executor.thread, NULL, execute, NULL))
		give_up("no thread to execute");
	await_rounds(2);
}

LINES_PLAIN void stop(void)
{
	atomic_store_explicit(&executor.run, false, memory_order_release);
	pthread_join(executor.thread, NULL);
}

/* --- Answers -------------------------------------------------------------------------------- */

LINES_PLAIN void put_number(uint64_t ticks, uint64_t per, const char *end)
{
	printf("%.3f%s", (double)ticks / (double)per, end);
}

LINES_PLAIN void toggle(unsigned long pairs, bool hot)
{
	if (hot)
		start();
	for (unsigned long i = 0; i < 2 * pairs; i++) {
		uint64_t begin = ticks_now();

		while (ticks_now() - begin < LINES_REST)
			;
		if (hot)
			await_rounds(2);
		begin = ticks_now();
		turn_traced(i % 2 == 0);
		put_number(ticks_now() - begin, 1, i % 2 ? "\n" : " ");
	}
	if (hot)
		stop();
}

/* What so many calls of a function take. Inlined by hand: what calls it must not be traced. */
#define TIME(call, end)                                                                            \
	do {                                                                                       \
		uint64_t begin_ = ticks_now();                                                     \
                                                                                                   \
		for (uint64_t i = 0; i < calls; i++)                                               \
			call();                                                                    \
		put_number(ticks_now() - begin_, calls, end);                                      \
	} while (0)

LINES_PLAIN void cost(uint64_t calls)
{
	calls += !calls;
	TIME(plain, " ");
	TIME(traced, " ");
	turn_traced(true);
	TIME(traced, "\n");
	turn_traced(false);
}

LINES_PLAIN void answer(const char *line)
{
	unsigned long long number;
	unsigned hot;

	if (sscanf(line, "toggle %llu %u", &number, &hot) == 2)
		toggle(number, hot);
	else if (sscanf(line, "cost %llu", &number) == 1)
		cost(number);
	else
		puts("error no such request");
	puts(".");
	fflush(stdout);
}

#ifdef __clang__
__attribute__((xray_never_instrument))
#endif
int main(int argc, char **argv)
{
	char line[128];
	const char *why;

	if (argc < 3)
		return 1;
	pin(argv[1]);
	executor.cpu = argv[2];
	why = get_ready();
	if (why)
		give_up(why);
	puts(".");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		answer(line);
	return 0;
}

#endif
