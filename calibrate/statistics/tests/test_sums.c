/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>

#include "calibrate/tests/sums_sample.h"

static struct cell_record slice(uint64_t toggles, uint64_t exposed, uint64_t torn)
{
	struct cell_record r = { 0 };

	cell_defaults(&r.cell);
	r.cell.rest = 0;
	r.result.toggles = toggles;
	r.result.exposed = exposed;
	r.result.torn = torn;
	r.result.tears[TEAR_OLD_FRONT] = torn == CELL_UNKNOWN ? 0 : 3 * torn;
	r.result.ticks = 1000 * toggles;
	return r;
}

/* A toggle that no executor met cannot tear: it proves nothing. */
static void only_exposed_toggles_count(void **state)
{
	struct cell_record r = slice(1000, 400, 2);
	struct count c = count_of_record(&r);

	(void)state;
	assert_int_equal(c.toggles, 400);
	assert_int_equal(c.tears, 2);
	assert_true(c.ticks == 400000);
	r.result.exposed = CELL_UNKNOWN;
	assert_int_equal(count_of_record(&r).toggles, 0);
	assert_int_equal(count_of_record(&r).tears, 2);
}

static void tears_without_a_number_of_toggles_count_all(void **state)
{
	struct cell_record r = slice(1000, 400, CELL_UNKNOWN);

	(void)state;
	r.result.tears[TEAR_OTHER] = 7;
	assert_int_equal(count_of_record(&r).tears, 7);
	r.result.tears[TEAR_OTHER] = 700;
	assert_int_equal(count_of_record(&r).tears, 400);
}

static void what_was_cut_has_tears_alone(void **state)
{
	struct cell_record r = slice(1000, 400, 2);

	(void)state;
	r.result.outcome = OUTCOME_HANG;
	assert_int_equal(count_of_record(&r).toggles, 0);
	assert_int_equal(count_of_record(&r).tears, 2);
	r.result.outcome = OUTCOME_INTERRUPTED;
	assert_int_equal(count_of_record(&r).toggles, 400);
}

static void broken_protocols_prove_nothing(void **state)
{
	struct cell_record r = slice(1000, 400, 2);
	struct sums sums = { 0 };

	(void)state;
	for (int p = PROTOCOL_NAIVE; p < PROTOCOL_COUNT; p++) {
		r.cell.protocol = (enum protocol)p;
		assert_int_equal(sums_add_record(&sums, &r), 0);
	}
	r.cell.protocol = PROTOCOL_WAIT;
	r.cell.oracle = ORACLE_CRASH;
	assert_int_equal(sums_add_record(&sums, &r), 0);
	assert_int_equal(sums.count, 0);
}

/* Flushed lines and long rests make tears rare: a bound from them would be too low. */
static void what_makes_tears_rare_proves_nothing(void **state)
{
	struct cell_record r = slice(1000, 400, 2);
	struct sums sums = { 0 };

	(void)state;
	for (unsigned p = PROVOKER_COLD_BACK; p <= PROVOKER_COLD_FRONT; p++) {
		r.cell.provokers = 1u << p | 1u << PROVOKER_BANDWIDTH;
		assert_int_equal(sums_add_record(&sums, &r), 0);
	}
	r.cell.provokers = 0;
	r.cell.rest = 2001;
	assert_int_equal(sums_add_record(&sums, &r), 0);
	assert_int_equal(sums.count, 0);
	r.cell.rest = 2000;
	assert_int_equal(sums_add_record(&sums, &r), 0);
	r.cell.provokers = 1u << PROVOKER_BANDWIDTH;
	assert_int_equal(sums_add_record(&sums, &r), 0);
	assert_int_equal(sums.count, 2);
	assert_int_equal(sums.sum[0].kind, SUM_ALONE);
	assert_int_equal(sums.sum[1].kind, SUM_WAIT);
	/* Sites at rest are another claim, and nothing between both is one. */
	r.cell.rest = CELL_RESTED;
	assert_int_equal(sums_add_record(&sums, &r), 0);
	r.cell.provokers = 0;
	assert_int_equal(sums_add_record(&sums, &r), 0);
	r.cell.rest = CELL_RESTED - 1;
	assert_int_equal(sums_add_record(&sums, &r), 0);
	r.cell.rest = CELL_RESTED + 1;
	assert_int_equal(sums_add_record(&sums, &r), 0);
	assert_int_equal(sums.count, 4);
	assert_int_equal(sums.sum[2].kind, SUM_RESTED);
	assert_int_equal(sums.sum[3].kind, SUM_RESTED_ALONE);
	sums_free(&sums);
}

