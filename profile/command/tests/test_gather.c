/* SPDX-License-Identifier: MIT */
/*
 * What a process reports becomes a profile: callers of which the beginnings of calls were lost, or
 * the ends, and times that are more than the program had.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/launch/launch.h"
#include "profile/command/command.h"
#include "profile/estimate/estimate.h"

#define OBJECT "/none"
#define CPU    3.0

static FILE *report;
static char *text;
static size_t length;

/* In place of the files that processes leave: the report of one. */
int launch_reports(const char *folder, int (*read)(char *line, void *arg), void *arg)
{
	char *rest = text, *line;
	int ret = 0;

	(void)folder;
	while (!ret && *rest) {
		line = strsep(&rest, "\n");
		ret = read(line, arg);
	}
	return ret ? ret : read(NULL, arg);
}

static void begin(void)
{
	const struct quality quality = { .seconds = 3, .epochs = 1, .exits = 1, .cpu = CPU };

	report = open_memstream(&text, &length);
	assert_non_null(report);
	fprintf(report, "Q");
	for (int i = 0; i < QUALITY_NUMBERS; i++)
		fprintf(report, "\t%g", ((const double *)&quality)[i]);
	fprintf(report, "\n");
}

static void put_numbers(char tag, const char *name, const void *numbers, int n)
{
	const double *number = numbers;

	fprintf(report, "%c\t%s\t" OBJECT, tag, name);
	for (int i = 0; i < n; i++)
		fprintf(report, "\t%a", number[i]);
	fputc('\n', report);
}

/* All calls were counted, and of one each was timed. */
static void put_function(const char *name, double calls, double seconds)
{
	struct measured measured = {
		.calls = { .calls = calls, .counted = calls },
		.time = { .calls = 1, .time = seconds, .wall = seconds, .epochs = 1, .timed = 1 },
	};

	put_numbers('F', name, &measured, MEASURED_NUMBERS);
}

/* The caller is not known, but that it is one. */
static void put_caller(const char *name, double calls, double timed, double seconds)
{
	fprintf(report, "C\t%s\t" OBJECT "\t" OBJECT "\t10\t%g\t%g\t%g\n", name, calls, timed,
		seconds);
}

/* Seconds seen at an address of an object that has no symbols, in two groups of bursts; no object:
 * not known where.
 */
static void put_burst_address(const char *object, double one, double two)
{
	fprintf(report, "S\t%s\t10\t%g\t%g\t0\t0\t0\t0\t0\t0\t0\t0\n", object, one, two);
}

static void end(struct profile *profile)
{
	assert_int_equal(fclose(report), 0);
	assert_int_equal(gather(profile, ""), 0);
	free(text);
}

static const struct arc *arc_to(const struct profile *profile, const char *name)
{
	const struct arc *found = NULL;

	for (size_t i = 0; i < profile->arcs; i++) {
		const struct arc *arc = &profile->arc[i];

		if (strcmp(profile->function[arc->to].name, name) != 0)
			continue;
		assert_null(found);
		found = arc;
	}
	assert_non_null(found);
	return found;
}

/* The table of callers was full when one of the two was to be noted. */
static void test_callers_by_one_end(void **state)
{
	struct profile profile = { 0 };

	(void)state;
	begin();
	put_function("begun", 1, 1);
	put_caller("begun", 1, 0, 0);
	put_function("ended", 4, 0.25);
	put_caller("ended", 0, 1, 0.25);
	end(&profile);
	for (size_t i = 0; i < 2; i++) {
		const struct arc *arc = arc_to(&profile, i ? "ended" : "begun");

		assert_true(arc->from != NO_CALLER);
		assert_true(arc->calls == (i ? 4 : 1));
		assert_true(arc->seconds == 1 && arc->total == 1);
	}
	profile_free(&profile);
}

static void test_no_more_than_there_was(void **state)
{
	struct profile profile = { 0 };

	(void)state;
	begin();
	put_function("much", 100, 1);
	end(&profile);
	assert_true(profile.function[0].times.self.value == CPU);
	assert_true(profile.function[0].times.self.high == CPU);
	assert_true(arc_to(&profile, "much")->seconds == CPU);
	profile_free(&profile);
}

static const struct times *times_of(const struct profile *profile, const char *name)
{
	for (size_t f = 0; f < profile->functions; f++)
		if (!strcmp(profile->function[f].name, name))
			return &profile->function[f].times;
	fail();
	return NULL;
}

/* A function without exits has the time that bursts saw, of which some was nowhere. */
static void test_bursts_see_the_rest(void **state)
{
	struct profile profile = { 0 };
	const struct times *seen;

	(void)state;
	begin();
	put_burst_address(OBJECT, 1, 1);
	put_burst_address("", 0.5, 0.5);
	end(&profile);
	seen = times_of(&profile, "(unknown)");
	assert_float_equal(seen->self.value, 2, 1e-9);
	assert_float_equal(seen->total.value, 2, 1e-9);
	assert_non_null(seen->self.problem);
	profile_free(&profile);
}

/* What was timed from end to end is known better than by two looks that differ. */
static void test_the_better_way(void **state)
{
	struct profile profile = { 0 };

	(void)state;
	begin();
	put_function("all", 1, 2);
	put_function("much", 100, 1);
	put_burst_address(OBJECT, 2, 0);
	put_burst_address("", 0, 1);
	end(&profile);
	assert_true(times_of(&profile, "all")->self.value == 2);
	assert_null(times_of(&profile, "all")->self.problem);
	assert_float_equal(times_of(&profile, "(unknown)")->self.value, 2, 1e-9);
	/* No burst has seen it. */
	assert_true(times_of(&profile, "much")->self.value == 0);
	profile_free(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callers_by_one_end),
		cmocka_unit_test(test_no_more_than_there_was),
		cmocka_unit_test(test_bursts_see_the_rest),
		cmocka_unit_test(test_the_better_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
