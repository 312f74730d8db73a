/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/bound.h"
#include "calibrate/estimate.h"

#define FIRST	3000
#define SECOND	2000
#define RECORDS 100
#define assert_p(value, tears, toggles)                                                            \
	assert_true((value) == bound_upper((tears), (toggles), CONFIDENCE))

struct run {
	struct cell_record record[RECORDS];
	size_t count;
	struct estimate estimate;
};

static int new_run(void **state)
{
	*state = calloc(1, sizeof(struct run));
	return *state == NULL;
}

static int end_run(void **state)
{
	free(*state);
	return 0;
}

/* A cell of the campaign at the final waits, to be changed by the caller. */
static struct cell_record *add(struct run *run, uint64_t toggles)
{
	struct cell_record *r = &run->record[run->count++];

	assert_true(run->count <= RECORDS);
	*r = (struct cell_record){ .stage = "campaign" };
	cell_defaults(&r->cell);
	r->cell.first_wait = FIRST;
	r->cell.second_wait = SECOND;
	snprintf(r->key, sizeof(r->key), "record %zu", run->count);
	r->result.toggles = toggles;
	return r;
}

static struct cell_record *add_waits(struct run *run, const char *stage, uint64_t first,
				     uint64_t second)
{
	struct cell_record *r = add(run, 1000);

	snprintf(r->stage, sizeof(r->stage), "%s", stage);
	r->cell.first_wait = first;
	r->cell.second_wait = second;
	return r;
}

static void add_store(struct run *run, enum crossing crossing, uint64_t toggles, uint64_t tears)
{
	struct cell_record *r = add(run, toggles);

	strcpy(r->stage, "window");
	r->cell.protocol = PROTOCOL_ATOMIC;
	r->cell.crossing = crossing;
	r->result.tears[TEAR_OTHER] = tears;
}

static const struct estimate *make(struct run *run)
{
	/* Whatever was there before must not shine through. */
	memset(&run->estimate, 0xa5, sizeof(run->estimate));
	estimate_make(&run->estimate, run->record, run->count, FIRST, SECOND);
	return &run->estimate;
}

static void assert_torn(const struct torn *torn, int64_t first, int64_t second)
{
	assert_int_equal(torn->seen[0], first >= 0);
	assert_int_equal(torn->seen[1], second >= 0);
	if (first >= 0)
		assert_int_equal(torn->wait[0], first);
	if (second >= 0)
		assert_int_equal(torn->wait[1], second);
}

static void nothing_measured_is_nothing_known(void **state)
{
	const struct estimate *e = make(*state);

	assert_int_equal(e->first_wait, FIRST);
	assert_int_equal(e->second_wait, SECOND);
	assert_int_equal(e->toggles, 0);
	assert_int_equal(e->tears, 0);
	assert_true(e->upper_p == 1);
	assert_true(e->pooled_p == 1);
	assert_true(e->margin == 0);
	assert_torn(&e->torn, -1, -1);
	assert_false(e->tears_here);
	assert_false(e->word_tore);
	assert_false(e->have_worst);
	assert_int_equal(e->window, 8);
	assert_int_equal(e->window_toggles, 0);
	assert_true(e->window_p == 1);
	assert_int_equal(e->sections, 0);
}

static void only_the_campaign_at_the_final_waits_counts(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add(run, 100)->result.tears[TEAR_OLD_FRONT] = 1;
	add(run, 20);
	add_waits(run, "bracket", FIRST, SECOND);
	add_waits(run, "proof", FIRST, SECOND);
	add_waits(run, "campaign", FIRST - 1, SECOND);
	add_waits(run, "campaign", FIRST, SECOND + 1);
	add(run, 3000)->cell.protocol = PROTOCOL_MEMBARRIER;
	add(run, 3000)->cell.protocol = PROTOCOL_NO_INT3;
	add(run, 3000)->cell.protocol = PROTOCOL_FRONT_FIRST;
	e = make(run);
	assert_int_equal(e->toggles, 120);
	assert_int_equal(e->tears, 1);
	assert_int_equal(e->sections, 1);
	assert_int_equal(e->section[0].toggles, 120);
	assert_int_equal(e->section[0].tears, 1);
	assert_p(e->upper_p, 1, 120);
}

static void a_cell_that_did_not_end_proves_nothing(void **state)
{
	static const enum outcome broken[] = { OUTCOME_KILLED, OUTCOME_HANG };
	struct run *run = *state;

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		run->count = 0;
		add(run, 100);
		add(run, 5000)->result.outcome = broken[i];
		assert_int_equal(make(run)->toggles, 100);
		assert_p(run->estimate.upper_p, 0, 100);
		/* Its tears are real all the same. */
		run->record[1].result.tears[TEAR_OLD_FRONT] = 1;
		assert_torn(&make(run)->torn, FIRST, -1);
		assert_true(run->estimate.have_worst);
	}
}

