/* SPDX-License-Identifier: MIT */
/* Turning calls on and off, and giving them other targets. model.h says what is modelled. */
#include "patchcore/tests/model/model_protocol.h"

enum {
	CALLS_OLD = 1,
	CALLS_NEW,
	OFF
};

static const struct model_op runs[] = { EXECUTOR(0), END() };

static struct model model_of(const struct model_code *codes, const struct model_op *first,
			     const struct model_op *second)
{
	struct model model = {
		.sites = { { { { 0, 0 }, { 1, 0 } }, CALLS_OLD } },
		.site_count = 1,
		.code = codes,
		.threads = {
			{ .name = "first", .program = first, .id = 1 },
			{ .name = "executor", .program = runs, .id = 9, .endless = true },
			{ .name = "second", .program = second, .id = 2 },
		},
		.thread_count = second ? 3 : 2,
		.stale = STALE,
		.longest = LONG,
	};

	return model;
}

/* --- Way DISP: the displacement lies inside one window ---------------------------------- */

/* Backs: the old target, the new one, the stub that returns. */
static const struct model_code displacements[] = {
	{ 1, 1, CALLS_OLD }, { 1, 2, CALLS_NEW }, { 1, 3, OFF }, { 0, 0, 0 }
};

static void test_displacement(void **state)
{
	static const struct model_op toggles[] = {
		PUT_AS(0, BACK, 3, OFF),
		PUT_AS(0, BACK, 1, CALLS_OLD),
		PUT_AS(0, BACK, 3, OFF),
		END(),
	};
	static const struct model_op retargets[] = {
		PUT_AS(0, BACK, 2, CALLS_NEW),
		PUT_AS(0, BACK, 3, OFF),
		END(),
	};
	struct model model = model_of(displacements, toggles, retargets);

	(void)state;
	holds("call: displacement", &model);
	/* It waits for nothing, so no bound is needed for it. */
	model.stale = STALE_FOR_EVER;
	holds("call: displacement, stale for ever", &model);
}

/* The displacement itself is cut: its low bytes are in the front. */
static void test_displacement_in_two(void **state)
{
	static const struct model_code cut[] = { { 1, 1, CALLS_OLD },
						 { 2, 2, CALLS_NEW },
						 { 0, 0, 0 } };
	static const struct model_op front_first[] = {
		PUT(0, FRONT, 2),
		PUT_AS(0, BACK, 2, CALLS_NEW),
		END(),
	};
	static const struct model_op back_first[] = {
		PUT(0, BACK, 2),
		PUT_AS(0, FRONT, 2, CALLS_NEW),
		END(),
	};
	struct model model = model_of(cut, front_first, NULL);

	(void)state;
	breaks("call: displacement in two stores, front first", &model, "tears");
	model.threads[0].program = back_first;
	breaks("call: displacement in two stores, back first", &model, "tears");
}

/* --- Way FRONT: the first two bytes of a front of two or more ---------------------------- */

/*
 * Fronts: call and jump with what is left of the old displacement behind them,
 * the same with that of the new one, and a call with the low byte of the old and
 * the rest of the new, where these are not the same.
 */
enum {
	ON_OLD = 1,
	OFF_OLD,
	ON_NEW,
	OFF_NEW,
	ON_MIXED
};

static const struct model_code fronts[] = {
	{ ON_OLD, 1, CALLS_OLD },
	{ ON_NEW, 2, CALLS_NEW },
	{ OFF_OLD, ANY, OFF },
	{ OFF_NEW, ANY, OFF },
	{ 0, 0, 0 },
};

/* One compare-exchange of two bytes; those behind them do not matter. */
#define TURN_OFF()                                                                                 \
	EXCHANGE(0, ON_OLD, OFF_OLD, NOW, 50), JUMP(51), LABEL(50),                                \
		EXCHANGE(0, ON_NEW, OFF_NEW, NOW, 51), LABEL(51)
#define TURN_ON()                                                                                  \
	EXCHANGE(0, OFF_OLD, ON_OLD, NOW, 52), JUMP(53), LABEL(52),                                \
		EXCHANGE(0, OFF_NEW, ON_NEW, NOW, 53), LABEL(53)
#define RETARGET() PATCH(0, LONG, 2, LONG, ON_NEW, CALLS_NEW)

static const struct model_op toggles[] = { TURN_OFF(), TURN_ON(), TURN_OFF(), END() };
static const struct model_op turns_on[] = { TURN_ON(), END() };
static const struct model_op retargets[] = { RETARGET(), END() };
static const struct model_op retargets_and_toggles[] = {
	RETARGET(), TURN_OFF(), TURN_ON(), TURN_OFF(), END(),
};

static void test_front(void **state)
{
	struct model model = model_of(fronts, toggles, turns_on);

	(void)state;
	holds("call: front", &model);
	model.stale = STALE_FOR_EVER;
	holds("call: front, stale for ever", &model);
}

static void test_retarget(void **state)
{
	struct model model = model_of(fronts, toggles, retargets_and_toggles);

	(void)state;
	holds("call: front, and given another target", &model);
}

/* A signal in the thread that retargets; its handler runs the call and makes the change. */
static void test_retarget_interrupted(void **state)
{
	static const struct model_op helps[] = {
		SIGNAL_RUNS(0), IF(STATE(0), IDLE, 71),
		IF_INT3(0, 77), JUMP(71),
		LABEL(77),	FINISH(0, LONG, 2, LONG, ON_NEW, CALLS_NEW),
		SIGNAL_ENDS(),
	};
	struct model model = model_of(fronts, toggles, retargets);

	(void)state;
	model.threads[model.thread_count++] =
		(struct model_thread){ .name = "handler", .program = helps, .id = 2, .over = 3 };
	holds("call: retargeting is interrupted", &model);
}

