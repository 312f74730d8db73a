/* SPDX-License-Identifier: MIT */
/* Each site is changed by the level of its own place, alone, merged, later and in batches. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <math.h>
#include <sys/syscall.h>
#include <x86intrin.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/machine/rest.h"
#include "patchcore/machine/tests/levels.h"
#include "patchcore/merge.h"

/* --- Each site by its own ------------------------------------------------------------- */

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(one_by_one), child_unit_test(merged),
		child_unit_test(later),	     child_unit_test(long_later),
		child_unit_test(at_rest),    child_unit_test(batched),
		child_unit_test(lines_only), child_unit_test(pages_by_membarrier),
		child_unit_test(a_rate),     child_unit_test(a_rate_that_cannot_be_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