static void a_section_seen_only_in_the_bracket_is_unproved(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add(run, 1000000);
	add_waits(run, "bracket", 100, 100)->cell.crossing = CROSSING_PAGE;
	e = make(run);
	assert_int_equal(e->sections, 2);
	assert_int_equal(e->section[1].toggles, 0);
	assert_true(e->section[1].upper_p == 1);
	assert_true(e->upper_p == 1);
	assert_p(e->pooled_p, 0, 1000000);
}

static void tears_blame_the_wait_of_their_kind(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add_waits(run, "bracket", 700, 750)->result.tears[TEAR_OLD_FRONT] = 1;
	add_waits(run, "bracket", 400, 450)->result.tears[TEAR_NEW_FRONT] = 1;
	/* Lower waits that tore later change nothing. */
	add_waits(run, "campaign", 100, 150)->result.tears[TEAR_OLD_FRONT] = 9;
	add_waits(run, "campaign", 100, 150)->result.tears[TEAR_NEW_FRONT] = 9;
	/* Higher ones that did not tear neither. */
	add_waits(run, "campaign", 900, 950);
	e = make(run);
	assert_torn(&e->torn, 700, 450);
	assert_torn(&e->section[0].torn, 700, 450);
}

static void tears_of_no_known_kind_blame_both(void **state)
{
	struct run *run = *state;

	add_waits(run, "bracket", 700, 750)->result.tears[TEAR_OTHER] = 1;
	assert_torn(&make(run)->torn, 700, 750);
}

static void both_kinds_in_one_cell(void **state)
{
	struct run *run = *state;
	struct cell_record *r = add_waits(run, "bracket", 700, 750);

	r->result.tears[TEAR_OLD_FRONT] = 1;
	r->result.tears[TEAR_NEW_FRONT] = 2;
	assert_torn(&make(run)->torn, 700, 750);
}

static void other_protocols_say_nothing_of_waits(void **state)
{
	struct run *run = *state;
	const struct estimate *e;
	struct torn torn = { 0 };

	for (int p = 0; p < PROTOCOL_COUNT; p++) {
		struct cell_record *r = add(run, 1000);

		if (p == PROTOCOL_WAIT)
			continue;
		r->cell.protocol = (enum protocol)p;
		r->result.tears[TEAR_OTHER] = 5;
		torn_add(&torn, r);
	}
	assert_torn(&torn, -1, -1);
	e = make(run);
	assert_torn(&e->torn, -1, -1);
	assert_false(e->have_worst);
	assert_int_equal(e->tears, 0);
}

static void a_wait_of_nothing_can_tear(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add_waits(run, "bracket", 0, 0)->result.tears[TEAR_OLD_FRONT] = 1;
	e = make(run);
	assert_torn(&e->torn, 0, -1);
	assert_true(e->margin == 0);
}

static void sections_keep_to_themselves(void **state)
{
	struct run *run = *state;
	const struct estimate *e;
	struct cell_record *r;

	add(run, 1000);
	r = add(run, 300);
	r->cell.crossing = CROSSING_PAGE;
	r = add(run, 50);
	r->cell.placement = PLACEMENT_SAME_CORE;
	r->result.tears[TEAR_NEW_FRONT] = 2;
	r = add(run, 7);
	r->cell.split = 1;
	r->cell.executors = 2;
	r->cell.pair = PAIR_WORD;
	e = make(run);
	assert_int_equal(e->sections, 3);
	assert_int_equal(e->section[0].crossing, CROSSING_LINE);
	assert_int_equal(e->section[0].toggles, 1007);
	assert_p(e->section[0].upper_p, 0, 1007);
	assert_int_equal(e->section[1].crossing, CROSSING_PAGE);
	assert_p(e->section[1].upper_p, 0, 300);
	assert_int_equal(e->section[2].placement, PLACEMENT_SAME_CORE);
	assert_p(e->section[2].upper_p, 2, 50);
	assert_torn(&e->section[0].torn, -1, -1);
	assert_torn(&e->section[2].torn, -1, SECOND);
}

static void the_machine_is_as_bad_as_its_worst_section(void **state)
{
	const uint64_t toggles[] = { 5000, 100, 90000 };

	for (unsigned worst = 0; worst < 3; worst++) {
		struct run *run = *state;
		const struct estimate *e;

		run->count = 0;
		for (unsigned i = 0; i < 3; i++)
			add(run, toggles[(i + worst) % 3])->cell.placement = (enum placement)i;
		e = make(run);
		assert_p(e->upper_p, 0, 100);
		assert_p(e->pooled_p, 0, 95100);
	}
}

