/* SPDX-License-Identifier: MIT */
/*
 * The loops that benchmarks run: that they do what they say, so often, from where they were
 * asked to lie, and that nothing is lost while their site is changed.
 * TMAX_STRESS_SCALE lengthens that.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "bench/method/hot.h"
#include "bench/method/loop.h"
#include "patchcore/call.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/scale.h"

static const enum loop_kind kinds[] = { LOOP_EMPTY, LOOP_SITE,	  LOOP_DIRECT,
					LOOP_FLAG,  LOOP_POINTER, LOOP_FLAG_POINTER };
static const unsigned boundaries[] = { 0, 8, 64, 4096 };

#define KINDS	   (sizeof(kinds) / sizeof(kinds[0]))
#define BOUNDARIES (sizeof(boundaries) / sizeof(boundaries[0]))

static hwloc_topology_t topology;
static struct hot *hot;

static void build(struct loop *loop, enum loop_kind kind, enum loop_target target, unsigned split,
		  unsigned boundary)
{
	const struct loop_spec spec = {
		.kind = kind, .target = target, .split = split, .boundary = boundary
	};

	assert_int_equal(loop_build(loop, &spec), 0);
}

static void assert_counts(const struct loop *loop, uint64_t iterations, uint64_t first,
			  uint64_t second)
{
	/* Guarded: no loop may write beside them. */
	uint64_t counts[4] = { 70, 10, 20, 70 };

	loop->run(iterations, counts + 1);
	assert_int_equal(counts[0], 70);
	assert_int_equal(counts[1], 10 + first);
	assert_int_equal(counts[2], 20 + second);
	assert_int_equal(counts[3], 70);
}

/* --- What they do --------------------------------------------------------------------------- */

static void each_kind_counts_what_it_says(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		uint64_t calls = kinds[k] != LOOP_EMPTY;
		struct loop loop;

		build(&loop, kinds[k], LOOP_COUNT, 0, 0);
		assert_counts(&loop, 1, calls, 0);
		assert_counts(&loop, 2, 2 * calls, 0);
		assert_counts(&loop, 12345, 12345 * calls, 0);
		loop_free(&loop);
		assert_null(loop.map);
		loop_free(&loop);
	}
}

static void an_empty_target_counts_nothing(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		struct loop loop;

		build(&loop, kinds[k], LOOP_RETURN, 0, 0);
		loop.run(1000, NULL);
		assert_counts(&loop, 1000, 0, 0);
		loop_free(&loop);
	}
}

static void work_beside_the_site_changes_no_count(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		const struct loop_spec spec = {
			.kind = kinds[k], .target = LOOP_COUNT, .split = 3, .work = true
		};
		uint64_t calls = kinds[k] != LOOP_EMPTY;
		struct loop loop;

		assert_int_equal(loop_build(&loop, &spec), 0);
		assert_counts(&loop, 1000, 1000 * calls, 0);
		loop_free(&loop);
	}
}

static void a_flag_turns_the_call_on_and_off(void **state)
{
	const enum loop_kind with[] = { LOOP_FLAG, LOOP_FLAG_POINTER };

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct loop loop;

		build(&loop, with[k], LOOP_COUNT, 0, 0);
		assert_int_equal(atomic_load_explicit(loop.flag, memory_order_relaxed), 1);
		atomic_store_explicit(loop.flag, 0, memory_order_relaxed);
		assert_counts(&loop, 1000, 0, 0);
		atomic_store_explicit(loop.flag, 1, memory_order_relaxed);
		assert_counts(&loop, 1000, 1000, 0);
		loop_free(&loop);
	}
}

static void a_pointer_leads_elsewhere(void **state)
{
	const enum loop_kind with[] = { LOOP_POINTER, LOOP_FLAG_POINTER };

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct loop loop;

		build(&loop, with[k], LOOP_COUNT, 0, 0);
		atomic_store_explicit(loop.pointer, loop.target[1], memory_order_relaxed);
		assert_counts(&loop, 1000, 0, 1000);
		atomic_store_explicit(loop.pointer, loop.target[0], memory_order_relaxed);
		assert_counts(&loop, 1000, 1000, 0);
		loop_free(&loop);
	}
}

