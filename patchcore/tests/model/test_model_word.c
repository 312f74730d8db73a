/* SPDX-License-Identifier: MIT */
/*
 * The word protocol in all its interleavings (model.h says what that means), and
 * what happens when a part of it is left out.
 */
#include "patchcore/tests/model/model_protocol.h"

/* Instruction n has front n and back n. */
static const struct model_code codes[] = { { 1, 1, 1 }, { 2, 2, 2 }, { 3, 3, 3 }, { 0, 0, 0 } };

static const struct model_op runs[] = { EXECUTOR(0), END() };
static const struct model_op runs_neighbour[] = { EXECUTOR(1), END() };

static const struct model_op to_2[] = {
	PATCH(0, LONG, 2, LONG, 2, 2),
	END(),
};
static const struct model_op to_3[] = {
	PATCH(0, LONG, 3, LONG, 3, 3),
	END(),
};
static const struct model_op to_2_to_3[] = {
	PATCH(0, LONG, 2, LONG, 2, 2),
	PATCH(0, LONG, 3, LONG, 3, 3),
	END(),
};

/* One straddler, patchers and one executor. */
static struct model model_of(const struct model_op *first, const struct model_op *second)
{
	struct model model = {
		.sites = { { { { 0, 0 }, { 1, 0 } }, 1 } },
		.site_count = 1,
		.code = codes,
		.threads = {
			{ .name = "patcher", .program = first, .id = 1 },
			{ .name = "executor", .program = runs, .id = 9, .endless = true },
			{ .name = "other", .program = second, .id = 2 },
		},
		.thread_count = second ? 3 : 2,
		.stale = STALE,
		.longest = LONG,
	};

	return model;
}

/* --- As it is ----------------------------------------------------------------------------- */

static void test_one(void **state)
{
	struct model model = model_of(to_2, NULL);

	(void)state;
	for (uint8_t stale = 0; stale < LONG; stale++) {
		model.stale = stale;
		holds("word: one change", &model);
	}
	/* And the model can tell: with staler fetches the same waits are too short. */
	model.stale = LONG;
	breaks("word: staler than the waits", &model, "tears");
}

static void test_two_in_a_row(void **state)
{
	struct model model = model_of(to_2_to_3, NULL);

	(void)state;
	holds("word: two changes in a row", &model);
}

static void test_two_patchers(void **state)
{
	struct model model = model_of(to_2, to_3);

	(void)state;
	holds("word: two patchers", &model);
}

static void test_three_changes(void **state)
{
	struct model model = model_of(to_2_to_3, to_2);

	(void)state;
	holds("word: two patchers, three changes", &model);
}

static void test_two_executors(void **state)
{
	struct model model = model_of(to_2_to_3, NULL);

	(void)state;
	model.threads[model.thread_count++] = (struct model_thread){
		.name = "executor2", .program = runs, .id = 8, .endless = true
	};
	holds("word: two executors", &model);
}

/* Only one part differs: from 1 to 4 (back) and on to 2 (front). */
static void test_one_part_each(void **state)
{
	static const struct model_code mixed[] = {
		{ 1, 1, 1 }, { 1, 2, 4 }, { 2, 2, 2 }, { 0, 0, 0 }
	};
	static const struct model_op safe[] = {
		PATCH(0, LONG, 2, LONG, 1, 4),
		PATCH(0, LONG, 2, LONG, 2, 2),
		END(),
	};
	static const struct model_op bare[] = {
		PUT_AS(0, BACK, 2, 4),
		PUT_AS(0, FRONT, 2, 2),
		END(),
	};
	static const struct model_op bare_other_way[] = {
		PUT_AS(0, BACK, 2, 4),
		PUT_AS(0, FRONT, 2, 2),
		PUT_AS(0, FRONT, 1, 4),
		PUT_AS(0, BACK, 1, 1),
		END(),
	};
	struct model model = model_of(safe, NULL);

	(void)state;
	model.code = mixed;
	holds("word: one part each", &model);
	model.threads[0].program = bare;
	breaks("word: one part each, single stores", &model, "tears");
	model.threads[0].program = bare_other_way;
	breaks("word: one part each, single stores, and back", &model, "tears");
}

/* --- With a part left out ----------------------------------------------------------------- */

#define WITH_WAITS(first, second) PROGRAM(PATCH(0, first, 2, second, 2, 2))

