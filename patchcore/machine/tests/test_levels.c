/* SPDX-License-Identifier: MIT */
/* Levels of machine.conf: which of them is waited by, and what is told of them. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>

#include "patchcore/machine/rest.h"
#include "patchcore/machine/tests/levels.h"

/* --- Choosing ------------------------------------------------------------------------- */

/* Bounds that do not fall from level to level, as they may be measured. */
static const struct machine_conf_level ladder[] = {
	{ .waits.first = 100,
	  .waits.second = 150,
	  .waits.stretch = 2,
	  .line.upper_p = 1e-7,
	  .page.upper_p = 1e-5 },
	{ .waits.first = 200,
	  .waits.second = 250,
	  .waits.stretch = 2,
	  .line.upper_p = 1e-9,
	  .page.upper_p = 1e-6 },
	{ .waits.first = 300,
	  .waits.second = 350,
	  .waits.stretch = 2,
	  .line.upper_p = 1e-8,
	  .page.upper_p = 1e-8 },
	{ .waits.first = 400,
	  .waits.second = 450,
	  .waits.stretch = 4,
	  .line.upper_p = 1,
	  .page.upper_p = 1e-7 },
};

static struct facts made_up(bool membarrier)
{
	struct facts facts = {
		.have_window = true,
		.have_conf = true,
		.membarrier = membarrier,
		.trap = true,
		.window = 8,
		.conf = { .levels = LENGTH(ladder), .window = 8, .window_p = 1 },
		.conf_reason = "no config here",
	};

	memcpy(facts.conf.level, ladder, sizeof(ladder));
	return facts;
}

/* The level of the config, or none; and where none, whether by membarrier. */
static void expect_sync(const struct sync *sync, unsigned level, bool membarrier)
{
	const struct machine_conf_level *wait = level ? &ladder[level - 1] : NULL;

	assert_int_equal(sync->level, level);
	assert_int_equal(sync->policy, level ? WAIT : membarrier ? MB : NONE);
	assert_int_equal(sync->waits.first, wait ? wait->waits.first : 0);
	assert_int_equal(sync->waits.second, wait ? wait->waits.second : 0);
	assert_int_equal(sync->waits.stretch, wait ? wait->waits.stretch : 0);
}

/* Only where the caller leaves the choice, each of the two may take the place of the other. */
static void expect_other(const struct sync *sync, const struct sync *other, bool expected)
{
	if (!expected) {
		assert_null(sync->other);
		return;
	}
	assert_ptr_equal(sync->other, other);
	assert_ptr_equal(other->other, sync);
	assert_int_equal(other->policy, MB);
	assert_int_equal(other->window, sync->window);
	assert_int_equal(other->level, 0);
}

struct row {
	double accept_p;
	unsigned auto_line, auto_page, wait_line, wait_page;
};

static void expect_row(const struct facts *facts, const struct row *row)
{
	char reason[256] = "";
	struct syncs syncs;

	policy_choose(facts, AUTO, row->accept_p, &syncs, reason, sizeof(reason));
	expect_sync(&syncs.page, row->auto_page, facts->membarrier);
	expect_sync(&syncs.line, row->auto_line, facts->membarrier);
	expect_other(&syncs.page, &syncs.page_other, row->auto_page && facts->membarrier);
	expect_other(&syncs.line, &syncs.line_other, row->auto_line && facts->membarrier);
	assert_ptr_equal(syncs.page.line, row->auto_page == row->auto_line ? NULL : &syncs.line);
	assert_true((syncs.page.policy != AUTO || syncs.line.policy != AUTO) ==
		    (facts->membarrier || row->auto_page || row->auto_line));
	assert_true(strncmp(reason, "auto: ", 6) == 0 && !strchr(reason, '\n'));
	policy_choose(facts, WAIT, row->accept_p, &syncs, reason, sizeof(reason));
	expect_sync(&syncs.page, row->wait_page, false);
	expect_sync(&syncs.line, row->wait_line, false);
	expect_other(&syncs.page, NULL, false);
	expect_other(&syncs.line, NULL, false);
	policy_choose(facts, MB, row->accept_p, &syncs, reason, sizeof(reason));
	expect_sync(&syncs.page, 0, facts->membarrier);
	expect_sync(&syncs.line, 0, facts->membarrier);
	assert_null(syncs.page.line);
}