static void only_who_has_it_shows_it(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		bool flag = kinds[k] == LOOP_FLAG || kinds[k] == LOOP_FLAG_POINTER;
		bool pointer = kinds[k] == LOOP_POINTER || kinds[k] == LOOP_FLAG_POINTER;
		struct loop loop;

		build(&loop, kinds[k], LOOP_COUNT, 0, 0);
		assert_int_equal(loop.flag != NULL, flag);
		assert_int_equal(loop.pointer != NULL, pointer);
		assert_int_equal(loop.site != NULL, kinds[k] == LOOP_SITE);
		loop_free(&loop);
	}
}

static void each_code_of_a_site_does_what_it_says(void **state)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	(void)state;
	for (unsigned split = 0; split <= 4; split++) {
		struct loop loop;

		build(&loop, LOOP_SITE, LOOP_COUNT, split, 64);
		assert_memory_equal(loop.bytes[LOOP_NOP], nop, LOOP_SITE_BYTES);
		assert_memory_equal(loop.site, loop.bytes[LOOP_CALL_0], LOOP_SITE_BYTES);
		memcpy(loop.site, loop.bytes[LOOP_CALL_1], LOOP_SITE_BYTES);
		assert_counts(&loop, 1000, 0, 1000);
		memcpy(loop.site, loop.bytes[LOOP_NOP], LOOP_SITE_BYTES);
		assert_counts(&loop, 1000, 0, 0);
		memcpy(loop.site, loop.bytes[LOOP_CALL_0], LOOP_SITE_BYTES);
		assert_counts(&loop, 1000, 1000, 0);
		loop_free(&loop);
	}
}

/* --- Where they lie ------------------------------------------------------------------------- */

static void assert_lies(const void *site, unsigned split, unsigned boundary)
{
	uintptr_t at = (uintptr_t)site;

	if (split == 0) {
		assert_int_equal(at % 64, 0);
		return;
	}
	assert_int_equal((at + split) % boundary, 0);
	/* Not of a larger one: what is told apart must differ. */
	assert_int_equal((at + split) % (2 * (uintptr_t)boundary), boundary);
}

/* A few of each: a mapping may begin at an odd page or at an even one. */
static void sites_lie_where_asked(void **state)
{
	struct loop loop[5];

	(void)state;
	for (size_t b = 0; b < BOUNDARIES; b++) {
		for (unsigned split = 0; split <= 4; split++) {
			for (int i = 0; i < 5; i++) {
				build(&loop[i], LOOP_SITE, LOOP_COUNT, split, boundaries[b]);
				assert_lies(loop[i].site, split,
					    boundaries[b] ? boundaries[b] : 64);
				assert_ptr_equal(loop[i].run, loop[i].site);
				assert_counts(&loop[i], 100, 100, 0);
			}
			for (int i = 0; i < 5; i++)
				loop_free(&loop[i]);
		}
	}
}

/* What a loop costs depends on how it lies. An empty one has its branch where a site's is. */
static void other_kinds_begin_where_a_site_would(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		for (unsigned split = 0; split <= 4; split++) {
			const uint8_t *begin;
			struct loop loop;

			build(&loop, kinds[k], LOOP_COUNT, split, 64);
			begin = (const uint8_t *)(uintptr_t)loop.run;
			if (kinds[k] == LOOP_EMPTY)
				begin -= LOOP_SITE_BYTES;
			assert_lies(begin, split, 64);
			assert_counts(&loop, 10, kinds[k] == LOOP_EMPTY ? 0 : 10, 0);
			loop_free(&loop);
		}
	}
}

