/* SPDX-License-Identifier: MIT */
/*
 * Are the probes, branches and calls on that the benchmark calls on, and off that it calls off; is
 * every row there? Where nothing turns them on, the counts tell.
 */
#include <math.h>

#include "bench/cases/probes.c"
#include "bench/tests/bench_run.h"

static struct bench_run run;
static bool stays_off;

int __real_fi_activate_how(const uint32_t *ids, size_t n, fi_function *function, unsigned flags);
int __wrap_fi_activate_how(const uint32_t *ids, size_t n, fi_function *function, unsigned flags);

int __wrap_fi_activate_how(const uint32_t *ids, size_t n, fi_function *function, unsigned flags)
{
	return stays_off ? 0 : __real_fi_activate_how(ids, n, function, flags);
}

long __real_fi_branch_on(const char *pattern);
long __wrap_fi_branch_on(const char *pattern);

long __wrap_fi_branch_on(const char *pattern)
{
	return stays_off ? 1 : __real_fi_branch_on(pattern);
}

int __real_fi_call_retarget(void *call, void *function);
int __wrap_fi_call_retarget(void *call, void *function);

int __wrap_fi_call_retarget(void *call, void *function)
{
	return stays_off ? 0 : __real_fi_call_retarget(call, function);
}

static uint32_t id_of(const char *name)
{
	uint32_t id;

	assert_int_equal(fi_find(name, &id, 1), 1);
	return id;
}

/* Whether the probes that are said to be on have counted, since the last time. */
static bool all_counted(void)
{
	static const char *const on[] = { "probes_counts",	  "probes_keeps",
					  "probes_any",		  "probes_vectors",
					  "probes.marker_counts", "probes.marker_keeps" };
	static uint64_t before[sizeof(on) / sizeof(*on)];
	bool all = true;

	assert_int_equal(fi_init(), 0);
	for (size_t i = 0; i < sizeof(on) / sizeof(*on); i++) {
		uint64_t now = fi_count(id_of(on[i]));

		all = all && now > before[i] && now % PROBES_CALLS == 0;
		before[i] = now;
	}
	assert_int_equal(fi_count(id_of("probes_off")), 0);
	assert_int_equal(fi_count(id_of("probes.marker_off")), 0);
	return all;
}

/*
 * What a round has added, since the last time: nothing where a branch was off, 1 where it was on; 2
 * by a call. Whether it is so of all, and of those that are not ours.
 */
static bool all_turned(void)
{
	bool all = true;

	for (struct looped *l = looped; l < looped + LENGTH(looped); l++) {
		bool call = strcmp(l->site, "call") == 0, on = strcmp(l->measure, "on") == 0;
		bool right = l->sum == (call ? 2 : on) * l->rounds;

		if (!call && strcmp(l->site, "branch") != 0)
			continue;
		assert_true(l->rounds > 0 && l->rounds % PROBES_CALLS == 0);
		assert_true(right || !l->peer);
		all = all && right;
		l->sum = l->rounds = 0;
	}
	return all;
}

static void rows_are_there(void **state)
{
	static const struct {
		const char *label, *measure;
	} rows[] = {
		{ "guard site=entry", "off" },
		{ "guard site=entry", "on" },
		{ "off site=entry", "off" },
		{ "counts site=entry", "on" },
		{ "keeps site=entry", "on" },
		{ "any site=entry", "on" },
		{ "vectors site=entry", "on" },
		{ "off site=marker", "off" },
		{ "counts site=marker", "on" },
		{ "keeps site=marker", "on" },
		{ "probe split=0 mapping=open", "activate" },
		{ "probe split=3|2 mapping=open", "deactivate" },
		{ "probe split=0 mapping=protect", "activate" },
		{ "call split=3|2 mapping=open", "deactivate" },
		{ "flag site=branch", "off" },
		{ "flag site=branch", "on" },
		{ "branch site=branch", "off" },
		{ "branch site=branch", "on" },
		{ "hand site=branch", "off" },
		{ "hand site=branch", "on" },
		{ "direct site=call", "on" },
		{ "static site=call", "on" },
		{ "pointer site=call", "on" },
		{ "ifunc site=call", "on" },
		{ "flag site=branch mapping=data", "activate" },
		{ "pointer site=call mapping=data", "deactivate" },
		{ "hand site=branch mapping=protect", "activate" },
		{ "hand site=branch mapping=open", "deactivate" },
		{ "branch site=branch mapping=protect", "activate" },
		{ "branch site=branch mapping=open", "deactivate" },
		{ "static site=call mapping=protect", "activate" },
		{ "static site=call mapping=open", "deactivate" },
		{ "init sites=20000", "discover" },
		{ "batch sites=16753", "activate" },
		{ "batch sites=16753", "deactivate" },
	};
	struct bench_result result = { 0 };

	(void)state;
	all_counted();
	assert_int_equal(bench_probes.run(&run, &result), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct bench_row *row =
			bench_run_row(&result, rows[i].label, rows[i].measure);

		if (!row)
			fail_msg("no row %s %s", rows[i].label, rows[i].measure);
		if (!row->samples && !row->why[0])
			fail_msg("%s %s: no figure and no reason", rows[i].label, rows[i].measure);
	}
	/* Peers that were not asked for say so. */
	assert_string_equal(bench_run_row(&result, "xray", "on")->why, "not asked for");
	assert_string_equal(bench_run_row(&result, "uprobe executors=1", "activate")->why,
			    "not asked for");
	bench_result_free(&result);
	assert_true(all_counted());
	assert_true(all_turned());
}

static void probes_that_stay_off_are_seen(void **state)
{
	struct bench_result result = { 0 };

	(void)state;
	stays_off = true;
	assert_int_equal(bench_probes.run(&run, &result), 0);
	stays_off = false;
	bench_result_free(&result);
	assert_false(all_counted());
	assert_false(all_turned());
}

/* As of a probe that is off, by the steps of the clock: nothing, or less. */
static void a_part_of_nothing_is_no_ratio(void **state)
{
	static const double base[] = { 3, 2, 1 }; /* over 2 */

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct bench_case c = { 0 };
		struct bench_row row = { 0 };

		/* Two blocks, in turn with two of the baseline. */
		for (unsigned k = 0; k < 4; k++) {
			struct samples *of = k % 2 ? c.base_samples : c.samples;

			samples_add(&of[0], k % 2 ? base[i] : 4);
			samples_add(&of[1], 2);
			samples_end_block(&of[0]);
			samples_end_block(&of[1]);
		}
		sum_up(&c, &row);
		assert_true(bench_row_extra_of(&row, "over_base") == base[i] - 2);
		if (base[i] > 2)
			assert_true(bench_row_extra_of(&row, "over_ratio") == 2);
		else
			assert_true(isnan(bench_row_extra_of(&row, "over_ratio")));
		for (unsigned k = 0; k < 2; k++) {
			samples_free(&c.samples[k]);
			samples_free(&c.base_samples[k]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_there),
		cmocka_unit_test(probes_that_stay_off_are_seen),
		cmocka_unit_test(a_part_of_nothing_is_no_ratio),
	};
	int ret;

	if (bench_run_open(&run) < 0)
		return 77;
	run.rounds = 1;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	return bench_run_close(&run, ret);
}
