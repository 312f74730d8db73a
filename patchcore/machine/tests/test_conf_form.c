/* SPDX-License-Identifier: MIT */
/* How a machine.conf is written: spellings, long lines, cut ones, and other locales. */
#define _GNU_SOURCE /* memfd_create() */
#include <locale.h>

#include "patchcore/machine/machine_conf.h"
#include "patchcore/tests/conf_check.h"

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
	conf_add(&lines, "level 1", "first", "1");
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
	conf_drop(&lines, (size_t)(conf_line(&lines, "level 1", "first") - lines.line));
	conf_text(&lines, text);
	n = (size_t)snprintf(other, sizeof(other), "%s[level 1]\n", text);
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
	expect_long_refused("level 1", "first");
	expect_long_refused("wait", "levels");
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
