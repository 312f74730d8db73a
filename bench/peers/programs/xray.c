/* SPDX-License-Identifier: MIT */
/*
 * XRay of clang and compiler-rt: a function whose entry and exit are sleds of NOPs, which
 * __xray_patch_function() turns into calls of a handler. Spoken to by lines, see
 * bench/peers/outside.h; times are TSC ticks.
 *
 * Compiled with -fxray-instrument. The runtime's interface is declared here: its header is C++.
 */
#include "lines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define ROUND	  200 /* calls between two looks at whether to run */
#define OWN_LINES __attribute__((aligned(128)))
#define ENTRY	  0
#define PATCHED	  1 /* SUCCESS of enum XRayPatchingStatus */

extern void __xray_init(void);
extern int __xray_set_handler(void (*handler)(int32_t, int));
extern int __xray_patch_function(int32_t id);
extern int __xray_unpatch_function(int32_t id);
extern size_t __xray_max_function_id(void);
extern uintptr_t __xray_function_address(int32_t id);

static struct {
	uint64_t calls[2] OWN_LINES; /* counted by the handlers */
	_Atomic(uint64_t) rounds OWN_LINES;
	_Atomic(bool) run OWN_LINES;
	const char *cpu OWN_LINES;
	int32_t id;
	pthread_t thread;
} shared;

__attribute__((xray_always_instrument, noinline, aligned(64))) static void traced(void)
{
	__asm__ volatile("");
}

__attribute__((xray_never_instrument, noinline, aligned(64))) static void plain(void)
{
	__asm__ volatile("");
}

LINES_PLAIN void nothing(int32_t id, int type)
{
	(void)id;
	(void)type;
}

LINES_PLAIN void count_first(int32_t id, int type)
{
	(void)id;
	shared.calls[0] += type == ENTRY;
}

LINES_PLAIN void count_second(int32_t id, int type)
{
	(void)id;
	shared.calls[1] += type == ENTRY;
}

LINES_PLAIN void *execute(void *arg)
{
	if (pin(shared.cpu))
		exit(1);
	while (atomic_load_explicit(&shared.run, memory_order_acquire)) {
		for (int i = 0; i < ROUND; i++)
			traced();
		atomic_fetch_add_explicit(&shared.rounds, 1, memory_order_release);
	}
	return arg;
}

LINES_PLAIN uint64_t rounds(void)
{
	return atomic_load_explicit(&shared.rounds, memory_order_acquire);
}

LINES_PLAIN void await_rounds(uint64_t more)
{
	uint64_t until = rounds() + more, begin = ticks_now();

	while (rounds() < until)
		if (ticks_now() - begin > 1000000)
			sched_yield();
}

LINES_PLAIN void start(void)
{
	atomic_store_explicit(&shared.run, true, memory_order_release);
	if (pthread_create(&shared.thread, NULL, execute, NULL)) {
		fputs("no thread to execute\n", stderr);
		exit(1);
	}
	await_rounds(2);
}

LINES_PLAIN void stop(void)
{
	atomic_store_explicit(&shared.run, false, memory_order_release);
	pthread_join(shared.thread, NULL);
}

LINES_PLAIN void patch(bool on)
{
	int ret = on ? __xray_patch_function(shared.id) : __xray_unpatch_function(shared.id);

	if (ret == PATCHED)
		return;
	fprintf(stderr, "XRay's patching ended with status %d\n", ret);
	exit(1);
}

LINES_PLAIN void toggle(unsigned long pairs, bool hot)
{
	__xray_set_handler(nothing);
	if (hot)
		start();
	for (unsigned long i = 0; i < 2 * pairs; i++) {
		uint64_t begin = ticks_now();

		while (ticks_now() - begin < LINES_REST)
			;
		if (hot)
			await_rounds(2);
		begin = ticks_now();
		patch(i % 2 == 0);
		put_number(ticks_now() - begin, 1, i % 2 ? "\n" : " ");
	}
	if (hot)
		stop();
	put_end();
}

/*
 * Between two targets the authors would not patch: a handler is a pointer. A change that is late
 * puts off the next: to catch up would give the two states unlike shares of the time.
 */
LINES_PLAIN void flow(double rate, uint64_t ns, bool on_off)
{
	uint64_t before[3], begin, now, changes = 0, first, second;
	double step = rate > 0 ? 1e9 / rate : 0, due = step;

	__xray_set_handler(count_first);
	patch(true);
	start();
	before[0] = __atomic_load_n(&shared.calls[0], __ATOMIC_RELAXED);
	before[1] = __atomic_load_n(&shared.calls[1], __ATOMIC_RELAXED);
	before[2] = rounds();
	for (begin = now = nanoseconds_now(); now - begin < ns;) {
		now = nanoseconds_now();
		if (rate <= 0 || (double)(now - begin) < due)
			continue;
		if (on_off)
			patch(changes & 1);
		else
			__xray_set_handler(changes & 1 ? count_first : count_second);
		changes++;
		due = due + step > (double)(now - begin) ? due + step : (double)(now - begin);
	}
	ns = nanoseconds_now() - begin;
	stop();
	patch(false);
	first = shared.calls[0] - before[0];
	second = on_off ? (rounds() - before[2]) * ROUND - first : shared.calls[1] - before[1];
	if ((int64_t)second < 0) /* the first counts were read while it ran */
		second = 0;
	printf("%llu %llu %llu %llu\n", (unsigned long long)ns, (unsigned long long)changes,
	       (unsigned long long)first, (unsigned long long)second);
	put_end();
}

LINES_PLAIN void cost(uint64_t calls)
{
	uint64_t empty, off, on;

	calls += !calls;
	__xray_set_handler(nothing);
	TIME(plain, calls, empty);
	TIME(traced, calls, off);
	patch(true);
	TIME(traced, calls, on);
	patch(false);
	put_costs(empty, off, on, calls);
}

__attribute__((xray_never_instrument)) int main(int argc, char **argv)
{
	unsigned long long a, b;
	char line[128], word[16];
	unsigned c;

	if (argc != 3 || pin(argv[1]))
		return 1;
	shared.cpu = argv[2];
	__xray_init();
	for (size_t i = 1; i <= __xray_max_function_id(); i++)
		if (__xray_function_address((int32_t)i) == (uintptr_t)traced)
			shared.id = (int32_t)i;
	if (!shared.id) {
		fputs("XRay does not know the function\n", stderr);
		return 1;
	}
	/* Can it be pinned? */
	start();
	stop();
	put_end();
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "quit", 4) != 0) {
		if (sscanf(line, "toggle %llu %u", &a, &c) == 2)
			toggle(a, c);
		else if (sscanf(line, "flow %15s %llu %u", word, &b, &c) == 3)
			flow(strcmp(word, "max") ? strtod(word, NULL) : 1e18, b * 1000000, c);
		else if (sscanf(line, "cost %llu", &a) == 1)
			cost(a);
		else
			puts("error no such request"), fflush(stdout);
	}
	return 0;
}
