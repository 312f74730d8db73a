/* SPDX-License-Identifier: MIT */
/* What verify prints, for each kind of reader: people, JUnit, JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "base/exit_status.h"
#include "base/text.h"
#include "calibrate/tests/verify_sample.h"
#include "calibrate/verify/verify.h"
#include "stress/placement/placement.h"

/* --- reports --- */

static char *printed(enum verify_format format)
{
	static char *text; /* gcc takes a local one for dangling once inlined */
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	verify_print(f, &v, format);
	fclose(f);
	return text;
}

/* One cell of every status, and a path that is hard on every format. */
static void judge_all_kinds(void)
{
	begin();
	text_printable(v.config, sizeof(v.config), "/a<b>&\"c' # d\n\xff");
	v.seed = 99;
	put(CHECK_WAIT, 1000000, 50);
	put(CHECK_WAIT, 1000, 0)->quiet.toggles = 0;
	put(CHECK_WAIT, 0, 0)->skipped = true;
	strcpy(v.cell[5].reason, "no <socket> & \"such\"");
	verify_judge(&v);
	assert_int_equal(v.verdict, VERIFY_BROKEN);
}

static unsigned times(const char *text, const char *what)
{
	const char *at = strstr(text, what);
	unsigned count = 0;

	for (; at; at = strstr(at + 1, what))
		count++;
	return count;
}

static void test_printable(void **state)
{
	char to[8];

	(void)state;
	text_printable(to, sizeof(to), "a\x01\n\x7f+");
	assert_string_equal(to, "a???+");
	text_printable(to, sizeof(to), "\xc3\xa4\xe2\x82\xac");
	assert_string_equal(to, "\xc3\xa4\xe2\x82\xac");
	text_printable(to, sizeof(to),
		       "a\xc2\x9b"
		       "1m\xc2\xa7");
	assert_string_equal(to, "a??1m\xc2\xa7");
	text_printable(to, sizeof(to), "a\xc3(");
	assert_string_equal(to, "a?(");
	text_printable(to, sizeof(to), "abcdef\xc3\xa4");
	assert_string_equal(to, "abcdef?");
}

static void test_print_json(void **state)
{
	char *text;
	json_t *json, *cell;

	(void)state;
	judge_all_kinds();
	text = printed(VERIFY_JSON);
	json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	assert_string_equal(json_string_value(json_object_get(json, "verdict")), "broken");
	assert_int_equal(json_integer_value(json_object_get(json, "exit")), EXIT_TEARS);
	assert_string_equal(json_string_value(json_object_get(json, "config")), v.config);
	assert_int_equal(json_array_size(json_object_get(json, "cells")), v.cells);
	cell = json_array_get(json_object_get(json, "cells"), 3);
	assert_int_equal(json_integer_value(json_object_get(cell, "tears")), 50);
	assert_non_null(
		strstr(json_string_value(json_object_get(cell, "command")), "tmax stress "));
	json_decref(json);
	free(text);
}

static void test_print_junit(void **state)
{
	char *text;

	(void)state;
	judge_all_kinds();
	text = printed(VERIFY_JUNIT);
	assert_non_null(strstr(text, "tests=\"8\" failures=\"2\" errors=\"0\" skipped=\"2\""));
	assert_int_equal(times(text, "<testcase "), 8);
	assert_int_equal(times(text, "<failure "), 2);
	assert_int_equal(times(text, "<skipped "), 2);
	assert_non_null(strstr(text, "\"/a&lt;b&gt;&amp;&quot;c&#39; # d??\""));
	assert_non_null(strstr(text, "\"no &lt;socket&gt; &amp; &quot;such&quot;\""));
	free(text);
}

static void test_print_text(void **state)
{
	char *text;

	(void)state;
	judge_all_kinds();
	text = printed(VERIFY_TEXT);
	assert_non_null(strstr(text, "\nbroken    wait "));
	assert_non_null(strstr(text, "\nno answer wait "));
	assert_non_null(strstr(text, "\nskipped   wait "));
	assert_int_equal(times(text, "tmax stress "), 1);
	assert_non_null(strstr(text, "\nVerdict:  broken: "));
	assert_non_null(strstr(text, "\nNext:     let no program wait by it: remove it"));
	/* Of what held inside the window one line; of what did not, its own. */
	assert_int_equal(times(text, "\nheld      window"), 1);
	assert_non_null(strstr(text, "window of 8 bytes: no tear in 1000 stores, at 1 places"));
	free(text);
	v.cell[2].tears[TEAR_OTHER] = 1;
	verify_judge(&v);
	text = printed(VERIFY_TEXT);
	assert_int_equal(times(text, "\nbroken    window "), 1);
	assert_null(strstr(text, "window of 8 bytes: no tear"));
	free(text);
}

/* By which level each kind of sites is changed, as times; of one at rest after how long. */
static void test_print_levels(void **state)
{
	char *text;

	(void)state;
	judge_all_kinds();
	v.accept_p = 1e-5;
	v.conf.identity.tsc_khz = 2000000;
	v.conf.level[0].waits = (struct waits){ 800, 800, 4 };
	v.conf.rested = 1;
	v.conf.level[1] = v.conf.level[0];
	v.conf.level[0].line.upper_p = 1e-4;
	v.conf.level[1].rest = 20000;
	text = printed(VERIFY_TEXT);
	assert_non_null(strstr(text,
			       "\nWaits:    across a line two waits of 400 ns, or 4 times the "
			       "store's own latency: below 1e-6, if unchanged for 10 us before"
			       "\n          across a page two waits of 400 ns, or 4 times the "
			       "store's own latency: below 1e-6\n"));
	assert_null(strstr(text, "ticks"));
	free(text);
	/* What is tried where no level is good enough. */
	v.conf.rested = 0;
	text = printed(VERIFY_TEXT);
	assert_non_null(strstr(text, ": below 1e-4; more than is accepted\n"));
	free(text);
}

/* Inconclusive is neither passed nor failed; no config is a failure. */
static void test_print_verdicts(void **state)
{
	char *text;

	(void)state;
	begin();
	verify_judge(&v);
	text = printed(VERIFY_JUNIT);
	assert_non_null(strstr(text, "failures=\"0\" errors=\"0\" skipped=\"1\""));
	free(text);
	v = (struct verify){ .config = "" };
	verify_conclude(&v, VERIFY_NO_CONF, "none: %d", 7);
	assert_int_equal(v.status, EXIT_NO_CONF);
	text = printed(VERIFY_JUNIT);
	assert_non_null(strstr(text, "tests=\"2\" failures=\"2\" errors=\"0\" skipped=\"0\""));
	assert_int_equal(times(text, "<failure "), 2);
	assert_non_null(strstr(text, "none: 7"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_printable),    cmocka_unit_test(test_print_json),
		cmocka_unit_test(test_print_junit),  cmocka_unit_test(test_print_text),
		cmocka_unit_test(test_print_levels), cmocka_unit_test(test_print_verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