/* Three sites of a line: each toggle counts at each of them, a tear only at its own. */
static void sites_inside_count_for_their_crossings(void **state)
{
	struct cell_record record = slice(1000, 700, 5);
	struct sums sums = { 0 };

	(void)state;
	record.cell.crossing = CROSSING_INSIDE;
	record.cell.protocol = PROTOCOL_ATOMIC;
	record.result.torn_inside[1] = 5;
	assert_int_equal(sums_add_record(&sums, &record), 0);
	assert_int_equal(sums.count, 3);
	for (unsigned i = 0; i < sums.count; i++) {
		assert_int_equal(sums.sum[i].kind, SUM_STORE);
		assert_int_equal(sums.sum[i].crossing, CROSSING_8 + i);
		assert_int_equal(sums.sum[i].count.toggles, 700);
		assert_int_equal(sums.sum[i].count.tears, i == 1 ? 5 : 0);
	}
	sums_free(&sums);
}

static void kinds_are_kept_apart(void **state)
{
	struct cell_record r = slice(1000, 400, 2);
	struct sums sums = { 0 };

	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		r.cell.waits.first = 100;
		assert_int_equal(sums_add_record(&sums, &r), 0);
		r.cell.waits.first = 200;
		assert_int_equal(sums_add_record(&sums, &r), 0);
		r.cell.crossing = CROSSING_PAGE;
		assert_int_equal(sums_add_record(&sums, &r), 0);
		r.cell.crossing = CROSSING_LINE;
		r.cell.executors++;
		assert_int_equal(sums_add_record(&sums, &r), 0);
		r.cell.executors--;
	}
	assert_int_equal(sums.count, 4);
	for (size_t i = 0; i < sums.count; i++)
		assert_int_equal(sums.sum[i].count.toggles, 1200);
	sums_free(&sums);
}

static void the_worst_slice_is_remembered(void **state)
{
	struct count c = sample_count(1, 1000, 1), worse = sample_count(1, 10, 2);

	(void)state;
	count_add(&c, &worse);
	count_add(&c, &(struct count){ .slices = 1, .toggles = 5000, .tears = 0 });
	assert_int_equal(c.worst_tears, 2);
	assert_int_equal(c.worst_toggles, 10);
}

/* Slices alike: no more than chance. All tears in one of ten: ten times. */
static void dispersion_tells_bursts(void **state)
{
	struct count even = sample_count(10, 1000, 5), burst = sample_count(9, 1000, 0),
		     one = sample_count(1, 1000, 50);

	(void)state;
	count_add(&burst, &one);
	assert_true(count_dispersion(&even) == 1);
	assert_true(fabs(count_dispersion(&burst) - 50) < 1e-9);
	assert_true(fabs(count_units(&even) - 10) < 1e-9);
	assert_true(count_dispersion(&(struct count){ 0 }) == 1);
	assert_true(count_units(&(struct count){ 0 }) == 0);
}

/* A slice that was near, one that was far, and one of which it is not known. */
static void add_distances(struct sums *sums)
{
	static const uint64_t ends[][2] = { { 150, 160 }, { 150, 400 }, { 0, 0 } };
	struct cell_record r = slice(1000, 400, 2);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		r.result.witness.offset_error = ends[i][0];
		r.result.witness.error_after = ends[i][1];
		r.result.torn = 2 + i;
		assert_int_equal(sums_add_record(sums, &r), 0);
	}
}

static void near_and_far_are_kept_apart(void **state)
{
	struct sums sums = { 0 };
	const struct sum *sum;

	(void)state;
	add_distances(&sums);
	add_distances(&sums);
	sum = sums.sum;
	assert_int_equal(sums.count, 1);
	assert_int_equal(sum->count.slices, 6);
	assert_int_equal(sum->at[DISTANCE_NEAR].slices, 2);
	assert_int_equal(sum->at[DISTANCE_NEAR].tears, 4);
	assert_int_equal(sum->at[DISTANCE_FAR].slices, 2);
	assert_int_equal(sum->at[DISTANCE_FAR].tears, 6);
	sums_free(&sums);
}

