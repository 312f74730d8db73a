/* SPDX-License-Identifier: MIT */
/* What a machine.conf says: what must be there, and which values are good. */
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

static void expect_all_needed(const struct conf_lines *all)
{
	for (size_t i = 0; i < all->count; i++) {
		struct conf_lines lines = *all;
		char name[64];

		name_line(&lines.line[i], name);
		conf_drop(&lines, i);
		expect_lines_refused(&lines, name);
		expect_lines_refused(&lines, "missing");
	}
}

static void test_missing(void **state)
{
	(void)state;
	expect_all_needed(&sample_lines);
	expect_refused("", "");
}

/* Also with the same value, and also in a second stretch of the section. */
static void expect_all_once(const struct conf_lines *all)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct conf_line *line = &all->line[i];
		struct conf_lines lines = *all;
		char name[64];

		name_line(line, name);
		conf_add(&lines, line->section, line->name, line->value);
		expect_lines_refused(&lines, name);
		expect_lines_refused(&lines, "twice");
	}
}

static void test_twice(void **state)
{
	(void)state;
	expect_all_once(&sample_lines);
}

static void test_sections_matter(void **state)
{
	struct conf_lines lines = sample_lines;
	char text[CONF_TEXT], bare[CONF_TEXT];
	size_t n = 0;

	(void)state;
	snprintf(conf_line(&lines, "level 1", "first")->section, sizeof(lines.line[0].section),
		 "window");
	expect_lines_refused(&lines, "[level 1] first is missing");

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

static void expect_refused_values(const struct value *bad, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct conf_lines lines = sample_lines;

		conf_set(&lines, bad[i].section, bad[i].name, bad[i].value);
		expect_lines_refused(&lines, bad[i].name);
		expect_lines_refused(&lines, "has no valid value");
	}
}

/* Each piece of junk as the value of each key. */
static void expect_refused_junk(struct value *keys, size_t count, const char *const *junk)
{
	for (; *junk; junk++) {
		for (size_t i = 0; i < count; i++)
			keys[i].value = *junk;
		expect_refused_values(keys, count);
	}
}

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
		NULL,
	};
	struct value keys[] = {
		{ "tmax", "schema", NULL },	      { "scope", "runs", NULL },
		{ "scope", "measured", NULL },	      { "wait", "levels", NULL },
		{ "wait", "membarrier_ticks", NULL }, { "level 1", "first", NULL },
		{ "level 2", "second", NULL },	      { "level 2", "stretch", NULL },
		{ "level 2", "ticks", NULL },	      { "level 1", "line_toggles", NULL },
		{ "level 1", "line_tears", NULL },    { "level 2", "page_toggles", NULL },
		{ "level 2", "page_tears", NULL },    { "window", "bytes", NULL },
	};

	(void)state;
	expect_refused_junk(keys, LENGTH(keys), junk);
}

static void test_junk_probabilities(void **state)
{
	static const char *const junk[] = {
		"",	  "0",	      "-0",   "0.0",	"-0.75",  "nan",    "NAN",	 "-nan",
		"inf",	  "INFINITY", "-inf", "0x1p-1", "0.75e",  "0.75x",  "0.75 1",	 "0,75",
		".",	  "e",	      "e-1",  "--0.75", "1e999",  "1e-400", "1.0000001", "0.75.1",
		"0.75e-", "7.5e-1e",  "2",    "1e1",	"nan(1)", NULL,
	};
	struct value keys[] = {
		{ "level 1", "line_p", NULL },
		{ "level 2", "page_p", NULL },
		{ "wait", "confidence", NULL },
		{ "window", "upper_p", NULL },
	};

	(void)state;
	expect_refused_junk(keys, LENGTH(keys), junk);
}

static void test_out_of_range(void **state)
{
	static const struct value bad[] = {
		{ "tmax", "schema", "1" },
		{ "tmax", "schema", "3" },
		{ "tmax", "schema", "5" },
		{ "tmax", "verdict", "" },
		{ "tmax", "verdict", "passed" },
		{ "tmax", "verdict", "PASS" },
		{ "tmax", "verdict", "untold" },
		{ "scope", "evidence", "" },
		{ "scope", "evidence", "longrun" },
		{ "scope", "evidence", "long-run this-run" },
		{ "scope", "runs", "0" },
		{ "scope", "measured", "1099511627777" },
		{ "wait", "usable", "" },
		{ "wait", "usable", "true" },
		{ "wait", "usable", "YES" },
		{ "wait", "usable", "1" },
		{ "wait", "usable", "yes no" },
		{ "wait", "levels", "33" },
		{ "wait", "membarrier_ticks", "1099511627777" },
		{ "level 1", "stretch", "65" },
		{ "level 2", "first", "1000000001" },
		{ "level 2", "second", "1000000001" },
		{ "level 2", "ticks", "1099511627777" },
		{ "wait", "confidence", "0.5" },
		{ "wait", "confidence", "1" },
		{ "wait", "confidence", "0.05" },
		{ "wait", "confidence", "0.89999" },
		{ "window", "confidence", "0.5" },
		{ "window", "bytes", "0" },
		{ "window", "bytes", "1" },
		{ "window", "bytes", "4" },
		{ "window", "bytes", "7" },
		{ "window", "bytes", "12" },
		{ "window", "bytes", "48" },
		{ "window", "bytes", "65" },
		{ "window", "bytes", "128" },
	};

	(void)state;
	expect_refused_values(bad, LENGTH(bad));
}

