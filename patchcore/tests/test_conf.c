/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static struct machine_conf sample;
static struct conf_lines sample_lines;

static int make_sample(void **state)
{
	(void)state;
	sample = conf_here();
	sample.toggles = UINT64_MAX;
	sample.window = 32;
	sample.window_p = 3.25e-12;
	sample_lines = conf_lines(&sample);
	return 0;
}

static int parse(const char *text, size_t size, struct machine_conf *conf, char why[160])
{
	return machine_conf_parse(conf, text, size, why, 160);
}

static void expect_refused(const char *text, const char *about)
{
	struct machine_conf conf;
	char why[160];

	if (parse(text, strlen(text), &conf, why) != -EINVAL)
		fail_msg("accepted: %s", text);
	if (!strstr(why, about) || strchr(why, '\n'))
		fail_msg("'%s' is not about '%s'", why, about);
}

static void expect_lines_refused(const struct conf_lines *lines, const char *about)
{
	char text[CONF_TEXT];

	conf_text(lines, text);
	expect_refused(text, about);
}

static void expect_sample(const char *text)
{
	struct machine_conf conf;
	char why[160];

	if (parse(text, strlen(text), &conf, why) != 0)
		fail_msg("'%s' about: %s", why, text);
	assert_string_equal(why, "");
	assert_true(conf_same(&conf, &sample));
}

static void sample_text(char text[CONF_TEXT])
{
	conf_text(&sample_lines, text);
}

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

/* --- Form ----------------------------------------------------------------------- */

static void test_extras_are_ignored(void **state)
{
	struct conf_lines lines = { .count = 0 };
	char text[CONF_TEXT];

	(void)state;
	conf_add(&lines, "placement a", "first", "3");
	conf_add(&lines, "placement a", "first", "nonsense");
	conf_add(&lines, "placement a", "usable", "perhaps");
	for (size_t i = 0; i < sample_lines.count; i++) {
		const struct conf_line *line = &sample_lines.line[i];

		conf_add(&lines, line->section, line->name, line->value);
	}
	conf_add(&lines, "window", "seen", "-1");
	conf_add(&lines, "window", "seen", "-2");
	conf_add(&lines, "gaps", "upper_p", "2");
	conf_text(&lines, text);
	expect_sample(text);
}

static void test_newer_schema(void **state)
{
	struct conf_lines lines = sample_lines;
	char newer[16];

	(void)state;
	snprintf(newer, sizeof(newer), "%d", MACHINE_CONF_SCHEMA + 1);
	conf_set(&lines, "tmax", "schema", newer);
	expect_lines_refused(&lines, "schema");
}

/* The text with every line's end, or its beginning, replaced. */
static void respell(const char *text, const char *before, const char *end, char *to)
{
	for (; *text; text++) {
		if (*text == '\n')
			to = stpcpy(stpcpy(to, end), before);
		else
			*to++ = *text;
	}
	*to = '\0';
}

static void test_spellings(void **state)
{
	char text[CONF_TEXT], other[2 * CONF_TEXT];

	(void)state;
	sample_text(text);
	respell(text, "", "\r\n", other);
	expect_sample(other);
	respell(text, "", " ; a comment\n", other);
	expect_sample(other);
	respell(text, "", " \t\n\n; = comment\n# [comment]\n", other);
	expect_sample(other);
	snprintf(other, sizeof(other), "\xef\xbb\xbf%s", text);
	expect_sample(other);
	snprintf(other, sizeof(other), "\xff\xfe%s", text);
	expect_refused(other, "line 1");
	/* A line that begins with a blank goes on with the value before it. */
	respell(text, " ", "\n", other);
	expect_refused(other, "");
}

static void test_no_ini(void **state)
{
	char text[CONF_TEXT], other[2 * CONF_TEXT];

	(void)state;
	sample_text(text);
	snprintf(other, sizeof(other), "%sno line of INI\n", text);
	expect_refused(other, "is no INI line");
	snprintf(other, sizeof(other), "%s[wait\n", text);
	expect_refused(other, "is no INI line");
	expect_refused("no line of INI\n", "line 1 is no INI line");
	expect_refused("\n\n\n", "missing");
	expect_refused("=\n=\n", "missing");
	expect_refused("[]\n=1\n", "missing");
}

static void test_nul(void **state)
{
	struct machine_conf conf;
	char text[CONF_TEXT], why[160];
	size_t size;

	(void)state;
	size = conf_text(&sample_lines, text);
	assert_int_equal(parse(text, size + 1, &conf, why), -EINVAL);
	assert_non_null(strstr(why, "NUL"));
	for (size_t i = 0; i < size; i++) {
		char kept = text[i];

		text[i] = '\0';
		assert_int_equal(parse(text, size, &conf, why), -EINVAL);
		text[i] = kept;
	}
}

/* A short place for the complaint still gets an answer. */
static void test_short_why(void **state)
{
	struct conf_lines lines = sample_lines;
	struct machine_conf conf;
	char text[CONF_TEXT], why[2] = "?";
	size_t size;

	(void)state;
	conf_add(&lines, "wait", "first", "1");
	size = conf_text(&lines, text);
	assert_int_equal(machine_conf_parse(&conf, text, size, why, 1), -EINVAL);
	assert_string_equal(why, "");
}

/* --- Long lines ------------------------------------------------------------------- */

