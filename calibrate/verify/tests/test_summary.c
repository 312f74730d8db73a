/* SPDX-License-Identifier: MIT */
/* What calibrate prints at its end answers what a new user asks, in few lines. */
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
		.reason = "a wait keeps tears below 1e-4 per change, where 1e-4 is required",
		.require_p = 1e-4,
		.membarrier_ticks = membarrier_ticks,
		.paper = { .known = true, .found = true, .wait = 1600 },
		.window = { .bytes = 64,
			    .toggles = 100000,
			    .runs = 29,
			    .upper_p = 3e-5,
			    .ticks = 780 },
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
	plan.untested_placements++;
	plan.untested[plan.untesteds++] =
		(struct untested){ false, PLACEMENT_SAME_CORE, "one thread for each core" };
	identity = sample_identity();
	identity.tsc_khz = 2600000;
}

static struct provenance from = { .identity = &identity, .plan = &plan };

static char *printed(void (*print)(FILE *, const struct estimate *, const struct provenance *))
{
	static char *text; /* gcc takes a local one for dangling once inlined */
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

static void check_lines(const char *text)
{
	assert_true(lines(text) <= SUMMARY_LINES);
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		assert_true(strcspn(line, "\n") < 141);
	/* Ticks are for files and for --verbose. */
	assert_has_not(text, "ticks");
	assert_has_not(text, " x4");
}

/* Is my machine fine, what do I gain, how sure, what now: in this order. */
static void a_summary_answers_in_order(void **state)
{
	static const char *const order[] = { "Machine: ",
					     "\nVerdict: pass: ",
					     "\nTears: ",
					     "\nA change of code ",
					     "\n  inside 64 bytes ",
					     "\n  across a line ",
					     "\n  across a page ",
					     "\nSure: ",
					     "\nNoise: ",
					     "\nNext: " };
	const char *at;
	char *text;

	(void)state;
	make(40000);
	from.cells = 199;
	at = text = printed(summary_print);
	check_lines(text);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		assert_has(at, order[i]);
		at = strstr(at, order[i]);
	}
	assert_has(text, "1 placement is not covered");
	assert_has(text, "0 of 199 measurements; they count all the same.\n");
	free(text);
	from.noisy = 199;
	text = printed(summary_print);
	assert_has(text, "199 of 199 measurements; they count all the same. A quiet machine");
	free(text);
	from.cells = from.noisy = 0;
	text = printed(summary_print);
	assert_has_not(text, "Noise");
	free(text);
}

/* On a Zen 5 stores tear across 32 bytes. */
static void a_boundary_that_tears_has_its_line(void **state)
{
	char *text;

	(void)state;
	make(40000);
	text = printed(summary_print);
	assert_has_not(text, "single stores");
	free(text);
	e.window.bytes = e.window.torn = 32;
	e.window.stored.toggles = 1000;
	from.cells = 1;
	text = printed(summary_print);
	check_lines(text);
	assert_has(text, "\n  across 32 bytes    as across a line: single stores tear on such "
			 "processors (0 of 1000 did)");
	free(text);
	e.window.stored.tears = 2;
	text = printed(summary_print);
	assert_has(text, "single stores tear here (2 of 1000 did)");
	free(text);
	from.cells = 0;
}

/*
 * By default only what is proved down to 1e-9 is used, and only if it is cheaper; what else could
 * be had is offered with its price.
 */
static void it_says_what_a_change_costs(void **state)
{
	char *text;

	(void)state;
	make(40000);
	text = printed(summary_print);
	assert_has(text, "\n  inside 64 bytes      15.4 us   15.4 us   one store, maybe, after "
			 "runs like this one in 1 more hours\n");
	assert_has(text, "\n  across a page        15.4 us     10 us   5 us, fewer than 1 in "
			 "10000 tears; two waits of 308 ns, or 4 times the store's own latency\n");
	assert_has(text,
		   "then pc_set_accept_p(1e-4), fewer than 0.36 an hour at one change a second.");
	free(text);
	e.window.runs = 30;
	text = printed(summary_print);
	assert_has(text, "15.4 us   15.4 us   one store after pc_set_accept_window_p(3e-5)\n");
	free(text);
	e.window.upper_p = 1e-7;
	text = printed(summary_print);
	assert_has(text, "\n  inside 64 bytes      15.4 us    300 ns   the same: one store\n");
	free(text);
	make(20000);
	text = printed(summary_print);
	assert_has(text, "\n  across a line        7.69 us   7.69 us   5 us, fewer than 1 in 10000 "
			 "tears; two waits of 308 ns, or");
	free(text);
	make(12000);
	text = printed(summary_print);
	assert_has(text,
		   "\n  across a line        4.62 us   4.62 us   the same: no wait that is good "
		   "enough is shorter\n");
	free(text);
	e.verdict = VERDICT_FAIL;
	text = printed(summary_print);
	assert_has(
		text,
		"\n  across a page        4.62 us   4.62 us   the same: no wait is good enough\n");
	assert_has(text, "\nNext:    nothing: the library uses membarrier");
	free(text);
	e.window.word_tore = true;
	text = printed(summary_print);
	assert_has(text, "\nNext:    do not change running code on this machine");
	assert_has_not(text, "one store");
	free(text);
}

