/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "results/tests/journal_place.h"

static void test_garbage_is_skipped(void **state)
{
	static const char *const bad[] = {
		"\n",
		"{",
		"}",
		"nonsense",
		"1",
		"\"cell\"",
		"null",
		"[]",
		"{}",
		"{} {}",
		"{\"type\":\"cell\"}",
		"{\"schema\":2}",
		"{\"type\":1,\"schema\":2}",
		"{\"type\":\"estimate\",\"schema\":0}",
		"{\"type\":\"estimate\",\"schema\":1}",
		"{\"type\":\"estimate\",\"schema\":-1}",
		"{\"type\":\"estimate\",\"schema\":2.0}",
		"{\"type\":\"estimate\",\"schema\":\"2\"}",
		"{\"type\":\"estimate\",\"schema\":true}",
		"{\"type\":\"cell\",\"schema\":2}",
		"{\"type\":\"run\",\"schema\":2}",
		"{\"type\":\"run\",\"schema\":2,\"identity\":{}}",
		"{\"type\":\"\\u0000\",\"schema\":2}",
		"{\"type\":\"\xff\",\"schema\":2}",
		"{\"type\":\"dream\",\"schema\":2}",
		"{\"type\":\"estimate\",\"schema\":99999999999999999999}",
		"{\"type\":\"estimate\",\"schema\":2,\"x\":1e999}",
		"{\"type\":\"estimate\",\"type\":\"estimate\",\"schema\":2}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_skipped(bad[i]);
	expect_text("{\"type\":\"estimate\",\"schema\":2}", 30, 0, 0);
}

static void test_skipped_lines_spoil_no_others(void **state)
{
	char *line = sample_line(), *text = NULL;
	struct journal_data data;

	(void)state;
	assert_true(asprintf(&text, "%s\nnonsense\n%s\n{\n%s", line, line, line) > 0);
	data = read_text(text, strlen(text));
	assert_int_equal(data.count, 3);
	assert_int_equal(data.skipped, 2);
	assert_int_equal(data.first_bad, 2);
	assert_int_equal(data.newer, 0);
	assert_false(data.have_identity);
	journal_free(&data);
	free(text);
	free(line);
}

static void test_newer_schema_is_told_apart(void **state)
{
	static const char text[] = "{\"type\":\"cell\",\"schema\":3}\n"
				   "{\"type\":\"dream\",\"schema\":4}\n"
				   "{\"type\":\"dream\",\"schema\":2}\n";
	struct journal_data data = read_text(text, strlen(text));

	(void)state;
	assert_int_equal(data.skipped, 3);
	assert_int_equal(data.first_bad, 1);
	assert_int_equal(data.newer, 2);
	journal_free(&data);
}

static void test_newer_record_is_not_read_as_ours(void **state)
{
	struct cell_record record = sample_record(0);
	json_t *json = record_to_json(&record);
	char *text;

	(void)state;
	json_object_set_new(json, "schema", json_integer(JOURNAL_SCHEMA + 1));
	text = json_dumps(json, 0);
	expect_skipped(text);
	free(text);
	json_decref(json);
}

/* What any line of ours has. */
static void test_member_is_missed(void **state)
{
	struct cell_record record = sample_record(3);
	json_t *json = record_to_json(&record);
	char *text;

	(void)state;
	json_object_del(json_object_get(json, "cell"), "provokers");
	text = json_dumps(json, 0);
	expect_skipped(text);
	free(text);
	json_decref(json);
}

static void test_nul_bytes(void **state)
{
	char *line = sample_line();
	size_t size = strlen(line);
	char *text = malloc(size + 2);

	(void)state;
	memcpy(text, line, size + 1);
	text[size + 1] = '\n';
	expect_text(text, size + 2, 0, 1); /* behind the object */
	text[size] = '\n';
	expect_text(text, size + 1, 1, 0);
	*strstr(text, "bracket") = '\0';
	expect_text(text, size + 1, 0, 1); /* inside a string */
	free(text);
	free(line);
}

static void test_deep_nesting(void **state)
{
	enum {
		DEPTH = 500000
	};
	char *text = malloc(DEPTH);

	(void)state;
	memset(text, '[', DEPTH);
	expect_text(text, DEPTH, 0, 1);
	for (int i = 0; i + 5 <= DEPTH; i += 5)
		memcpy(text + i, "{\"a\":", 5);
	expect_text(text, DEPTH, 0, 1);
	free(text);
}

/* A record whose line, newline included, has this many bytes: blanks follow the object. */
static char *padded_line(size_t size)
{
	char *line = sample_line(), *text = malloc(size + 1);

	assert_non_null(text);
	memset(text, ' ', size);
	memcpy(text, line, strlen(line));
	strcpy(text + size - 1, "\n");
	free(line);
	return text;
}

static void test_line_length(void **state)
{
	char *text = padded_line(JOURNAL_LINE_MAX);

	(void)state;
	expect_text(text, JOURNAL_LINE_MAX, 1, 0);
	free(text);
	text = padded_line(JOURNAL_LINE_MAX + 1);
	expect_text(text, JOURNAL_LINE_MAX + 1, 0, 1);
	free(text);
}

static void test_line_after_a_long_one(void **state)
{
	size_t size = 3 * (size_t)JOURNAL_LINE_MAX;
	char *line = sample_line(), *text = malloc(size + strlen(line) + 2);

	(void)state;
	memset(text, 'x', size);
	sprintf(text + size, "\n%s", line);
	expect_text(text, strlen(text), 1, 1);
	free(text);
	free(line);
}

static void test_empty_journal(void **state)
{
	const struct place *place = *state;
	struct journal_data data = must_read(place->path);

	assert_int_equal(data.count, 0);
	assert_int_equal(data.skipped, 0);
	assert_int_equal(data.first_bad, 0);
	journal_free(&data);
}

/* --- Machines ------------------------------------------------------------------- */

static void expect_mixed(const struct place *place, const struct identity *other, int mixed)
{
	struct identity id = sample_identity();
	struct journal *journal = must_open(place->path);
	struct journal_data data;

	must_write_run(journal, &id);
	must_write_run(journal, other);
	must_write_cell(journal, 0);
	data = must_read(place->path);
	assert_int_equal(data.mixed, mixed);
	assert_string_equal(data.identity.microcode, other->microcode);
	assert_string_equal(data.identity.kernel, other->kernel);
	assert_int_equal(data.count, 1);
	journal_free(&data);
	journal_close(journal);
}

static void test_mixed_machines(void **state)
{
	struct identity other = sample_identity();

	strcpy(other.microcode, "0x2b000604");
	expect_mixed(*state, &other, 1);
}

static void test_mixed_machines_stay_mixed(void **state)
{
	struct identity bare = sample_identity(), id = sample_identity();
	const struct place *place = *state;
	struct journal *journal = must_open(place->path);

	strcpy(bare.hypervisor, "none");
	must_write_run(journal, &id);
	must_write_run(journal, &bare);
	journal_close(journal);
	expect_mixed(place, &id, 1);
}

static void test_new_kernel_is_no_new_machine(void **state)
{
	struct identity other = sample_identity();

	strcpy(other.kernel, "6.12.0");
	expect_mixed(*state, &other, 0);
}

/* A machine of which a field is missing is not known. */
static void test_identity_must_be_whole(void **state)
{
	const struct place *place = *state;
	struct identity id = sample_identity();
	struct journal *journal = must_open(place->path);
	char text[4096] = "", *at;

	must_write_run(journal, &id);
	journal_close(journal);
	assert_true(pread(place->fd, text, sizeof(text) - 1, 0) > 0);
	expect_text(text, strlen(text), 0, 0);
	at = strstr(text, "\"hypervisor\"");
	assert_non_null(at);
	at[1] = 'H';
	expect_skipped(text);
	at[1] = 'h';
	at = strstr(text, "\"cpus\":\"2\"");
	assert_non_null(at);
	at[8] = 'x';
	expect_skipped(text);
}

static void test_date(void **state)
{
	char date[DATE_ROOM];
	int year, month, day, hour, minute, second, end = 0;

	(void)state;
	date_text(time(NULL), false, date);
	sscanf(date, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour, &minute, &second,
	       &end);
	assert_int_equal(end, 20);
	assert_int_equal(date[end], '\0');
	assert_string_equal(date_text(0, true, date), "1970-01-01");
	assert_string_equal(date_text(INT64_MAX, true, date), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_garbage_is_skipped),
		cmocka_unit_test(test_skipped_lines_spoil_no_others),
		cmocka_unit_test(test_newer_schema_is_told_apart),
		cmocka_unit_test(test_newer_record_is_not_read_as_ours),
		cmocka_unit_test(test_member_is_missed),
		cmocka_unit_test(test_nul_bytes),
		cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test(test_line_length),
		cmocka_unit_test(test_line_after_a_long_one),
		IN_MEMORY(test_empty_journal),
		IN_MEMORY(test_mixed_machines),
		IN_MEMORY(test_mixed_machines_stay_mixed),
		IN_MEMORY(test_new_kernel_is_no_new_machine),
		IN_MEMORY(test_identity_must_be_whole),
		cmocka_unit_test(test_date),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
