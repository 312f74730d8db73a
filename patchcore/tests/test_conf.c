/* SPDX-License-Identifier: MIT */
/*
 * What a machine.conf says: what must be there, and which values are good.
 */
#define _GNU_SOURCE /* memfd_create() */
#include "patchcore/tests/conf_check.h"

/* --- What must be there --------------------------------------------------------- */

static void test_good(void **state)
{
	char text[CONF_TEXT];

	(void)state;
	sample_text(text);
	expect_sample(text);
}

static void name_line(const struct conf_line *line, char name[64])
{
	snprintf(name, 64, "[%s] %s", line->section, line->name);
}

static void test_missing(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_lines.count; i++) {
		struct conf_lines lines = sample_lines;
		char name[64];

		name_line(&lines.line[i], name);
		conf_drop(&lines, i);
		expect_lines_refused(&lines, name);
		expect_lines_refused(&lines, "missing");
	}
	expect_refused("", "");
}

/* Also with the same value, and also in a second stretch of the section. */
static void test_twice(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_lines.count; i++) {
		const struct conf_line *line = &sample_lines.line[i];
		struct conf_lines lines = sample_lines;
		char name[64];

		name_line(line, name);
		conf_add(&lines, line->section, line->name, line->value);
		expect_lines_refused(&lines, name);
		expect_lines_refused(&lines, "twice");
	}
}

static void test_sections_matter(void **state)
{
	struct conf_lines lines = sample_lines;
	char text[CONF_TEXT], bare[CONF_TEXT];
	size_t n = 0;

	(void)state;
	snprintf(conf_line(&lines, "wait", "first")->section, sizeof(lines.line[0].section),
		 "window");
	expect_lines_refused(&lines, "[wait] first is missing");

	sample_text(text);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (line[0] != '[')
			n += (size_t)snprintf(bare + n, sizeof(bare) - n, "%s\n", line);
	expect_refused(bare, "missing");
}

/* --- Values --------------------------------------------------------------------- */

struct value {
	const char *section;
	const char *name;
	const char *value;
};

