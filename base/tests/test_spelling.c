/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/spelling.h"

#define WORDS "calibrate verify fleet cold-back cold-front "

static void errors_are_counted(void **state)
{
	(void)state;
	assert_int_equal(count_errors("abc", 3, "abc", false), 0);
	assert_int_equal(count_errors("abc", 3, "xabcx", false), 2);
	assert_int_equal(count_errors("abc", 3, "xabcx", true), 0);
	assert_int_equal(count_errors("abc", 3, "xacx", true), 1);
	assert_int_equal(count_errors("", 0, "abc", false), 3);
	assert_int_equal(count_errors("abc", 3, "", false), 3);
	assert_int_equal(count_errors("abc", 3, "", true), 3);
}

static void expect_suggestion(const char *name, bool all, const char *expected)
{
	char text[256];

	suggest_names(text, sizeof(text), name, WORDS, all);
	assert_string_equal(text, expected);
}

static void names_are_suggested(void **state)
{
	(void)state;
	expect_suggestion("calibrat", false, "; did you mean 'calibrate'?");
	expect_suggestion("verfiy", false, "; did you mean 'verify'?");
	expect_suggestion("flet", true, "; did you mean 'fleet'?");
	expect_suggestion("cold", true, "; did you mean 'cold-back' or 'cold-front'?");
	expect_suggestion("moon", false, "");
	expect_suggestion("moon", true, "; there are calibrate, verify, fleet, cold-back, cold-front");
	expect_suggestion("", true, "; there are calibrate, verify, fleet, cold-back, cold-front");
	expect_suggestion("", false, "");
}

/* A name may be longer than any that is compared, and a list longer than the room for it. */
static void long_names_do_no_harm(void **state)
{
	char name[1000], text[20];

	(void)state;
	memset(name, 'v', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	suggest_names(text, sizeof(text), name, WORDS, true);
	assert_string_equal(text, "; there are calibra");
}

static int is_short(const char *name)
{
	return strlen(name) < 5 ? 0 : -1;
}

static void known_words_are_listed_once(void **state)
{
	char words[WORD_LIST_ROOM];

	(void)state;
	words_known("text, json or junit; (text) none", is_short, words);
	assert_string_equal(words, "text json or none ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_are_counted),
		cmocka_unit_test(names_are_suggested),
		cmocka_unit_test(long_names_do_no_harm),
		cmocka_unit_test(known_words_are_listed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
