/* SPDX-License-Identifier: MIT */
/*
 * usage: costs
 *
 * What markers, static branches and static calls cost, in ticks per round of a loop, beside what is
 * used instead. All cases in turn, 401 times, each too short to be preempted as a rule; medians.
 * Nothing passes or fails here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#include "probes/include/fastinst.h"
#include "probes/include/fastinst/branch.h"
#include "probes/include/fastinst/marker.h"

#define ROUNDS UINT64_C(4000)
#define TURNS  401

volatile int flag;
int unlikely_things;

__attribute__((noinline)) static void add_one(uint64_t *sum)
{
	*sum += 1;
}

__attribute__((noinline)) static void add_two(uint64_t *sum)
{
	*sum += 2;
}

FI_CALL_DEFINE(add, add_one);

void (*volatile pointer)(uint64_t *sum) = add_one;

/* A loop whose body the compiler neither drops nor unrolls. */
#define LOOP(name, body)                                                                           \
	__attribute__((noinline, aligned(64))) static uint64_t name(void)                          \
	{                                                                                          \
		uint64_t sum = 0;                                                                  \
                                                                                                   \
		for (uint64_t i = 0; i < ROUNDS; i++) {                                            \
			__asm__ volatile("" : "+r"(sum));                                          \
			body;                                                                      \
			sum += i;                                                                  \
		}                                                                                  \
		return sum;                                                                        \
	}

LOOP(nothing, )
LOOP(idle_marker, FI_MARKER(costs, idle, i))
LOOP(counted_marker, FI_MARKER(costs, counted, i))
LOOP(keeping_marker, FI_MARKER(costs, keeping, i))
LOOP(saving_marker, FI_MARKER(costs, saving, i))
LOOP(branch_off, if (fi_branch(costs, off)) unlikely_things++)
LOOP(flag_off, if (__builtin_expect(flag, 0)) unlikely_things++)
LOOP(direct_call, add_one(&sum))
LOOP(static_call, fi_call(add, &sum))
LOOP(pointer_call, pointer(&sum))

static struct {
	const char *name;
	uint64_t (*loop)(void);
	int baseline;
	uint64_t ticks[TURNS];
} cases[] = {
	{ "a loop", nothing, 0, { 0 } },
	{ "with an idle marker", idle_marker, 0, { 0 } },
	{ "with a marker that counts", counted_marker, 0, { 0 } },
	{ "with one that calls, vectors kept by the function", keeping_marker, 0, { 0 } },
	{ "with one that calls, vectors saved", saving_marker, 0, { 0 } },
	{ "with a flag that is off", flag_off, 0, { 0 } },
	{ "with a branch that is off", branch_off, 0, { 0 } },
	{ "with a direct call", direct_call, 7, { 0 } },
	{ "with a static call", static_call, 7, { 0 } },
	{ "with a call by a pointer", pointer_call, 7, { 0 } },
};
#define CASES (sizeof(cases) / sizeof(*cases))

__attribute__((target("general-regs-only"))) static void
empty(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)regs;
	(void)data;
}

static int activate(const char *name, fi_function *function, unsigned flags)
{
	uint32_t id;

	return fi_find(name, &id, 1) == 1 ? fi_activate_how(&id, 1, function, flags) : -1;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *one = a, *two = b;

	return *one < *two ? -1 : *one > *two;
}

static double median(size_t i)
{
	qsort(cases[i].ticks, TURNS, sizeof(uint64_t), compare);
	return (double)cases[i].ticks[TURNS / 2] / ROUNDS;
}

int main(void)
{
	volatile uint64_t sink;
	double ticks[CASES];

	if (fi_init() || activate("costs.counted", NULL, 0) ||
	    activate("costs.keeping", empty, FI_KEEPS_VECTORS) ||
	    activate("costs.saving", empty, 0) || fi_call_set(add, add_two) ||
	    fi_call_set(add, add_one)) {
		fprintf(stderr, "the markers cannot be turned on\n");
		return 1;
	}
	for (unsigned turn = 0; turn < TURNS; turn++)
		for (size_t i = 0; i < CASES; i++) {
			uint64_t start = __rdtsc();

			sink = cases[i].loop();
			cases[i].ticks[turn] = __rdtsc() - start;
		}
	(void)sink;
	for (size_t i = 0; i < CASES; i++)
		ticks[i] = median(i);
	for (size_t i = 0; i < CASES; i++)
		printf("%-50s %6.2f ticks, %+6.2f, x %.2f of \"%s\"\n", cases[i].name, ticks[i],
		       ticks[i] - ticks[cases[i].baseline], ticks[i] / ticks[cases[i].baseline],
		       cases[cases[i].baseline].name);
	return 0;
}
