/* SPDX-License-Identifier: MIT */
/* Two straddlers in one batch. model.h says what is modelled. */
#include "patchcore/tests/model/model_protocol.h"

/* Instruction n has front n and back n, at both sites. */
static const struct model_code codes[] = { { 1, 1, 1 }, { 2, 2, 2 }, { 3, 3, 3 }, { 0, 0, 0 } };

static const struct model_op runs_0[] = { EXECUTOR(0), END() };
static const struct model_op runs_1[] = { EXECUTOR(1), END() };

#define INT3_AT(site) HOLD_SITE(site, 9), PUT_INT3(site, 9)

#define FRONTS_AND_RELEASE()                                                                       \
	PUT_AS(0, FRONT, 2, 2), PUT_AS(1, FRONT, 2, 2), RELEASE_SITE(0), RELEASE_SITE(1), LABEL(9)

/* Label 9 is never reached: there is no other patcher. */
#define BATCH(first, second)                                                                       \
	INT3_AT(0), INT3_AT(1), SYNC(first), PUT(0, BACK, 2), PUT(1, BACK, 2), SYNC(second),       \
		FRONTS_AND_RELEASE(), END()

static const struct model_op batch[] = { BATCH(LONG, LONG) };

/* With a line in common, where the back of site 0 and the front of site 1 are, or not. */
static struct model model_of(const struct model_op *program, bool common)
{
	struct model model = {
		.sites = {
			{ { { 0, 0 }, { 1, 0 } }, 1 },
			{ { { 1, 1 }, { 2, 0 } }, 1 },
		},
		.site_count = 2,
		.code = codes,
		.threads = {
			{ .name = "patcher", .program = program, .id = 1 },
			{ .name = "executor0", .program = runs_0, .id = 8, .endless = true },
			{ .name = "executor1", .program = runs_1, .id = 9, .endless = true },
		},
		.thread_count = 3,
		.stale = STALE,
		.longest = LONG,
	};

	if (!common)
		model.sites[1].half[FRONT].line = 3;
	return model;
}

static void test_batch(void **state)
{
	struct model model = model_of(batch, false);

	(void)state;
	holds("batch: two sites", &model);
	model = model_of(batch, true);
	holds("batch: two sites with a line in common", &model);
}

/* Site 1 is asked for by another: then it is left out, and the rest is made. */
static void test_one_is_busy(void **state)
{
	static const struct model_op leaves_out[] = {
		HOLD_SITE(0, 9),
		PUT_INT3(0, 9),
		HOLD_SITE(1, 8),
		PUT_INT3(1, 7),
		SYNC(LONG),
		PUT(0, BACK, 2),
		PUT(1, BACK, 2),
		SYNC(LONG),
		PUT_AS(0, FRONT, 2, 2),
		PUT_AS(1, FRONT, 2, 2),
		RELEASE_SITE(0),
		RELEASE_SITE(1),
		JUMP(9),
		LABEL(7),
		RELEASE_SITE(1),
		LABEL(8),
		FINISH(0, LONG, 2, LONG, 2, 2),
		RELEASE_SITE(0),
		LABEL(9),
		END(),
	};
	static const struct model_op other[] = { PATCH(1, LONG, 3, LONG, 3, 3), END() };
	struct model model = model_of(leaves_out, true);

	(void)state;
	model.threads[model.thread_count++] =
		(struct model_thread){ .name = "other", .program = other, .id = 2 };
	holds_as("batch: one site is busy", &model);
}

static void test_membarrier(void **state)
{
	static const struct model_op by_sync[] = { BATCH(BARRIER, BARRIER) };
	struct model model = model_of(by_sync, true);

	(void)state;
	model.stale = STALE_FOR_EVER;
	holds("batch: membarrier", &model);
}

/* The first sync fails: both INT3 are taken back, unless a signal handler was there. */
#define UNDOING(undo_1)                                                                            \
	INT3_AT(0), INT3_AT(1), MAYBE(7), SYNC(BARRIER), PUT(0, BACK, 2), PUT(1, BACK, 2),         \
		SYNC(BARRIER), PUT_AS(0, FRONT, 2, 2), PUT_AS(1, FRONT, 2, 2), JUMP(8), LABEL(7),  \
		EXCHANGE(0, INT3, 1, 0, 6), MUST(0, 1), LABEL(6), undo_1, LABEL(8),                \
		RELEASE_SITE(0), RELEASE_SITE(1), LABEL(9), END()

static void test_undo(void **state)
{
	static const struct model_op exchanges[] = { UNDOING(EXCHANGE(1, INT3, 1, 0, 8)) };
	static const struct model_op stores[] = { UNDOING(PUT(1, FRONT, 1)) };
	static const struct model_op forgets[] = { UNDOING(MAYBE(8)) };
	static const struct model_op helps[] = {
		SIGNAL_RUNS(1), IF(STATE(1), IDLE, 71),
		IF_INT3(1, 77), JUMP(71),
		LABEL(77),	FINISH(1, BARRIER, 2, BARRIER, 2, 2),
		SIGNAL_ENDS(),
	};
	struct model model = model_of(exchanges, false);

	(void)state;
	model.stale = STALE_FOR_EVER;
	model.threads[model.thread_count++] =
		(struct model_thread){ .name = "handler", .program = helps, .id = 1, .over = 1 };
	holds_as("batch: undo", &model);
	model.threads[0].program = stores;
	breaks("batch: undo over a completed change", &model, "front 1 with back 2");
	model.threads[0].program = forgets;
	breaks("batch: undo forgets a site", &model, "ends as instruction 0");
}

/* --- With a part left out ----------------------------------------------------------------- */

#define WITH_SYNCS(first, second)                                                                  \
	(const struct model_op[])                                                                  \
	{                                                                                          \
		BATCH(first, second)                                                               \
	}

static const struct model_broken broken[] = {
	{ "batch: no first sync", WITH_SYNCS(0, LONG), "front 1 with back 2" },
	{ "batch: short first sync", WITH_SYNCS(TOO_SHORT, LONG), "front 1 with back 2" },
	{ "batch: no second sync", WITH_SYNCS(LONG, 0), "front 2 with back 1" },
	{ "batch: short second sync", WITH_SYNCS(LONG, TOO_SHORT), "front 2 with back 1" },
	{ "batch: sync before the last INT3",
	  PROGRAM(INT3_AT(0), SYNC(LONG), INT3_AT(1), PUT(0, BACK, 2), PUT(1, BACK, 2), SYNC(LONG),
		  FRONTS_AND_RELEASE()),
	  "tears at site 1: front 1" },
	/* The wait counts from the first INT3 and not from the last. */
	{ "batch: wait from the first INT3",
	  PROGRAM(INT3_AT(0), STAMP(0), INT3_AT(1), LABEL(5), ELAPSED(0, LONG, 5), PUT(0, BACK, 2),
		  PUT(1, BACK, 2), SYNC(LONG), FRONTS_AND_RELEASE()),
	  "tears at site 1: front 1" },
	{ "batch: sync before the last back",
	  PROGRAM(INT3_AT(0), INT3_AT(1), SYNC(LONG), PUT(0, BACK, 2), SYNC(LONG), PUT(1, BACK, 2),
		  FRONTS_AND_RELEASE()),
	  "tears at site 1: front 2" },
};

static void test_left_out(void **state)
{
	struct model model = model_of(NULL, false);

	(void)state;
	each_breaks(broken, sizeof(broken) / sizeof(*broken), &model, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batch),	   cmocka_unit_test(test_one_is_busy),
		cmocka_unit_test(test_membarrier), cmocka_unit_test(test_undo),
		cmocka_unit_test(test_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
