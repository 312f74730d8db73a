/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "results/tests/journal_place.h"

static void expect_round_trip(const struct cell_record *record)
{
	json_t *line = record_to_json(record);
	struct cell_record back;

	assert_non_null(line);
	assert_int_equal(record_from_json(line, &back), 0);
	assert_string_equal(back.stage, record->stage);
	assert_string_equal(back.key, record->key);
	assert_string_equal(back.date, record->date);
	assert_int_equal(back.noisy, record->noisy);
	assert_memory_equal(&back.cell, &record->cell, sizeof(back.cell));
	assert_memory_equal(&back.result, &record->result, sizeof(back.result));
	json_decref(line);
}

static void test_round_trip(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct cell_record record = sample_record(i);

		expect_round_trip(&record);
	}
}

static void test_round_trip_of_every_name(void **state)
{
	struct cell_record r = sample_record(1);

	(void)state;
	for (unsigned i = 0; i < PLACEMENT_COUNT; i++) {
		r.cell.placement = (enum placement)i;
		r.result.seating.placement = (enum placement)i;
		r.cell.crossing = (enum crossing)(i % CROSSING_COUNT);
		r.cell.pair = (enum code_pair)(i % PAIR_COUNT);
		r.cell.protocol = (enum protocol)(i % PROTOCOL_COUNT);
		r.cell.oracle = (enum oracle)(i % ORACLE_KINDS);
		r.result.outcome = (enum outcome)(i % OUTCOME_COUNT);
		r.result.torn_inside[1] = r.cell.crossing == CROSSING_INSIDE ? 7 : 0;
		expect_round_trip(&r);
	}
}

static void test_round_trip_of_extremes(void **state)
{
	struct cell_record r = sample_record(1);

	(void)state;
	r.cell.seed = r.cell.waits.first = r.cell.toggles = INT64_MAX;
	r.cell.seconds = 1e300;
	r.cell.executors = r.result.seating.executors = PLACEMENT_EXECUTORS_MAX;
	for (unsigned i = 0; i < PLACEMENT_EXECUTORS_MAX; i++)
		r.result.seating.executor[i] = UINT32_MAX - i;
	r.result.signal = 11;
	r.result.error = -ENOMEM;
	r.result.tears[TEAR_OTHER] = INT64_MAX;
	r.result.witness.load = 5e-324;
	r.result.witness.offset = INT64_MIN;
	r.cell.provokers = PROVOKERS_ALL;
	r.cell.loop = CELL_LOOP_MAX;
	r.result.events = TEAR_EVENTS_MAX;
	/* One by one: padding stays 0, as it is in what is read. */
	for (unsigned i = 0; i < TEAR_EVENTS_MAX; i++) {
		struct tear_event *event = &r.result.event[i];

		event->toggle = i;
		event->kind = (enum tear_kind)(i % TEAR_KINDS);
		event->tsc = INT64_MAX;
		event->after_int3 = INT64_MIN;
		event->after_front = INT64_MAX;
		event->executor = PLACEMENT_EXECUTORS_MAX - 1;
	}
	memset(r.key, 'k', sizeof(r.key) - 1);
	memset(r.stage, 's', sizeof(r.stage) - 1);
	expect_round_trip(&r);
}

/* What could not be witnessed is null, and unknown again when read. */
static void test_unknown_witnesses(void **state)
{
	struct cell_record r = sample_record(1);
	struct witness *w = &r.result.witness;
	const char *name;
	json_t *line, *object, *value;

	(void)state;
	w->voluntary = w->involuntary = w->minor_faults = w->major_faults = WITNESS_UNKNOWN;
	w->interrupts = w->smis = w->throttles = w->tsc_jumps = WITNESS_UNKNOWN;
	w->longest_step = w->offset_error = w->error_after = WITNESS_UNKNOWN;
	w->clock[0] = w->clock[1] = w->steal = w->load = -1;
	expect_round_trip(&r);
	line = record_to_json(&r);
	object = json_object_get(line, "witness");
	json_object_foreach(object, name, value)
		assert_true(json_is_null(value) || strcmp(name, "offset") == 0);
	json_decref(line);
}

static void expect_unwritable(const struct cell_record *record)
{
	assert_null(record_to_json(record));
}

static void test_bad_numbers_are_not_written(void **state)
{
	struct cell_record r;

	(void)state;
	r = sample_record(0), r.cell.seed = (uint64_t)INT64_MAX + 1, expect_unwritable(&r);
	r = sample_record(0), r.result.ticks = UINT64_MAX, expect_unwritable(&r);
	r = sample_record(0), r.cell.seconds = NAN, expect_unwritable(&r);
	r = sample_record(0), r.result.seconds = INFINITY, expect_unwritable(&r);
	r = sample_record(0), r.result.seconds = -0.5, expect_unwritable(&r);
	r = sample_record(0), r.result.witness.steal = NAN, expect_unwritable(&r);
	r = sample_record(0), r.result.witness.smis = UINT64_MAX - 1, expect_unwritable(&r);
	r = sample_record(0), r.cell.loop = CELL_LOOP_MAX + 1, expect_unwritable(&r);
	r = sample_record(0), r.result.events = TEAR_EVENTS_MAX + 1, expect_unwritable(&r);
	r = sample_record(0), r.result.event[0].executor = 1024, expect_unwritable(&r);
	r = sample_record(0), r.cell.split = 16, expect_unwritable(&r);
	r = sample_record(0), r.cell.executors = 1025, expect_unwritable(&r);
	r = sample_record(0), r.result.seating.executors = 1025, expect_unwritable(&r);
	r = sample_record(0), r.result.signal = -1, expect_unwritable(&r);
	r = sample_record(0), r.result.error = EINVAL, expect_unwritable(&r);
}

