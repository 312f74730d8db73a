/* SPDX-License-Identifier: MIT */
/* A "bench" line holds all of a result, reads back as it was, and nothing else reads as one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "bench/record/bench_record.h"
#include "bench/tests/sample_bench.h"
#include "results/journal/journal.h"

static struct bench_result result;

static int start(void **state)
{
	(void)state;
	result = sample_bench();
	return 0;
}

static int stop(void **state)
{
	(void)state;
	bench_result_free(&result);
	return 0;
}

/* As journal_write_line() makes it of the body. */
static json_t *line_of(const struct bench_result *r)
{
	json_t *line = json_pack("{s:s, s:i, s:s}", "type", "bench", "schema", JOURNAL_SCHEMA,
				 "date", r->date);
	json_t *body = bench_to_json(r);

	assert_non_null(body);
	json_object_update_missing(line, body);
	json_decref(body);
	return line;
}

/* Through text, as a journal does. */
static json_t *retold(json_t *line)
{
	char *text = json_dumps(line, JSON_COMPACT);
	json_t *again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(again);
	free(text);
	json_decref(line);
	return again;
}

static struct bench_result back_of(json_t *line)
{
	struct bench_result back;

	assert_int_equal(bench_from_json(line, &back), 0);
	json_decref(line);
	return back;
}

/* --- Round trip ----------------------------------------------------------------------------- */

static void same_real(double a, double b)
{
	assert_true(a == b || (isnan(a) && isnan(b)));
}

static void same_value(const struct bench_value *a, const struct bench_value *b)
{
	same_real(a->median, b->median);
	same_real(a->low, b->low);
	same_real(a->high, b->high);
}

static void same_lists(const struct bench_row *a, const struct bench_row *b)
{
	assert_int_equal(a->params, b->params);
	for (unsigned i = 0; i < a->params; i++) {
		assert_string_equal(a->param[i].key, b->param[i].key);
		assert_string_equal(a->param[i].text, b->param[i].text);
		same_real(a->param[i].number, b->param[i].number);
	}
	assert_int_equal(a->extras, b->extras);
	for (unsigned i = 0; i < a->extras; i++) {
		assert_string_equal(a->extra[i].key, b->extra[i].key);
		same_real(a->extra[i].number, b->extra[i].number);
	}
}

static void same_row(const struct bench_row *a, const struct bench_row *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->measure, b->measure);
	assert_string_equal(a->unit, b->unit);
	assert_int_equal(a->peer, b->peer);
	assert_true(a->samples == b->samples && a->pairs == b->pairs);
	assert_true(a->outliers == b->outliers);
	same_value(&a->value, &b->value);
	same_value(&a->base, &b->base);
	same_value(&a->ratio, &b->ratio);
	same_real(a->least, b->least);
	same_real(a->p5, b->p5);
	same_real(a->p25, b->p25);
	same_real(a->p75, b->p75);
	same_real(a->p95, b->p95);
	same_real(a->p99, b->p99);
	same_real(a->most, b->most);
	assert_string_equal(a->against, b->against);
	assert_string_equal(a->why, b->why);
	same_lists(a, b);
}

static void same_result(const struct bench_result *a, const struct bench_result *b)
{
	assert_string_equal(a->benchmark, b->benchmark);
	assert_string_equal(a->date, b->date);
	assert_true(a->seed == b->seed);
	assert_int_equal(a->rounds, b->rounds);
	same_real(a->seconds, b->seconds);
	assert_int_equal(a->seating.placement, b->seating.placement);
	assert_int_equal(a->seating.patcher, b->seating.patcher);
	assert_int_equal(a->seating.executors, b->seating.executors);
	assert_memory_equal(a->seating.executor, b->seating.executor,
			    a->seating.executors * sizeof(a->seating.executor[0]));
	assert_true(a->waits.first == b->waits.first && a->waits.second == b->waits.second);
	assert_true(a->waits.stretch == b->waits.stretch);
	assert_string_equal(a->waits_from, b->waits_from);
	same_value(&a->distance, &b->distance);
	assert_memory_equal(&a->witness, &b->witness, sizeof(a->witness));
	assert_int_equal(a->rows, b->rows);
	for (unsigned i = 0; i < a->rows; i++)
		same_row(&a->row[i], &b->row[i]);
}