/* A store to data on a page that is executed may be taken for one to code. */
static void data_lie_on_a_page_of_their_own(void **state)
{
	const uintptr_t page = ~(uintptr_t)4095;
	struct loop loop;

	(void)state;
	build(&loop, LOOP_FLAG_POINTER, LOOP_COUNT, 0, 0);
	assert_true(((uintptr_t)loop.flag & page) != ((uintptr_t)loop.run & page));
	assert_true(((uintptr_t)loop.flag & page) != ((uintptr_t)loop.target[0] & page));
	assert_true(((uintptr_t)loop.pointer & page) != ((uintptr_t)loop.target[1] & page));
	assert_true(((uintptr_t)loop.flag ^ (uintptr_t)loop.pointer) >= 128);
	assert_true(((uintptr_t)loop.target[0] ^ (uintptr_t)loop.target[1]) >= 128);
	loop_free(&loop);
}

/* --- Changed while executors run them ------------------------------------------------------- */

/* Each has run it a whole round since, so the counts show it. */
static void assert_runs(enum loop_code code)
{
	struct hot_sum before, after;

	hot_cool(hot);
	before = hot_count(hot);
	hot_cool(hot);
	after = hot_count(hot);
	assert_true(after.executed > before.executed);
	assert_int_equal(after.calls[0] > before.calls[0], code == LOOP_CALL_0);
	assert_int_equal(after.calls[1] > before.calls[1], code == LOOP_CALL_1);
}

/* Nothing lost, nothing twice: only while they sleep is that exact. */
static void assert_balance(const struct hot_sum *begin, bool nops)
{
	struct hot_sum end;
	uint64_t calls;

	hot_sleep(hot);
	end = hot_count(hot);
	calls = end.calls[0] - begin->calls[0] + end.calls[1] - begin->calls[1];
	if (nops)
		assert_in_range(calls, 1, end.executed - begin->executed - 1);
	else
		assert_int_equal(calls, end.executed - begin->executed);
}

static int set_code(struct loop *loop, enum loop_code code)
{
	return pc_patch(loop->site, loop->bytes[code], LOOP_SITE_BYTES);
}

/* False: no policy is safe here. */
static bool toggle_by_patch(struct loop *loop, unsigned codes, bool look)
{
	const struct hot_work work = { hot_loop, loop };
	unsigned toggles = (unsigned)(60 * test_scale());
	struct hot_sum begin = hot_count(hot);
	uint64_t seed = codes;
	int ret = 0;

	hot_aim(hot, &work, hot_executors(hot));
	for (unsigned i = 0; i < toggles && ret == 0; i++)
		ret = set_code(loop, (enum loop_code)(random_next(&seed) % codes));
	for (unsigned code = 0; look && code < codes && ret == 0; code++) {
		ret = set_code(loop, (enum loop_code)code);
		if (ret == 0)
			assert_runs((enum loop_code)code);
	}
	if (ret == 0)
		assert_balance(&begin, codes > LOOP_NOP && look);
	hot_sleep(hot);
	assert_true(ret == 0 || ret == -ENOTSUP);
	return ret == 0;
}

static bool have_policy(void)
{
	struct pc_status status;

	assert_int_equal(pc_get_status(&status), 0);
	return status.in_use != PC_POLICY_AUTO;
}

static void patched_under_executors_every_call_counts(void **state)
{
	unsigned done = 0;

	(void)state;
	for (size_t b = 0; b < BOUNDARIES; b++) {
		for (unsigned split = 0; split <= 4; split++) {
			struct loop loop;

			build(&loop, LOOP_SITE, LOOP_COUNT, split, boundaries[b]);
			if (toggle_by_patch(&loop, LOOP_NOP, false))
				done += b > 0 || toggle_by_patch(&loop, LOOP_CODES, true);
			loop_free(&loop);
		}
	}
	/* Those of split 0 work everywhere. */
	assert_true(done >= BOUNDARIES);
	if (have_policy())
		assert_int_equal(done, 5 * BOUNDARIES);
}