static void test_table(void **state)
{
	static const struct row rows[] = {
		{ 1, 1, 1, 1, 1 },    { 1e-5, 1, 1, 1, 1 },  { 9e-6, 1, 2, 1, 2 },
		{ 1e-6, 1, 2, 1, 2 }, { 9e-7, 1, 3, 1, 3 },  { 1e-7, 1, 3, 1, 3 },
		{ 9e-8, 2, 3, 2, 3 }, { 1e-8, 2, 3, 2, 3 },  { 9e-9, 2, 0, 2, 3 },
		{ 1e-9, 2, 0, 2, 3 }, { 9e-10, 0, 0, 2, 3 }, { 5e-324, 0, 0, 2, 3 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct facts facts = made_up(true);

		expect_row(&facts, &rows[i]);
		facts.membarrier = false;
		expect_row(&facts, &rows[i]);
	}
}

static void test_nothing_to_wait_by(void **state)
{
	static const struct row none = { 1, 0, 0, 0, 0 };
	struct facts facts = made_up(true);
	struct syncs syncs;
	char reason[256];

	(void)state;
	facts.have_conf = false;
	expect_row(&facts, &none);
	facts = made_up(true);
	facts.conf.levels = 0;
	facts.have_conf = false;
	expect_row(&facts, &none);
	facts = made_up(true);
	facts.trap = false;
	for (int asked = AUTO; asked <= MB; asked++) {
		policy_choose(&facts, (enum pc_policy)asked, 1, &syncs, reason, sizeof(reason));
		assert_true(syncs.page.policy == AUTO && syncs.line.policy == AUTO);
	}
}

/* What was measured decides, where both were. */
static void test_cheapest(void **state)
{
	static const struct {
		uint64_t ticks[4];
		struct row row;
	} rows[] = {
		{ { 10, 20, 30, 40 }, { 1, 1, 1, 1, 1 } },
		{ { 40, 30, 20, 10 }, { 1, 4, 4, 4, 4 } },
		{ { 40, 30, 20, 10 }, { 1e-6, 3, 4, 3, 4 } },
		{ { 40, 30, 20, 10 }, { 1e-8, 3, 3, 3, 3 } },
		{ { 40, 40, 40, 40 }, { 1e-7, 1, 3, 1, 3 } },
		{ { 40, 0, 0, 10 }, { 1e-6, 1, 2, 1, 2 } },
		{ { 0, 30, 20, 10 }, { 1, 1, 1, 1, 1 } },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct facts facts = made_up(true);

		for (unsigned k = 0; k < LENGTH(ladder); k++)
			facts.conf.level[k].ticks = rows[i].ticks[k];
		expect_row(&facts, &rows[i].row);
	}
}

static void test_bounds(void **state)
{
	struct facts facts = made_up(true);
	struct syncs syncs;
	char reason[256];

	(void)state;
	policy_choose(&facts, AUTO, 1e-6, &syncs, reason, sizeof(reason));
	assert_true(syncs.page.upper_p == 1e-6);
	assert_true(syncs.line.upper_p == 1e-7);
	assert_non_null(strstr(reason, "1e-06"));
	policy_choose(&facts, AUTO, 1e-9, &syncs, reason, sizeof(reason));
	assert_true(syncs.page.upper_p == 0);
	assert_true(syncs.line.upper_p == 1e-9);
	assert_non_null(strstr(reason, "bounds tears only by 1e-08 per toggle, above 1e-09"));
	assert_non_null(strstr(reason, "so membarrier; inside a page by 1e-09"));
}

/* --- The cost of each, to begin with -------------------------------------------------- */

static void costs(const void *arg)
{
	static const struct sync one = { .policy = WAIT, .level = 1 },
				 two = { .policy = WAIT, .level = 2 }, mb = { .policy = MB };
	struct machine_conf conf = conf_here();

	(void)arg;
	conf.membarrier_ticks = 73000;
	conf.level[0].ticks = 3100;
	conf_add_level(&conf, 900, 1e-12, 1e-12)->ticks = 5100;
	use_levels(&conf);
	MUST(sync_cost(&one) == 3100 && sync_cost(&two) == 5100);
	if (membarrier_register() == 0)
		MUST(sync_cost(&mb) == 73000);
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0 && pc_set_accept_p(1e-9) == 0);
	MUST(status_now().level == 1 && status_now().line_level == 1);
	/* Another calibration has other levels, and the same membarrier.
	 */
	MUST(pc_fini() == 0);
	sync_note_cost(&mb, 73000 - 8 * 1000);
	conf.level[1].ticks = 0;
	conf.level[0].ticks = 4100;
	conf.membarrier_ticks = 1;
	use_levels(&conf);
	MUST(sync_cost(&one) == 4100 && sync_cost(&two) == 0);
	if (membarrier_register() == 0)
		MUST(sync_cost(&mb) == 72000);
}

