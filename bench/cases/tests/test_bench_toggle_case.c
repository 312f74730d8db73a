/* SPDX-License-Identifier: MIT */
/* The cases of bench_toggle() one by one, and which there are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/cases/toggle.c"
#include "bench/tests/bench_run.h"
#include "patchcore/machine/wait.h"

static volatile sig_atomic_t stop;
static struct bench_run run = { .seed = 1, .rounds = 1, .stop = &stop };

/* --- One case ------------------------------------------------------------------------- */

struct one {
	struct toggle toggle;
	struct toggle_case *c;
	struct bench_case bench, floor;
	struct bench_result result;
};

static void open_shared(struct toggle *shared)
{
	assert_int_equal(spare_open(&shared->pool, TOGGLE_BATCH_MAX, TOGGLE_SPLIT), 0);
	assert_int_equal(hot_start(&shared->hot, run.topology, &run.seating), 0);
}

static void close_shared(struct toggle *shared)
{
	hot_stop(shared->hot);
	spare_close(&shared->pool);
}

static void measure_one(struct one *one, const struct toggle_spec *spec)
{
	memset(one, 0, sizeof(*one));
	one->c = aligned_alloc(128, sizeof(*one->c));
	assert_non_null(one->c);
	open_shared(&one->toggle);
	toggle_case_build(one->c, spec, &one->toggle, &one->bench, &one->floor);
	assert_int_equal(bench_measure(&run, &one->bench, 1, &one->result), 0);
}

static void free_one(struct one *one)
{
	close_shared(&one->toggle);
	toggle_case_free(one->c);
	bench_result_free(&one->result);
	free(one->c);
}

/* Calls stand as on, or through a stub of their own; all else as the call it was. */
static void check_code(const struct toggle_case *c)
{
	enum way_name way = c->spec.site.way;
	const struct loop *loop = &c->site.loop;
	struct pc_call_info info;

	if (way == WAY_CALL || way == WAY_RETARGET) {
		assert_int_equal(pc_call_get(&c->site.call, &info), 0);
		assert_true(info.active);
		assert_ptr_equal(info.target, loop->target[0]);
	} else if (loop->site) {
		assert_memory_equal(loop->site, loop->bytes[LOOP_CALL_0], LOOP_SITE_BYTES);
	} else if (loop->flag) {
		assert_int_equal(*loop->flag, 1);
	} else {
		assert_ptr_equal(*loop->pointer, loop->target[0]);
	}
}

/* All in turn, as in a run. */
static void what_stood_there_stands_there(void **state)
{
	struct toggle_list *list = calloc(1, sizeof(*list));
	struct bench_result result = { .distance = { NAN, NAN, NAN } };
	struct toggle_case *c;
	struct bench_case *bench;
	struct toggle shared = { 0 };
	unsigned checked = 0;

	(void)state;
	assert_non_null(list);
	toggle_list_singles(list);
	toggle_list_batches(list);
	c = aligned_alloc(128, list->count * sizeof(*c));
	bench = calloc(2 * list->count, sizeof(*bench));
	assert_true(c && bench);
	open_shared(&shared);
	for (size_t i = 0; i < list->count; i++)
		toggle_case_build(&c[i], &list->spec[i], &shared, &bench[i],
				  &bench[list->count + i]);
	assert_int_equal(bench_measure(&run, bench, list->count, &result), 0);
	for (size_t i = 0; i < list->count; i++) {
		if (!c[i].spec.peer)
			check_code(&c[i]);
		checked += !bench[i].skipped;
	}
	assert_true(checked > 20);
	close_shared(&shared);
	for (size_t i = 0; i < list->count; i++)
		toggle_case_free(&c[i]);
	bench_result_free(&result);
	free(bench);
	free(c);
	free(list);
}

/* The floor lies where the call changes: behind the boundary, where that is a displacement. */
static void the_floor_is_on_the_line_that_changes(void **state)
{
	struct toggle_spec spec = { .site = { WAY_CALL, .has_split = true }, .executors = 1 };

	(void)state;
	for (spec.site.split = 0; spec.site.split < LOOP_SITE_BYTES; spec.site.split++) {
		uint8_t before[8], after[8];
		struct one one;

		measure_one(&one, &spec);
		memcpy(before, one.c->site.place, 8);
		assert_int_equal(pc_deactivate_call(&one.c->site.call), 0);
		memcpy(after, one.c->site.place, 8);
		assert_memory_not_equal(before, after, 8);
		free_one(&one);
	}
}