static const struct model_broken broken[] = {
	{ "word: no first wait", WITH_WAITS(0, LONG), "tears at site 0: front 1 with back 2" },
	{ "word: short first wait", WITH_WAITS(TOO_SHORT, LONG), "front 1 with back 2" },
	{ "word: no second wait", WITH_WAITS(LONG, 0), "tears at site 0: front 2 with back 1" },
	{ "word: short second wait", WITH_WAITS(LONG, TOO_SHORT), "front 2 with back 1" },
	{ "word: half a second wait", WITH_WAITS(LONG, LONG / 2), "front 2 with back 1" },
	{ "word: no INT3",
	  PROGRAM(HOLD_SITE(0, 9), FINISH(0, LONG, 2, LONG, 2, 2), RELEASE_SITE(0), LABEL(9)),
	  "tears" },
	{ "word: front before back",
	  PROGRAM(HOLD_SITE(0, 9), PUT_INT3(0, 8), WAIT(LONG), PUT(0, FRONT, 2), WAIT(LONG),
		  PUT_AS(0, BACK, 2, 2), LABEL(8), RELEASE_SITE(0), LABEL(9)),
	  "tears" },
	{ "word: release before front",
	  PROGRAM(HOLD_SITE(0, 9), PUT_INT3(0, 8), WAIT(LONG), PUT(0, BACK, 2), WAIT(LONG),
		  RELEASE_SITE(0), PUT_AS(0, FRONT, 2, 2), JUMP(9), LABEL(8), RELEASE_SITE(0),
		  LABEL(9)),
	  "foreign" },
};

static void test_left_out(void **state)
{
	struct model model = model_of(NULL, NULL);

	(void)state;
	each_breaks(broken, sizeof(broken) / sizeof(*broken), &model, 0);
}

/* A mix that is an instruction, too, is still one that never stood there. */
static void test_mix_is_code(void **state)
{
	static const struct model_code mixed[] = {
		{ 1, 1, 1 }, { 2, 2, 2 }, { 1, 2, 4 }, { 0, 0, 0 }
	};
	static const struct model_op patch[] = { PATCH(0, 0, 2, LONG, 2, 2), END() };
	struct model model = model_of(patch, NULL);

	(void)state;
	model.code = mixed;
	breaks("word: no first wait, and the mix is code", &model, "runs instruction 4");
}

/* Two patchers that do not look at the owner: the INT3 of the one is no lock for the other. */
static void test_no_lock(void **state)
{
	static const struct model_op to_2_unheld[] = {
		PUT(0, FRONT, INT3),
		FINISH(0, LONG, 2, LONG, 2, 2),
		END(),
	};
	static const struct model_op to_3_unheld[] = {
		PUT(0, FRONT, INT3),
		FINISH(0, LONG, 3, LONG, 3, 3),
		END(),
	};
	/* An executor that goes back from every trap, so that no foreign trap is found. */
	static const struct model_op tries_again[] = { LABEL(71), FETCH(0, 71), JUMP(71), END() };
	struct model model = model_of(to_2_unheld, to_3_unheld);

	(void)state;
	model.threads[1].program = tries_again;
	breaks("word: no lock", &model, "tears");
}

/* Looking at the turn once is not enough: free, held, free between two looks. */
static void test_one_look(void **state)
{
	static const struct model_op looks_once[] = {
		LABEL(71), FETCH(0, 71), LABEL(72), IF_ODD(0, 73), IF_INT3(0, 74),
		JUMP(71),  LABEL(74),	 FOREIGN(), JUMP(71),	   LABEL(73),
		MAYBE(71), JUMP(72),	 END(),
	};
	struct model model = model_of(to_2_to_3, NULL);

	(void)state;
	model.threads[1].program = looks_once;
	breaks("word: one look at the turn", &model, "foreign");
}

/* --- Neighbours ---------------------------------------------------------------------------- */

/* The back of site 0 and the front of site 1 share a line. */
static struct model neighbours(const struct model_op *patch)
{
	static const struct model_op other[] = {
		PATCH(1, LONG, 2, LONG, 2, 2),
		END(),
	};
	struct model model = model_of(patch, other);

	model.sites[1] = (struct model_site){ { { 1, 1 }, { 2, 0 } }, 1 };
	model.site_count = 2;
	model.threads[model.thread_count++] = (struct model_thread){
		.name = "executor2", .program = runs_neighbour, .id = 8, .endless = true
	};
	return model;
}

static void test_neighbours(void **state)
{
	static const struct model_op stale_bytes[] = {
		LOAD(0, BACK),
		HOLD_SITE(0, 9),
		PUT_INT3(0, 8),
		WAIT(LONG),
		PUT_LINE(0, BACK, 2),
		WAIT(LONG),
		PUT_AS(0, FRONT, 2, 2),
		LABEL(8),
		RELEASE_SITE(0),
		LABEL(9),
		END(),
	};
	struct model model = neighbours(to_2);

	(void)state;
	holds_as("word: neighbours", &model);
	model = neighbours(stale_bytes);
	breaks("word: stale neighbour bytes", &model, "executor2 tears");
}

/* --- A signal in the patcher's thread --------------------------------------------------- */

