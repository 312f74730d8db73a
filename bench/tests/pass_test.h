/* SPDX-License-Identifier: MIT */
/* What the tests of the benchmarks latent and invoke share. */
#ifndef BENCH_TESTS_PASS_TEST_H
#define BENCH_TESTS_PASS_TEST_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bench/cases/pass.c"
#include "bench/tests/bench_run.h"
#include "patchcore/patchcore.h"

#define TEST_PASSES 1000

static hwloc_topology_t topology;

static const char *const bodies[] = { "none", "work" };

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

static inline int run_bench(bench_fn *bench, unsigned rounds, struct bench_result *result)
{
	struct bench_run run = {
		.topology = topology, .rounds = rounds, .seed = 1, .stop = &bench_run_stop
	};

	/* On a machine of one CPU the executor shares it: it has nothing to do here. */
	assert_in_range(bench_run_seat(topology, &run.seating), 0, 1);
	*result = (struct bench_result){ .benchmark = "test" };
	return bench(&run, result);
}

/* The row of that name and those texts of params; NULL texts: any. */
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

/* Each of them with both bodies. */
static inline void check_others(const struct bench_result *result, const char *const *names,
				unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned b = 0; b < 2; b++)
			assert_non_null(find_row(result, names[i], NULL, NULL, bodies[b]));
}

static inline void check_rows(const struct bench_result *result, const char *measure,
			      uint64_t samples, const char *against)
{
	for (unsigned i = 0; i < result->rows; i++) {
		const struct bench_row *row = &result->row[i];

		assert_string_equal(row->measure, measure);
		check_row(row, samples, against);
		if (row->samples)
			assert_false(isnan(bench_row_extra_of(row, "over_empty")));
	}
}

static inline int set_up(void **state)
{
	int foreign;

	(void)state;
	if (topology_open(&topology, &foreign) < 0)
		return -1;
	return pc_init();
}

static inline int tear_down(void **state)
{
	(void)state;
	hwloc_topology_destroy(topology);
	return pc_fini();
}

#endif
