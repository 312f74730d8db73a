/* SPDX-License-Identifier: MIT */
/*
 * What a probe costs, beside what is compiled in instead: ticks per call, all in turn, medians.
 *
 * usage: costs [ROUNDS]
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#include <patchcore/mapping.h>
#include <patchcore/patchcore.h>

#include "probes/include/fastinst.h"

#define CALLS	   20000
#define TOGGLES	   200
#define ROUNDS_MAX 10000
#define PLAIN	   __attribute__((noinline, patchable_function_entry(0)))
#define PROBED	   __attribute__((noinline, patchable_function_entry(5)))
#define BODY(a)                                                                                    \
	do {                                                                                       \
		__asm__ volatile("" : "+r"(a));                                                    \
		return (a) + 1;                                                                    \
	} while (0)

static volatile bool flag_down, flag_up = true;

FI_FUNCTION static void empty(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)regs;
	(void)data;
}

static fi_function *volatile pointer = empty;

static void changes_vectors(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)regs;
	(void)data;
	__asm__ volatile("pxor %%xmm0, %%xmm0" ::: "xmm0");
}

static void computes(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)regs;
	(void)data;
	__asm__ volatile("addsd %%xmm0, %%xmm0" ::: "xmm0");
}

/* The library does not follow the call. */
static void unseen(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	pointer(id, site, regs, data);
	__asm__ volatile("pxor %%xmm0, %%xmm0" ::: "xmm0");
}

PLAIN static uint64_t none(uint64_t a)
{
	BODY(a);
}

PLAIN static uint64_t guard_down(uint64_t a)
{
	if (flag_down)
		pointer(0, NULL, NULL, NULL);
	BODY(a);
}

PLAIN static uint64_t guard_up(uint64_t a)
{
	if (flag_up)
		pointer(0, NULL, NULL, NULL);
	BODY(a);
}

PROBED static uint64_t site_off(uint64_t a)
{
	BODY(a);
}

PROBED static uint64_t site_counts(uint64_t a)
{
	BODY(a);
}

PROBED static uint64_t site_keeps(uint64_t a)
{
	BODY(a);
}

PROBED static uint64_t site_saves(uint64_t a)
{
	BODY(a);
}

PROBED static uint64_t site_computes(uint64_t a)
{
	BODY(a);
}

PROBED static uint64_t site_unseen(uint64_t a)
{
	BODY(a);
}

PROBED static uint64_t site_any(uint64_t a)
{
	BODY(a);
}

PROBED static uint64_t site_toggled(uint64_t a)
{
	BODY(a);
}

static uint32_t id_of(const char *name)
{
	uint32_t id;

	if (fi_find(name, &id, 1) != 1) {
		fprintf(stderr, "no probe %s\n", name);
		exit(1);
	}
	return id;
}

/* --- The cases -------------------------------------------------------------------------------- */

static struct one {
	const char *what;
	uint64_t (*call)(uint64_t a); /* NULL: a toggle */
	double samples[ROUNDS_MAX];
} cases[] = {
	{ .what = "call of a function without a probe", .call = none },
	{ .what = "probe off", .call = site_off },
	{ .what = "compiled-in guard, off", .call = guard_down },
	{ .what = "compiled-in guard, on: calls an empty function", .call = guard_up },
	{ .what = "probe on, counts", .call = site_counts },
	{ .what = "probe on, counts and calls an empty function (keeps vectors)",
	  .call = site_keeps },
	{ .what = "probe on, the same without the promise", .call = site_any },
	{ .what = "probe on, a function that changes a vector", .call = site_saves },
	{ .what = "probe on, a function that computes with a double", .call = site_computes },
	{ .what = "probe on, a function that changes a vector and calls another",
	  .call = site_unseen },
	{ .what = "activate and deactivate, pages held open" },
};

#define CASES (sizeof(cases) / sizeof(*cases))

static double run_calls(uint64_t (*call)(uint64_t))
{
	uint64_t start = __rdtsc(), a = 0;

	for (int i = 0; i < CALLS; i++)
		a = call(a);
	return (double)(__rdtsc() - start) / CALLS;
}

static double run_toggles(uint32_t id)
{
	uint64_t start = __rdtsc();

	for (int i = 0; i < TOGGLES; i++) {
		fi_activate(id, NULL);
		fi_deactivate(id);
	}
	return (double)(__rdtsc() - start) / TOGGLES;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 300;
	uint32_t keeps, toggled;

	if (rounds < 1 || rounds > ROUNDS_MAX || fi_init() < 0)
		return 1;
	keeps = id_of("site_keeps");
	toggled = id_of("site_toggled");
	if (fi_activate(id_of("site_counts"), NULL) < 0 ||
	    fi_activate(id_of("site_any"), empty) < 0 ||
	    fi_activate(id_of("site_saves"), changes_vectors) < 0 ||
	    fi_activate(id_of("site_computes"), computes) < 0 ||
	    fi_activate(id_of("site_unseen"), unseen) < 0 ||
	    fi_activate_how(&keeps, 1, empty, FI_KEEPS_VECTORS) < 0 ||
	    pc_text_open((void *)site_toggled, 16) < 0)
		return 1;
	site_toggled(1);
	for (int round = 0; round < rounds; round++)
		for (size_t k = 0; k < CASES; k++) {
			struct one *one = &cases[round & 1 ? CASES - 1 - k : k];

			one->samples[round] =
				one->call ? run_calls(one->call) : run_toggles(toggled);
		}
	printf("%10s %10s\n", "ticks", "above none");
	for (size_t k = 0; k < CASES; k++)
		qsort(cases[k].samples, (size_t)rounds, sizeof(double), by_value);
	for (size_t k = 0; k < CASES; k++) {
		double median = cases[k].samples[rounds / 2];

		printf("%10.1f %10.1f  %s\n", median, median - cases[0].samples[rounds / 2],
		       cases[k].what);
	}
	return 0;
}