/* A started change waits for long where every other patch uses membarrier. */
static void test_long(void **state)
{
	struct facts facts = made_up(true);
	struct syncs syncs;
	char reason[256];

	(void)state;
	facts.conf.levels = 2;
	facts.conf.long_levels = 2;
	policy_choose(&facts, AUTO, 1e-8, &syncs, reason, sizeof(reason));
	expect_sync(&syncs.page, 0, true);
	expect_sync(syncs.page.later, 3, true);
	assert_ptr_equal(syncs.page.later, &syncs.page_later);
	assert_ptr_equal(syncs.page.later->instead, &syncs.page);
	assert_ptr_equal(sync_pick(&syncs.page), &syncs.page);
	assert_true(syncs.page.later->upper_p == 1e-8);
	/* Inside a page a level will do that a patcher may wait by. */
	expect_sync(&syncs.line, 2, true);
	assert_null(syncs.line.later);
	assert_null(syncs.line.later);
	policy_choose(&facts, AUTO, 1e-10, &syncs, reason, sizeof(reason));
	assert_null(syncs.page.later);
	/* Asked for by name it is that, and no long wait is ever the surest. */
	policy_choose(&facts, MB, 1e-8, &syncs, reason, sizeof(reason));
	assert_null(syncs.page.later);
	policy_choose(&facts, WAIT, 1e-9, &syncs, reason, sizeof(reason));
	expect_sync(&syncs.page, 2, false);
	assert_null(syncs.page.later);
}

/* A level for lines that have rested is taken where no other is accepted, and never by name. */
static void test_rested(void **state)
{
	struct facts facts = made_up(true);
	struct syncs syncs;
	char reason[256];

	(void)state;
	facts.conf.levels = 2;
	facts.conf.rested = 2;
	facts.conf.level[2].rest = facts.conf.level[3].rest = 20000;
	policy_choose(&facts, AUTO, 1e-8, &syncs, reason, sizeof(reason));
	expect_sync(&syncs.page, 3, true);
	assert_int_equal(syncs.page.rest, 20000);
	expect_other(&syncs.page, &syncs.page_other, true);
	assert_int_equal(syncs.page_other.rest, 0);
	assert_non_null(strstr(reason, "of a site at rest"));
	/* Inside a page level 2 keeps it. */
	expect_sync(&syncs.line, 2, true);
	assert_int_equal(syncs.line.rest, 0);
	policy_choose(&facts, WAIT, 1e-8, &syncs, reason, sizeof(reason));
	expect_sync(&syncs.page, 2, false);
	assert_int_equal(syncs.page.rest, 0);
	/* Changes are noted as soon as a choice needs it, and not before. */
	assert_true(rest_begun == 0);
	assert_non_null(choice_get(&facts, WAIT, 1e-8, reason, sizeof(reason)));
	assert_true(rest_begun == 0);
	assert_non_null(choice_get(&facts, AUTO, 1e-8, reason, sizeof(reason)));
	assert_true(rest_begun != 0);
}