/* Rungs at rest whose bounds are below those of all others, of lines only. */
static void set_rested_bound(double p)
{
	struct level *level = &e.level[e.ladder.count];

	for (unsigned i = 0; i < e.ladder.rested; i++) {
		level[i] = e.level[0];
		level[i].ticks = 13000;
		level[i].claim[CLAIM_LINE].upper_p = p;
		level[i].claim[CLAIM_PAGE].upper_p = level[i].upper_p = 2e-3;
	}
}

/* By the rule of the library, which takes levels at rest where no other is accepted. */
static void a_level_at_rest_is_told_where_it_is_used(void **state)
{
	static const char rested[] = "\n    rested 7.69 us, pc_set_accept_p(3e-5): 5 us, fewer "
				     "than 1 in 43000 tears; two waits of 4 times the store's own "
				     "latency\n";
	char *text;

	(void)state;
	make(40000);
	e.levels = 5;
	set_rested_bound(2.3e-5);
	text = printed(summary_print);
	check_lines(text);
	assert_has(text, rested);
	assert_int_equal(estimate_best(&e, CLAIM_LINE, 3e-5), -1);
	assert_int_equal(estimate_accepted(&e, CLAIM_LINE, 3e-5), (int)e.ladder.count);
	assert_int_equal(estimate_accepted(&e, CLAIM_LINE, 1e-4),
			 estimate_best(&e, CLAIM_LINE, 1e-4));
	assert_has_not(strchr(strstr(text, "rested"), ';'), "rested");
	free(text);
	/* Another level is as good, or none would be accepted at all. */
	for (int i = 0; i < 2; i++) {
		e.level[4].claim[CLAIM_LINE].upper_p = i ? 1e-4 : 1e-5;
		set_rested_bound(i ? 2e-4 : 2.3e-5);
		text = printed(summary_print);
		assert_has_not(text, "rested");
		free(text);
	}
}

/* A store whose CPU was taken away takes as long as a time slice. */
static void a_disturbed_store_has_no_time(void **state)
{
	char *text;

	(void)state;
	make(40000);
	e.window.ticks = 600000;
	e.window.runs = 30;
	e.window.upper_p = 1e-9;
	text = printed(summary_print);
	assert_has(text, "\n  inside 64 bytes      15.4 us         ?   the same: one store\n");
	free(text);
}

static void it_says_how_far_its_bounds_reach(void **state)
{
	char *text;

	(void)state;
	make(40000);
	e.runs = 1;
	text = printed(summary_print);
	assert_has(text, "95 %, for the time that was measured only: the long run takes runs in 30 "
			 "hours (so far 1).");
	free(text);
	e.runs = e.wait_runs = 31;
	e.long_run = true;
	text = printed(summary_print);
	assert_has(text,
		   "95 % for the long run, from 31 runs.\nMissed:  bad times that are rarer than "
		   "9.2 % of all; no number here knows of them.");
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
	assert_has(text, "\n  across a line              ?         ?   not known yet\n");
	assert_has(text, "\nNext:    run it again, longer or on a quiet machine");
	assert_has_not(text, "nan");
	assert_has_not(text, "inf ");
	free(text);
	free(printed(summary_details));
}

/* What was counted so far is told, and not taken for a wait that is unsafe. */
static void too_little_is_not_told_as_unsafe(void **state)
{
	char *text;

	(void)state;
	make(40000);
	e.verdict = VERDICT_INCONCLUSIVE;
	text = printed(summary_print);
	assert_has(text, "not known yet: so far, fewer than 1 in 1e10 tears\n");
	assert_has_not(text, "good enough");
	assert_has_not(text, "P = 1e");
	free(text);
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
	assert_has(text, " Its CPUs were never far apart.");
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
		cmocka_unit_test(a_summary_answers_in_order),
		cmocka_unit_test(a_boundary_that_tears_has_its_line),
		cmocka_unit_test(it_says_what_a_change_costs),
		cmocka_unit_test(a_level_at_rest_is_told_where_it_is_used),
		cmocka_unit_test(a_disturbed_store_has_no_time),
		cmocka_unit_test(too_little_is_not_told_as_unsafe),
		cmocka_unit_test(it_says_how_far_its_bounds_reach),
		cmocka_unit_test(a_factor_is_told_if_it_is_known),
		cmocka_unit_test(nothing_is_told_too),
		cmocka_unit_test(details_tell_each_rung),
		cmocka_unit_test(near_and_far_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
