/* SPDX-License-Identifier: MIT */
/*
 * The made-up program: laid out as asked, run by executors while it is patched, and every
 * call accounted for. TMAX_STRESS_SCALE lengthens that.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/cases/latency.c"
#include "bench/tests/bench_run.h"
#include "patchcore/call.h"
#include "patchcore/machine/wait.h"

#define MANY   20000
#define SOME   500
#define PASSES 6

static struct bench_run run;

static void build_sites(struct looped_sites *sites, unsigned long count, uint64_t seed)
{
	assert_int_equal(sites_build(sites, count, seed), 0);
	assert_int_equal(sites->count, count);
}

static int put_site(const struct looped_sites *sites, unsigned long i, bool on)
{
	uint8_t code[SITES_LENGTH];

	sites_code(sites, i, on, code);
	return pc_patch(sites->site[i], code, sizeof(code));
}

static void put_all(const struct looped_sites *sites, bool on)
{
	for (unsigned long i = 0; i < sites->count; i++)
		assert_int_equal(put_site(sites, i, on), 0);
}

/* A thread that wrote code has to serialise before it runs that code. */
static void serialise(void)
{
	__asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx", "memory");
}

static void sites_are_calls_inside_aligned_functions(void **state)
{
	struct looped_sites sites;

	(void)state;
	build_sites(&sites, SOME, 1);
	for (unsigned long i = 0; i < sites.count; i++) {
		const uint8_t *start = (const uint8_t *)(uintptr_t)sites.run[i];
		uint8_t code[SITES_LENGTH];

		assert_int_equal((uintptr_t)start % 16, 0);
		assert_true(sites.site[i] > start);
		if (i + 1 < sites.count)
			assert_true(sites.site[i] + SITES_LENGTH <
				    (const uint8_t *)(uintptr_t)sites.run[i + 1]);
		sites_code(&sites, i, true, code);
		assert_memory_equal(sites.site[i], code, sizeof(code));
		assert_int_equal(code[0], 0xe8);
	}
	sites_free(&sites);
}

static void same_seed_same_program(void **state)
{
	struct looped_sites one, same, other;
	unsigned long moved = 0;

	(void)state;
	build_sites(&one, SOME, 1);
	build_sites(&same, SOME, 1);
	build_sites(&other, SOME, 2);
	assert_memory_equal(one.map, same.map, one.bytes);
	for (unsigned long i = 0; i < SOME; i++)
		moved += one.site[i] - one.map != other.site[i] - other.map;
	assert_true(moved > SOME / 2);
	sites_free(&one);
	sites_free(&same);
	sites_free(&other);
}

/* Five standard deviations, of a seed that never changes. */
static void expect_share(const struct looped_sites *sites, unsigned boundary)
{
	double p = (SITES_LENGTH - 1) / (double)boundary;
	double deviation = sqrt(p * (1 - p) / (double)sites->count);

	assert_true(fabs(sites_straddlers(sites, boundary) - p) < 5 * deviation);
}

static void straddlers_are_as_many_as_chance_has_it(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct looped_sites sites;

		build_sites(&sites, MANY, seed);
		expect_share(&sites, 8);
		expect_share(&sites, 64);
		sites_free(&sites);
	}
}

static void a_site_crosses_where_its_bytes_are_on_both_sides(void **state)
{
	(void)state;
	for (uintptr_t at = 0; at < 128; at++)
		for (unsigned boundary = 8; boundary <= 64; boundary *= 8)
			assert_int_equal(sites_crosses((const uint8_t *)at, boundary),
					 at / boundary != (at + SITES_LENGTH - 1) / boundary);
}

static void each_function_calls_when_on_and_not_when_off(void **state)
{
	struct looped_sites sites;
	uint64_t calls = 0;

	(void)state;
	build_sites(&sites, SOME, 3);
	for (unsigned long i = 0; i < SOME; i++) {
		assert_int_equal(sites.run[i](&calls), 1);
		assert_int_equal(calls, i + 1);
	}
	put_all(&sites, false);
	serialise();
	for (unsigned long i = 0; i < SOME; i++)
		assert_int_equal(sites.run[i](&calls), 0);
	assert_int_equal(calls, SOME);
	put_all(&sites, true);
	serialise();
	for (unsigned long i = 0; i < SOME; i++)
		assert_int_equal(sites.run[i](&calls), 1);
	sites_free(&sites);
}

static void nothing_is_left_of_a_program(void **state)
{
	struct looped_sites sites;
	uint8_t *map;
	size_t bytes;

	(void)state;
	build_sites(&sites, SOME, 5);
	map = sites.map;
	bytes = sites.bytes;
	sites_free(&sites);
	assert_int_equal(pc_text_close(map, bytes), -ENOENT);
	assert_null(sites.site);
	sites_free(&sites);
	assert_int_equal(sites_build(&sites, 0, 1), -EINVAL);
}

/* --- While executors run it ------------------------------------------------------------------- */

struct turn {
	struct hot *hot;
	struct hot_work work;
	struct hot_sum before;
};

static void begin_turn(struct turn *turn)
{
	turn->before = hot_count(turn->hot);
	hot_aim(turn->hot, &turn->work, 1);
}