static void every_section_has_room(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	for (unsigned i = 0; i < SECTIONS_MAX; i++) {
		struct cell_record *r = add(run, 1 + i);

		r->cell.placement = (enum placement)(i / CROSSING_COUNT);
		r->cell.crossing = (enum crossing)(i % CROSSING_COUNT);
	}
	e = make(run);
	assert_int_equal(e->sections, SECTIONS_MAX);
	for (unsigned i = 0; i < SECTIONS_MAX; i++)
		assert_int_equal(e->section[i].toggles, 1 + i);
}

static void the_window_ends_at_the_first_crossing_that_tears(void **state)
{
	static const struct {
		uint64_t tears[4]; /* none, 8, 16, 32 */
		unsigned window;
		uint64_t toggles, least;
	} cases[] = {
		{ { 0, 0, 0, 0 }, 64, 200 + 300 + 400, 200 },
		{ { 0, 0, 0, 1 }, 32, 200 + 300, 200 },
		{ { 0, 0, 1, 0 }, 16, 200, 200 },
		{ { 0, 1, 0, 0 }, 8, 1000, 1000 },
	};
	struct run *run = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct estimate *e;

		run->count = 0;
		add_store(run, CROSSING_NONE, 1000, cases[i].tears[0]);
		add_store(run, CROSSING_32, 400, cases[i].tears[3]);
		add_store(run, CROSSING_16, 300, cases[i].tears[2]);
		add_store(run, CROSSING_8, 150, 0);
		add_store(run, CROSSING_8, 50, cases[i].tears[1]);
		e = make(run);
		assert_int_equal(e->window, cases[i].window);
		assert_int_equal(e->window_toggles, cases[i].toggles);
		assert_p(e->window_p, 0, cases[i].least);
		assert_false(e->word_tore);
	}
}

static void a_crossing_that_was_not_tried_ends_the_window(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add_store(run, CROSSING_NONE, 1000, 0);
	add_store(run, CROSSING_8, 500, 0);
	add_store(run, CROSSING_16, 0, 0);
	add_store(run, CROSSING_32, 500, 0);
	e = make(run);
	assert_int_equal(e->window, 16);
	assert_p(e->window_p, 0, 500);
}

static void a_word_that_tears_is_told(void **state)
{
	struct run *run = *state;
	const struct estimate *e;

	add_store(run, CROSSING_NONE, 1000, 1);
	add_store(run, CROSSING_8, 500, 0);
	e = make(run);
	assert_true(e->word_tore);
	assert_int_equal(e->window, 8);
	assert_p(e->window_p, 1, 1000);
}

static void only_a_naive_store_shows_that_fetches_tear(void **state)
{
	struct run *run = *state;

	for (int p = 0; p < PROTOCOL_COUNT; p++) {
		struct cell_record *r;

		run->count = 0;
		r = add(run, 1000);
		r->cell.protocol = (enum protocol)p;
		assert_false(make(run)->tears_here);
		r->result.tears[TEAR_OLD_FRONT] = 1;
		assert_int_equal(make(run)->tears_here, p == PROTOCOL_NAIVE);
	}
}

static void the_margin_is_the_smaller_one(void **state)
{
	struct run *run = *state;

	add_waits(run, "bracket", 1000, 0)->result.tears[TEAR_OLD_FRONT] = 1;
	assert_true(make(run)->margin == (double)FIRST / 1000);
	add_waits(run, "bracket", 0, 1600)->result.tears[TEAR_NEW_FRONT] = 1;
	assert_true(make(run)->margin == (double)SECOND / 1600);
	add_waits(run, "bracket", 2900, 0)->result.tears[TEAR_OLD_FRONT] = 1;
	assert_true(make(run)->margin == (double)FIRST / 2900);
}

static void the_worst_cell_has_the_highest_wait_then_the_highest_rate(void **state)
{
	struct run *run = *state;
	struct cell_record *r;

	add_waits(run, "bracket", 500, 500)->result.tears[TEAR_OLD_FRONT] = 900;
	assert_string_equal(make(run)->worst.key, "record 1");
	add_waits(run, "bracket", 600, 600)->result.tears[TEAR_NEW_FRONT] = 1;
	assert_string_equal(make(run)->worst.key, "record 2");
	/* A long first wait is no excuse for the second. */
	add_waits(run, "bracket", 9000, 100)->result.tears[TEAR_NEW_FRONT] = 5;
	assert_string_equal(make(run)->worst.key, "record 2");
	r = add_waits(run, "bracket", 600, 100);
	r->result.tears[TEAR_OLD_FRONT] = 3;
	r->result.toggles = 4000;
	assert_string_equal(make(run)->worst.key, "record 2");
	r->result.toggles = 2000;
	assert_string_equal(make(run)->worst.key, "record 4");
	add_waits(run, "campaign", 9000, 9000);
	assert_string_equal(make(run)->worst.key, "record 4");
}

