/* SPDX-License-Identifier: MIT */
/*
 * The asynchronous word protocol: one thread starts a change, any thread finishes it, also when
 * the first one is gone. model.h says what is modelled.
 */
#include "patchcore/tests/model/model_protocol.h"

/* Instruction n has front n and back n. */
static const struct model_code codes[] = { { 1, 1, 1 }, { 2, 2, 2 }, { 3, 3, 3 }, { 0, 0, 0 } };

#define VICTIM 1 /* the thread that may die */

/* flight_start(); 9 is behind it. */
#define START(is)                                                                                  \
	HOLD_SITE_FOR(0, is, 9), PUT_INT3(0, 8), STAMP(0), SET(STATE(0), FIRST_WAIT),              \
		SET(OWNER(0), 0), JUMP(9), LABEL(8), RELEASE_SITE(0), LABEL(9)

#define PUT_NEW_BACK()	PUT(0, BACK, VAR(NEW(0)))
#define PUT_NEW_FRONT() PUT_AS(0, FRONT, VAR(NEW(0)), VAR(NEW(0)))

/* step() and leave() by an owner: 61 for the first, 62 for the second, 63 to leave. */
#define STEP_OWNED(first, second, again)                                                           \
	IF(STATE(0), FIRST_WAIT, 61), IF(STATE(0), SECOND_WAIT, 62), SET(OWNER(0), 0),             \
		JUMP(again), LABEL(61), ELAPSED(0, first, 63), PUT_NEW_BACK(), STAMP(0),           \
		SET(STATE(0), SECOND_WAIT), JUMP(63), LABEL(62), ELAPSED(0, second, 63),           \
		PUT_NEW_FRONT(), SET(STATE(0), WRITTEN), RELEASE_SITE(0), JUMP(again), LABEL(63),  \
		SET(OWNER(0), 0), JUMP(again)

/* flight_step() */
#define STEP(first, second, again, busy)                                                           \
	SWAP(OWNER(0), 0, SELF, busy), STEP_OWNED(first, second, again)

/* take_over_site(): 64 for a change that was never begun, 65 for one whose INT3 stands. */
#define ADOPT(released, again)                                                                     \
	IF(STATE(0), IDLE, 64), IF_INT3(0, 65), SET(STATE(0), WRITTEN), LABEL(66),                 \
		RELEASE_SITE(0), JUMP(again), LABEL(65), STAMP(0), SET(STATE(0), FIRST_WAIT),      \
		SET(OWNER(0), 0), JUMP(again), LABEL(64), RELEASE_SITE(0), JUMP(released)

/* flight_rescue() of what the victim owned. */
#define RESCUE(released, again)                                                                    \
	IF_DEAD(OWNER(0), 67), JUMP(again), LABEL(67), SWAP(OWNER(0), VICTIM, SELF, again),        \
		ADOPT(released, again)

#define FINISHER(first, second) LABEL(60), STEP(first, second, 60, 60), END()
#define STARTER(is)		START(is), END()
#define START_AND_FINISH(is)                                                                       \
	START(is), LABEL(60), IF(STATE(0), IDLE, 99), STEP(LONG, LONG, 60, 60), LABEL(99), END()

static const struct model_op finishes[] = { FINISHER(LONG, LONG) };
static const struct model_op starts_2[] = { STARTER(2) };
static const struct model_op starts_3[] = { STARTER(3) };
static const struct model_op makes_2[] = { START_AND_FINISH(2) };
static const struct model_op makes_3[] = { START_AND_FINISH(3) };
static const struct model_op runs[] = { EXECUTOR(0), END() };

/* An executor that goes on with the change it waits for. */
static const struct model_op runs_and_helps[] = {
	LABEL(71), FETCH(0, 71), SETTLE(0, 71), STEP(LONG, LONG, 71, 71), END(),
};

static struct model model_of(const struct model_op *first, const struct model_op *second,
			     const struct model_op *executor, const struct model_op *finish)
{
	struct model model = {
		.sites = { { { { 0, 0 }, { 1, 0 } }, 1 } },
		.site_count = 1,
		.code = codes,
		.threads = {
			{ .name = "starter", .program = first, .id = VICTIM },
			{ .name = "executor", .program = executor, .id = 9, .endless = true },
			{ .name = "other", .program = second, .id = 2 },
			{ .name = "finisher", .program = finish, .id = 3, .endless = true },
		},
		.thread_count = finish ? 4 : 3,
		.stale = STALE,
		.longest = LONG,
	};

	return model;
}

