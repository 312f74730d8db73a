/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the benchmarks latent and invoke share.
 */
#ifndef STRESS_TESTS_PASS_TEST_H
#define STRESS_TESTS_PASS_TEST_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/patchcore.h"
#include "stress/bench/pass.h"

#define TEST_PASSES 1000

static volatile sig_atomic_t never;
static hwloc_topology_t topology;

typedef int bench_fn(const struct bench_run *run, struct bench_result *result);

/* Calls of either target that so many passes make. -ENOTSUP: the library has no way here. */
static inline int count_calls(const struct pass_spec *spec, uint64_t calls[2])
{
	struct pass_spec counting = *spec;
	char why[BENCH_WHY] = "";
	struct pass pass;
	int ret;

	counting.loop.target = LOOP_COUNT;
	ret = pass_build(&pass, &counting, why);
	if (ret < 0) {
		assert_true(strlen(why) > 0);
		return ret;
	}
	calls[0] = calls[1] = 0;
	pass.loop.run(TEST_PASSES, calls);
	pass_free(&pass);
	return 0;
}

/* All is put as it was before main(), so that real peers are never asked. */
static inline void put_peers(const struct peer *first, const struct peer *second)
{
	peers[0] = *first;
	peers[1] = second ? *second : (struct peer){ 0 };
	peers[2] = (struct peer){ 0 };
}

static inline int run_bench(bench_fn *bench, unsigned rounds, struct bench_result *result)
{
	struct bench_run run = {
		.topology = topology, .rounds = rounds, .seed = 1, .stop = &never
	};
	char why[BENCH_WHY];

	/* On a machine of one CPU the executor shares it: it has nothing to do here. */
	if (placement_seat(topology, PLACEMENT_SPREAD, 1, &run.seating, why, sizeof(why)) < 0)
		assert_int_equal(placement_seat(topology, PLACEMENT_OVERSUBSCRIBED, 1, &run.seating,
						why, sizeof(why)),
				 0);
	*result = (struct bench_result){ .benchmark = "test" };
	return bench(&run, result);
}

/* The row of that name and those texts of params; NULL texts: whatever it has. */
static inline const struct bench_row *find_row(const struct bench_result *result, const char *name,
					       const char *split, const char *target,
					       const char *body)
{
	const char *const key[] = { "split", "target", "body" };
	const char *const text[] = { split, target, body };

	for (unsigned i = 0; i < result->rows; i++) {
		const struct bench_row *row = &result->row[i];
		bool same = strcmp(row->name, name) == 0;

		for (unsigned k = 0; k < 3 && same; k++) {
			const char *has = bench_row_text(row, key[k]);

			same = !text[k] || (has && strcmp(has, text[k]) == 0);
		}
		if (same)
			return row;
	}
	return NULL;
}

/* Measured as asked, or skipped with a reason. */
static inline void check_row(const struct bench_row *row, uint64_t samples, const char *against)
{
	assert_string_equal(row->unit, "ticks");
	if (row->samples == 0) {
		assert_true(strlen(row->why) > 0);
		return;
	}
	assert_int_equal(row->samples, samples);
	assert_true(row->value.median > 0);
	assert_string_equal(row->against, against);
}

/* --- A peer that takes what it is told to take ----------------------------------------------- */

static struct peer_cost made_up;
static int made_up_ret;
static unsigned asked;

static inline int made_up_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why)
{
	(void)peer;
	assert_true(calls > 0);
	asked++;
	*cost = made_up;
	if (made_up_ret < 0)
		snprintf(why, BENCH_WHY, "it broke");
	return made_up_ret;
}

static const struct peer good_peer = { .name = "good", .cost = made_up_cost };
static const struct peer shut_peer = {
	.name = "shut", .cost = made_up_cost, .ret = -ENOMEM, .why = "it is not there"
};

static inline int set_up(void **state)
{
	int foreign;

	(void)state;
	if (topology_open(&topology, &foreign) < 0)
		return -1;
	put_peers(&(struct peer){ 0 }, NULL);
	return pc_init();
}

static inline int tear_down(void **state)
{
	(void)state;
	hwloc_topology_destroy(topology);
	return pc_fini();
}

#endif
