/* SPDX-License-Identifier: MIT */
/* What calibrate prints at its end never takes more lines than one screen has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/verify/conf_write.h"
#include "results/tests/sample.h"

static struct estimate e;
static struct plan plan;
static struct identity identity;

/* All that a summary can have a line for: tears become fewer by ten with each rung. */
static void make(double membarrier_ticks)
{
	e = (struct estimate){
		.verdict = VERDICT_PASS,
		.reason = "waits of 800 x4 keep tears below 1e-4 per toggle",
		.require_p = 1e-4,
		.membarrier_ticks = membarrier_ticks,
		.paper = { .known = true, .found = true, .wait = 1600 },
		.window = { .bytes = 64, .toggles = 100000, .upper_p = 3e-5 },
		.runs = 3,
	};
	ladder_make(&e.ladder, 102400);
	e.levels = e.ladder.stretched;
	for (unsigned i = 0; i < e.ladder.count; i++) {
		struct level *level = &e.level[i];

		level->rung = e.ladder.rung[i];
		level->ticks = 2600 * (i + 1);
		level->upper_p = pow(10, -(double)i);
		for (int c = 0; c < CLAIMS; c++) {
			struct claim *claim = &level->claim[c];

			claim->upper_p = level->upper_p;
			claim->count = (struct count){ .slices = 10, .toggles = 1000000 };
			claim->sections = 1;
			claim->section[0].count = claim->count;
			claim->section[0].upper_p = claim->upper_p;
		}
	}
	plan = *plan_find("default");
	plan.unseateds++;
	plan.untested[plan.untesteds++] =
		(struct untested){ false, PLACEMENT_SAME_CORE, "one thread for each core" };
	identity = sample_identity();
	identity.tsc_khz = 2600000;
}

static char *printed(void (*print)(FILE *, const struct estimate *, const struct provenance *))
{
	struct provenance from = { .identity = &identity, .plan = &plan };
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	print(out, &e, &from);
	fclose(out);
	return text;
}

static unsigned lines(const char *text)
{
	unsigned count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("nothing of '%s' in:\n%s", part, text);
}

static void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' in:\n%s", part, text);
}

static void a_summary_has_a_dozen_lines(void **state)
{
	char *text;

	(void)state;
	make(40000);
	text = printed(summary_print);
	assert_true(lines(text) <= SUMMARY_LINES);
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		assert_true(strcspn(line, "\n") < 130);
	assert_has(text, "Machine: ");
	assert_has(text, "Verdict: pass: waits of 800 x4 keep");
	assert_has(text, "\n  below 1e-9 ");
	assert_has_not(text, "\n  below 1e-5 ");
	assert_has(text, "How sure: 95 % for the time that was measured, no more");
	assert_has(text, "Sites inside 64 bytes: one store");
	assert_has(text, "1 placement is not covered");
	assert_has_not(text, "bytes inside a line");
	free(text);
	e.window.torn = 32;
	e.window.stored.toggles = 1000;
	text = printed(summary_print);
	assert_has(text,
		   "Across 32 bytes inside a line stores tear on such processors (0 of 1000 did)");
	free(text);
	e.window.stored.tears = 2;
	text = printed(summary_print);
	assert_has(text, "Across 32 bytes inside a line stores tear here (2 of 1000 did)");
	free(text);
}

/* By default only what is proved down to 1e-9 is waited by, and only if it is cheaper. */
static void it_says_what_the_library_does(void **state)
{
	char *text;

	(void)state;
	make(40000);
	text = printed(summary_print);
	assert_has(text, "Policy auto waits 25600 x4");
	free(text);
	make(20000);
	text = printed(summary_print);
	assert_has(text,
		   "Policy auto uses membarrier (7.7 us a change); after pc_set_accept_p(1e-4)"
		   " it waits 800 x4 (5.00 us).");
	free(text);
	e.verdict = VERDICT_FAIL;
	text = printed(summary_print);
	assert_has(text, "Policy auto uses membarrier (7.7 us a change): no wait is good enough.");
	free(text);
}