/* What a line begins with, something long, and what it ends with. */
static void long_line(char *to, const char *begin, char filler, size_t fillers, const char *end)
{
	to = stpcpy(to, begin);
	memset(to, filler, fillers);
	stpcpy(stpcpy(to + fillers, end), "\n");
}

/* Of no use to the library, so of any length. */
static void test_long_unknown_lines(void **state)
{
	char text[CONF_TEXT], other[CONF_TEXT + 1024];

	(void)state;
	sample_text(text);
	for (size_t length = 1; length < 600; length++) {
		size_t n = (size_t)snprintf(other, sizeof(other), "%s", text);

		long_line(other + n, "; ", 'x', length, "");
		expect_sample(other);
		long_line(other + n, "journal = /", 'x', length, "");
		expect_sample(other);
	}
}

/* The end of a comment or of a value is no key, wherever a buffer may end. */
static void test_long_lines_hide_nothing(void **state)
{
	struct conf_lines lines = sample_lines;
	char text[CONF_TEXT], other[CONF_TEXT + 1024];
	size_t n;

	(void)state;
	conf_drop(&lines, (size_t)(conf_line(&lines, "wait", "first") - lines.line));
	conf_text(&lines, text);
	n = (size_t)snprintf(other, sizeof(other), "%s[wait]\n", text);
	for (size_t length = 1; length < 600; length++) {
		long_line(other + n, "; ", 'x', length, "first = 7");
		expect_refused(other, "first is missing");
		long_line(other + n, "journal = /", 'x', length, "first = 7");
		expect_refused(other, "first is missing");
	}
}

static void expect_long_refused(const char *section, const char *name)
{
	struct conf_lines lines = sample_lines;
	char text[CONF_TEXT], other[CONF_TEXT + 1024], begin[64];
	size_t n;

	conf_drop(&lines, (size_t)(conf_line(&lines, section, name) - lines.line));
	conf_text(&lines, text);
	n = (size_t)snprintf(other, sizeof(other), "%s[%s]\n", text, section);
	snprintf(begin, sizeof(begin), "%s = 7", name);
	for (size_t length = 1; length < 600; length++) {
		long_line(other + n, begin, ' ', length, "x = 1");
		expect_refused(other, name);
		long_line(other + n, begin, '0', length + 9, "");
		expect_refused(other, name);
	}
}

/* A needed value is not cut short. */
static void test_long_known_lines(void **state)
{
	(void)state;
	expect_long_refused("wait", "first");
	expect_long_refused("identity", "cpus");
}

/* --- Cut short -------------------------------------------------------------------- */

/* Every key stands last once: what is cut must not pass for another number. */
static void test_truncated(void **state)
{
	char text[CONF_TEXT], cut[CONF_TEXT];

	(void)state;
	for (size_t last = 0; last < sample_lines.count; last++) {
		struct conf_line line = sample_lines.line[last];
		struct conf_lines lines = sample_lines;
		struct machine_conf conf;
		char why[160];
		size_t size;

		conf_drop(&lines, last);
		conf_add(&lines, line.section, line.name, line.value);
		size = conf_text(&lines, text);
		for (size_t n = 0; n < size; n++) {
			memcpy(cut, text, n);
			cut[n] = '\0';
			if (parse(cut, n, &conf, why) == 0 && !conf_same(&conf, &sample))
				fail_msg("half a %s was read: ...%s", line.name,
					 cut + (n > 20 ? n - 20 : 0));
		}
	}
}

/* --- Where commas are points ------------------------------------------------------ */

static bool make_locale(const char *folder)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
	return setenv("LOCPATH", folder, 1) == 0 && system(command) == 0;
}

static bool use_commas(const char *folder)
{
	static const char *const names[] = { "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR",
					     "ru_RU.UTF-8" };

	for (size_t i = 0; i < LENGTH(names); i++)
		if (setlocale(LC_NUMERIC, names[i]))
			return true;
	return make_locale(folder) && setlocale(LC_NUMERIC, "de_DE.UTF-8");
}

static void remove_locale(const char *folder)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	if (system(command) != 0)
		print_message("%s is left behind\n", folder);
}

static void test_other_locale(void **state)
{
	char folder[] = "/tmp/test_conf.XXXXXX", text[CONF_TEXT];
	struct machine_conf conf;
	char why[160];
	bool commas;
	int ret;

	(void)state;
	sample_text(text);
	assert_non_null(mkdtemp(folder));
	commas = use_commas(folder) && strtod("1,5", NULL) == 1.5;
	ret = parse(text, strlen(text), &conf, why);
	setlocale(LC_NUMERIC, "C");
	remove_locale(folder);
	if (!commas) {
		print_message("skipped: no locale with a decimal comma\n");
		skip();
	}
	assert_int_equal(ret, 0);
	assert_true(conf_same(&conf, &sample));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_sections_matter),
		cmocka_unit_test(test_junk_numbers),
		cmocka_unit_test(test_junk_probabilities),
		cmocka_unit_test(test_out_of_range),
		cmocka_unit_test(test_hostile_identity),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_toggles_behind),
		cmocka_unit_test(test_extras_are_ignored),
		cmocka_unit_test(test_newer_schema),
		cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_no_ini),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_short_why),
		cmocka_unit_test(test_long_unknown_lines),
		cmocka_unit_test(test_long_lines_hide_nothing),
		cmocka_unit_test(test_long_known_lines),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_other_locale),
	};

	return cmocka_run_group_tests(tests, make_sample, NULL);
}