static void everything_comes_back(void **state)
{
	struct bench_result back = back_of(retold(line_of(&result)));

	(void)state;
	same_result(&result, &back);
	bench_result_free(&back);
}

static void what_is_not_known_stays_so(void **state)
{
	struct bench_result back;

	(void)state;
	result.distance = (struct bench_value){ NAN, NAN, NAN };
	result.witness.involuntary = WITNESS_UNKNOWN;
	result.witness.load = -1;
	result.seating.executors = 0;
	result.waits.first = result.waits.second = result.waits.stretch = 0;
	strcpy(result.waits_from, "none");
	back = back_of(retold(line_of(&result)));
	same_result(&result, &back);
	bench_result_free(&back);
}

static void no_rows_is_a_result(void **state)
{
	struct bench_result back;

	(void)state;
	bench_result_free(&result);
	result = (struct bench_result){ .benchmark = "invoke", .date = "2026-01-31T23:59:59Z" };
	strcpy(result.waits_from, "assumed");
	result.distance = (struct bench_value){ NAN, NAN, NAN };
	back = back_of(retold(line_of(&result)));
	same_result(&result, &back);
}

/* A long list of executors still fits in a line. */
static void the_largest_comes_back(void **state)
{
	struct bench_row *row = &result.row[1];
	struct bench_result back;

	(void)state;
	result.seating.executors = PLACEMENT_EXECUTORS_MAX;
	for (unsigned i = 0; i < PLACEMENT_EXECUTORS_MAX; i++)
		result.seating.executor[i] = i + 1;
	while (row->params < BENCH_PARAMS) {
		char key[BENCH_KEY];

		snprintf(key, sizeof(key), "a-key-of-22-characters%u", row->params);
		bench_row_param_text(row, key,
				     "60 characters: 0123456789012345678901234567890123"
				     "456789012345");
	}
	back = back_of(retold(line_of(&result)));
	same_result(&result, &back);
	bench_result_free(&back);
}

static void params_and_extras_that_are_no_number_are_left_out(void **state)
{
	struct bench_result back;

	(void)state;
	result.row[0].param[1].number = NAN;
	result.row[0].extra[0].number = NAN;
	back = back_of(retold(line_of(&result)));
	assert_int_equal(back.row[0].params, 2);
	assert_true(isnan(bench_row_number(&back.row[0], "executors")));
	assert_true(bench_row_number(&back.row[0], "rate") == 0.1);
	assert_int_equal(back.row[0].extras, 1);
	assert_true(bench_row_extra_of(&back.row[0], "over_empty") == -0.25);
	bench_result_free(&back);
}

static void a_skipped_row_tells_why_and_no_figures(void **state)
{
	json_t *line = line_of(&result);
	const json_t *row = json_array_get(json_object_get(line, "rows"), 2);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(row, "skipped")),
			    "policy wait: microcode differs");
	assert_null(json_object_get(row, "samples"));
	assert_null(json_object_get(row, "ratio"));
	json_decref(line);
}

/* --- Through a journal ---------------------------------------------------------------------- */

static void a_journal_keeps_it(void **state)
{
	char path[] = "/tmp/test_bench_recordXXXXXX";
	struct journal_data data = { 0 };
	struct journal *journal;
	struct bench_result back;
	json_t *body = bench_to_json(&result);

	(void)state;
	close(mkstemp(path));
	assert_int_equal(journal_open(&journal, path), 0);
	assert_int_equal(journal_write_line(journal, "bench", body), 0);
	assert_int_equal(journal_write_line(journal, "bench", body), 0);
	journal_close(journal);
	json_decref(body);
	assert_int_equal(journal_read(path, &data), 0);
	unlink(path);
	assert_int_equal(data.skipped, 0);
	assert_int_equal(json_array_size(data.others), 2);
	assert_int_equal(bench_from_json(json_array_get(data.others, 1), &back), 0);
	/* The journal dates its lines itself. */
	assert_int_equal(strlen(back.date), strlen(result.date));
	strcpy(back.date, result.date);
	same_result(&result, &back);
	bench_result_free(&back);
	journal_free(&data);
}

/* --- Refused -------------------------------------------------------------------------------- */

static void not_written(void)
{
	assert_null(bench_to_json(&result));
	bench_result_free(&result);
	result = sample_bench();
}

