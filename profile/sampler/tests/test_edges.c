/* SPDX-License-Identifier: MIT */
/*
 * Counts of blocks that run in a known order. A phase that is not announced joins blocks that are
 * no neighbours, which the same check finds.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "profile/sampler/edges.h"

static struct quality sum;

#define IDS 2000u

static void run(const uint32_t *blocks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		edges_block(blocks[i], NULL, NULL, NULL);
}

static uint64_t count(uint32_t from, uint32_t to, int half)
{
	struct edge edge;
	uint32_t next = 0;

	while (edges_next(&next, &edge))
		if (edge.from == from && edge.to == to)
			return edge.count[half];
	return 0;
}

static void test_a_phase_begins_anew(void **state)
{
	static const uint32_t first[] = { 1, 2, 2, 3 }, second[] = { 4, 2, 3 };

	(void)state;
	edges_phase(1);
	run(first, 4);
	edges_phase(0);
	run(second, 3);
	edges_sums(&sum);
	assert_true(sum.late == 3);
	edges_phase(2);
	run(second, 3);
	edges_phase(0);
	assert_int_equal(count(1, 2, 1), 1);
	assert_int_equal(count(2, 2, 1), 1);
	assert_int_equal(count(2, 3, 1), 1);
	assert_int_equal(count(2, 3, 0), 1);
	assert_int_equal(count(4, 2, 0), 1);
	/* They were run one behind the other, in two phases. */
	assert_int_equal(count(3, 4, 0) + count(3, 4, 1), 0);
}

static void test_a_phase_that_is_not_announced_is_found(void **state)
{
	static const uint32_t first[] = { 11, 13 }, second[] = { 14, 12 };

	(void)state;
	edges_phase(3);
	run(first, 2);
	edges_phase(0);
	edges_phase(3);
	run(second, 2);
	edges_phase(0);
	assert_int_equal(count(13, 14, 1), 1);
}

static double weighed(uint32_t from, uint32_t to, int half)
{
	struct edge edge;
	uint32_t next = 0;

	while (edges_next(&next, &edge))
		if (edge.from == from && edge.to == to)
			return edge.weighed[half];
	return -1;
}

static void test_each_phase_has_its_weight(void **state)
{
	static const uint32_t blocks[] = { 21, 22, 23, 22 };

	(void)state;
	edges_weigh(1);
	for (uint64_t phase = 4; phase < 7; phase++) {
		edges_phase(phase);
		run(blocks, 4);
		edges_phase(0);
		edges_weigh((double)phase / 2);
	}
	assert_true(weighed(21, 22, 0) == 5 && weighed(23, 22, 0) == 5);
	assert_true(weighed(21, 22, 1) == 2.5 && weighed(22, 23, 1) == 2.5);
	assert_int_equal(count(21, 22, 0) + count(21, 22, 1), 3);
}

#define ROUNDS 20000

static void *loop(void *first)
{
	const uint32_t id = *(uint32_t *)first;

	for (int i = 0; i < ROUNDS; i++) {
		edges_block(id, NULL, NULL, NULL);
		edges_block(7, NULL, NULL, NULL);
	}
	return NULL;
}

/* Each has its own block before. */
static void test_threads(void **state)
{
	uint32_t ids[4] = { 100, 101, 102, 103 };
	pthread_t threads[4];

	(void)state;
	edges_phase(4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, loop, &ids[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	edges_phase(0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(count(ids[i], 7, 0), ROUNDS);
		assert_int_equal(count(7, ids[i], 0), ROUNDS - 1);
	}
	edges_sums(&sum);
	assert_true(sum.lost == 0);
}

/* More lead to one block than have places there. */
static void test_many_lead_to_one(void **state)
{
	static uint64_t counted[IDS];
	struct edge edge;
	uint32_t next = 0;

	(void)state;
	edges_phase(6);
	for (uint32_t i = 1000; i < IDS; i++)
		run((const uint32_t[]){ i, 200 }, 2);
	edges_phase(0);
	edges_sums(&sum);
	assert_true(sum.lost == 0);
	while (edges_next(&next, &edge))
		if (edge.to == 200 && edge.from < IDS)
			counted[edge.from] += edge.count[0];
	for (uint32_t i = 1000; i < IDS; i++)
		assert_int_equal(counted[i], 1);
}

static void test_first_run_between_phases_wakes_the_thread(void **state)
{
	const uint32_t block = 300;
	const struct timespec now = { 0 };

	(void)state;
	edges_forget_wakes();
	assert_false(edges_has_run(block));
	run(&block, 1);
	assert_true(edges_has_run(block));
	assert_true(edges_wait(&now));
	run(&block, 1);
	assert_false(edges_wait(&now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_phase_begins_anew),
		cmocka_unit_test(test_a_phase_that_is_not_announced_is_found),
		cmocka_unit_test(test_each_phase_has_its_weight),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_many_lead_to_one),
		cmocka_unit_test(test_first_run_between_phases_wakes_the_thread),
	};

	if (edges_start())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