static void test_junk_numbers(void **state)
{
	static const char *const junk[] = {
		"",
		"-1",
		"-0",
		"+1",
		"nan",
		"inf",
		"0x10",
		"1e3",
		"1.0",
		"10 0",
		"10a",
		"a10",
		"1,000",
		"ten",
		"1_0",
		"'1'",
		"\"1\"",
		"8 8",
		"0x",
		"1\t1",
		"0b1000",
		"18446744073709551616",
		"-18446744073709551608",
		"184467440737095516160000000000000000000008",
	};
	static const struct value keys[] = {
		{ "tmax", "schema", "" },  { "wait", "first", "" },   { "wait", "second", "" },
		{ "wait", "toggles", "" }, { "window", "bytes", "" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(keys) * LENGTH(junk); i++) {
		const struct value *key = &keys[i / LENGTH(junk)];
		struct conf_lines lines = sample_lines;

		conf_set(&lines, key->section, key->name, junk[i % LENGTH(junk)]);
		expect_lines_refused(&lines, "has no valid value");
	}
}

static void test_junk_probabilities(void **state)
{
	static const char *const junk[] = {
		"",	  "0",	      "-0",   "0.0",	"-0.75",  "nan",    "NAN",	 "-nan",
		"inf",	  "INFINITY", "-inf", "0x1p-1", "0.75e",  "0.75x",  "0.75 1",	 "0,75",
		".",	  "e",	      "e-1",  "--0.75", "1e999",  "1e-400", "1.0000001", "0.75.1",
		"0.75e-", "7.5e-1e",  "2",    "1e1",	"nan(1)",
	};
	static const struct value keys[] = {
		{ "wait", "upper_p", "" },
		{ "wait", "confidence", "" },
		{ "window", "upper_p", "" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(keys) * LENGTH(junk); i++) {
		const struct value *key = &keys[i / LENGTH(junk)];
		struct conf_lines lines = sample_lines;

		conf_set(&lines, key->section, key->name, junk[i % LENGTH(junk)]);
		expect_lines_refused(&lines, "has no valid value");
	}
}

static void test_out_of_range(void **state)
{
	static const struct value bad[] = {
		{ "tmax", "schema", "1" },	   { "tmax", "schema", "3" },
		{ "wait", "stretch", "65" },	   { "wait", "usable", "" },
		{ "wait", "usable", "true" },	   { "wait", "usable", "YES" },
		{ "wait", "usable", "1" },	   { "wait", "usable", "yes no" },
		{ "wait", "first", "1000000001" }, { "wait", "second", "1000000001" },
		{ "wait", "confidence", "0.5" },   { "wait", "confidence", "1" },
		{ "wait", "confidence", "0.05" },  { "window", "bytes", "0" },
		{ "window", "bytes", "1" },	   { "window", "bytes", "4" },
		{ "window", "bytes", "7" },	   { "window", "bytes", "12" },
		{ "window", "bytes", "48" },	   { "window", "bytes", "65" },
		{ "window", "bytes", "128" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(bad); i++) {
		struct conf_lines lines = sample_lines;

		conf_set(&lines, bad[i].section, bad[i].name, bad[i].value);
		expect_lines_refused(&lines, bad[i].name);
		expect_lines_refused(&lines, "has no valid value");
	}
}

static void test_hostile_identity(void **state)
{
	static const struct value bad[] = {
		{ "", "vendor", "" },
		{ "", "vendor", "SeventeenLetters!" },
		{ "", "family", "-1" },
		{ "", "family", "4294967296" },
		{ "", "model", "0x11" },
		{ "", "features", "12" },
		{ "", "features", "0xzzzzzzzzzzzzzzzz" },
		{ "", "tsc_invariant", "perhaps" },
		{ "", "tsc_khz", "99999999999999999999" },
		{ "", "cpus", "2x" },
		{ "", "brand", "two  blanks" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(bad); i++) {
		struct conf_lines lines = sample_lines;

		conf_set(&lines, "identity", bad[i].name, bad[i].value);
		expect_lines_refused(&lines, bad[i].name);
		expect_lines_refused(&lines, "has no valid value");
	}
}

/* The last value that is still good, on each side. */
static void test_limits(void **state)
{
	static const struct value good[] = {
		{ "wait", "usable", "no" },	     { "wait", "first", "0" },
		{ "wait", "first", "1000000000" },   { "wait", "second", "0" },
		{ "wait", "second", "1000000000" },  { "wait", "toggles", "1" },
		{ "wait", "stretch", "0" },	     { "wait", "stretch", "64" },
		{ "wait", "upper_p", "1" },	     { "wait", "upper_p", "1e-300" },
		{ "wait", "confidence", "0.50001" }, { "wait", "confidence", "0.99999" },
		{ "window", "bytes", "8" },	     { "window", "bytes", "64" },
		{ "window", "upper_p", "1.0" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(good); i++) {
		struct conf_lines lines = sample_lines;
		struct machine_conf conf;
		char text[CONF_TEXT], why[160];
		size_t size;

		conf_set(&lines, good[i].section, good[i].name, good[i].value);
		size = conf_text(&lines, text);
		assert_int_equal(parse(text, size, &conf, why), 0);
	}
}

/* A config that is not usable may come from a run that toggled nothing; a usable one may not. */
static void test_toggles_behind(void **state)
{
	struct conf_lines lines = sample_lines;
	struct machine_conf conf;
	char text[CONF_TEXT], why[160];

	(void)state;
	conf_set(&lines, "wait", "toggles", "0");
	expect_lines_refused(&lines, "no toggles are behind it");
	conf_set(&lines, "wait", "usable", "no");
	assert_int_equal(parse(text, conf_text(&lines, text), &conf, why), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	     cmocka_unit_test(test_missing),
		cmocka_unit_test(test_twice),	     cmocka_unit_test(test_sections_matter),
		cmocka_unit_test(test_junk_numbers), cmocka_unit_test(test_junk_probabilities),
		cmocka_unit_test(test_out_of_range), cmocka_unit_test(test_hostile_identity),
		cmocka_unit_test(test_limits),	     cmocka_unit_test(test_toggles_behind),
	};

	return cmocka_run_group_tests(tests, make_sample, NULL);
}