static void verdicts_have_names(void **state)
{
	(void)state;
	assert_string_equal(verdict_name(VERDICT_PASS), "pass");
	assert_string_equal(verdict_name(VERDICT_FAIL), "fail");
	assert_string_equal(verdict_name(VERDICT_INCONCLUSIVE), "inconclusive");
}

static json_t *schema_of(const char *definition)
{
	const char *top = getenv("srcdir");
	char path[4096];
	json_error_t error;
	json_t *schema, *found;

	snprintf(path, sizeof(path), "%s/results/schema/journal-1.json", top ? top : ".");
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

	json_object_foreach(line, key, value)
	{
		if (!json_object_get(listed, key))
			fail_msg("%s is not in the schema", key);
	}
	json_object_foreach(listed, key, value)
	{
		if (!json_object_get(line, key))
			fail_msg("%s is only in the schema", key);
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

static void the_schema_lists_what_is_written(void **state)
{
	struct run *run = *state;
	json_t *line;

	add(run, 100)->result.tears[TEAR_OLD_FRONT] = 1;
	make(run);
	run->estimate.verdict = VERDICT_INCONCLUSIVE;
	strcpy(run->estimate.reason, "for a test");
	line = estimate_to_json(&run->estimate);
	assert_non_null(line);
	add_frame(line);
	assert_listed(line, "estimate", "worst");
	assert_listed(json_array_get(json_object_get(line, "sections"), 0), "section", "");
	json_decref(line);
}

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

static void the_line_says_what_the_estimate_says(void **state)
{
	struct run *run = *state;
	struct estimate *e = &run->estimate;
	json_t *line, *section;

	add(run, 1000000)->result.tears[TEAR_OLD_FRONT] = 2;
	make(run);
	e->verdict = VERDICT_FAIL;
	strcpy(e->reason, "for a test");
	line = estimate_to_json(e);
	assert_string_equal(json_string_value(json_object_get(line, "verdict")), "fail");
	assert_string_equal(json_string_value(json_object_get(line, "reason")), "for a test");
	assert_true(number(line, "first_wait") == FIRST);
	assert_true(number(line, "second_wait") == SECOND);
	assert_true(number(line, "toggles") == 1000000);
	assert_true(number(line, "tears") == 2);
	assert_true(number(line, "upper_p") == e->upper_p);
	assert_true(number(line, "confidence") == CONFIDENCE);
	assert_true(number(line, "torn_first") == FIRST);
	assert_true(json_is_null(json_object_get(line, "torn_second")));
	assert_string_equal(json_string_value(json_object_get(line, "worst")), "record 1");
	section = json_array_get(json_object_get(line, "sections"), 0);
	assert_true(number(section, "upper_p") == e->section[0].upper_p);
	assert_true(number(section, "torn_first") == FIRST);
	assert_true(json_is_null(json_object_get(section, "torn_second")));
	json_decref(line);
}

static void without_tears_there_is_no_worst_cell(void **state)
{
	struct run *run = *state;
	json_t *line;

	add(run, 1000);
	make(run);
	run->estimate.verdict = VERDICT_PASS;
	run->estimate.reason[0] = '\0';
	line = estimate_to_json(&run->estimate);
	assert_non_null(line);
	assert_null(json_object_get(line, "worst"));
	json_decref(line);
}

#define ON_RUN(test) cmocka_unit_test_setup_teardown(test, new_run, end_run)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RUN(nothing_measured_is_nothing_known),
		ON_RUN(only_the_campaign_at_the_final_waits_counts),
		ON_RUN(a_cell_that_did_not_end_proves_nothing),
		ON_RUN(a_section_seen_only_in_the_bracket_is_unproved),
		ON_RUN(tears_blame_the_wait_of_their_kind),
		ON_RUN(tears_of_no_known_kind_blame_both),
		ON_RUN(both_kinds_in_one_cell),
		ON_RUN(other_protocols_say_nothing_of_waits),
		ON_RUN(a_wait_of_nothing_can_tear),
		ON_RUN(sections_keep_to_themselves),
		ON_RUN(the_machine_is_as_bad_as_its_worst_section),
		ON_RUN(every_section_has_room),
		ON_RUN(the_window_ends_at_the_first_crossing_that_tears),
		ON_RUN(a_crossing_that_was_not_tried_ends_the_window),
		ON_RUN(a_word_that_tears_is_told),
		ON_RUN(only_a_naive_store_shows_that_fetches_tear),
		ON_RUN(the_margin_is_the_smaller_one),
		ON_RUN(the_worst_cell_has_the_highest_wait_then_the_highest_rate),
		cmocka_unit_test(verdicts_have_names),
		ON_RUN(the_schema_lists_what_is_written),
		ON_RUN(the_line_says_what_the_estimate_says),
		ON_RUN(without_tears_there_is_no_worst_cell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
