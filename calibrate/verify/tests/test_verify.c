/* SPDX-License-Identifier: MIT */
/* The verdict of verify, and its power, from counts that are made up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/exit_status.h"
#include "calibrate/tests/verify_sample.h"

/* --- missing toggles --- */

/* Against the sum of the binomial's terms. */
static double summed(uint64_t k, uint64_t n, double p)
{
	double below = 0, term = pow(1 - p, (double)n);

	for (uint64_t i = 0; i < k; i++) {
		below += term;
		term *= (double)(n - i) / (double)(i + 1) * p / (1 - p);
	}
	return 1 - below;
}

/* Of toggles that were one slice, if rates do not differ. */
static uint64_t missing(uint64_t tears, uint64_t toggles, double p)
{
	const struct count seen = sample_count(1, toggles, tears);

	return verify_missing(&seen, 0, p, 0.95);
}

static void test_missing(void **state)
{
	uint64_t need = missing(0, 0, P);

	(void)state;
	/* 3 / (10 p), and no more. */
	assert_true(need > 299000 && need <= 300000);
	assert_int_equal(missing(0, need, P), 0);
	assert_int_equal(missing(0, need - 1, P), 1);
	/* One tear takes 4.744 / (10 p). */
	assert_true(fabs((double)missing(1, 0, P) - 474400) < 100);
	assert_int_equal(missing(1, 400000, P), missing(1, 0, P) - 400000);
	/* A config that promises next to nothing still wants to be tried. */
	assert_int_equal(missing(0, 0, 0.2), 1);
	assert_int_equal(missing(7, 10, 0.2), 0);
}

/* Slices that differ say less: as many toggles in one slice exclude nothing yet. */
static void test_missing_in_storms(void **state)
{
	struct count one = sample_count(1, 400000, 0), many = sample_count(400, 1000, 0);

	(void)state;
	assert_int_equal(verify_missing(&one, 0, P, 0.95), 0);
	assert_true(verify_missing(&one, 4, P, 0.95) > 100000);
	assert_int_equal(verify_missing(&many, 4, P, 0.95), 0);
}

/* --- verdicts --- */

static void expect(enum verify_verdict verdict, int status, const char *words)
{
	verify_judge(&v);
	if (v.verdict != verdict || !strstr(v.reason, words))
		print_message("%s: %s\n", verify_verdict_name(v.verdict), v.reason);
	assert_int_equal(v.verdict, verdict);
	assert_int_equal(v.status, status);
	assert_non_null(strstr(v.reason, words));
}

static void test_holds(void **state)
{
	(void)state;
	begin();
	put(CHECK_WAIT, ENOUGH / 2, 0);
	put(CHECK_WAIT, ENOUGH / 2, 0);
	expect(VERIFY_HOLDS, EXIT_PASS, "0 tears in 3.7e5 exposed toggles");
	assert_int_equal(v.cell[0].status, STATUS_HELD);
	assert_int_equal(v.cell[3].status, STATUS_HELD);
	assert_true(v.upper_p <= VERIFY_TIMES * P);
}

/* A tear that p allows breaks nothing, and is told. */
static void test_allowed_tears(void **state)
{
	(void)state;
	begin();
	put(CHECK_WAIT, 2000000, 3);
	expect(VERIFY_HOLDS, EXIT_PASS, "3 tears");
	assert_int_equal(v.tears, 3);
}

/*
 * The boundary: the chance of k tears crosses alpha over the number of looks, which
 * is one per cell that ran and one for all together.
 */
static void test_broken_boundary(void **state)
{
	const uint64_t n = 1000000;

	(void)state;
	for (unsigned cells = 1; cells <= 8; cells++) {
		uint64_t k = 1;

		while (summed(k, n, verify_in_storm(P, 0)) >= VERIFY_ALPHA / (cells + 1))
			k++;
		for (uint64_t tears = k - 1; tears <= k; tears++) {
			begin();
			put(CHECK_WAIT, n, tears);
			for (unsigned i = 1; i < cells; i++)
				put(CHECK_WAIT, n, 1);
			/* What did not run is no look. */
			for (unsigned i = 0; i < 20; i++)
				put(CHECK_WAIT, 0, 0)->skipped = true;
			verify_judge(&v);
			assert_int_equal(v.verdict == VERIFY_BROKEN, tears == k);
			assert_int_equal(v.cell[3].status == STATUS_BROKEN, tears == k);
		}
	}
	assert_int_equal(v.status, EXIT_TEARS);
}