static void test_bad_names_are_not_written(void **state)
{
	struct cell_record r;

	(void)state;
	r = sample_record(0), r.cell.placement = PLACEMENT_COUNT, expect_unwritable(&r);
	r = sample_record(0), r.cell.crossing = CROSSING_COUNT, expect_unwritable(&r);
	r = sample_record(0), r.cell.pair = PAIR_OWN + 1, expect_unwritable(&r);
	r = sample_record(0), r.cell.protocol = PROTOCOL_COUNT, expect_unwritable(&r);
	r = sample_record(0), r.cell.oracle = ORACLE_KINDS, expect_unwritable(&r);
	r = sample_record(0), r.result.outcome = OUTCOME_COUNT, expect_unwritable(&r);
	r = sample_record(0), r.cell.provokers = PROVOKERS_ALL + 1, expect_unwritable(&r);
	r = sample_record(0), r.result.event[0].kind = TEAR_KINDS, expect_unwritable(&r);
	r = sample_record(0), strcpy(r.key, "a\nb"), expect_unwritable(&r);
	r = sample_record(0), strcpy(r.stage, "\033[2J"), expect_unwritable(&r);
	r = sample_record(0), strcpy(r.key, "\xff"), expect_unwritable(&r);
	r = sample_record(0), strcpy(r.key, "\x7f"), expect_unwritable(&r);
}

static void expect_refused(const json_t *line)
{
	struct cell_record record;

	assert_int_equal(record_from_json(line, &record), -EINVAL);
}

/* Puts value (taken over) in place of object[name] and expects a refusal. */
static void expect_refused_with(const json_t *line, json_t *object, const char *name, json_t *value)
{
	json_t *old = json_incref(json_object_get(object, name));

	if (value)
		json_object_set_new(object, name, value);
	else
		json_object_del(object, name);
	expect_refused(line);
	json_object_set_new(object, name, old);
}

/* Came without a new schema: old lines do not have them. */
static bool is_optional(const char *name)
{
	static const char *const names[] = {
		"exposed",	     "torn", "place", "swap", "front_frame", "back_frame",
		"offset_error_after"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static void refuse_wrong_types(const json_t *line, json_t *object, bool null_is_unknown)
{
	char names[32][32]; /* copies: a member's name goes when it does */
	const char *name;
	json_t *value;
	size_t count = 0;

	json_object_foreach(object, name, value)
		snprintf(names[count++], sizeof(*names), "%s", name);
	for (size_t i = 0; i < count; i++) {
		/* Said once more for people and for the reader of lines, not for the record. */
		if (!strcmp(names[i], "type") || !strcmp(names[i], "schema") ||
		    !strcmp(names[i], "command"))
			continue;
		if (!is_optional(names[i]))
			expect_refused_with(line, object, names[i], NULL);
		if (!null_is_unknown && strcmp(names[i], "exposed") && strcmp(names[i], "torn"))
			expect_refused_with(line, object, names[i], json_null());
		if (strcmp(names[i], "noisy") != 0 && strcmp(names[i], "swap") != 0)
			expect_refused_with(line, object, names[i], json_true());
		if (strcmp(names[i], "events") != 0)
			expect_refused_with(line, object, names[i], json_array());
		expect_refused_with(line, object, names[i], json_string("?\n"));
	}
}

static void test_lines_without_optional_members_are_read(void **state)
{
	struct cell_record record = sample_record(0), back;
	json_t *line = record_to_json(&record);
	json_t *result = json_object_get(line, "result");
	json_t *cell = json_object_get(line, "cell");

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(result, "exposed")), 900000);
	json_object_del(result, "exposed");
	json_object_del(result, "torn");
	json_object_del(result, "front_frame");
	json_object_del(result, "back_frame");
	json_object_del(json_object_get(line, "witness"), "offset_error_after");
	json_object_del(cell, "place");
	json_object_del(cell, "swap");
	assert_int_equal(record_from_json(line, &back), 0);
	assert_int_equal(back.result.exposed, CELL_UNKNOWN);
	assert_int_equal(back.result.torn, CELL_UNKNOWN);
	assert_int_equal(back.result.witness.error_after, WITNESS_UNKNOWN);
	assert_int_equal(back.result.frame[0], 0);
	assert_int_equal(back.cell.place, 0);
	assert_false(back.cell.swap);
	assert_int_equal(back.result.toggles, record.result.toggles);
	json_decref(line);
	record.result.exposed = record.result.torn = CELL_UNKNOWN;
	expect_round_trip(&record);
}