static void toggle_by_call(struct loop *loop, bool look)
{
	const struct hot_work work = { hot_loop, loop };
	unsigned toggles = (unsigned)(500 * test_scale());
	struct hot_sum begin = hot_count(hot);
	struct pc_call call;
	uint64_t seed = 3;

	assert_int_equal(pc_call_init(&call, loop->site), 0);
	hot_aim(hot, &work, hot_executors(hot));
	for (unsigned i = 0; i < toggles; i++)
		assert_int_equal(pc_activate_call(&call, loop->target[random_next(&seed) % 2]), 0);
	assert_balance(&begin, false);
	hot_aim(hot, &work, hot_executors(hot));
	for (unsigned i = 0; i < toggles; i++)
		assert_int_equal(i % 2 ? pc_activate_call(&call, NULL) : pc_deactivate_call(&call),
				 0);
	for (unsigned code = 0; look && code < LOOP_NOP; code++) {
		assert_int_equal(pc_activate_call(&call, loop->target[code]), 0);
		assert_runs((enum loop_code)code);
	}
	assert_int_equal(pc_deactivate_call(&call), 0);
	assert_runs(LOOP_NOP);
	assert_balance(&begin, true);
}

/* A straddler's first target of its own is patched in: that takes a policy. */
static void retargeted_under_executors_every_call_counts(void **state)
{
	(void)state;
	for (size_t b = 0; b < BOUNDARIES; b++) {
		for (unsigned split = 0; split <= 4; split++) {
			struct loop loop;

			if (split && !have_policy())
				continue;
			build(&loop, LOOP_SITE, LOOP_COUNT, split, boundaries[b]);
			toggle_by_call(&loop, b == 0);
			loop_free(&loop);
		}
	}
}

/* Proof that the balance can be lost: a site that is not only called through. */
static void an_execution_that_is_not_counted_shows(void **state)
{
	struct loop loop;
	struct hot_work work = { hot_loop, &loop };
	struct hot_sum begin = hot_count(hot), end;

	(void)state;
	build(&loop, LOOP_SITE, LOOP_COUNT, 0, 0);
	hot_aim(hot, &work, hot_executors(hot));
	assert_int_equal(set_code(&loop, LOOP_NOP), 0);
	assert_runs(LOOP_NOP);
	assert_int_equal(set_code(&loop, LOOP_CALL_0), 0);
	assert_runs(LOOP_CALL_0);
	hot_sleep(hot);
	end = hot_count(hot);
	assert_true(end.executed - begin.executed > end.calls[0] - begin.calls[0]);
	assert_int_equal((end.executed - begin.executed) % HOT_ROUND, 0);
	loop_free(&loop);
}

/* --- On which CPUs -------------------------------------------------------------------------- */

/* With one CPU they take turns. */
static int set_up(void **state)
{
	struct seating seating = { 0 };
	hwloc_const_bitmap_t cpus;
	int foreign, next;

	(void)state;
	if (topology_open(&topology, &foreign) < 0 || pc_init() < 0)
		return -1;
	cpus = hwloc_topology_get_topology_cpuset(topology);
	seating.patcher = (unsigned)hwloc_bitmap_first(cpus);
	next = hwloc_bitmap_next(cpus, (int)seating.patcher);
	seating.executors = 1;
	seating.executor[0] = next < 0 ? seating.patcher : (unsigned)next;
	if (pin_this_thread(topology, seating.patcher) < 0)
		return -1;
	return hot_start(&hot, topology, &seating);
}

static int tear_down(void **state)
{
	(void)state;
	hot_stop(hot);
	hwloc_topology_destroy(topology);
	return pc_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_counts_what_it_says),
		cmocka_unit_test(an_empty_target_counts_nothing),
		cmocka_unit_test(work_beside_the_site_changes_no_count),
		cmocka_unit_test(a_flag_turns_the_call_on_and_off),
		cmocka_unit_test(a_pointer_leads_elsewhere),
		cmocka_unit_test(only_who_has_it_shows_it),
		cmocka_unit_test(each_code_of_a_site_does_what_it_says),
		cmocka_unit_test(sites_lie_where_asked),
		cmocka_unit_test(other_kinds_begin_where_a_site_would),
		cmocka_unit_test(data_lie_on_a_page_of_their_own),
		cmocka_unit_test(patched_under_executors_every_call_counts),
		cmocka_unit_test(retargeted_under_executors_every_call_counts),
		cmocka_unit_test(an_execution_that_is_not_counted_shows),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