static void what_could_not_be_read_is_not_written(void **state)
{
	(void)state;
	strcpy(result.benchmark, "other");
	not_written();
	strcpy(result.row[0].name, "c\033all");
	not_written();
	strcpy(result.row[0].measure, "");
	not_written();
	strcpy(result.row[0].unit, "\xff");
	not_written();
	strcpy(result.row[2].why, "two\nlines");
	not_written();
	strcpy(result.row[0].param[1].key, "split");
	not_written();
	strcpy(result.row[0].extra[1].key, "balance");
	not_written();
	strcpy(result.waits_from, "hope");
	not_written();
	result.seed = UINT64_MAX;
	not_written();
	result.seconds = NAN;
	not_written();
	result.seating.executors = PLACEMENT_EXECUTORS_MAX + 1;
	not_written();
	result.seating.placement = PLACEMENT_COUNT;
	not_written();
}

static void refuse(json_t *line)
{
	struct bench_result back;
	struct bench_result nothing = { 0 };

	assert_int_equal(bench_from_json(line, &back), -EINVAL);
	assert_memory_equal(&back, &nothing, sizeof(back));
	json_decref(line);
}

static void garbage_is_refused(void **state)
{
	(void)state;
	refuse(NULL);
	refuse(json_null());
	refuse(json_array());
	refuse(json_object());
	refuse(json_pack("{s:s, s:i}", "type", "bench", "schema", JOURNAL_SCHEMA));
	refuse(bench_to_json(&result));
}

/* A change of one member of an object: its name, and what it becomes. NULL: it is taken away. */
struct member_change {
	const char *name;
	const char *to;
};

static json_t *at_line(json_t *line)
{
	return line;
}

static json_t *at_row(json_t *line)
{
	return json_array_get(json_object_get(line, "rows"), 0);
}

static json_t *at_skipped(json_t *line)
{
	return json_array_get(json_object_get(line, "rows"), 2);
}

static void refuse_change(const struct member_change *c, json_t *(*at)(json_t *))
{
	json_t *line = line_of(&result);

	if (c->to)
		json_object_set_new(at(line), c->name, json_loads(c->to, JSON_DECODE_ANY, NULL));
	else
		json_object_del(at(line), c->name);
	refuse(line);
}

static void refuse_changes(const struct member_change *changes, json_t *(*at)(json_t *))
{
	for (; changes->name; changes++) {
		print_message("%s %s\n", changes->name, changes->to ? changes->to : "gone");
		refuse_change(changes, at);
	}
}

static void changed_lines_are_refused(void **state)
{
	static const struct member_change changes[] = {
		{ "type", "\"bank\"" },
		{ "type", "1" },
		{ "schema", "1" },
		{ "schema", "3" },
		{ "schema", "\"2\"" },
		{ "date", NULL },
		{ "date", "\"\\u001b\"" },
		{ "date", "\"a date that is longer than dates are\"" },
		{ "benchmark", NULL },
		{ "benchmark", "\"other\"" },
		{ "seed", "-1" },
		{ "seed", "1.5" },
		{ "seed", "\"one\"" },
		{ "rounds", "4294967296" },
		{ "rounds", NULL },
		{ "seconds", "-1" },
		{ "seconds", NULL },
		{ "seconds", "\"nan\"" },
		{ "placement", "\"moon\"" },
		{ "placement", NULL },
		{ "cpus", NULL },
		{ "cpus", "{\"patcher\":0}" },
		{ "cpus", "{\"patcher\":-1,\"executors\":[]}" },
		{ "witness", NULL },
		{ "witness", "{}" },
		{ "first_wait", "-1" },
		{ "second_wait", NULL },
		{ "stretch", "0.5" },
		{ "waits_from", NULL },
		{ "waits_from", "\"hope\"" },
		{ "distance", "310" },
		{ "distance", "{\"median\":\"far\"}" },
		{ "rows", NULL },
		{ "rows", "{}" },
		{ "rows", "[1]" },
		{ "rows", "[{}]" },
		{ NULL, NULL },
	};

	(void)state;
	refuse_changes(changes, at_line);
}