static void test_wrong_types_are_refused(void **state)
{
	static const char *const objects[] = { "cell", "cpus", "result", "witness" };
	struct cell_record record = sample_record(0);
	json_t *line = record_to_json(&record);
	json_t *result = json_object_get(line, "result");

	(void)state;
	/* An empty list of CPUs is fine: the cell never ran. */
	json_object_set_new(json_object_get(line, "cpus"), "executors", json_integer(1));
	expect_refused(line);
	json_object_set_new(json_object_get(line, "cpus"), "executors", json_array());
	assert_int_equal(record_from_json(line, &record), 0);
	json_object_del(json_object_get(line, "cpus"), "executors");
	expect_refused(line);
	json_object_set_new(json_object_get(line, "cpus"), "executors", json_pack("[i]", 1));

	json_object_del(json_object_get(line, "witness"), "offset");
	expect_refused(line);
	json_object_set_new(json_object_get(line, "witness"), "offset", json_integer(0));
	refuse_wrong_types(line, line, false);
	refuse_wrong_types(line, json_object_get(result, "tears"), false);
	refuse_wrong_types(line, json_object_get(result, "latency"), false);
	refuse_wrong_types(line, json_array_get(json_object_get(result, "events"), 0), false);
	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++)
		if (strcmp(objects[i], "cpus") != 0)
			refuse_wrong_types(line, json_object_get(line, objects[i]),
					   strcmp(objects[i], "witness") == 0);
	assert_int_equal(record_from_json(line, &record), 0);
	json_decref(line);
}

static void test_wrong_ranges_are_refused(void **state)
{
	static const struct {
		const char *object, *name;
		json_int_t value;
	} bad[] = {
		{ "cell", "split", 0 },
		{ "cell", "split", 16 },
		{ "cell", "executors", 0 },
		{ "cell", "executors", 1025 },
		{ "cell", "first_wait", -1 },
		{ "cell", "seed", -1 },
		{ "cell", "stretch", -1 },
		{ "cell", "loop", -1 },
		{ "cell", "loop", CELL_LOOP_MAX + 1 },
		{ "cell", "toggles", -1 },
		{ "cell", "seconds", -1 },
		{ "result", "toggles", -1 },
		{ "result", "signal", -1 },
		{ "result", "signal", 65 },
		{ "result", "error", 1 },
		{ "result", "error", -4096 },
		{ "result", "seconds", -1 },
		{ "result", "executions", -5 },
		{ "witness", "voluntary", -1 },
		{ "witness", "load", -1 },
		{ "cpus", "patcher", -1 },
		{ "cpus", "patcher", INT64_C(1) << 32 },
	};
	struct cell_record record = sample_record(0);
	json_t *line = record_to_json(&record);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_refused_with(line, json_object_get(line, bad[i].object), bad[i].name,
				    json_integer(bad[i].value));
	expect_refused_with(line, json_object_get(line, "cell"), "toggles", json_real(1e6));
	json_decref(line);
}

static void test_wrong_cpus_are_refused(void **state)
{
	struct cell_record record = sample_record(0);
	json_t *line = record_to_json(&record), *many = json_array();
	json_t *cpus = json_object_get(line, "cpus");

	(void)state;
	for (unsigned i = 0; i < PLACEMENT_EXECUTORS_MAX; i++)
		json_array_append_new(many, json_integer(i));
	json_object_set(cpus, "executors", many);
	assert_int_equal(record_from_json(line, &record), 0);
	json_array_append_new(many, json_integer(0));
	expect_refused_with(line, cpus, "executors", json_incref(many));
	expect_refused_with(line, cpus, "executors", json_pack("[i]", -1));
	expect_refused_with(line, cpus, "executors", json_pack("[s]", "1"));
	expect_refused_with(line, cpus, "executors", json_pack("[I]", (json_int_t)1 << 32));
	json_decref(many);
	json_decref(line);
}

static void test_long_texts_are_refused(void **state)
{
	struct cell_record record = sample_record(0);
	json_t *line = record_to_json(&record);
	char text[sizeof(record.key) + 1];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(record.key)] = '\0';
	expect_refused_with(line, line, "key", json_string(text));
	text[sizeof(record.stage)] = '\0';
	expect_refused_with(line, line, "stage", json_string(text));
	expect_refused_with(line, line, "date", json_string(text));
	expect_refused_with(line, line, "key", json_string("\033[2J"));
	json_decref(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_round_trip_of_every_name),
		cmocka_unit_test(test_round_trip_of_extremes),
		cmocka_unit_test(test_unknown_witnesses),
		cmocka_unit_test(test_bad_numbers_are_not_written),
		cmocka_unit_test(test_bad_names_are_not_written),
		cmocka_unit_test(test_lines_without_optional_members_are_read),
		cmocka_unit_test(test_wrong_types_are_refused),
		cmocka_unit_test(test_wrong_ranges_are_refused),
		cmocka_unit_test(test_wrong_cpus_are_refused),
		cmocka_unit_test(test_long_texts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