static void it_says_how_far_its_bounds_reach(void **state)
{
	char *text;

	(void)state;
	make(40000);
	e.runs = 1;
	text = printed(summary_print);
	assert_has(text,
		   "95 % for the time that was measured, no more: the long run takes 30 runs.");
	free(text);
	e.runs = 31;
	e.long_run = true;
	text = printed(summary_print);
	assert_has(text, "95 % for the long run, from 31 runs.");
	free(text);
}

/* A factor that is not known is no number. */
static void a_factor_is_told_if_it_is_known(void **state)
{
	char *text;

	(void)state;
	make(40000);
	e.factor[CLAIM_LINE] = 60;
	e.factor_wait[CLAIM_LINE] = 400;
	text = printed(summary_details);
	assert_has(text, "across a line: at most 60 times as many tears per toggle as gaps per "
			 "store, at 400 ticks\n");
	assert_has(text, "across a page: how many tears a gap stands for is unknown");
	assert_has_not(text, " 0 times as many");
	free(text);
}

/* A run that has counted nothing, without a membarrier. */
static void nothing_is_told_too(void **state)
{
	char *text;

	(void)state;
	make(0);
	e.paper = (struct paper_wait){ 0 };
	e.verdict = VERDICT_INCONCLUSIVE;
	for (unsigned i = 0; i < e.ladder.count; i++) {
		e.level[i].upper_p = 1;
		for (int c = 0; c < CLAIMS; c++)
			e.level[i].claim[c] = (struct claim){ .upper_p = 1 };
	}
	text = printed(summary_print);
	assert_has(text, "No wait keeps tears below 0.1 per toggle, as far as was seen.");
	assert_has_not(text, "nan");
	assert_has_not(text, "inf ");
	free(text);
	free(printed(summary_details));
}

static void details_tell_each_rung(void **state)
{
	char *text;

	(void)state;
	make(40000);
	plan.untested[plan.untesteds++] =
		(struct untested){ true, PROVOKER_SIBLING, "no core has two threads" };
	text = printed(summary_details);
	for (unsigned i = 0; i < e.ladder.count; i++) {
		char line[WAITS_TEXT + 4];

		snprintf(line, sizeof(line), "\n  %s ", WAITS(&e.level[i].rung));
		assert_has(text, line);
	}
	assert_has(text, "same-core      not tested: one thread for each core");
	assert_has(text, "sibling        not provoked: no core has two threads");
	free(text);
}

/* One state alone says nothing of the other; both are told where there are both. */
static void near_and_far_are_told(void **state)
{
	char *text;

	(void)state;
	make(40000);
	text = printed(summary_details);
	assert_has(text, "How far apart the CPUs were is not known.");
	free(text);
	e.slices_at[DISTANCE_NEAR] = 75;
	e.slices = 80;
	text = printed(summary_print);
	assert_has_not(text, "never far apart");
	free(text);
	text = printed(summary_details);
	assert_has(text, "in 0 % of 75 slices; of 5 it is not known.");
	free(text);
	e.slices = 75;
	text = printed(summary_print);
	assert_has(text, " Its CPUs were never far apart.\n");
	free(text);
	text = printed(summary_details);
	assert_has(text, "says nothing of a time when they are far apart.");
	free(text);
	e.slices_at[DISTANCE_FAR] = 25;
	e.slices = 100;
	e.level[2].at_p[DISTANCE_NEAR] = 77e-9;
	e.level[2].at_p[DISTANCE_FAR] = 3e-3;
	text = printed(summary_print);
	assert_has_not(text, "far apart");
	free(text);
	text = printed(summary_details);
	assert_has(text, "in 25 % of 100 slices.");
	assert_has(text, "       7.7e-8        0.003\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_summary_has_a_dozen_lines),
		cmocka_unit_test(it_says_what_the_library_does),
		cmocka_unit_test(it_says_how_far_its_bounds_reach),
		cmocka_unit_test(a_factor_is_told_if_it_is_known),
		cmocka_unit_test(nothing_is_told_too),
		cmocka_unit_test(details_tell_each_rung),
		cmocka_unit_test(near_and_far_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