/* What flight_help() does in a signal handler of the owner's thread. */
static const struct model_op helps[] = {
	SIGNAL_RUNS(0), IF(STATE(0), IDLE, 71), IF_INT3(0, 77), JUMP(71),	 LABEL(77),
	SYNC(LONG),	PUT_NEW_BACK(),		SYNC(LONG),	PUT_NEW_FRONT(), SIGNAL_ENDS(),
};

/* --- As it is ----------------------------------------------------------------------------- */

static void test_finisher(void **state)
{
	struct model model = model_of(starts_2, starts_3, runs, finishes);

	(void)state;
	holds("async: a finisher", &model);
}

static void test_finish_themselves(void **state)
{
	struct model model = model_of(makes_2, makes_3, runs, NULL);

	(void)state;
	holds("async: two patchers start and finish", &model);
}

static void test_executor_helps(void **state)
{
	struct model model = model_of(starts_2, starts_3, runs_and_helps, finishes);

	(void)state;
	holds("async: executor and finisher", &model);
}

/* With no finisher the change stays in flight until an executor runs into the site. */
static void test_no_thread_finishes(void **state)
{
	struct model model = model_of(starts_2, starts_3, runs, NULL);

	(void)state;
	breaks("async: no thread finishes", &model, "stuck");
	/* The end is not reached until the executor comes by; it always can. */
	model.threads[1].program = runs_and_helps;
	holds("async: only the executor helps", &model);
}

static void test_membarrier(void **state)
{
	static const struct model_op finish[] = {
		LABEL(60),
		SWAP(OWNER(0), 0, SELF, 60),
		IF(STATE(0), FIRST_WAIT, 61),
		IF(STATE(0), SECOND_WAIT, 62),
		LABEL(63),
		SET(OWNER(0), 0),
		JUMP(60),
		LABEL(61),
		MAYBE(63),
		SYNC(BARRIER),
		PUT_NEW_BACK(),
		SET(STATE(0), SECOND_WAIT),
		JUMP(63),
		LABEL(62),
		SYNC(BARRIER),
		PUT_NEW_FRONT(),
		SET(STATE(0), WRITTEN),
		RELEASE_SITE(0),
		JUMP(60),
		END(),
	};
	struct model model = model_of(starts_2, starts_3, runs, finish);

	(void)state;
	model.stale = STALE_FOR_EVER;
	holds("async: membarrier", &model);
}

/* --- With a part left out ----------------------------------------------------------------- */

static void finisher_breaks(const char *name, const struct model_op *finish, const char *how)
{
	struct model model = model_of(starts_2, starts_3, runs, finish);

	breaks(name, &model, how);
}

static void test_waits(void **state)
{
	static const struct model_op short_first[] = { FINISHER(TOO_SHORT, LONG) };
	static const struct model_op short_second[] = { FINISHER(LONG, TOO_SHORT) };
	static const struct model_op half_second[] = { FINISHER(LONG, LONG / 2) };

	(void)state;
	finisher_breaks("async: short first wait", short_first, "front 1 with back 2");
	finisher_breaks("async: short second wait", short_second, "front 2 with back 1");
	finisher_breaks("async: half a second wait", half_second, "front 2 with back 1");
}

/* The time of the first store does for the second. */
static void test_no_second_stamp(void **state)
{
	static const struct model_op finish[] = {
		LABEL(60),
		SWAP(OWNER(0), 0, SELF, 60),
		IF(STATE(0), FIRST_WAIT, 61),
		IF(STATE(0), SECOND_WAIT, 62),
		LABEL(63),
		SET(OWNER(0), 0),
		JUMP(60),
		LABEL(61),
		ELAPSED(0, LONG, 63),
		PUT_NEW_BACK(),
		SET(STATE(0), SECOND_WAIT),
		JUMP(63),
		LABEL(62),
		ELAPSED(0, LONG, 63),
		PUT_NEW_FRONT(),
		SET(STATE(0), WRITTEN),
		RELEASE_SITE(0),
		JUMP(60),
		END(),
	};

	(void)state;
	finisher_breaks("async: second wait from the first store", finish, "front 2 with back 1");
}