static void test_hostile_identity(void **state)
{
	static const struct value bad[] = {
		{ "identity", "vendor", "" },
		{ "identity", "vendor", "SeventeenLetters!" },
		{ "identity", "family", "-1" },
		{ "identity", "family", "4294967296" },
		{ "identity", "model", "0x11" },
		{ "identity", "features", "12" },
		{ "identity", "features", "0xzzzzzzzzzzzzzzzz" },
		{ "identity", "tsc_invariant", "perhaps" },
		{ "identity", "tsc_khz", "99999999999999999999" },
		{ "identity", "cpus", "2x" },
		{ "identity", "brand", "two  blanks" },
	};

	(void)state;
	expect_refused_values(bad, LENGTH(bad));
}

/* The last value that is still good, on each side. */
static void test_limits(void **state)
{
	static const struct value good[] = {
		{ "wait", "usable", "no" },
		{ "wait", "confidence", "0.9" },
		{ "wait", "confidence", "0.99999" },
		{ "wait", "membarrier_ticks", "0" },
		{ "wait", "membarrier_ticks", "1099511627776" },
		{ "scope", "evidence", "this-run" },
		{ "scope", "runs", "1" },
		{ "scope", "runs", "18446744073709551615" },
		{ "scope", "measured", "0" },
		{ "scope", "measured", "1099511627776" },
		{ "level 1", "first", "0" },
		{ "level 1", "second", "0" },
		{ "level 2", "first", "1000000000" },
		{ "level 2", "second", "1000000000" },
		{ "level 2", "stretch", "0" },
		{ "level 2", "stretch", "64" },
		{ "level 2", "ticks", "0" },
		{ "level 2", "ticks", "1099511627776" },
		{ "level 1", "line_p", "1" },
		{ "level 2", "page_p", "1" },
		{ "window", "bytes", "8" },
		{ "window", "bytes", "64" },
		{ "window", "confidence", "0.9" },
		{ "window", "upper_p", "1.0" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(good); i++) {
		struct conf_lines lines = sample_lines;

		conf_set(&lines, good[i].section, good[i].name, good[i].value);
		expect_taken(&lines);
	}
}

/* The config that made policy auto wait for no time at all. */
static void test_hostile(void **state)
{
	static const struct value values[] = {
		{ "level 1", "page_toggles", "1" }, { "wait", "confidence", "0.500001" },
		{ "level 1", "page_tears", "0" },   { "level 1", "page_p", "1e-300" },
		{ "level 1", "first", "0" },	    { "level 1", "second", "0" },
		{ "level 1", "stretch", "0" },	    { "window", "bytes", "64" },
		{ "window", "upper_p", "1e-300" },  { "tmax", "verdict", "fail" },
	};
	struct conf_lines lines = sample_lines;

	(void)state;
	for (size_t i = 0; i < LENGTH(values); i++)
		conf_set(&lines, values[i].section, values[i].name, values[i].value);
	expect_lines_refused(&lines, "[wait] confidence");
	conf_set(&lines, "wait", "confidence", "0.9");
	expect_lines_refused(&lines, "verdict");
	conf_set(&lines, "tmax", "verdict", "pass");
	conf_set(&lines, "window", "toggles", "1");
	expect_lines_refused(&lines, "[window] upper_p");
	conf_set(&lines, "window", "upper_p", "0.95");
	expect_lines_refused(&lines, "does not wait");
	conf_set(&lines, "level 1", "stretch", "1");
	expect_lines_refused(&lines, "[level 1] page_p");
	conf_set(&lines, "level 1", "page_p", "0.9");
	conf_set(&lines, "window", "upper_p", "0.95");
	expect_taken(&lines);
}

static void test_cpus(void **state)
{
	static const char *const bad[] = { "",	  "x",	  "-1",	   "0-",     "3-1",   "0,",
					   ",0",  "0,,1", "0 - 1", "0, 1",   "+1",    "0-1-2",
					   "all", "8192", "99999", "100000", "0-8192" };
	static const char *const good[] = { "0", "1-2", "0,2", "2,0", "0-1,1-2", "007", "8191" };
	struct conf_lines lines = sample_lines;
	struct machine_conf conf;

	(void)state;
	conf_set(&lines, "identity", "cpus", "3");
	for (size_t i = 0; i < LENGTH(bad); i++) {
		conf_set(&lines, "scope", "cpus", bad[i]);
		expect_lines_refused(&lines, "[scope] cpus has no valid value");
	}
	for (size_t i = 0; i < LENGTH(good); i++) {
		conf_set(&lines, "scope", "cpus", good[i]);
		assert_int_equal(parse_lines(&lines, &conf), 0);
		assert_true(cpus_count(&conf.cpus) >= 1 && cpus_count(&conf.cpus) <= 3);
	}
	conf_set(&lines, "scope", "cpus", "0-3");
	expect_lines_refused(&lines, "[scope] cpus names more CPUs than [identity] has");
	/* Where the machine could not be counted, nothing is contradicted. */
	conf_set(&lines, "identity", "cpus", "0");
	expect_taken(&lines);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	     cmocka_unit_test(test_missing),
		cmocka_unit_test(test_twice),	     cmocka_unit_test(test_sections_matter),
		cmocka_unit_test(test_junk_numbers), cmocka_unit_test(test_junk_probabilities),
		cmocka_unit_test(test_out_of_range), cmocka_unit_test(test_hostile_identity),
		cmocka_unit_test(test_limits),	     cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_cpus),
	};

	return cmocka_run_group_tests(tests, make_sample, NULL);
}