static void changed_rows_are_refused(void **state)
{
	static const struct member_change changes[] = {
		{ "name", NULL },
		{ "name", "\"\"" },
		{ "name", "\"c\\u007fall\"" },
		{ "name", "1" },
		{ "measure", "\"longer than any of the measures\"" },
		{ "unit", NULL },
		{ "peer", NULL },
		{ "peer", "1" },
		{ "params", NULL },
		{ "params", "[]" },
		{ "params", "{\"split\":\"\"}" },
		{ "params", "{\"split\":\"1\\n4\"}" },
		{ "params", "{\"split\":null}" },
		{ "params", "{\"\":1}" },
		{ "params", "{\"a key that is much too long\":1}" },
		{ "params", "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,"
			    "\"i\":1}" },
		{ "samples", NULL },
		{ "samples", "0" },
		{ "samples", "-1" },
		{ "samples", "1.0" },
		{ "pairs", "-1" },
		{ "outliers", NULL },
		{ "value", "[1]" },
		{ "value", "{\"low\":true}" },
		{ "base", "1" },
		{ "ratio", "\"inf\"" },
		{ "p5", "null" },
		{ "most", "\"infinite\"" },
		{ "against", "\"\"" },
		{ "against", "1" },
		{ "extras", NULL },
		{ "extras", "{\"balance\":\"nan\"}" },
		{ "extras", "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1}" },
		{ "skipped", "1" },
		{ "skipped", "\"\"" },
		{ NULL, NULL },
	};

	(void)state;
	refuse_changes(changes, at_row);
}

static void changed_skipped_rows_are_refused(void **state)
{
	static const struct member_change changes[] = {
		{ "skipped", NULL }, { "skipped", "null" }, { "skipped", "\"\\t\"" },
		{ "name", NULL },    { "params", NULL },    { NULL, NULL },
	};

	(void)state;
	refuse_changes(changes, at_skipped);
}

/* --- Mutations ------------------------------------------------------------------------------ */

#define MUTANTS 20000

/* What is read, however strange, can be written and reads back the same. */
static void check_mutant(const char *text, size_t length, unsigned *taken)
{
	json_t *line = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	struct bench_result one, two;

	if (!line || bench_from_json(line, &one) != 0) {
		json_decref(line);
		return;
	}
	json_decref(line);
	two = back_of(retold(line_of(&one)));
	same_result(&one, &two);
	bench_result_free(&one);
	bench_result_free(&two);
	++*taken;
}

static void mutate(char *text, size_t *length, uint64_t *state)
{
	static const char bytes[] = "0123456789-.eE\"[]{},:ntu\\ a|\x1b\xff";
	size_t at = random_next(state) % *length, some = 1 + random_next(state) % 8;

	if (random_next(state) % 4) {
		text[at] = bytes[random_next(state) % (sizeof(bytes) - 1)];
		return;
	}
	some = some < *length - at ? some : *length - at;
	memmove(text + at, text + at + some, *length - at - some);
	*length -= some;
}

static void mutants_do_no_harm(void **state)
{
	json_t *line = line_of(&result);
	char *good = json_dumps(line, JSON_COMPACT), *text = strdup(good);
	size_t length = strlen(good);
	uint64_t random = 1;
	unsigned taken = 0;

	(void)state;
	for (unsigned i = 0; i < MUTANTS; i++) {
		size_t left = length;

		memcpy(text, good, length);
		mutate(text, &left, &random);
		check_mutant(text, left, &taken);
	}
	/* Some only change a digit or a letter; most are broken. */
	assert_in_range(taken, MUTANTS / 100, MUTANTS * 3 / 4);
	free(text);
	free(good);
	json_decref(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_comes_back, start, stop),
		cmocka_unit_test_setup_teardown(what_is_not_known_stays_so, start, stop),
		cmocka_unit_test_setup_teardown(no_rows_is_a_result, start, stop),
		cmocka_unit_test_setup_teardown(the_largest_comes_back, start, stop),
		cmocka_unit_test_setup_teardown(params_and_extras_that_are_no_number_are_left_out,
						start, stop),
		cmocka_unit_test_setup_teardown(a_skipped_row_tells_why_and_no_figures, start,
						stop),
		cmocka_unit_test_setup_teardown(a_journal_keeps_it, start, stop),
		cmocka_unit_test_setup_teardown(what_could_not_be_read_is_not_written, start, stop),
		cmocka_unit_test_setup_teardown(garbage_is_refused, start, stop),
		cmocka_unit_test_setup_teardown(changed_lines_are_refused, start, stop),
		cmocka_unit_test_setup_teardown(changed_rows_are_refused, start, stop),
		cmocka_unit_test_setup_teardown(changed_skipped_rows_are_refused, start, stop),
		cmocka_unit_test_setup_teardown(mutants_do_no_harm, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