/* The time is read, and then it takes until the store is made. */
static void test_early_stamp(void **state)
{
	static const struct model_op early[] = {
		HOLD_SITE_FOR(0, 2, 9),	   STAMP(0),	     PUT_INT3(0, 8), LABEL(8),
		SET(STATE(0), FIRST_WAIT), SET(OWNER(0), 0), LABEL(9),	     END(),
	};
	struct model model = model_of(early, starts_3, runs, finishes);

	(void)state;
	breaks("async: time read before the store", &model, "front 1 with back 2");
}

static void test_clock_ahead(void **state)
{
	static const struct model_op longer[] = { FINISHER(LONG + 1, LONG + 1) };
	struct model model = model_of(starts_2, starts_3, runs, finishes);

	(void)state;
	model.threads[3].ahead = 1;
	model.longest = LONG + 1;
	breaks("async: finisher's clock is ahead", &model, "front 1 with back 2");
	model.threads[3].program = longer;
	holds("async: finisher's clock is ahead, waits allow for it", &model);
}

/* Two threads go on with it at once: one of them may be as late as the next change. */
static void test_no_owner(void **state)
{
	static const struct model_op finish[] = {
		LABEL(60),
		IF(STATE(0), FIRST_WAIT, 61),
		IF(STATE(0), SECOND_WAIT, 62),
		JUMP(60),
		LABEL(61),
		ELAPSED(0, LONG, 60),
		PUT_NEW_BACK(),
		STAMP(0),
		SET(STATE(0), SECOND_WAIT),
		JUMP(60),
		LABEL(62),
		ELAPSED(0, LONG, 60),
		PUT_NEW_FRONT(),
		SET(STATE(0), WRITTEN),
		RELEASE_SITE(0),
		JUMP(60),
		END(),
	};
	struct model model = model_of(starts_2, starts_3, runs, finish);

	(void)state;
	model.threads[model.thread_count++] = (struct model_thread){
		.name = "finisher2", .program = finish, .id = 4, .endless = true
	};
	breaks("async: no owner", &model, "tears");
}

static void test_early_disown(void **state)
{
	static const struct model_op early[] = {
		HOLD_SITE_FOR(0, 2, 9),
		STAMP(0),
		SET(STATE(0), FIRST_WAIT),
		SET(OWNER(0), 0),
		PUT_INT3(0, 9),
		LABEL(9),
		END(),
	};
	struct model model = model_of(early, starts_3, runs, finishes);

	(void)state;
	breaks("async: disowned before INT3", &model, "tears");
}

/* The turn is given back behind the owner, which may be another thread by then. */
static void test_release_after_disown(void **state)
{
	static const struct model_op finish[] = {
		LABEL(60),
		SWAP(OWNER(0), 0, SELF, 60),
		IF(STATE(0), FIRST_WAIT, 61),
		IF(STATE(0), SECOND_WAIT, 62),
		LABEL(63),
		SET(OWNER(0), 0),
		JUMP(60),
		LABEL(61),
		ELAPSED(0, LONG, 63),
		PUT_NEW_BACK(),
		STAMP(0),
		SET(STATE(0), SECOND_WAIT),
		JUMP(63),
		LABEL(62),
		ELAPSED(0, LONG, 63),
		PUT_NEW_FRONT(),
		SET(STATE(0), IDLE),
		SET(OWNER(0), 0),
		RELEASE(0),
		JUMP(60),
		END(),
	};

	(void)state;
	finisher_breaks("async: disowned before release", finish, "ends as instruction 0");
}

/* --- An owner that is no more -------------------------------------------------------------- */

static const struct model_op rescuer[] = {
	LABEL(60), STEP(LONG, LONG, 60, 68), LABEL(68), RESCUE(60, 60), END(),
};

static struct model mortal(const struct model_op *victim, const struct model_op *finish)
{
	struct model model = model_of(victim, starts_3, runs, finish);

	model.threads[0].mortal = true;
	return model;
}

static void test_dead_owner(void **state)
{
	static const struct model_op runs_and_rescues[] = {
		LABEL(71), FETCH(0, 71),   SETTLE(0, 71), STEP(LONG, LONG, 71, 68),
		LABEL(68), RESCUE(71, 71), END(),
	};
	struct model model = mortal(makes_2, rescuer);

	(void)state;
	holds("async: dead owner", &model);
	model.threads[1].program = runs_and_rescues;
	holds_as("async: dead owner, two rescuers", &model);
}