/* The executor has run each function more than once since. */
static void run_through(const struct turn *turn, const struct looped_sites *sites)
{
	for (unsigned long i = 0; i < 2 * sites->count; i += SITES_ROUND)
		hot_cool(turn->hot);
}

static struct hot_sum end_turn(struct turn *turn)
{
	struct hot_sum sum;

	hot_sleep(turn->hot);
	sum = hot_count(turn->hot);
	sum.executed -= turn->before.executed;
	sum.calls[0] -= turn->before.calls[0];
	sum.calls[1] -= turn->before.calls[1];
	assert_int_equal(sum.executed % SITES_ROUND, 0);
	assert_int_equal(sum.calls[0], sum.calls[1]);
	return sum;
}

static void expect_all_or_none(struct turn *turn, const struct looped_sites *sites, bool on)
{
	struct hot_sum sum;

	begin_turn(turn);
	run_through(turn, sites);
	sum = end_turn(turn);
	assert_true(sum.executed >= sites->count);
	assert_int_equal(sum.calls[0], on ? sum.executed : 0);
}

/* The executor runs some of it in either state, however busy this machine is. */
static void toggle_by_patch(const struct turn *turn, const struct looped_sites *sites)
{
	unsigned passes = 1 + (unsigned)(PASSES * test_scale());

	for (unsigned pass = 0; pass < 2 * passes; pass++) {
		put_all(sites, pass % 2);
		hot_cool(turn->hot);
	}
}

static void turn_calls(struct pc_call *call, unsigned long count, bool on)
{
	for (unsigned long i = 0; i < count; i++) {
		if (i % SITES_ROUND == 0)
			ticks_wait(20000);
		assert_int_equal(
			on ? pc_activate_call(&call[i], NULL) : pc_deactivate_call(&call[i]), 0);
	}
}

static void toggle_calls(const struct turn *turn, const struct looped_sites *sites)
{
	struct pc_call *call = calloc(sites->count, sizeof(*call));
	unsigned passes = 1 + (unsigned)(PASSES * test_scale());

	assert_non_null(call);
	for (unsigned long i = 0; i < sites->count; i++)
		assert_int_equal(pc_call_init(&call[i], sites->site[i]), 0);
	for (unsigned pass = 0; pass < 2 * passes; pass++) {
		turn_calls(call, sites->count, pass % 2);
		hot_cool(turn->hot);
	}
	free(call);
}

static void expect_exact_counts(void (*toggle)(const struct turn *, const struct looped_sites *))
{
	struct looped_sites sites;
	struct turn turn = { .work = { sites_run, &sites } };
	struct hot_sum sum;

	build_sites(&sites, SOME, 6);
	assert_int_equal(hot_start(&turn.hot, run.topology, &run.seating), 0);
	expect_all_or_none(&turn, &sites, true);
	begin_turn(&turn);
	toggle(&turn, &sites);
	run_through(&turn, &sites);
	sum = end_turn(&turn);
	assert_true(sum.calls[0] > 0);
	assert_true(sum.calls[0] < sum.executed);
	expect_all_or_none(&turn, &sites, true);
	put_all(&sites, false);
	expect_all_or_none(&turn, &sites, false);
	hot_stop(turn.hot);
	sites_free(&sites);
}

static void counts_are_exact_while_patched(void **state)
{
	(void)state;
	assert_int_equal(pc_set_policy(PC_POLICY_WAIT), 0);
	expect_exact_counts(toggle_by_patch);
	pc_set_policy(PC_POLICY_AUTO);
}

static void counts_are_exact_while_calls_are_turned(void **state)
{
	(void)state;
	expect_exact_counts(toggle_calls);
}

/* A function that returns what its target did not do must not go unseen. */
static void a_call_that_does_not_count_shows(void **state)
{
	struct hot_counts counts = { 0 };
	struct looped_sites sites;
	struct hot_work work = { sites_run, &sites };

	(void)state;
	build_sites(&sites, SITES_ROUND, 7);
	sites_run(&work, 0, &counts);
	assert_int_equal(counts.calls[0], SITES_ROUND);
	assert_int_equal(counts.calls[1], SITES_ROUND);
	memset(sites.map, 0x90, 3); /* inc qword [rdi] */
	serialise();
	sites_run(&work, 0, &counts);
	assert_int_equal(counts.calls[0], SITES_ROUND);
	assert_int_equal(counts.calls[1], 2 * SITES_ROUND);
	sites_free(&sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sites_are_calls_inside_aligned_functions),
		cmocka_unit_test(same_seed_same_program),
		cmocka_unit_test(straddlers_are_as_many_as_chance_has_it),
		cmocka_unit_test(a_site_crosses_where_its_bytes_are_on_both_sides),
		cmocka_unit_test(each_function_calls_when_on_and_not_when_off),
		cmocka_unit_test(nothing_is_left_of_a_program),
		cmocka_unit_test(counts_are_exact_while_patched),
		cmocka_unit_test(counts_are_exact_while_calls_are_turned),
		cmocka_unit_test(a_call_that_does_not_count_shows),
	};

	return BENCH_RUN_TESTS(&run, tests, NULL, NULL);
}
