/* SPDX-License-Identifier: MIT */
/* Levels of machine.conf: which of them is waited by, and that each site is changed by its own. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/machine/policy.h"
#include "patchcore/machine/rest.h"
#include "patchcore/merge.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define AUTO PC_POLICY_AUTO
#define WAIT PC_POLICY_WAIT
#define MB   PC_POLICY_MEMBARRIER
#define NONE PC_POLICY_AUTO

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

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

static void use_levels(const struct machine_conf *conf)
{
	if (!conf->identity.tsc_invariant)
		child_skip("this machine has no invariant TSC");
	conf_use(conf);
	MUST(pc_init() == 0);
	if (pc_set_policy(PC_POLICY_WAIT) < 0)
		child_skip("policy wait is not to be had here");
}

static struct pc_status status_now(void)
{
	struct pc_status status;

	MUST(pc_get_status(&status) == 0);
	return status;
}

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

static const struct sync *sync_at(const uint8_t *site)
{
	return site_find((uintptr_t)site)->word.sync;
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

/* --- Each site by its own ------------------------------------------------------------- */

#define SHORT	 1000	 /* ticks, of level 1 */
#define LONG	 3000000 /* of level 2 */
#define LINE_P	 1e-10	 /* of both */
#define PAGE_P	 1e-6	 /* of level 1 */
#define SAFE_P	 1e-12	 /* of level 2 */
#define MIDDLE_P 1e-9

static uint8_t *page, *line_site, *word_site, *page_site;
static uint8_t old_code[CODE_LEN], new_code[CODE_LEN];

static void put_code(void)
{
	page = code_map(2, RWX);
	line_site = page + 64 - 2;
	word_site = page + 136 - 3;
	page_site = page + CODE_PAGE - 1;
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	code_put(line_site, CODE_OLD);
	code_put(word_site, CODE_OLD);
	code_put(page_site, CODE_OLD);
}

static struct machine_conf two_levels(double safe_p)
{
	struct machine_conf conf = conf_here();

	conf.level[0].waits.first = conf.level[0].waits.second = SHORT;
	conf.level[0].line.upper_p = LINE_P;
	conf.level[0].page.upper_p = PAGE_P;
	conf_add_level(&conf, LONG, LINE_P, safe_p);
	return conf;
}

static void start(double safe_p)
{
	struct machine_conf conf = two_levels(safe_p);

	use_levels(&conf);
	put_code();
}

static void must_be_new(uint8_t *site, unsigned level)
{
	MUST(code_run(site) == CODE_NEW);
	MUST(sync_at(site)->policy == WAIT && sync_at(site)->level == level);
	MUST(sync_at(site)->waits.first == (level == 1 ? SHORT : LONG));
}

static void one_by_one(const void *arg)
{
	uint64_t begin;

	(void)arg;
	start(SAFE_P);
	begin = __rdtsc();
	MUST(pc_patch(page_site, new_code, CODE_LEN) == 0);
	MUST(__rdtsc() - begin >= 2 * LONG);
	must_be_new(page_site, 2);
	MUST(pc_patch(line_site, new_code, CODE_LEN) == 0);
	must_be_new(line_site, 1);
	MUST(pc_patch(word_site, new_code, CODE_LEN) == 0);
	must_be_new(word_site, 1);
	/* A caller that accepts more would get the cheap level. */
	MUST(pc_set_accept_p(PAGE_P) == 0);
	MUST(pc_patch(page_site, old_code, CODE_LEN) == 0);
	MUST(code_run(page_site) == CODE_OLD && sync_at(page_site)->level == 1);
}

static void merged(const void *arg)
{
	(void)arg;
	start(SAFE_P);
	MUST(pc_patch_over(line_site, new_code, CODE_LEN, 1, 1, PC_NOBODY_INSIDE) == 0);
	must_be_new(line_site, 1);
	MUST(pc_patch_over(page_site, new_code, CODE_LEN, 1, 1, PC_NOBODY_INSIDE) == 0);
	must_be_new(page_site, 2);
}

