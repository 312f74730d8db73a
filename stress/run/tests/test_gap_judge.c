/* SPDX-License-Identifier: MIT */
/*
 * What makes a gap and what must not: synthetic logs whose truth is known, one
 * for each rule that keeps a gap from being faked; and the tally.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "stress/run/gap.h"

#define SIZE  4096
#define EVERY 1000 /* ticks from one store to the next */
#define TOOK  100  /* of them between its stamps */
#define START UINT64_C(1000000000)

static const struct tsc_offset same = { 0, 0 };
static struct gap_store ring[SIZE];

/* The history after so many stores, the first two of which are what stood there at the start. */
static struct gap_history history(uint64_t stores)
{
	struct gap_history h = { .ring = ring, .size = SIZE };

	memset(ring, 0, sizeof(ring));
	gap_history_restart(&h, START);
	while (h.next < stores) {
		uint64_t at = START + h.next * EVERY;

		*gap_history_add(&h) = (struct gap_store){ at, at + TOOK };
	}
	return h;
}

static uint64_t visible(uint64_t store)
{
	return START + store * EVERY + TOOK / 2;
}

static uint32_t value_of(unsigned split, uint64_t front, uint64_t back)
{
	unsigned bits = 8 * (split - 1);

	return (uint32_t)((front & ((1u << bits) - 1)) | back << bits);
}

/* Front f and back b, read in an execution from begin to end. */
static struct gap_verdict verdict(const struct gap_history *h, unsigned split, uint64_t front,
				  uint64_t back, uint64_t begin, uint64_t end)
{
	struct gap_fetch fetch = { value_of(split, front, back), begin, end };

	return gap_judge(h, gap_layout_of(split), &same, &fetch);
}

/* In the order of the stores, front before back: only these stand in memory together. */
static void what_stood_there_is_not_torn(void **state)
{
	(void)state;
	for (unsigned split = 2; split <= 4; split++) {
		for (uint64_t g = 1; g < 70000; g++) {
			struct gap_layout layout = gap_layout_of(split);

			assert_false(gap_is_torn(layout, value_of(split, g, g)));
			assert_false(gap_is_torn(layout, value_of(split, g, g - 1)));
			assert_true(gap_is_torn(layout, value_of(split, g, g + 1)));
			assert_true(gap_is_torn(layout, value_of(split, g, g - 2)));
		}
	}
}

/* Front g with back g + k: front g + 1 and back g + k were stored between the two reads. */
static void old_front_has_its_size(void **state)
{
	struct gap_history h = history(2000);

	(void)state;
	for (unsigned split = 2; split <= 4; split++) {
		for (uint64_t k = 1; k <= 100; k++) {
			uint64_t gone = 2 * (500 + 1), come = 2 * (500 + k) + 1;
			struct gap_verdict v =
				verdict(&h, split, 500, 500 + k, visible(gone), visible(come));

			assert_true(v.is_gap);
			assert_int_equal(v.kind, GAP_OLD_FRONT);
			/* Never more than what lies between, and less by the stamps' widths at
			 * most. */
			assert_true(v.ticks <= visible(come) - visible(gone));
			assert_true(v.ticks >= visible(come) - visible(gone) - TOOK);
		}
	}
}

static void new_front_has_its_size(void **state)
{
	struct gap_history h = history(2000);

	(void)state;
	for (unsigned split = 2; split <= 4; split++) {
		for (uint64_t k = 2; k <= 100; k++) {
			uint64_t gone = 2 * (500 + 1) + 1, come = 2 * (500 + k);
			struct gap_verdict v =
				verdict(&h, split, 500 + k, 500, visible(gone), visible(come));

			assert_true(v.is_gap);
			assert_int_equal(v.kind, GAP_NEW_FRONT);
			assert_true(v.ticks <= visible(come) - visible(gone));
			assert_true(v.ticks >= visible(come) - visible(gone) - TOOK);
		}
	}
}