static struct model interrupted(const struct model_op *patch, const struct model_op *handler,
				const struct model_op *other)
{
	struct model model = model_of(patch, other);

	model.threads[model.thread_count++] =
		(struct model_thread){ .name = "handler", .program = handler, .id = 1, .over = 1 };
	return model;
}

static const struct model_op helps_to_2[] = {
	SIGNAL_RUNS(0), IF(STATE(0), IDLE, 71),		IF_INT3(0, 77), JUMP(71),
	LABEL(77),	FINISH(0, LONG, 2, LONG, 2, 2), SIGNAL_ENDS(),
};

static void test_signal(void **state)
{
	static const struct model_op only_waits[] = { SIGNAL_RUNS(0), SIGNAL_ENDS() };
	static const struct model_op no_second_wait[] = {
		SIGNAL_RUNS(0), IF(STATE(0), IDLE, 71),	     IF_INT3(0, 77), JUMP(71),
		LABEL(77),	FINISH(0, LONG, 2, 0, 2, 2), SIGNAL_ENDS(),
	};
	struct model model = interrupted(to_2, helps_to_2, to_3);

	(void)state;
	holds("word: signal in the patcher", &model);
	model = interrupted(to_2, only_waits, NULL);
	breaks("word: signal, and its handler only waits", &model, "stuck");
	model = interrupted(to_2, no_second_wait, NULL);
	breaks("word: handler helps past the second wait", &model, "front 2 with back 1");
}

/* Behind a stale INT3, of the change before, nothing may be written. */
static void test_signal_without_int3(void **state)
{
	static const struct model_op does_not_look[] = {
		SIGNAL_RUNS(0),
		IF(STATE(0), IDLE, 71),
		FINISH(0, LONG, 2, LONG, 2, 2),
		SIGNAL_ENDS(),
	};
	struct model model = interrupted(to_2, does_not_look, to_3);

	(void)state;
	breaks("word: handler helps where no INT3 stands", &model, "tears");
}

/* --- Membarrier, and a first one that fails ----------------------------------------------- */

/* word_undo(), by exchange or as given; 6: there was nothing to undo. */
#define UNDOING(undo)                                                                              \
	HOLD_SITE(0, 9), PUT_INT3(0, 8), MAYBE(7), FINISH(0, BARRIER, 2, BARRIER, 2, 2), LABEL(6), \
		MUST(0, 2), JUMP(8), LABEL(7), undo, MUST(0, 1), LABEL(8), RELEASE_SITE(0),        \
		LABEL(9), END()

static const struct model_op helps_by_sync[] = {
	SIGNAL_RUNS(0),
	IF(STATE(0), IDLE, 71),
	IF_INT3(0, 77),
	JUMP(71),
	LABEL(77),
	MAYBE(71),
	FINISH(0, BARRIER, 2, BARRIER, 2, 2),
	SIGNAL_ENDS(),
};

static void test_membarrier(void **state)
{
	static const struct model_op patches[] = {
		PATCH(0, BARRIER, 2, BARRIER, 2, 2),
		PATCH(0, BARRIER, 3, BARRIER, 3, 3),
		END(),
	};
	static const struct model_op other[] = { PATCH(0, BARRIER, 3, BARRIER, 3, 3), END() };
	static const struct model_op no_second[] = {
		PATCH(0, BARRIER, 2, 0, 2, 2),
		END(),
	};
	static const struct model_op no_first[] = {
		PATCH(0, 0, 2, BARRIER, 2, 2),
		END(),
	};
	struct model model = model_of(patches, other);

	(void)state;
	model.stale = STALE_FOR_EVER;
	model.threads[model.thread_count++] = (struct model_thread){
		.name = "executor2", .program = runs, .id = 8, .endless = true
	};
	holds("word: membarrier", &model);
	model.threads[0].program = no_first;
	breaks("word: membarrier, no first", &model, "tears");
	model.threads[0].program = no_second;
	breaks("word: membarrier, no second", &model, "tears");
}

static void test_undo(void **state)
{
	static const struct model_op exchanges[] = { UNDOING(EXCHANGE(0, INT3, 1, 0, 6)) };
	static const struct model_op stores[] = { UNDOING(PUT(0, FRONT, 1)) };
	struct model model = interrupted(exchanges, helps_by_sync, NULL);

	(void)state;
	model.stale = STALE_FOR_EVER;
	holds("word: undo after a sync that failed", &model);
	model.threads[0].program = stores;
	breaks("word: undo over a completed change", &model, "front 1 with back 2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_two_in_a_row),
		cmocka_unit_test(test_two_patchers),
		cmocka_unit_test(test_three_changes),
		cmocka_unit_test(test_two_executors),
		cmocka_unit_test(test_one_part_each),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_mix_is_code),
		cmocka_unit_test(test_no_lock),
		cmocka_unit_test(test_one_look),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_signal_without_int3),
		cmocka_unit_test(test_membarrier),
		cmocka_unit_test(test_undo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
