/* SPDX-License-Identifier: MIT */
/* Static branches: sides, sets, counts, vetoes, the environment, and threads that run them. */
#include <cpuid.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "patchcore/tests/scale.h"
#include "probes/include/fastinst/branch.h"

__attribute__((noinline)) static int plain(void)
{
	return fi_branch(unit, plain) ? 2 : 1;
}

__attribute__((noinline)) static int usual(void)
{
	return fi_branch_true(unit, usual) ? 2 : 1;
}

/* One switch, a site in each function that this is inlined into. */
static inline __attribute__((always_inline)) int many(int n)
{
	if (fi_branch(unit, many))
		return n * 2;
	return n;
}

__attribute__((noinline)) static int many_1(void)
{
	return many(1);
}

__attribute__((noinline)) static int many_sum(void)
{
	int sum = 0;

	for (int i = 0; i < 4; i++)
		sum += many(i) + many(10);
	return sum;
}

__attribute__((noinline)) static int from_outside(void)
{
	return fi_branch(env, on) + 2 * fi_branch_true(env, off) + 4 * fi_branch(env, vetoed);
}

/* Sites that disagree on what is usual: the second one that is found stays as it is. */
__attribute__((noinline)) static int mixed(void)
{
	return fi_branch(unit, mixed) + 2 * fi_branch_true(unit, mixed);
}

static struct fi_branch_state state_of(const char *name)
{
	struct fi_branch_state states[32];
	long n = fi_branches(states, 32);

	assert_in_range(n, 1, 32);
	for (long i = 0; i < n; i++)
		if (strcmp(states[i].name, name) == 0)
			return states[i];
	fail_msg("no %s", name);
	return states[0];
}

static int start(void **state)
{
	(void)state;
	assert_int_equal(fi_branch_on("*"), -ESHUTDOWN);
	setenv("FASTINST_BRANCHES", "env.*=on,env.off=off,env.vetoed=veto", 1);
	assert_int_equal(fi_init(), 0);
	assert_null(fi_branch_settings());
	return 0;
}

static void each_side(void **state)
{
	(void)state;
	assert_int_equal(plain(), 1);
	assert_int_equal(usual(), 2);
	assert_int_equal(fi_branch_on("unit.plain"), 1);
	assert_int_equal(fi_branch_off("unit.usual"), 1);
	assert_int_equal(plain(), 2);
	assert_int_equal(usual(), 1);
	assert_int_equal(fi_branch_off("unit.plain"), 1);
	assert_int_equal(fi_branch_on("unit.usual"), 1);
	assert_int_equal(plain(), 1);
	assert_int_equal(usual(), 2);
	assert_int_equal(fi_branch_on("unit.nothing"), 0);
	assert_int_equal(fi_branch_on(NULL), -EINVAL);
}

static void sets(void **state)
{
	int idle = many_sum();

	(void)state;
	assert_int_equal(idle, 46);
	assert_true(state_of("unit.many").sites >= 3);
	assert_int_equal(state_of("unit.many").refused, 0);
	assert_int_equal(fi_branch_on("unit.[pm]*"), 3);
	assert_int_equal(many_1(), 2);
	assert_int_equal(many_sum(), 2 * idle);
	assert_int_equal(plain(), 2);
	assert_int_equal(usual(), 2);
	assert_int_equal(fi_branch_off("unit.[pm]*"), 3);
	assert_int_equal(many_sum(), idle);
	assert_int_equal(fi_branch_on("/^unit\\.(plain|many)$/"), 2);
	assert_int_equal(many_sum(), 2 * idle);
	assert_int_equal(plain(), 2);
	assert_int_equal(fi_branch_off("/n.t\\.[pm](lain|any)/"), 2);
	assert_int_equal(many_sum(), idle);
	assert_int_equal(plain(), 1);
	assert_int_equal(fi_branch_on("/(/"), -EINVAL);
	assert_int_equal(fi_branch_on("/unit"), -EINVAL);
}

static void counts(void **state)
{
	(void)state;
	fi_branch_on("unit.plain");
	fi_branch_on("unit.plain");
	assert_int_equal(state_of("unit.plain").count, 2);
	fi_branch_off("unit.plain");
	assert_int_equal(plain(), 2);
	fi_branch_off("unit.plain");
	assert_int_equal(plain(), 1);
	fi_branch_off("unit.plain");
	assert_int_equal(state_of("unit.plain").count, 0);
	fi_branch_on("unit.plain");
	assert_int_equal(plain(), 2);
	fi_branch_off("unit.plain");
}