/* The last store of that part by then. */
static uint64_t generation_at(const uint64_t *when, unsigned part, uint64_t time)
{
	uint64_t low = 0, high = SIZE / 2; /* it is from low on, and below high */

	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;

		if (when[2 * middle + part] > time)
			high = middle;
		else
			low = middle;
	}
	return low;
}

/*
 * Two reads a known time apart, at any moment of a history of irregular stores:
 * found with that size, less what lies between the reads and the next stores.
 */
static void any_delay_is_bounded(void **state)
{
	struct gap_history h = { .ring = ring, .size = SIZE };
	uint64_t random = 42, at = START, seen = 0;
	static uint64_t when[SIZE];

	(void)state;
	gap_history_restart(&h, START);
	when[0] = when[1] = START;
	while (h.next < SIZE) {
		uint64_t took = 10 + random_next(&random) % 1000;

		at += random_next(&random) % 2000;
		when[h.next] = at + random_next(&random) % took;
		*gap_history_add(&h) = (struct gap_store){ at, at + took };
		at += took;
	}
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t delay = random_next(&random) % 30000;
		uint64_t first = when[400] + random_next(&random) % (when[SIZE - 200] - when[400]);
		uint64_t read[GAP_PARTS], generation[GAP_PARTS];
		enum gap_part part = (enum gap_part)(random_next(&random) % 2);
		unsigned split = 2 + (unsigned)(random_next(&random) % 3);
		struct gap_verdict v;

		read[part] = first;
		read[!part] = first + delay;
		for (unsigned p = 0; p < GAP_PARTS; p++)
			generation[p] = generation_at(when, p, read[p]);
		if (!gap_is_torn(gap_layout_of(split),
				 value_of(split, generation[GAP_FRONT], generation[GAP_BACK])))
			continue;
		v = verdict(&h, split, generation[GAP_FRONT], generation[GAP_BACK], first,
			    first + delay);
		if (!v.is_gap) {
			assert_int_equal(v.reason, GAP_LATE);
			continue;
		}
		seen++;
		assert_int_equal(v.kind, part == GAP_FRONT ? GAP_OLD_FRONT : GAP_NEW_FRONT);
		assert_true(v.ticks <= delay);
		/* One store before, one behind, either may be of the other part, with its stamps.
		 */
		assert_true(v.ticks + 4 * 3000 >= delay);
	}
	assert_true(seen > 50000);
}

/* After 256 generations a byte begins anew: an old pair must not pass for a young one. */
static void a_wrap_fakes_nothing(void **state)
{
	struct gap_history h = history(3000);
	uint64_t end = visible(2 * 1000 + 1) + 100;
	/* The execution took longer than a byte lasts: front 1000 or 744? */
	struct gap_fetch fetch = { value_of(2, 1000, 1001), end - 600000, end + 2000 };
	struct gap_verdict v = gap_judge(&h, gap_layout_of(2), &same, &fetch);

	(void)state;
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_PREEMPTED);

	/* Two bytes last: the same log is good with a split that has them. */
	fetch.value = value_of(3, 1000, 1001);
	v = gap_judge(&h, gap_layout_of(3), &same, &fetch);
	assert_true(v.is_gap);
	assert_true(v.ticks < EVERY);
}

/* Stores so close together that a byte wraps within the time a fetch may run ahead. */
static void a_quick_wrap_fakes_nothing(void **state)
{
	struct gap_history h = { .ring = ring, .size = SIZE };
	struct gap_fetch fetch;
	struct gap_verdict v;

	(void)state;
	gap_history_restart(&h, START);
	while (h.next < 2048)
		*gap_history_add(&h) =
			(struct gap_store){ START + h.next * 30, START + h.next * 30 + 10 };
	fetch = (struct gap_fetch){ value_of(2, 900, 901), START + 1804 * 30 - 100,
				    START + 1804 * 30 };
	v = gap_judge(&h, gap_layout_of(2), &same, &fetch);
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_WRAP);
}

