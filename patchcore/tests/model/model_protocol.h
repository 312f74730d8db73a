/* SPDX-License-Identifier: MIT */
/*
 * What the protocols are put together from, after site.h, word.c, flight.c and
 * trap.c; and how a test says what it expects. Labels from 70 on are used here.
 */
#ifndef PATCHCORE_TESTS_MODEL_MODEL_PROTOCOL_H
#define PATCHCORE_TESTS_MODEL_MODEL_PROTOCOL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/tests/model/model.h"

/* Of each site: the thread that writes there just now, and enum word_state. */
#define OWNER(site) (2 * (site))
#define STATE(site) (2 * (site) + 1)

#define NEW(site) (4 + (site)) /* the instruction that a change in flight is to */

enum {
	IDLE,
	HELD,
	FIRST_WAIT,
	SECOND_WAIT,
	WRITTEN
};

/* How stale a fetch can be, a wait that is safe, and one that is just not. */
#define STALE	  2
#define LONG	  (STALE + 1)
#define TOO_SHORT STALE

/* site_try_hold(), for a change to an instruction, or on at label `busy`. */
#define HOLD_SITE_FOR(site, is, busy)                                                              \
	SWAP(OWNER(site), 0, SELF, busy), IF(STATE(site), IDLE, 70), SET(OWNER(site), 0),          \
		JUMP(busy), LABEL(70), HOLD(site), SET(NEW(site), is), SET(STATE(site), HELD)

/* The same where it does not matter to which instruction. */
#define HOLD_SITE(site, busy)                                                                      \
	SWAP(OWNER(site), 0, SELF, busy), IF(STATE(site), IDLE, 70), SET(OWNER(site), 0),          \
		JUMP(busy), LABEL(70), HOLD(site), SET(STATE(site), HELD)

/* site_release() */
#define RELEASE_SITE(site) SET(STATE(site), IDLE), RELEASE(site), SET(OWNER(site), 0)

/* A sync: a wait of so many ticks, or a membarrier. */
#define BARRIER 0xfd
#define SYNC(by)                                                                                   \
	OP((by) == BARRIER ? OP_SYNC_BEGIN : OP_WAIT, by, 0, 0, 0, 0),                             \
		OP((by) == BARRIER ? OP_SYNC_END : OP_LABEL, 79, 0, 0, 0, 0)

/* word_finish(). */
#define FINISH(site, first, back, second, front, is)                                               \
	SYNC(first), PUT(site, BACK, back), SYNC(second), PUT_AS(site, FRONT, front, is)

/* word_patch() of a straddler; 9 is the label behind it. */
#define PATCH(site, first, back, second, front, is)                                                \
	HOLD_SITE(site, 9), PUT_INT3(site, 8), FINISH(site, first, back, second, front, is),       \
		LABEL(8), RELEASE_SITE(site), LABEL(9)

/* settle_trap(), up to the first look at the turn; 73 is what to do while it is odd. */
#define SETTLE(site, again)                                                                        \
	LABEL(72), IF_ODD(site, 73), IF_INT3(site, 74), JUMP(again), LABEL(74), IF_TURN(site, 75), \
		JUMP(again), LABEL(75), FOREIGN(), JUMP(again), LABEL(73)

/* An executor that only waits while the site is held, and now and then goes back. */
#define EXECUTOR(site) LABEL(71), FETCH(site, 71), SETTLE(site, 71), MAYBE(71), JUMP(72)

/* A signal handler that runs the site; what follows is done where its thread owns it. */
#define SIGNAL_RUNS(site)                                                                          \
	SIGNAL(), LABEL(71), FETCH(site, 99), SETTLE(site, 71), IF(OWNER(site), SELF, 76),         \
		MAYBE(71), JUMP(72), LABEL(76)

#define SIGNAL_ENDS() JUMP(71), LABEL(99), END()

/* A program with a part of the protocol left out, and what comes of it. */
struct model_broken {
	const char *name;
	const struct model_op *program;
	const char *how;
};

#define PROGRAM(...)                                                                               \
	(const struct model_op[])                                                                  \
	{                                                                                          \
		__VA_ARGS__, END()                                                                 \
	}

static inline void holds_as(const char *name, const struct model *model)
{
	struct check_verdict verdict;

	model_check(name, model, false, &verdict);
	assert_string_equal(verdict.wrong, "");
	assert_true(verdict.complete);
}

/* Both with fetches that may go back in time, and in order. */
static inline void holds(const char *name, const struct model *model)
{
	struct model other = *model;

	other.monotone = false;
	holds_as(name, &other);
	other.monotone = true;
	holds_as(name, &other);
}

static inline void breaks(const char *name, const struct model *model, const char *how)
{
	struct check_verdict verdict;

	model_check(name, model, true, &verdict);
	assert_true(verdict.is_wrong);
	if (!strstr(verdict.wrong, how))
		fail_msg("%s: found \"%s\", not \"%s\"", name, verdict.wrong, how);
}

/* Each in turn as the program of one thread of the model. */
static inline void each_breaks(const struct model_broken *broken, size_t n, struct model *model,
			       unsigned thread)
{
	for (size_t i = 0; i < n; i++) {
		model->threads[thread].program = broken[i].program;
		breaks(broken[i].name, model, broken[i].how);
	}
}

#endif