/* More of them far than there are at all: near and far are not believed. */
static void distances_that_do_not_add_up_are_refused(void **state)
{
	static const char *const members[] = { "slices", "toggles", "tears" };
	struct sums sums = { 0 }, back = { 0 };
	json_t *array, *far;

	(void)state;
	add_distances(&sums);
	array = sums_to_json(&sums);
	assert_int_equal(sums_from_json(array, &back), 0);
	sums_free(&back);
	far = json_object_get(json_array_get(array, 0), "far");
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_t *was = json_incref(json_object_get(far, members[i]));

		json_object_set_new(far, members[i], json_integer(100000));
		assert_int_equal(sums_from_json(array, &back), -EINVAL);
		json_object_del(far, members[i]);
		assert_int_equal(sums_from_json(array, &back), -EINVAL);
		json_object_set_new(far, members[i], was);
	}
	/* As old stores have them. */
	json_object_del(json_array_get(array, 0), "near");
	json_object_del(json_array_get(array, 0), "far");
	assert_int_equal(sums_from_json(array, &back), 0);
	assert_int_equal(back.sum[0].count.slices, 3);
	assert_int_equal(back.sum[0].at[DISTANCE_FAR].slices, 0);
	sums_free(&back);
	sums_free(&sums);
	json_decref(array);
}

static void sums_survive_json(void **state)
{
	struct plan plan = sample_plan(2);
	struct sums sums = { 0 }, back = { 0 };
	json_t *array;

	(void)state;
	sample_rung(&sums, &plan, (struct waits){ 100, 100, 4 }, sample_count(3, 12345, 6));
	sample_membarrier(&sums, &plan, 1e5 / 3);
	add_distances(&sums);
	array = sums_to_json(&sums);
	assert_int_equal(sums_from_json(array, &back), 0);
	assert_int_equal(back.count, sums.count);
	for (size_t i = 0; i < sums.count; i++) {
		assert_memory_equal(&back.sum[i].count, &sums.sum[i].count, sizeof(struct count));
		assert_memory_equal(back.sum[i].at, sums.sum[i].at, sizeof(sums.sum[i].at));
		assert_non_null(sums_find(&back, &sums.sum[i]));
	}
	sums_free(&back);
	sums_free(&sums);
	json_decref(array);
}

/* Each member missing, and each of a value that none can have. */
static void damaged_sums_are_refused(void **state)
{
	struct plan plan = sample_plan(1);
	struct sums sums = { 0 }, back = { 0 };
	const char *name;
	json_t *array, *value;
	void *next;

	(void)state;
	sample_membarrier(&sums, &plan, 100);
	array = sums_to_json(&sums);
	json_object_foreach_safe(json_array_get(array, 0), next, name, value)
	{
		json_t *broken = json_deep_copy(array), *sum = json_array_get(broken, 0);

		json_object_del(sum, name);
		/* Old stores do not tell how long it took. */
		if (strcmp(name, "seconds") != 0)
			assert_int_equal(sums_from_json(broken, &back), -EINVAL);
		json_object_set_new(sum, name, json_integer(-1));
		assert_int_equal(sums_from_json(broken, &back), -EINVAL);
		json_object_set_new(sum, name, json_string("none of them"));
		assert_int_equal(sums_from_json(broken, &back), -EINVAL);
		json_decref(broken);
	}
	json_object_set_new(json_array_get(array, 0), "tears", json_integer(INT64_MAX));
	assert_int_equal(sums_from_json(array, &back), -EINVAL);
	assert_int_equal(sums_from_json(NULL, &back), -EINVAL);
	assert_int_equal(back.count, 0);
	json_decref(array);
	sums_free(&sums);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_exposed_toggles_count),
		cmocka_unit_test(tears_without_a_number_of_toggles_count_all),
		cmocka_unit_test(what_was_cut_has_tears_alone),
		cmocka_unit_test(broken_protocols_prove_nothing),
		cmocka_unit_test(what_makes_tears_rare_proves_nothing),
		cmocka_unit_test(sites_inside_count_for_their_crossings),
		cmocka_unit_test(kinds_are_kept_apart),
		cmocka_unit_test(the_worst_slice_is_remembered),
		cmocka_unit_test(dispersion_tells_bursts),
		cmocka_unit_test(near_and_far_are_kept_apart),
		cmocka_unit_test(distances_that_do_not_add_up_are_refused),
		cmocka_unit_test(sums_survive_json),
		cmocka_unit_test(damaged_sums_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