/* --- What is told --------------------------------------------------------------------- */

static void told(const void *arg)
{
	struct machine_conf conf = two_levels(SAFE_P);
	struct pc_status status;

	(void)arg;
	conf.long_run = true;
	conf.runs = 3;
	conf.measured = 1700000000;
	use_levels(&conf);
	status = status_now();
	MUST(status.long_run && status.runs == 3 && status.measured == 1700000000);
	MUST(status.in_use == WAIT && status.level == 2 && status.line_level == 1);
	MUST(status.page_p == SAFE_P && status.line_p == LINE_P && status.upper_p == LINE_P);
	MUST(status.first_wait == LONG && status.second_wait == LONG && status.stretch == 4);
	MUST(pc_set_accept_p(PAGE_P) == 0);
	status = status_now();
	MUST(status.level == 1 && status.line_level == 1 && status.first_wait == SHORT);
	MUST(status.page_p == PAGE_P && status.upper_p == PAGE_P);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) == 0) {
		status = status_now();
		MUST(status.level == 0 && status.line_level == 0);
		MUST(status.page_p == 0 && status.line_p == 0);
		/* Of the surest level: a caller that accepts this bound may wait. */
		MUST(status.upper_p == LINE_P && status.runs == 3);
	}
	MUST(pc_fini() == 0);
	conf_use_none();
	MUST(pc_init() == 0);
	status = status_now();
	MUST(!status.long_run && !status.runs && !status.measured && status.upper_p == 1);
	MUST(!status.level && !status.line_level && !status.page_p && !status.line_p);
}

/* --- The window ----------------------------------------------------------------------- */

/* A calibration that saw no tear anywhere may be blind: its window counts no more than its waits.
 */
static void window_of_a_good_run(const void *arg)
{
	static const enum machine_conf_verdict verdicts[] = { MACHINE_CONF_FAIL,
							      MACHINE_CONF_INCONCLUSIVE };
	struct machine_conf conf = two_levels(SAFE_P);

	(void)arg;
	conf.window = 32;
	conf.window_p = 1e-11;
	conf.window_runs = 30;
	conf_use(&conf);
	MUST(pc_init() == 0 && status_now().atomic_window == 32);
	MUST(pc_set_accept_window_p(1e-12) == 0 && status_now().atomic_window == 8);
	MUST(pc_set_accept_window_p(PC_ACCEPT_WINDOW_P_DEFAULT) == 0 && pc_fini() == 0);
	conf.usable = false;
	for (size_t i = 0; i < LENGTH(verdicts); i++) {
		conf.verdict = verdicts[i];
		conf_use(&conf);
		MUST(pc_init() == 0);
		MUST(!status_now().conf_valid && status_now().atomic_window == 8);
		MUST(pc_set_accept_p(1) == 0 && pc_set_accept_window_p(1) == 0);
		MUST(status_now().atomic_window == 8);
		MUST(pc_set_policy(PC_POLICY_WAIT) == -ENOTSUP);
		MUST(pc_set_accept_p(PC_ACCEPT_P_DEFAULT) == 0 && pc_fini() == 0);
	}
	/* And it must be of here. */
	conf.usable = true;
	conf.verdict = MACHINE_CONF_PASS;
	conf.identity.stepping++;
	conf_use(&conf);
	MUST(pc_init() == 0 && status_now().atomic_window == 8 && pc_fini() == 0);
	conf.identity.stepping--;
	conf.cpus = (struct cpus){ 0 };
	conf.cpus.word[CPUS_MAX / 64 - 1] = UINT64_C(1) << 63;
	conf_use(&conf);
	MUST(pc_init() == 0 && status_now().atomic_window == 8);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_nothing_to_wait_by),
		cmocka_unit_test(test_cheapest),
		cmocka_unit_test(test_bounds),
		child_unit_test(costs),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_rested),
		child_unit_test(told),
		child_unit_test(window_of_a_good_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