/* What the history has forgotten may have been anything. */
static void a_short_memory_fakes_nothing(void **state)
{
	struct gap_history h = history(SIZE + 2000);
	uint64_t end = visible(h.first + 4);
	/* Two bytes: no generation that is known fits twice, but one that is forgotten would. */
	struct gap_fetch fetch = { value_of(3, h.first / 2 + 1, h.first / 2 + 2), end - 200, end };
	struct gap_verdict v = gap_judge(&h, gap_layout_of(2), &same, &fetch);

	(void)state;
	fetch.value = value_of(2, h.first / 2 + 1, h.first / 2 + 2);
	v = gap_judge(&h, gap_layout_of(2), &same, &fetch);
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_WRAP);
	/* A part that was stored before the history begins. */
	fetch.value = value_of(3, h.first / 2 - 1, h.first / 2 + 2);
	v = gap_judge(&h, gap_layout_of(3), &same, &fetch);
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_WRAP);
}

/*
 * The executor loses its CPU between fetch and stamp, and meanwhile the patcher
 * too. By the late stamp alone the pair would be taken for one of generations
 * whose stores are far apart.
 */
static void a_preempted_executor_fakes_nothing(void **state)
{
	struct gap_history h = { .ring = ring, .size = SIZE };
	uint64_t at = START, pause = 50000000;
	struct gap_fetch fetch;
	struct gap_verdict v;

	(void)state;
	gap_history_restart(&h, START);
	while (h.next < 2000) {
		/* Between front 757 and back 757; 757 - 256 is 501. */
		at += h.next == 2 * 757 + 1 ? pause : EVERY;
		*gap_history_add(&h) = (struct gap_store){ at, at + TOOK };
	}
	/* Truly front 500 and back 501, but stamped when 756 and 757 were there. */
	fetch.value = value_of(2, 500, 501);
	fetch.before = visible(2 * 501 + 1);
	fetch.after = START + 1515 * EVERY + pause + 500;
	v = gap_judge(&h, gap_layout_of(2), &same, &fetch);
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_PREEMPTED);
	/* The same, seen in time. */
	fetch.after = fetch.before + 300;
	v = gap_judge(&h, gap_layout_of(2), &same, &fetch);
	assert_true(v.is_gap);
	assert_true(v.ticks < EVERY);
}

/* The patcher loses its CPU between store and stamp: the time is not part of any gap. */
static void a_late_stamp_enlarges_nothing(void **state)
{
	struct gap_history h = history(1002);
	uint64_t at = START + 1002 * EVERY, late = 10000000;
	struct gap_verdict v;

	(void)state;
	/* Front 501, visible at once but stamped late; then back 501. */
	*gap_history_add(&h) = (struct gap_store){ at, at + late };
	*gap_history_add(&h) = (struct gap_store){ at + late + 40, at + late + 80 };
	v = verdict(&h, 3, 500, 501, at, at + late + 200);
	assert_true(v.is_gap);
	assert_int_equal(v.ticks, 40);

	/* The other end: stamped long before it is visible. */
	h = history(1003);
	*gap_history_add(&h) = (struct gap_store){ at + EVERY, at + EVERY + late };
	v = verdict(&h, 3, 500, 501, at, at + EVERY + late + 100);
	assert_true(v.is_gap);
	assert_int_equal(v.ticks, EVERY - TOOK);

	/* Fetched before that stamp: the store is one that may have been seen. */
	v = verdict(&h, 3, 500, 501, at, at + EVERY + late / 2);
	assert_true(v.is_gap);
	assert_int_equal(v.ticks, EVERY - TOOK);

	/* The front was there until the late store: an executor may have read it then. */
	h = history(1002);
	*gap_history_add(&h) = (struct gap_store){ at, at + late };
	*gap_history_add(&h) = (struct gap_store){ at + late + 40, at + late + 80 };
	v = verdict(&h, 3, 500, 501, at + late / 2, at + late + 200);
	assert_true(v.is_gap);
	assert_int_equal(v.ticks, 40);

	/* Nothing is left of it. */
	h = history(1002);
	*gap_history_add(&h) = (struct gap_store){ at, at + late };
	*gap_history_add(&h) = (struct gap_store){ at + late, at + late + 80 };
	v = verdict(&h, 3, 500, 501, at, at + late + 200);
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_LATE);
}