/* As many as in a storm of a tenth of the time break nothing; ten times as many in all do. */
static void test_storm(void **state)
{
	(void)state;
	assert_true(verify_in_storm(P, 4) == verify_in_storm(P, 0));
	assert_true(verify_in_storm(P, 19) > 1.99 * verify_in_storm(P, 0));
	assert_true(verify_in_storm(0.5, 0) == 1);
	begin();
	put(CHECK_WAIT, 1000000, 10);
	verify_judge(&v);
	assert_true(v.verdict != VERIFY_BROKEN);
	set_count(&v.cell[3], 1000000, 100);
	expect(VERIFY_BROKEN, EXIT_TEARS, "100 tears in 1e6 exposed toggles: more than p = 1e-6");
}

/* Lines and pages by the level that is in use for each, and by the bound of that. */
static void test_levels_in_use(void **state)
{
	(void)state;
	begin();
	v.accept_p = 1e-4;
	v.conf.levels = 3;
	v.conf.level[0] = (struct machine_conf_level){ .waits = { 100, 100, 4 }, .ticks = 400 };
	v.conf.level[1] = (struct machine_conf_level){ .waits = { 200, 200, 4 }, .ticks = 300 };
	v.conf.level[2] = (struct machine_conf_level){ .waits = { 800, 800, 4 }, .ticks = 900 };
	v.conf.level[0].line.upper_p = v.conf.level[1].line.upper_p = 5e-5;
	v.conf.level[0].page.upper_p = v.conf.level[1].page.upper_p = 5e-4;
	v.conf.level[2].line.upper_p = v.conf.level[2].page.upper_p = 1e-6;
	assert_int_equal(verify_level(&v, CLAIM_LINE)->waits.first, 200);
	assert_int_equal(verify_level(&v, CLAIM_PAGE)->waits.first, 800);
	assert_true(verify_p(&v, CLAIM_LINE) == 5e-5 && verify_p(&v, CLAIM_PAGE) == 1e-6);
	/* What no level keeps is tried by the surest, as policy wait does. */
	v.accept_p = 1e-9;
	assert_int_equal(verify_level(&v, CLAIM_LINE)->waits.first, 800);
	/* But a level at rest that keeps it is what policy auto takes. */
	v.conf.rested = 1;
	v.conf.level[3] = (struct machine_conf_level){
		.waits = { 0, 0, 4 }, .rest = 20000, .line.upper_p = 1e-9, .page.upper_p = 1e-8
	};
	assert_int_equal(verify_level(&v, CLAIM_LINE)->rest, 20000);
	assert_int_equal(verify_level(&v, CLAIM_PAGE)->waits.first, 800);
	v.conf.rested = 0;
	/* A page that tears is held against its own bound, which is the lower one. */
	put(CHECK_WAIT, 1000000, 100)->cell.crossing = CROSSING_LINE;
	v.accept_p = 1e-4;
	verify_judge(&v);
	assert_int_equal(v.cell[3].status, STATUS_HELD);
	v.cell[3].cell.crossing = CROSSING_PAGE;
	expect(VERIFY_BROKEN, EXIT_TEARS, "p = 5e-5 across a line, 1e-6 across a page");
}

static void test_seen(void **state)
{
	(void)state;
	begin();
	assert_true(verify_has_seen(&v));
	v.cell[1].tears[TEAR_OLD_FRONT] = 0;
	assert_false(verify_has_seen(&v));
	v.cells = 0;
	assert_false(verify_has_seen(&v));
}

/* Against an older config: what the cells count, and what the one in force has counted. */
static void expect_ladder(const struct machine_conf *before, enum verify_status status,
			  const char *words)
{
	v.promises = 0;
	verify_since(&v, before);
	if (v.promise[0].status != status || !strstr(v.promise[0].reason, words))
		print_message("%s\n", v.promise[0].reason);
	assert_int_equal(v.promise[0].status, status);
	assert_non_null(strstr(v.promise[0].reason, words));
	verify_judge(&v);
	assert_int_equal(v.verdict == VERIFY_BROKEN, status == STATUS_BROKEN);
}