static void later(const void *arg)
{
	uint64_t begin;

	(void)arg;
	start(SAFE_P);
	begin = __rdtsc();
	MUST(pc_start_patch(page_site, new_code, CODE_LEN) == 0);
	MUST(pc_start_patch(line_site, new_code, CODE_LEN) == 0);
	MUST(sync_at(page_site)->level == 2 && sync_at(line_site)->level == 1);
	while (pc_finish_patch(line_site) != PC_FINISHED)
		;
	must_be_new(line_site, 1);
	while (pc_finish_patch(page_site) != PC_FINISHED)
		;
	MUST(__rdtsc() - begin >= 2 * LONG);
	must_be_new(page_site, 2);
	begin = __rdtsc();
	MUST(pc_start_patch(line_site, old_code, CODE_LEN) == 0);
	MUST(pc_start_patch(page_site, old_code, CODE_LEN) == 0);
	MUST(pc_drain() == 0);
	MUST(__rdtsc() - begin >= 2 * LONG);
	MUST(code_run(line_site) == CODE_OLD && code_run(page_site) == CODE_OLD);
}

/*
 * Where only a level at rest is accepted, each change waits until the lines have rested: a
 * patch, one that is started, and a batch. A membarrier costs too much here to be taken instead.
 */
static void at_rest(const void *arg)
{
	struct machine_conf conf = two_levels(SAFE_P);
	struct pc_op op;
	uint64_t begin;

	(void)arg;
	conf.levels = conf.rested = 1;
	conf.level[1].waits = conf.level[0].waits;
	conf.level[1].rest = LONG;
	conf.membarrier_ticks = UINT64_C(1) << 39;
	use_levels(&conf);
	put_code();
	op = (struct pc_op){ .addr = page_site, .bytes = old_code, .len = CODE_LEN };
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0 && pc_set_accept_p(SAFE_P) == 0);
	MUST(status_now().in_use == WAIT && status_now().level == 2);
	MUST(status_now().rest == LONG && status_now().line_rest == 0);
	begin = __rdtsc();
	MUST(pc_patch(page_site, new_code, CODE_LEN) == 0);
	MUST(pc_patch(page_site, old_code, CODE_LEN) == 0);
	MUST(code_run(page_site) == CODE_OLD && sync_at(page_site)->level == 2);
	MUST(pc_start_patch(page_site, new_code, CODE_LEN) == 0);
	MUST(pc_drain() == 0);
	MUST(pc_patch_batch(&op, 1) == 0);
	MUST(code_run(page_site) == CODE_OLD && sync_at(page_site)->level == 2);
	MUST(__rdtsc() - begin >= 3 * LONG);
}

/* A patcher uses membarrier; what it starts waits, and leaves executors alone. */
static void long_later(const void *arg)
{
	struct machine_conf conf = two_levels(SAFE_P);
	struct pc_status status;

	(void)arg;
	conf.levels = conf.long_levels = 1;
	conf.level[0].line.upper_p = conf.level[1].line.upper_p = PAGE_P;
	use_levels(&conf);
	put_code();
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0);
	status = status_now();
	if (status.in_use != MB)
		child_skip("no membarrier");
	MUST(status.later_wait == LONG && status.later_p == SAFE_P);
	MUST(!status.line_later_wait && !status.line_later_p);
	MUST(pc_patch(page_site, new_code, CODE_LEN) == 0 && sync_at(page_site)->policy == MB);
	MUST(pc_start_patch(page_site, old_code, CODE_LEN) == 0);
	MUST(sync_at(page_site)->policy == WAIT && sync_at(page_site)->level == 2);
	MUST(pc_start_patch(line_site, new_code, CODE_LEN) == 0);
	MUST(sync_at(line_site)->policy == MB);
	MUST(pc_drain() == 0);
	MUST(code_run(page_site) == CODE_OLD && code_run(line_site) == CODE_NEW);
}