/* flight_drain(): owns what is in flight from its first sync to its end. */
static void test_drain(void **state)
{
	static const struct model_op drains[] = {
		SWAP(OWNER(0), 0, SELF, 9),
		IF(STATE(0), IDLE, 63),
		SYNC(LONG),
		PUT_NEW_BACK(),
		SYNC(LONG),
		PUT_NEW_FRONT(),
		RELEASE_SITE(0),
		JUMP(9),
		LABEL(63),
		SET(OWNER(0), 0),
		LABEL(9),
		END(),
	};
	struct model model = model_of(drains, starts_3, runs, rescuer);

	(void)state;
	holds("async: drain", &model);
	model.threads[0].mortal = true;
	holds("async: drain that dies", &model);
}

static void test_dead_owner_left(void **state)
{
	struct model model = mortal(makes_2, finishes);

	(void)state;
	breaks("async: dead owner, no thread takes over", &model, "stuck");
}

/* It goes on where it was, in the middle of the next change. */
static void test_owner_not_dead(void **state)
{
	struct model model = mortal(makes_2, rescuer);

	(void)state;
	model.threads[0].mortal = false;
	model.wrong_about = true;
	breaks("async: owner is not dead", &model, "foreign");
}

/* Going on at once where the dead one was, by a time that may be of long ago. */
static void test_take_over_without_wait(void **state)
{
	static const struct model_op finish[] = {
		LABEL(60),
		STEP(LONG, LONG, 60, 68),
		LABEL(68),
		IF_DEAD(OWNER(0), 67),
		JUMP(60),
		LABEL(67),
		SWAP(OWNER(0), VICTIM, SELF, 60),
		IF(STATE(0), IDLE, 64),
		IF_INT3(0, 65),
		SET(STATE(0), WRITTEN),
		LABEL(64),
		RELEASE_SITE(0),
		JUMP(60),
		LABEL(65),
		PUT_NEW_BACK(),
		PUT_NEW_FRONT(),
		RELEASE_SITE(0),
		JUMP(60),
		END(),
	};
	struct model model = mortal(makes_2, finish);

	(void)state;
	breaks("async: taken over without waits", &model, "tears");
}

/* It looks at the state once more when another thread already has the site. */
static void test_look_after_release(void **state)
{
	static const struct model_op finish[] = {
		LABEL(60),
		STEP(LONG, LONG, 60, 68),
		LABEL(68),
		RESCUE(69, 60),
		LABEL(69),
		IF(STATE(0), IDLE, 60),
		IF(STATE(0), WRITTEN, 66),
		SET(OWNER(0), 0),
		JUMP(60),
		END(),
	};
	static const struct model_op patches[] = {
		HOLD_SITE_FOR(0, 3, 9),
		PUT_INT3(0, 8),
		FINISH(0, LONG, 3, LONG, 3, 3),
		LABEL(8),
		RELEASE_SITE(0),
		LABEL(9),
		END(),
	};
	struct model model = mortal(makes_2, rescuer);

	(void)state;
	model.threads[2].program = patches;
	model.threads[model.thread_count++] =
		(struct model_thread){ .name = "handler", .program = helps, .id = 2, .over = 3 };
	holds_as("async: dead owner, then a patcher with a signal", &model);
	model.threads[3].program = finish;
	breaks("async: a look at the state after release", &model, "stuck");
}

/* --- A signal in the owner's thread ------------------------------------------------------ */

static void test_signal(void **state)
{
	struct model model = model_of(makes_2, starts_3, runs, finishes);

	(void)state;
	model.threads[model.thread_count++] = (struct model_thread){
		.name = "handler", .program = helps, .id = VICTIM, .over = 1
	};
	holds_as("async: signal in the owner", &model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finisher),
		cmocka_unit_test(test_finish_themselves),
		cmocka_unit_test(test_executor_helps),
		cmocka_unit_test(test_no_thread_finishes),
		cmocka_unit_test(test_membarrier),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_no_second_stamp),
		cmocka_unit_test(test_early_stamp),
		cmocka_unit_test(test_clock_ahead),
		cmocka_unit_test(test_no_owner),
		cmocka_unit_test(test_early_disown),
		cmocka_unit_test(test_release_after_disown),
		cmocka_unit_test(test_dead_owner),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_dead_owner_left),
		cmocka_unit_test(test_owner_not_dead),
		cmocka_unit_test(test_take_over_without_wait),
		cmocka_unit_test(test_look_after_release),
		cmocka_unit_test(test_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