static void test_since(void **state)
{
	struct machine_conf before = { .levels = 2 };

	(void)state;
	promise(1e-3);
	begin_cells();
	v.conf.levels = 2;
	v.conf.level[0].waits = before.level[0].waits = (struct waits){ 100, 100, 4 };
	v.conf.level[1].waits = before.level[1].waits = (struct waits){ 800, 800, 4 };
	v.conf.level[1].line.upper_p = v.conf.level[1].page.upper_p = 1e-3;
	before.level[0].line.upper_p = before.level[0].page.upper_p = 1e-5;
	before.level[1].line.upper_p = before.level[1].page.upper_p = 1e-6;
	put(CHECK_WAIT, 1000000, 9)->cell.waits = before.level[1].waits;
	expect_ladder(&before, STATUS_HELD, "9 tears in 1e6");
	/* Ten times the older bound and more, though the config in force allows it. */
	set_count(&v.cell[3], 1000000, 60);
	expect_ladder(&before, STATUS_BROKEN,
		      "60 tears in 1e6 exposed toggles at waits of 800 ticks, or 4 times");
	/* It says nothing of sites at rest, unless it has such a level. */
	v.cell[3].cell.rest = 20000;
	expect_ladder(&before, STATUS_SKIPPED, "has none of these waits");
	before.rested = 1;
	before.level[2] = before.level[1];
	before.level[2].rest = 20000;
	expect_ladder(&before, STATUS_BROKEN, "60 tears in 1e6 exposed toggles");
	v.cell[3].cell.rest = 0;
	v.cell[3].cell.waits.first = 700;
	expect_ladder(&before, STATUS_SKIPPED, "has none of these waits");
	/* What the config has counted of 800 may be of 100, too: it is held against the bound of
	 * both. */
	v.conf.level[1].page.toggles = 1000000;
	v.conf.level[1].page.tears = 60;
	expect_ladder(&before, STATUS_HELD, "60 tears");
	v.conf.level[1].page.tears = 300;
	expect_ladder(&before, STATUS_BROKEN, "across a page, where the older config bounds 1e-5");
	v.conf.level[1].page.tears = 0;
	before.levels = 0;
	expect_ladder(&before, STATUS_SKIPPED, "has none of these waits");
}

/* No cell alone has too many. */
static void test_broken_together(void **state)
{
	(void)state;
	begin();
	for (unsigned i = 0; i < 10; i++)
		put(CHECK_WAIT, 100000, 3);
	expect(VERIFY_BROKEN, EXIT_TEARS, "30 tears in 1e6 exposed toggles");
	for (unsigned i = 3; i < v.cells; i++)
		assert_int_equal(v.cell[i].status, STATUS_HELD);
}

static void test_window_tears(void **state)
{
	(void)state;
	begin();
	v.cell[2].tears[TEAR_OTHER] = 1;
	put(CHECK_WAIT, ENOUGH, 0);
	expect(VERIFY_BROKEN, EXIT_TEARS, "window of 8 bytes");
	assert_int_equal(v.cell[2].status, STATUS_BROKEN);
}

/* A tear that was found counts, also if something else goes wrong. */
static void test_broken_comes_first(void **state)
{
	(void)state;
	for (unsigned wrong = 0; wrong < 4; wrong++) {
		begin();
		put(CHECK_WAIT, 1000, 20);
		if (wrong == 0)
			v.cut_short = EXIT_INTERRUPTED;
		if (wrong == 1)
			v.cell[0].tears[TEAR_OLD_FRONT] = 0;
		if (wrong == 2)
			v.cell[3].quiet.toggles = 0;
		if (wrong == 3)
			v.cell[3].failed = 1;
		expect(VERIFY_BROKEN, EXIT_TEARS, "20 tears");
	}
}

static void test_cut_short(void **state)
{
	(void)state;
	begin();
	put(CHECK_WAIT, ENOUGH, 0);
	v.cut_short = EXIT_INTERRUPTED;
	expect(VERIFY_INCONCLUSIVE, EXIT_INTERRUPTED, "interrupted");
	v.cut_short = EXIT_CANNOT_WRITE;
	expect(VERIFY_INCONCLUSIVE, EXIT_CANNOT_WRITE, "journal cannot be written");
}

static void test_blind(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		begin();
		put(CHECK_WAIT, ENOUGH, 0);
		v.cell[i].tears[TEAR_OLD_FRONT] = 0;
		expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "sees nothing here");
		assert_int_equal(v.cell[i].status, STATUS_UNCLEAR);
	}
	begin();
	put(CHECK_WAIT, ENOUGH, 0);
	v.cell[1].skipped = true;
	expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "sees nothing here");
}

static void test_window_untested(void **state)
{
	(void)state;
	begin();
	put(CHECK_WAIT, ENOUGH, 0);
	v.cell[2].count.toggles = 0;
	expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "window was not tested");
}

