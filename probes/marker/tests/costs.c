/* SPDX-License-Identifier: MIT */
/*
 * usage: costs
 *
 * What markers, static branches and static calls cost, in ticks per round of a loop, beside what is
 * used instead; and what it costs to switch them. All cases in turn, 401 times, each too short to
 * be preempted as a rule; medians. Nothing passes or fails here.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include <patchcore/mapping.h>

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

static void (*chosen(void))(uint64_t *sum)
{
	return add_one;
}

__attribute__((ifunc("chosen"))) void by_ifunc(uint64_t *sum);

/*
 * As dynamic_flag has it: TEST %eax with a number, or a JMP by the same number, which one byte
 * makes of the other.
 */
#define TEST 0xa9
#define JMP  0xe9
static inline __attribute__((always_inline)) int by_hand(void)
{
	__asm__ goto("1:	.byte 0xa9\n"
		     "	.long %l[other] - 2f\n"
		     "2:\n"
		     ".pushsection costs_sites, \"aw\"\n"
		     "	.quad 1b\n"
		     ".popsection\n"
		     :
		     :
		     : "cc"
		     : other);
	return 0;
other:
	return 1;
}

extern uint8_t *__start_costs_sites[], *__stop_costs_sites[];

/* What threads may fetch meanwhile is one instruction or the other. */
static void turn_by_hand(bool on)
{
	for (uint8_t **site = __start_costs_sites; site < __stop_costs_sites; site++) {
		void *page = (void *)((uintptr_t)*site & ~UINT64_C(4095));

		mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
		*(volatile uint8_t *)*site = on ? JMP : TEST;
		mprotect(page, 4096, PROT_READ | PROT_EXEC);
	}
}

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
LOOP(hand_off, if (by_hand()) unlikely_things++)
LOOP(direct_call, add_one(&sum))
LOOP(static_call, fi_call(add, &sum))
LOOP(pointer_call, pointer(&sum))
LOOP(ifunc_call, by_ifunc(&sum))

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
	{ "with a branch by hand that is off", hand_off, 0, { 0 } },
	{ "with a direct call", direct_call, 8, { 0 } },
	{ "with a static call", static_call, 8, { 0 } },
	{ "with a call by a pointer", pointer_call, 8, { 0 } },
	{ "with a call by ifunc", ifunc_call, 8, { 0 } },
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

/* --- Switching -------------------------------------------------------------------------------- */

static void branch_turned(unsigned i)
{
	if (i & 1)
		fi_branch_off("costs.off");
	else
		fi_branch_on("costs.off");
}

static void hand_turned(unsigned i)
{
	turn_by_hand(!(i & 1));
}

static void call_turned(unsigned i)
{
	fi_call_set(add, i & 1 ? add_one : add_two);
}

static void pointer_turned(unsigned i)
{
	pointer = i & 1 ? add_one : add_two;
}

static void print_switching(const char *name, void (*turn)(unsigned i))
{
	uint64_t ticks[TURNS + 1];

	for (unsigned i = 0; i < TURNS + 1; i++) {
		uint64_t start = __rdtsc();

		turn(i);
		ticks[i] = __rdtsc() - start;
	}
	qsort(ticks, TURNS + 1, sizeof(*ticks), compare);
	printf("%-50s %6" PRIu64 " ticks\n", name, ticks[TURNS / 2]);
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
	print_switching("a branch, on or off", branch_turned);
	if (!pc_text_open((void *)(uintptr_t)branch_off, 64)) {
		print_switching("the same, its page held open", branch_turned);
		pc_text_close((void *)(uintptr_t)branch_off, 64);
	}
	print_switching("a branch by hand", hand_turned);
	print_switching("a static call", call_turned);
	print_switching("a pointer", pointer_turned);
	return 0;
}