/* With the clocks apart the stamp names the wrong time, and there the stores were slow. */
static void an_offset_fakes_nothing(void **state)
{
	struct gap_history h = { .ring = ring, .size = SIZE };
	struct tsc_offset offset = { 256 * 2 * EVERY + 40000000, 0 };
	uint64_t at = START, pause = 40000000;
	struct gap_fetch fetch;
	struct gap_verdict v;

	(void)state;
	gap_history_restart(&h, START);
	while (h.next < 2000) {
		at += h.next == 2 * 757 + 1 ? pause : EVERY;
		*gap_history_add(&h) = (struct gap_store){ at, at + TOOK };
	}
	fetch.value = value_of(2, 500, 501);
	fetch.after = START + 1003 * EVERY + 200 + (uint64_t)offset.offset;
	fetch.before = fetch.after - 300;
	v = gap_judge(&h, gap_layout_of(2), &offset, &fetch);
	assert_true(v.is_gap);
	assert_true(v.ticks < EVERY);
	/* Not known well enough to tell the two apart. */
	offset.error = (uint64_t)offset.offset;
	v = gap_judge(&h, gap_layout_of(2), &offset, &fetch);
	assert_false(v.is_gap);
	/* Behind is as bad as ahead. */
	offset = (struct tsc_offset){ -5000000, 100 };
	fetch.after = START + 1003 * EVERY + 200 + (uint64_t)offset.offset;
	fetch.before = fetch.after - 300;
	v = gap_judge(&h, gap_layout_of(2), &offset, &fetch);
	assert_true(v.is_gap);
}

/* Which stood nowhere at the time the executor names: no size is made up for it. */
static void what_was_nowhere_is_stale(void **state)
{
	struct gap_history h = history(2000);
	struct gap_verdict v = verdict(&h, 4, 500, 501, visible(1900) - 200, visible(1900));

	(void)state;
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_STALE);
	/* Never stored at all. */
	v = verdict(&h, 4, 5000, 949, visible(1900) - 200, visible(1900));
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_STALE);
	/* Not yet stored when it was read. */
	v = verdict(&h, 4, 960, 961, visible(1000) - 200, visible(1000));
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_STALE);
}

/* What was stored last has no end yet, and before the first store there is nothing. */
static void the_ends_of_the_history_are_known(void **state)
{
	struct gap_history h = history(2000);
	struct gap_verdict v = verdict(&h, 3, 500, 999, visible(1002), visible(1999));

	(void)state;
	assert_true(v.is_gap);
	assert_int_equal(v.ticks, (1999 - 1002) * EVERY - TOOK);
	v = verdict(&h, 3, 0, 3, START - 60000, START - 50000);
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_STALE);
	/* There was something, but the history no longer holds it. */
	h = history(SIZE + 2000);
	v = verdict(&h, 3, h.first / 2, h.first / 2 + 3, START, START + 100);
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_WRAP);
}

/* What was stored before a restart has no stamps. */
static void a_restart_forgets(void **state)
{
	struct gap_history h = history(1000);
	uint64_t at = START + 5000 * EVERY;
	struct gap_verdict v;

	(void)state;
	h.next += 600;
	gap_history_restart(&h, at);
	for (unsigned i = 1; i <= 10; i++)
		*gap_history_add(&h) = (struct gap_store){ at + i * EVERY, at + i * EVERY + TOOK };
	v = verdict(&h, 3, 798, 800, at + 2 * EVERY, at + 2 * EVERY + 200);
	assert_false(v.is_gap);
	assert_int_equal(v.reason, GAP_WRAP);
	v = verdict(&h, 3, 799, 800, at + 2 * EVERY, at + 2 * EVERY + 200);
	assert_true(v.is_gap);
	assert_int_equal(v.ticks, EVERY - TOOK);
}