/* They share the wait of the one that needs the longest, wherever it stands in the batch. */
static void batched(const void *arg)
{
	uint64_t begin, least = UINT64_MAX;

	(void)arg;
	start(SAFE_P);
	for (int page_first = 0; page_first < 2; page_first++) {
		uint8_t *bytes = page_first ? old_code : new_code;
		struct pc_op ops[] = {
			{ .addr = line_site, .bytes = bytes, .len = CODE_LEN },
			{ .addr = page_site, .bytes = bytes, .len = CODE_LEN },
			{ .addr = word_site, .bytes = bytes, .len = CODE_LEN },
		};
		struct pc_op first = ops[0];

		if (page_first) {
			ops[0] = ops[1];
			ops[1] = first;
		}
		begin = __rdtsc();
		MUST(pc_patch_batch(ops, LENGTH(ops)) == 0);
		MUST(__rdtsc() - begin >= 2 * LONG);
		MUST(sync_at(page_site)->level == 2);
		MUST(sync_at(line_site)->level == 1 && sync_at(word_site)->level == 1);
		MUST(code_run(page_site) == code_run(line_site));
		MUST(code_run(page_site) == (page_first ? CODE_OLD : CODE_NEW));
	}
	/* Among themselves they wait no longer than they need. */
	for (int i = 0; i < 50; i++) {
		struct pc_op ops[] = {
			{ .addr = line_site,
			  .bytes = i % 2 ? old_code : new_code,
			  .len = CODE_LEN },
			{ .addr = word_site,
			  .bytes = i % 2 ? old_code : new_code,
			  .len = CODE_LEN },
		};

		begin = __rdtsc();
		MUST(pc_patch_batch(ops, LENGTH(ops)) == 0);
		if (__rdtsc() - begin < least)
			least = __rdtsc() - begin;
	}
	MUST(least >= 2 * SHORT && least < 2 * LONG);
}

/* --- Where only some may be waited for ------------------------------------------------ */

static void lines_only(const void *arg)
{
	struct pc_op ops[2];

	(void)arg;
	child_filter(SYS_membarrier, 0, 0, SECCOMP_RET_ERRNO | ENOSYS);
	start(PAGE_P);
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0 && pc_set_accept_p(MIDDLE_P) == 0);
	MUST(status_now().in_use == NONE && status_now().level == 0);
	MUST(status_now().line_level == 1 && status_now().line_p == LINE_P);
	MUST(status_now().page_p == 0);
	MUST(pc_patch(page_site, new_code, CODE_LEN) == -ENOTSUP);
	MUST(pc_start_patch(page_site, new_code, CODE_LEN) == -ENOTSUP);
	MUST(pc_patch_over(page_site, new_code, CODE_LEN, 1, 1, PC_NOBODY_INSIDE) == -ENOTSUP);
	MUST(code_run(page_site) == CODE_OLD);
	MUST(pc_patch(line_site, new_code, CODE_LEN) == 0);
	must_be_new(line_site, 1);
	ops[0] = (struct pc_op){ .addr = page_site, .bytes = new_code, .len = CODE_LEN };
	ops[1] = (struct pc_op){ .addr = line_site, .bytes = old_code, .len = CODE_LEN };
	MUST(pc_patch_batch(ops, 2) == -ENOTSUP);
	MUST(ops[0].result == -ENOTSUP && ops[1].result == 0);
	MUST(code_run(page_site) == CODE_OLD && code_run(line_site) == CODE_OLD);
	MUST(pc_set_accept_p(SAFE_P) == 0 && pc_set_policy(PC_POLICY_AUTO) == -ENOTSUP);
	MUST(pc_patch(line_site, new_code, CODE_LEN) == -ENOTSUP);
}

static void pages_by_membarrier(const void *arg)
{
	struct pc_op ops[2];

	(void)arg;
	if (membarrier_register() < 0)
		child_skip("no membarrier");
	start(PAGE_P);
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0 && pc_set_accept_p(MIDDLE_P) == 0);
	MUST(status_now().in_use == MB && status_now().line_level == 1);
	sync_note_cost(&(struct sync){ .policy = MB }, 1u << 30);
	MUST(pc_patch(page_site, new_code, CODE_LEN) == 0 && code_run(page_site) == CODE_NEW);
	MUST(sync_at(page_site)->policy == MB);
	ops[0] = (struct pc_op){ .addr = page_site, .bytes = old_code, .len = CODE_LEN };
	ops[1] = (struct pc_op){ .addr = line_site, .bytes = new_code, .len = CODE_LEN };
	MUST(pc_patch_batch(ops, 2) == 0);
	MUST(sync_at(page_site)->policy == MB && sync_at(line_site)->level == 1);
	MUST(code_run(page_site) == CODE_OLD && code_run(line_site) == CODE_NEW);
}

