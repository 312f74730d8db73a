/* SPDX-License-Identifier: MIT */
/* The journal's line about an estimate, and that the schema knows all of it. */
#include "calibrate/tests/estimate_run.h"

static json_t *schema_of(const char *definition)
{
	const char *top = getenv("srcdir");
	char path[4096];
	json_error_t error;
	json_t *schema, *found;

	snprintf(path, sizeof(path), "%s/results/schema/journal-2.json", top ? top : ".");
	schema = json_load_file(path, 0, &error);
	if (!schema)
		fail_msg("%s: %s", path, error.text);
	found = json_incref(json_object_get(json_object_get(schema, "$defs"), definition));
	json_decref(schema);
	assert_non_null(found);
	return found;
}

static bool requires(const json_t *schema, const char *key)
{
	const json_t *required = json_object_get(schema, "required");

	for (size_t i = 0; i < json_array_size(required); i++)
		if (strcmp(json_string_value(json_array_get(required, i)), key) == 0)
			return true;
	return false;
}

/* Each side names what the other one names; optional is what may be missing from line. */
static void assert_listed(json_t *line, const char *definition, const char *optional)
{
	json_t *schema = schema_of(definition), *listed = json_object_get(schema, "properties");
	const char *key;
	json_t *value;

	assert_non_null(line);
	json_object_foreach(line, key, value)
	{
		if (!json_object_get(listed, key))
			fail_msg("%s %s is not in the schema", definition, key);
	}
	json_object_foreach(listed, key, value)
	{
		if (!json_object_get(line, key))
			fail_msg("%s %s is only in the schema", definition, key);
		assert_int_equal(requires(schema, key), strcmp(key, optional) != 0);
	}
	json_decref(schema);
}

/* What the journal adds to every line. */
static void add_frame(json_t *line)
{
	json_object_set_new(line, "type", json_string("estimate"));
	json_object_set_new(line, "schema", json_integer(JOURNAL_SCHEMA));
	json_object_set_new(line, "date", json_string("2026-01-31T23:59:59Z"));
}

/* Both claims, a section each, two arms, tears across lines only. */
static json_t *line_of(struct run *run)
{
	struct cell_record *r;

	add(run, 1000000)->result.tears[TEAR_OLD_FRONT] = 2;
	add_across(run, CROSSING_PAGE, 500000)->noisy = true;
	add_across(run, CROSSING_PAGE, 400000);
	add_waits(run, "provoke", 200, 200)->cell.stretch = 0;
	r = add_waits(run, "provoke", 200, 200);
	r->cell.stretch = 0;
	r->cell.provokers = 1u << PROVOKER_CHAIN | 1u << PROVOKER_COLD_BACK;
	r->result.tears[TEAR_NEW_FRONT] = 30;
	make(run);
	run->estimate.verdict = VERDICT_FAIL;
	strcpy(run->estimate.reason, "for a test");
	return estimate_to_json(&run->estimate);
}

static const json_t *item(const json_t *line, const char *list, size_t i)
{
	const json_t *found = json_array_get(json_object_get(line, list), i);

	assert_non_null(found);
	return found;
}

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	assert_non_null(value);
	return value;
}

static bool is_null(const json_t *object, const char *key)
{
	return json_is_null(json_object_get(object, key));
}

static void the_schema_lists_what_is_written(void **state)
{
	json_t *line = line_of(*state);

	assert_non_null(line);
	add_frame(line);
	assert_listed(line, "estimate", "torn_cell");
	assert_listed(json_array_get(json_object_get(line, "claims"), 0), "claim", "");
	assert_listed(json_array_get(json_object_get(line, "sections"), 0), "section", "");
	assert_listed(json_array_get(json_object_get(line, "arms"), 0), "arm", "");
	assert_listed(json_array_get(json_object_get(line, "worst"), 0), "worst", "");
	json_decref(line);
}

static void the_line_says_what_the_estimate_says(void **state)
{
	struct run *run = *state;
	const struct estimate *e = &run->estimate;
	json_t *line = line_of(run);

	assert_string_equal(text(line, "verdict"), "fail");
	assert_string_equal(text(line, "reason"), "for a test");
	assert_true(number(line, "first_wait") == PAGE_FIRST);
	assert_true(number(line, "second_wait") == SECOND);
	assert_true(number(line, "stretch") == STRETCH);
	assert_true(number(line, "toggles") == 1400000);
	assert_true(number(line, "tears") == 2);
	assert_true(number(line, "upper_p") == e->upper_p);
	assert_true(number(line, "pooled_p") == e->pooled_p);
	assert_true(number(line, "confidence") == CONFIDENCE);
	assert_true(number(line, "torn_first") == FIRST);
	assert_true(is_null(line, "torn_second"));
	assert_true(number(line, "cells") == 3);
	assert_true(number(line, "noisy") == 1);
	assert_string_equal(text(line, "torn_cell"), "record 1");
	json_decref(line);
}