static void a_round_trip_bounds_the_offset(void **state)
{
	struct tsc_offset o = TSC_OFFSET_UNKNOWN, later;

	(void)state;
	tsc_offset_take(&o, 1000, 51200, 1400);
	assert_int_equal(o.offset, 50000);
	assert_int_equal(o.error, 200);
	tsc_offset_take(&o, 2000, 60000, 4000); /* a slower one tells less */
	assert_int_equal(o.offset, 50000);
	tsc_offset_take(&o, 9000, 58910, 9101); /* uneven: the error is rounded up */
	assert_int_equal(o.offset, 58910 - 9050);
	assert_int_equal(o.error, 51);
	o = (struct tsc_offset){ -100, 20 };
	later = (struct tsc_offset){ 101, 30 };
	later = tsc_offset_join(&o, &later);
	/* Both [-120, -80] and [71, 131] are covered. */
	assert_true(later.offset - (int64_t)later.error <= -120);
	assert_true(later.offset + (int64_t)later.error >= 131);
}

static void buckets_hold_their_sizes(void **state)
{
	uint64_t random = 7;

	(void)state;
	assert_int_equal(gap_bucket(0), 0);
	assert_int_equal(gap_bucket(UINT64_MAX), GAP_BUCKETS - 1);
	for (unsigned i = 0; i + 1 < GAP_BUCKETS; i++) {
		assert_int_equal(gap_bucket(gap_bucket_low(i)), i);
		assert_int_equal(gap_bucket(gap_bucket_low(i + 1) - 1), i);
	}
	for (unsigned i = 0; i < 10000; i++) {
		uint64_t size = random_next(&random) >> random_next(&random) % 64;
		uint64_t low = gap_bucket_low(gap_bucket(size));

		/* 16 buckets per octave: off by a sixteenth at most. */
		assert_true(low <= size && size - low <= low / 16);
	}
}

static void the_largest_are_kept(void **state)
{
	struct gap_tally *t = calloc(1, sizeof(*t));
	uint64_t sum = 0;

	(void)state;
	assert_non_null(t);
	/* A permutation of 0 to 4999 (1777 and 5000 have no divisor in common), time by time. */
	for (uint64_t i = 0; i < 5000; i++)
		gap_tally_add(t, i * 1777 % 5000, i);
	assert_int_equal(t->count, 5000);
	assert_int_equal(t->tails, GAP_TAIL);
	for (unsigned i = 0; i < GAP_TAIL; i++) {
		assert_int_equal(t->tail[i], 4999 - i);
		assert_int_equal(t->tail_time[i] * 1777 % 5000, t->tail[i]);
	}
	for (unsigned i = 0; i < GAP_BUCKETS; i++)
		sum += t->bucket[i];
	assert_int_equal(sum, 5000);
	/* Equal ones: the earlier stays in front, and the last of a full tail stays. */
	gap_tally_add(t, 4999, 9999);
	assert_int_equal(t->tail_time[1], 9999);
	assert_int_equal(t->tail[GAP_TAIL - 1], 4001);
	gap_tally_add(t, 4001, 8888);
	assert_int_not_equal(t->tail_time[GAP_TAIL - 1], 8888);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stood_there_is_not_torn),
		cmocka_unit_test(old_front_has_its_size),
		cmocka_unit_test(new_front_has_its_size),
		cmocka_unit_test(any_delay_is_bounded),
		cmocka_unit_test(a_wrap_fakes_nothing),
		cmocka_unit_test(a_quick_wrap_fakes_nothing),
		cmocka_unit_test(a_short_memory_fakes_nothing),
		cmocka_unit_test(a_preempted_executor_fakes_nothing),
		cmocka_unit_test(a_late_stamp_enlarges_nothing),
		cmocka_unit_test(an_offset_fakes_nothing),
		cmocka_unit_test(what_was_nowhere_is_stale),
		cmocka_unit_test(the_ends_of_the_history_are_known),
		cmocka_unit_test(a_restart_forgets),
		cmocka_unit_test(a_round_trip_bounds_the_offset),
		cmocka_unit_test(buckets_hold_their_sizes),
		cmocka_unit_test(the_largest_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