static void vetoes(void **state)
{
	(void)state;
	fi_branch_on("unit.plain");
	assert_int_equal(fi_branch_veto("unit.*n"), 1);
	fi_branch_veto("unit.plain");
	assert_int_equal(plain(), 1);
	fi_branch_on("unit.plain");
	assert_int_equal(plain(), 1);
	fi_branch_allow("unit.plain");
	assert_int_equal(plain(), 1);
	fi_branch_allow("unit.plain");
	assert_int_equal(plain(), 2);
	assert_int_equal(state_of("unit.plain").count, 2);
	fi_branch_veto("unit.plain");
	fi_branch_off("unit.plain");
	fi_branch_off("unit.plain");
	fi_branch_allow("unit.plain");
	assert_int_equal(plain(), 1);
	/* A veto on what is usually true keeps it true. */
	fi_branch_off("unit.usual");
	assert_int_equal(usual(), 1);
	fi_branch_veto("unit.usual");
	assert_int_equal(usual(), 2);
	fi_branch_allow("unit.usual");
	assert_int_equal(usual(), 1);
	fi_branch_on("unit.usual");
	assert_int_equal(usual(), 2);
}

static void environment(void **state)
{
	(void)state;
	assert_int_equal(from_outside(), 1);
	assert_int_equal(state_of("env.vetoed").vetoes, 1);
	assert_int_equal(state_of("env.vetoed").count, 1);
}

static void disagreement(void **state)
{
	struct fi_branch_state mixed_state = state_of("unit.mixed");

	(void)state;
	assert_int_equal(mixed_state.sites, 2);
	assert_int_equal(mixed_state.refused, 1);
	assert_non_null(strstr(mixed_state.reason, "usually true at one site"));
	assert_int_equal(mixed(), 2);
}

/* --- Threads ---------------------------------------------------------------------------------- */

enum {
	UNKNOWN = 0,
	FALSE_NOW,
	TRUE_NOW
};

struct race {
	_Atomic int now;
	_Atomic int done;
	_Atomic uint64_t judged;
	_Atomic uint64_t wrong;
};

/* What is fetched behind it was not fetched before what is in front of it was done. */
static void serialise(void)
{
	unsigned a, b, c, d;

	__cpuid(0, a, b, c, d);
}

static void *execute(void *data)
{
	struct race *race = data;
	int before, after, side;

	while (!atomic_load_explicit(&race->done, memory_order_relaxed)) {
		before = atomic_load_explicit(&race->now, memory_order_acquire);
		serialise();
		side = many_1() == 2 ? TRUE_NOW : FALSE_NOW;
		after = atomic_load_explicit(&race->now, memory_order_acquire);
		if (before == UNKNOWN || before != after)
			continue;
		atomic_fetch_add_explicit(&race->judged, 1, memory_order_relaxed);
		if (side != before)
			atomic_fetch_add_explicit(&race->wrong, 1, memory_order_relaxed);
	}
	return NULL;
}

static void wait_for_more(struct race *race, uint64_t more)
{
	uint64_t judged = atomic_load_explicit(&race->judged, memory_order_relaxed);

	while (atomic_load_explicit(&race->judged, memory_order_relaxed) < judged + more)
		sched_yield();
}

/* The broken patcher says what it is about to do as if it were done. */
static void toggle(struct race *race, int side, int broken)
{
	if (!broken)
		atomic_store_explicit(&race->now, UNKNOWN, memory_order_release);
	else
		atomic_store_explicit(&race->now, side, memory_order_release);
	if (broken)
		wait_for_more(race, 2);
	assert_int_equal((side == TRUE_NOW ? fi_branch_on : fi_branch_off)("unit.many"), 1);
	atomic_store_explicit(&race->now, side, memory_order_release);
	wait_for_more(race, 2);
}

static uint64_t wrong_sides(int broken)
{
	struct race race = { 0 };
	int rounds = (int)(400 * test_scale());
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, execute, &race), 0);
	for (int i = 0; i < rounds; i++)
		toggle(&race, i % 2 ? FALSE_NOW : TRUE_NOW, broken);
	if (rounds % 2)
		fi_branch_off("unit.many");
	atomic_store_explicit(&race.done, 1, memory_order_relaxed);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return race.wrong;
}

static void threads_take_the_right_side(void **state)
{
	(void)state;
	assert_int_equal(wrong_sides(0), 0);
}

static void a_lying_patcher_is_seen(void **state)
{
	(void)state;
	assert_true(wrong_sides(1) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_side),
		cmocka_unit_test(sets),
		cmocka_unit_test(counts),
		cmocka_unit_test(vetoes),
		cmocka_unit_test(environment),
		cmocka_unit_test(disagreement),
		cmocka_unit_test(threads_take_the_right_side),
		cmocka_unit_test(a_lying_patcher_is_seen),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