static void claims_and_sections_say_theirs(void **state)
{
	struct run *run = *state;
	const struct estimate *e = &run->estimate;
	json_t *line = line_of(run);
	const json_t *of_line = item(line, "claims", CLAIM_LINE);
	const json_t *of_page = item(line, "claims", CLAIM_PAGE);

	assert_int_equal(json_array_size(json_object_get(line, "claims")), CLAIMS);
	assert_string_equal(text(of_line, "crossing"), "line");
	assert_string_equal(text(of_page, "crossing"), "page");
	assert_true(number(of_line, "first_wait") == FIRST);
	assert_true(number(of_line, "second_wait") == SECOND);
	assert_true(number(of_page, "first_wait") == PAGE_FIRST);
	assert_true(number(of_page, "second_wait") == PAGE_SECOND);
	assert_true(number(of_line, "toggles") == 1000000);
	assert_true(number(of_line, "tears") == 2);
	assert_true(number(of_line, "upper_p") == e->claim[CLAIM_LINE].upper_p);
	assert_true(number(of_page, "upper_p") == e->claim[CLAIM_PAGE].upper_p);
	assert_true(number(of_line, "drift_p") == e->claim[CLAIM_LINE].drift_p);
	assert_true(json_is_false(json_object_get(of_line, "drifted")));
	assert_true(number(of_line, "torn_first") == FIRST);
	assert_true(is_null(of_line, "torn_second"));
	assert_true(is_null(of_page, "torn_first"));
	assert_int_equal(json_array_size(json_object_get(line, "sections")), 2);
	assert_string_equal(text(item(line, "sections", 1), "crossing"), "page");
	assert_true(number(item(line, "sections", 0), "upper_p") == e->section[0].upper_p);
	assert_true(number(item(line, "sections", 0), "torn_first") == FIRST);
	assert_true(is_null(item(line, "sections", 1), "torn_first"));
	json_decref(line);
}

static void arms_say_what_they_did(void **state)
{
	struct run *run = *state;
	json_t *line = line_of(run);
	const json_t *none = item(line, "arms", 0), *both = item(line, "arms", 1);

	assert_int_equal(json_array_size(json_object_get(line, "arms")), 2);
	assert_string_equal(text(none, "provokers"), "none");
	assert_string_equal(text(both, "provokers"), "cold-back+chain");
	assert_true(number(both, "toggles") == 1000);
	assert_true(number(both, "tears") == 30);
	assert_true(number(both, "rate") == 0.03);
	assert_true(number(both, "lower") > 0 && number(both, "lower") < 0.03);
	assert_true(number(both, "upper") > 0.03 && number(both, "upper") < 1);
	/* Nothing can be told of how many times nothing it is. */
	assert_true(is_null(both, "ratio"));
	assert_true(number(both, "p") < 1e-6);
	json_decref(line);
	run->record[3].result.tears[TEAR_OLD_FRONT] = 2;
	make(run);
	line = estimate_to_json(&run->estimate);
	assert_true(number(item(line, "arms", 1), "ratio") == 15);
	json_decref(line);
}

/* What verify runs again: each a command line with its counts. */
static void the_worst_cells_can_be_run_again(void **state)
{
	struct run *run = *state;
	json_t *line = line_of(run);
	char command[1024];

	assert_int_equal(json_array_size(json_object_get(line, "worst")), 2);
	cell_command(&run->record[0].cell, command, sizeof(command));
	assert_string_equal(text(item(line, "worst", 0), "command"), command);
	assert_true(number(item(line, "worst", 0), "toggles") == 1000000);
	assert_true(number(item(line, "worst", 0), "tears") == 2);
	assert_true(number(item(line, "worst", 1), "toggles") == 400000);
	json_decref(line);
}

static void a_rate_that_drifted_is_told(void **state)
{
	struct run *run = *state;
	json_t *line;

	for (unsigned i = 0; i < 5; i++)
		add_across(run, CROSSING_PAGE, 10000);
	run->record[2].result.tears[TEAR_OTHER] = 40;
	make(run);
	line = estimate_to_json(&run->estimate);
	assert_true(json_is_true(json_object_get(item(line, "claims", CLAIM_PAGE), "drifted")));
	assert_true(number(item(line, "claims", CLAIM_PAGE), "drift_p") < 0.01);
	assert_true(json_is_false(json_object_get(item(line, "claims", CLAIM_LINE), "drifted")));
	json_decref(line);
}

static void without_tears_there_is_no_torn_cell(void **state)
{
	struct run *run = *state;
	json_t *line;

	add(run, 1000);
	make(run);
	line = estimate_to_json(&run->estimate);
	assert_non_null(line);
	assert_null(json_object_get(line, "torn_cell"));
	json_decref(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RUN(the_schema_lists_what_is_written),
		ON_RUN(the_line_says_what_the_estimate_says),
		ON_RUN(claims_and_sections_say_theirs),
		ON_RUN(arms_say_what_they_did),
		ON_RUN(the_worst_cells_can_be_run_again),
		ON_RUN(a_rate_that_drifted_is_told),
		ON_RUN(without_tears_there_is_no_torn_cell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