/* --- At most so many tears an hour ---------------------------------------------------- */

#define CHANGES 30 /* of each kind */
#define ROOM	5  /* for so many the bucket has tears; one more comes in 72 seconds */

static unsigned waits_of_changes(void)
{
	const uint8_t *const code[] = { new_code, old_code };
	unsigned waits = 0;

	for (unsigned i = 0; i < 3 * CHANGES; i++) {
		const uint8_t *bytes = code[i % 2];
		struct pc_op op = { .addr = line_site, .bytes = bytes, .len = CODE_LEN };

		/* Else a membarrier, which is cheap where one thread runs, would be preferred. */
		for (int k = 0; k < 20; k++)
			sync_note_cost(&(struct sync){ .policy = MB }, 1u << 30);
		if (i % 3 == 0)
			MUST(pc_patch(line_site, bytes, CODE_LEN) == 0);
		else if (i % 3 == 1)
			MUST(pc_patch_batch(&op, 1) == 0);
		else
			MUST(pc_start_patch(line_site, bytes, CODE_LEN) == 0 && pc_drain() == 0);
		MUST(code_run(line_site) == (i % 2 ? CODE_OLD : CODE_NEW));
		waits += sync_at(line_site)->policy == WAIT;
	}
	return waits;
}

static void a_rate(const void *arg)
{
	static const double bad[] = { 0, -1, NAN, -INFINITY };

	(void)arg;
	if (membarrier_register() < 0)
		child_skip("no membarrier");
	MUST(pc_set_accept_rate(1) == -ESHUTDOWN);
	start(PAGE_P);
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0 && pc_set_accept_p(MIDDLE_P) == 0);
	MUST(status_now().line_level == 1 && status_now().accept_rate == INFINITY);
	MUST(waits_of_changes() == 3 * CHANGES);
	for (size_t i = 0; i < LENGTH(bad); i++)
		MUST(pc_set_accept_rate(bad[i]) == -EINVAL);
	MUST(pc_set_accept_rate(10.5 * ROOM * LINE_P) == 0);
	MUST(status_now().accept_rate == 10.5 * ROOM * LINE_P && status_now().line_level == 1);
	MUST(waits_of_changes() <= ROOM + 1);
	/* Less than one change: none waits. */
	MUST(pc_set_accept_rate(5 * LINE_P) == 0 && waits_of_changes() == 0);
	/* By name the caller owns the risk. */
	MUST(pc_set_policy(PC_POLICY_WAIT) == 0 && waits_of_changes() == 3 * CHANGES);
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0 && pc_set_accept_rate(INFINITY) == 0);
	MUST(waits_of_changes() == 3 * CHANGES);
}

/* What could not be replaced is not waited for, and what is not counted is as rare as by default.
 */
static void a_rate_that_cannot_be_kept(const void *arg)
{
	(void)arg;
	child_filter(SYS_membarrier, 0, 0, SECCOMP_RET_ERRNO | ENOSYS);
	start(PAGE_P);
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0 && pc_set_accept_p(PAGE_P) == 0);
	MUST(status_now().in_use == WAIT && pc_set_accept_rate(1e9) == 0);
	MUST(status_now().in_use == NONE);
	MUST(pc_patch(line_site, new_code, CODE_LEN) == -ENOTSUP);
	MUST(pc_set_policy(PC_POLICY_AUTO) == -ENOTSUP && status_now().accept_rate == 1e9);
	MUST(pc_set_accept_rate(INFINITY) == 0 && status_now().in_use == WAIT);
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
		child_unit_test(one_by_one),
		child_unit_test(merged),
		child_unit_test(later),
		child_unit_test(long_later),
		child_unit_test(at_rest),
		child_unit_test(batched),
		child_unit_test(lines_only),
		child_unit_test(pages_by_membarrier),
		child_unit_test(a_rate),
		child_unit_test(a_rate_that_cannot_be_kept),
		child_unit_test(told),
		child_unit_test(window_of_a_good_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