/* How many of the pool stand changed, the executors' among them. */
static unsigned changed(const struct toggle_case *c, unsigned which)
{
	const struct pc_op *op = c->toggle->pool.op;
	unsigned count = 0;

	for (unsigned i = 0; i < TOGGLE_BATCH_MAX; i++)
		count += op[i].bytes && memcmp(op[i].addr, op[i].bytes, LOOP_SITE_BYTES) == 0;
	assert_memory_equal(c->site.loop.site, c->site.loop.bytes[which ? LOOP_NOP : LOOP_CALL_0],
			    LOOP_SITE_BYTES);
	return count;
}

static void a_batch_is_all_of_its_sites(void **state)
{
	struct toggle_spec spec = {
		.site = { WAY_BATCH, TOGGLE_SPLIT, SITE_WAIT, .batch = 100 },
		.executors = 1,
	};
	struct one one;
	double ticks;

	(void)state;
	measure_one(&one, &spec);
	assert_true(one.result.row[0].samples > 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ways[WAY_BATCH].time(&one.c->site, i % 2, &ticks), 0);
		assert_int_equal(changed(one.c, i % 2), 100);
	}
	free_one(&one);
}

static void mappings_are_what_they_say(void **state)
{
	static const enum pc_text_way expected[] = {
		[SITE_OPEN] = PC_TEXT_OPEN,
		[SITE_PROTECT] = PC_TEXT_PROTECT,
		[SITE_ALIAS] = PC_TEXT_ALIAS,
	};
	struct toggle_spec spec = { .site = { .way = WAY_ALIGNED }, .executors = 1 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		enum pc_text_way way;
		struct one one;

		spec.site.mapping = (enum site_mapping)i;
		measure_one(&one, &spec);
		if (one.c->ret == 0) {
			assert_int_equal(
				pc_text_way(one.c->site.loop.site, LOOP_SITE_BYTES, &way, NULL, 0),
				0);
			assert_int_equal(way, expected[i]);
		}
		free_one(&one);
	}
}

/* --- Lists ---------------------------------------------------------------------------- */

static unsigned in_list(const struct toggle_list *list, enum way_name way, unsigned executors)
{
	unsigned count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += list->spec[i].site.way == way && list->spec[i].executors == executors;
	return count;
}

static void check_crowd(const struct toggle_list *list, unsigned executors, unsigned times)
{
	assert_int_equal(in_list(list, WAY_ALIGNED, executors), times);
	assert_int_equal(in_list(list, WAY_CALL, executors), 2 * times);
	assert_int_equal(in_list(list, WAY_STRADDLER, executors), 2 * times);
	assert_int_equal(in_list(list, WAY_START, executors), 2 * times);
}

static void crowds_are_doubled_up_to_all(void **state)
{
	static const unsigned most[] = { 1, 2, 3, 8, 200, PLACEMENT_EXECUTORS_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		struct toggle_list *list = calloc(1, sizeof(*list));
		unsigned steps = 0;

		assert_non_null(list);
		toggle_list_crowds(list, most[i]);
		for (unsigned executors = 2; executors < most[i]; executors *= 2, steps++)
			check_crowd(list, executors, 1);
		steps += most[i] > 1;
		check_crowd(list, most[i], most[i] > 1);
		assert_int_equal(list->count, steps * 7);
		free(list);
	}
}

/* Needs three CPUs. */
static void more_executors_run(void **state)
{
	struct toggle_spec spec = { .site = { .way = WAY_ALIGNED }, .executors = 2 };
	struct seating one_executor = run.seating;
	char reason[160];
	struct one one;

	(void)state;
	if (placement_seat(run.topology, PLACEMENT_SPREAD, 2, 0, &run.seating, reason,
			   sizeof(reason)) == 0) {
		measure_one(&one, &spec);
		assert_true(bench_row_extra_of(&one.result.row[0], "executed") > 0);
		free_one(&one);
	}
	run.seating = one_executor;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stood_there_stands_there),
		cmocka_unit_test(the_floor_is_on_the_line_that_changes),
		cmocka_unit_test(a_batch_is_all_of_its_sites),
		cmocka_unit_test(mappings_are_what_they_say),
		cmocka_unit_test(crowds_are_doubled_up_to_all),
		cmocka_unit_test(more_executors_run),
	};
	int ret;

	policy_assume_waits(3000, 2000, 1);
	ret = bench_run_open_apart(&run);
	if (ret)
		return ret;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	return bench_run_close(&run, ret);
}