/* A store where the compare-exchange should be goes over the INT3. */
static void test_no_exchange(void **state)
{
	static const struct model_op stores_on[] = { PUT_AS(0, FRONT, ON_OLD, NOW), END() };
	static const struct model_op stores_off[] = { PUT_AS(0, FRONT, OFF_OLD, NOW), END() };
	struct model model = model_of(fronts, stores_on, retargets);

	(void)state;
	breaks("call: turned on by a store", &model, "front 1 with back 2");
	/*
	 * Off is a jump over the back: harmless by itself, but not for the thread that turns it
	 * on.
	 */
	model.threads[0].program = stores_off;
	model.threads[model.thread_count++] =
		(struct model_thread){ .name = "third", .program = turns_on, .id = 3 };
	breaks("call: turned off by a store", &model, "front 1 with back 2");
}

/* The thread that turns it on has read the old low byte before the move. */
static void test_low_byte(void **state)
{
	static const struct model_op stalled[] = {
		EXCHANGE(0, OFF_OLD, ON_OLD, NOW, 50),	 JUMP(51),  LABEL(50),
		EXCHANGE(0, OFF_NEW, ON_MIXED, NOW, 51), LABEL(51), END(),
	};
	struct model model = model_of(fronts, stalled, retargets_and_toggles);

	(void)state;
	breaks("call: stub with another low byte", &model, "front 5 with back 2");
}

static void test_retarget_by_stores(void **state)
{
	static const struct model_op back_first[] = {
		PUT(0, BACK, 2),
		PUT_AS(0, FRONT, ON_NEW, CALLS_NEW),
		END(),
	};
	static const struct model_op while_off[] = {
		TURN_OFF(),
		PUT(0, BACK, 2),
		PUT_AS(0, FRONT, ON_NEW, CALLS_NEW),
		END(),
	};
	struct model model = model_of(fronts, back_first, NULL);

	(void)state;
	breaks("call: given another target by stores", &model, "tears");
	/*
	 * An executor that has fetched the call before it was turned off has not fetched the back
	 * yet.
	 */
	model.threads[0].program = while_off;
	breaks("call: given another target by stores while off", &model, "tears");
}

/* Where the front keeps all its bytes, one store to the back does. */
static void test_retarget_of_back(void **state)
{
	static const struct model_code same_front[] = { { ON_OLD, 1, CALLS_OLD },
							{ ON_OLD, 2, CALLS_NEW },
							{ OFF_OLD, ANY, OFF },
							{ 0, 0, 0 } };
	static const struct model_op stores[] = { PUT_AS(0, BACK, 2, CALLS_NEW), END() };
	struct model model = model_of(same_front, stores, NULL);

	(void)state;
	holds("call: front keeps its bytes", &model);
}

/*
 * And if it is off meanwhile, nothing tears either; but an executor may find it
 * on again, then off, and then on: it still had the call from before.
 */
static void test_retarget_of_back_while_off(void **state)
{
	static const struct model_code same_front[] = {
		{ ON_OLD, 1, CALLS_OLD },
		{ ON_OLD, 2, CALLS_NEW },
		{ OFF_OLD, ANY, OFF },
		{ 0, 0, 0 },
	};
	static const struct model_op stores[] = {
		EXCHANGE(0, ON_OLD, OFF_OLD, OFF, 9),
		PUT_AS(0, BACK, 2, CALLS_NEW),
		EXCHANGE(0, OFF_OLD, ON_OLD, CALLS_NEW, 9),
		LABEL(9),
		END(),
	};
	struct model model = model_of(same_front, stores, NULL);

	(void)state;
	holds_as("call: front keeps its bytes, off meanwhile", &model);
	model.monotone = true;
	breaks("call: front keeps its bytes, off meanwhile, in order", &model,
	       "runs instruction 3 of site 0 out of order");
}

/* --- Tail calls: one byte, C3 or E9 ---------------------------------------------------------- */

static void test_tail(void **state)
{
	static const struct model_op byte_stores[] = {
		PUT_AS(0, FRONT, OFF_OLD, OFF),
		PUT_AS(0, FRONT, ON_OLD, CALLS_OLD),
		PUT_AS(0, FRONT, OFF_OLD, OFF),
		END(),
	};
	struct model model = model_of(fronts, byte_stores, NULL);

	(void)state;
	holds("call: tail", &model);
	model.stale = STALE_FOR_EVER;
	holds("call: tail, stale for ever", &model);
	model.stale = STALE;
	model.threads[0].program = toggles;
	model.threads[model.thread_count++] =
		(struct model_thread){ .name = "second", .program = retargets, .id = 2 };
	holds("call: tail by exchange, and given another target", &model);
	model.threads[0].program = byte_stores;
	breaks("call: tail by stores, and given another target", &model, "tears");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_displacement),
		cmocka_unit_test(test_displacement_in_two),
		cmocka_unit_test(test_front),
		cmocka_unit_test(test_retarget),
		cmocka_unit_test(test_retarget_interrupted),
		cmocka_unit_test(test_no_exchange),
		cmocka_unit_test(test_low_byte),
		cmocka_unit_test(test_retarget_by_stores),
		cmocka_unit_test(test_retarget_of_back),
		cmocka_unit_test(test_retarget_of_back_while_off),
		cmocka_unit_test(test_tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
