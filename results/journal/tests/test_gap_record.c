/* SPDX-License-Identifier: MIT */
/*
 * A "gaps" line holds what was measured: every bucket, the tail with its times,
 * what was thrown away, and whether the tail is all there is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "results/journal/journal.h"

static struct gap_result result;
static struct cell cell;

static int start(void **state)
{
	(void)state;
	result = (struct gap_result){
		.stores = 1000,
		.executions = 5000,
		.seconds = 0.5,
		.offset = { -12, 34 },
		.discarded = { 1, 2, 3, 4, 5 },
		.seating = { .patcher = 0, .executors = 1, .executor = { 1 } },
	};
	gap_defaults(&cell);
	return 0;
}

static json_t *line(void)
{
	json_t *json = gap_to_json(&cell, &result);

	assert_non_null(json);
	return json;
}

static json_int_t integer(const json_t *object, const char *name)
{
	assert_true(json_is_integer(json_object_get(object, name)));
	return json_integer_value(json_object_get(object, name));
}

static void counts_are_told(void **state)
{
	static const char *const reasons[] = { "wrap", "late", "preempted", "stale", "lost" };
	json_t *json = line(), *discarded = json_object_get(json, "discarded");

	(void)state;
	assert_int_equal(integer(json, "stores"), 1000);
	assert_int_equal(integer(json, "executions"), 5000);
	assert_int_equal(integer(json, "offset"), -12);
	assert_int_equal(integer(json, "offset_error"), 34);
	assert_int_equal(integer(json, "faked"), 15);
	for (int i = 0; i < GAP_REASONS; i++)
		assert_int_equal(integer(discarded, reasons[i]), i + 1);
	assert_true(json_real_value(json_object_get(json, "rate")) == 2000);
	json_decref(json);
}

static void gaps_are_told_by_kind(void **state)
{
	json_t *json, *kind, *bucket;

	(void)state;
	gap_tally_add(&result.kind[GAP_NEW_FRONT], 1000, 77);
	gap_tally_add(&result.kind[GAP_NEW_FRONT], 5, 88);
	gap_tally_add(&result.kind[GAP_NEW_FRONT], 1001, 99);
	json = line();
	kind = json_array_get(json_object_get(json, "kinds"), 0);
	assert_string_equal(json_string_value(json_object_get(kind, "kind")), "old-front");
	assert_int_equal(integer(kind, "count"), 0);
	assert_true(json_is_true(json_object_get(kind, "tail_complete")));
	kind = json_array_get(json_object_get(json, "kinds"), 1);
	assert_string_equal(json_string_value(json_object_get(kind, "kind")), "new-front");
	assert_int_equal(integer(kind, "count"), 3);
	assert_int_equal(json_array_size(json_object_get(kind, "histogram")), 2);
	bucket = json_array_get(json_object_get(kind, "histogram"), 1);
	assert_true(json_integer_value(json_array_get(bucket, 0)) <= 1000);
	assert_true(json_integer_value(json_array_get(bucket, 1)) > 1001);
	assert_int_equal(json_integer_value(json_array_get(bucket, 2)), 2);
	assert_int_equal(json_array_size(json_object_get(kind, "tail")), 3);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(kind, "tail"), 0)),
			 1001);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(kind, "tail_times"), 2)),
			 88);
	json_decref(json);
}

static void a_cut_tail_is_told(void **state)
{
	json_t *json, *kind;

	(void)state;
	for (unsigned i = 0; i <= GAP_TAIL; i++)
		gap_tally_add(&result.kind[GAP_OLD_FRONT], i, i);
	json = line();
	kind = json_array_get(json_object_get(json, "kinds"), 0);
	assert_int_equal(json_array_size(json_object_get(kind, "tail")), GAP_TAIL);
	assert_true(json_is_false(json_object_get(kind, "tail_complete")));
	json_decref(json);
}

static void what_is_not_known_is_null(void **state)
{
	json_t *json;

	(void)state;
	result.offset = TSC_OFFSET_UNKNOWN;
	json = line();
	assert_true(json_is_null(json_object_get(json, "offset_error")));
	json_decref(json);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	result.stores = UINT64_MAX;
	assert_null(gap_to_json(&cell, &result));
	result.stores = 0;
	result.kind[GAP_OLD_FRONT].tails = 1;
	result.kind[GAP_OLD_FRONT].tail[0] = UINT64_MAX;
	assert_null(gap_to_json(&cell, &result));
	result.kind[GAP_OLD_FRONT].tails = 0;
	cell.split = SITE_BYTES;
	assert_null(gap_to_json(&cell, &result));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(counts_are_told, start),
		cmocka_unit_test_setup(gaps_are_told_by_kind, start),
		cmocka_unit_test_setup(a_cut_tail_is_told, start),
		cmocka_unit_test_setup(what_is_not_known_is_null, start),
		cmocka_unit_test_setup(nonsense_is_refused, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