static void test_too_few(void **state)
{
	const struct count none = { 0 };
	uint64_t need = verify_missing(&none, 0, P, BOTH);

	(void)state;
	begin();
	put(CHECK_WAIT, need, 0);
	expect(VERIFY_HOLDS, EXIT_PASS, "");
	set_count(&v.cell[3], need - 1000, 0);
	v.cell[3].quiet = v.cell[3].count;
	expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "1000 more are needed");
	assert_int_equal(v.missing, 1000);
}

/* Noisy toggles prove nothing; tears among them count. */
static void test_noise(void **state)
{
	(void)state;
	begin();
	put(CHECK_WAIT, 2 * ENOUGH, 0)->quiet.toggles = ENOUGH / 2;
	expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "more are needed");
	v.cell[3].quiet.toggles = 0;
	expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "too noisy");
	set_count(&v.cell[3], 2 * ENOUGH, 40);
	expect(VERIFY_BROKEN, EXIT_TEARS, "40 tears");
}

static void test_skipped(void **state)
{
	struct verify_cell *c;

	(void)state;
	begin();
	c = put(CHECK_WAIT, 0, 0);
	c->skipped = true;
	strcpy(c->reason, "no such socket");
	expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "no such socket");
	put(CHECK_WAIT, ENOUGH, 0);
	expect(VERIFY_HOLDS, EXIT_PASS, "skipped");
	assert_int_equal(v.cell[3].status, STATUS_SKIPPED);
}

static void test_no_answer(void **state)
{
	(void)state;
	begin();
	put(CHECK_WAIT, ENOUGH, 0);
	put(CHECK_WAIT, ENOUGH, 0)->failed = 1;
	strcpy(v.cell[4].reason, "hang");
	expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "hang");
	begin();
	put(CHECK_WAIT, ENOUGH, 0);
	put(CHECK_WAIT, 0, 0);
	expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "nothing ran");
	begin();
	expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "nothing ran at the config's waits");
}

static void test_one_cpu(void **state)
{
	(void)state;
	begin();
	put(CHECK_WAIT, ENOUGH, 0)->apart = false;
	expect(VERIFY_INCONCLUSIVE, EXIT_INCONCLUSIVE, "only one CPU");
}

static void test_add(void **state)
{
	struct verify_cell c = { .check = CHECK_WAIT };
	struct cell_record r = record_of(100, 0, OUTCOME_DONE);

	(void)state;
	verify_add(&c, &r);
	assert_false(c.apart);
	r = record_of(20, 1, OUTCOME_DONE);
	r.noisy = true;
	r.result.seating.executor[0] = 1;
	verify_add(&c, &r);
	assert_true(c.apart);
	assert_int_equal(c.count.toggles, 120);
	assert_int_equal(c.quiet.toggles, 100);
	assert_int_equal(c.noisy, 1);
	assert_int_equal(verify_tears(&c), 1);
	/* What is shown to run again is the run that tore. */
	r = record_of(3, 0, OUTCOME_INTERRUPTED);
	verify_add(&c, &r);
	assert_int_equal(c.cell.seed, 20);
	assert_int_equal(c.quiet.toggles, 103);
	assert_int_equal(c.failed, 0);
	r = record_of(7, 0, OUTCOME_HANG);
	verify_add(&c, &r);
	assert_int_equal(c.quiet.toggles, 103);
	assert_int_equal(c.failed, 1);
	assert_non_null(strstr(c.reason, "hang"));
	/* A mix that no pad catches ends the child: that is a tear, and an answer. */
	r = record_of(9, 1, OUTCOME_CRASH);
	verify_add(&c, &r);
	assert_int_equal(c.quiet.toggles, 112);
	assert_int_equal(c.failed, 1);
	assert_int_equal(verify_tears(&c), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_missing_in_storms),
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_levels_in_use),
		cmocka_unit_test(test_seen),
		cmocka_unit_test(test_since),
		cmocka_unit_test(test_holds),
		cmocka_unit_test(test_allowed_tears),
		cmocka_unit_test(test_broken_boundary),
		cmocka_unit_test(test_broken_together),
		cmocka_unit_test(test_window_tears),
		cmocka_unit_test(test_broken_comes_first),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_blind),
		cmocka_unit_test(test_window_untested),
		cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_one_cpu),
		cmocka_unit_test(test_add),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
