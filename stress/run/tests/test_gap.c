/* SPDX-License-Identifier: MIT */
/*
 * The gap oracle on trial: where no gap can be it sees none, a delay that is
 * made is found with its size, and what cannot be run is refused.
 * TMAX_STRESS_SCALE lengthens it.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/random.h"
#include "patchcore/machine/wait.h"
#include "patchcore/tests/scale.h"
#include "patchcore/word/word.h"
#include "stress/run/gap.h"

static struct run_options how;
static bool alone; /* one CPU: nothing ever runs at the same time */
static struct gap_result result;

static struct cell seated(void)
{
	struct cell cell;

	gap_defaults(&cell);
	cell.placement = alone ? PLACEMENT_OVERSUBSCRIBED : PLACEMENT_SPREAD;
	cell.seconds = 0.3 * test_scale();
	return cell;
}

static uint64_t gaps(const struct gap_result *r)
{
	return r->kind[GAP_OLD_FRONT].count + r->kind[GAP_NEW_FRONT].count;
}

static uint64_t discarded(const struct gap_result *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < GAP_REASONS; i++)
		sum += r->discarded[i];
	return sum;
}

/* On a busy machine the clocks of two CPUs cannot always be compared. */
static void run(const struct cell *cell)
{
	for (int i = 0; i < 20; i++) {
		assert_int_equal(gap_run(cell, &how, &result), 0);
		if (result.error != -ERANGE && result.error != -ETIMEDOUT)
			break;
	}
	assert_int_equal(result.outcome, OUTCOME_DONE);
	assert_true(result.stores > 0);
}

/* Nothing torn at all: not even a pair that was thrown away. */
static void has_none(const struct cell *cell)
{
	run(cell);
	assert_true(result.executions > 0);
	assert_int_equal(gaps(&result), 0);
	assert_int_equal(discarded(&result), 0);
}

/* Both parts in one word that every store replaces whole. */
static void an_aligned_site_has_no_gap(void **state)
{
	struct cell cell = seated();

	(void)state;
	cell.crossing = CROSSING_NONE;
	for (cell.split = 2; cell.split <= 4; cell.split++)
		has_none(&cell);
}

/* Every running thread serialises between any two stores. */
static void a_fence_leaves_no_gap(void **state)
{
	struct cell cell = seated();

	(void)state;
	if (membarrier_register() < 0)
		skip();
	cell.protocol = PROTOCOL_MEMBARRIER;
	cell.crossing = CROSSING_LINE;
	has_none(&cell);
	cell.crossing = CROSSING_PAGE;
	has_none(&cell);
}

/* What executors read in place of running the site, in memory that they share with the test. */
static struct simulation {
	enum gap_part first; /* read before the other */
	uint64_t ticks;
	uint64_t longest; /* out: ticks between the two reads, at most, of all executions */
} * simulation;

/* One load of the aligned 8 bytes that hold the part. */
static uint32_t load_part(const uint8_t *site, unsigned split, enum gap_part part)
{
	uint64_t mask = (UINT64_C(1) << gap_layout_of(split).bits[part]) - 1;
	const uint8_t *at = part == GAP_FRONT ? site + 1 : site + split;
	uintptr_t aligned = (uintptr_t)at & ~(uintptr_t)7;
	uint64_t word = __atomic_load_n((const uint64_t *)aligned, __ATOMIC_ACQUIRE);

	return (uint32_t)(word >> 8 * ((uintptr_t)at - aligned) & mask);
}

/* What stands in memory, one part after the other, with so many ticks between. */
static uint32_t fetch_simulated(const uint8_t *site, unsigned split)
{
	struct simulation *s = simulation;
	uint64_t begin = ticks_now(), lasted;
	uint64_t longest = __atomic_load_n(&s->longest, __ATOMIC_RELAXED);
	uint32_t part[GAP_PARTS];

	part[s->first] = load_part(site, split, s->first);
	ticks_wait(s->ticks);
	part[!s->first] = load_part(site, split, !s->first);
	lasted = ticks_now() - begin;
	while (lasted > longest && !__atomic_compare_exchange_n(&s->longest, &longest, lasted, true,
								__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return part[GAP_FRONT] | part[GAP_BACK] << gap_layout_of(split).bits[GAP_FRONT];
}

static void run_simulated(const struct cell *cell, enum gap_part first, uint64_t ticks)
{
	if (!simulation)
		simulation = mmap(NULL, sizeof(*simulation), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(simulation, MAP_FAILED);
	*simulation = (struct simulation){ .first = first, .ticks = ticks };
	gap_fetch_instead = fetch_simulated;
	assert_int_equal(gap_run(cell, &how, &result), 0);
	gap_fetch_instead = NULL;
	assert_int_equal(result.outcome, OUTCOME_DONE);
}

static uint64_t above(const struct gap_tally *tally, uint64_t ticks)
{
	uint64_t sum = 0;

	for (unsigned i = gap_bucket(ticks) + 1; i < GAP_BUCKETS; i++)
		sum += tally->bucket[i];
	return sum;
}

#define TRIES 20 /* for one that was not disturbed */

static bool is_found_whole(const struct gap_tally *found, uint64_t ticks)
{
	return found->count > 0 && found->tail[0] >= ticks / 2 &&
	       (ticks >= 100000 || above(found, ticks / 2) >= found->count / 2);
}

/*
 * Executors that read the two parts as data, so many ticks apart. Never more is
 * found than was there. Of a delay that is short against a time slice most are
 * found with their size: it takes a patcher that loses its CPU to miss half of it,
 * so another run is tried then.
 */
static void delay_is_found(const struct cell *cell, enum gap_part first, uint64_t ticks)
{
	enum gap_kind kind = first == GAP_FRONT ? GAP_OLD_FRONT : GAP_NEW_FRONT;
	const struct gap_tally *found = &result.kind[kind];

	for (unsigned i = 0; i < TRIES; i++) {
		run_simulated(cell, first, ticks);
		assert_true(simulation->longest >= ticks);
		assert_int_equal(result.kind[!kind].count, 0);
		assert_int_equal(result.discarded[GAP_STALE], 0);
		assert_true(found->count == 0 || found->tail[0] <= simulation->longest);
		if (alone || is_found_whole(found, ticks))
			return;
	}
	fail_msg("a delay of %" PRIu64 " ticks was not found in %d runs", ticks, TRIES);
}

static void a_delay_is_found_with_its_size(void **state)
{
	static const enum crossing crossing[] = { CROSSING_PAGE, CROSSING_LINE, CROSSING_NONE };
	struct cell cell = seated();

	(void)state;
	/* Crossing none as well: the control above can fail. */
	for (unsigned split = 2; split <= 4; split++) {
		cell.split = split;
		cell.crossing = crossing[split - 2];
		delay_is_found(&cell, GAP_FRONT, 20000);
		delay_is_found(&cell, GAP_BACK, 20000);
	}
	/* Of any size: the tail is not cut. */
	cell.split = 3;
	delay_is_found(&cell, GAP_FRONT, 1000000);
}

/* Each gap has a time within the run, and each is in a bucket. */
static void everything_adds_up(void **state)
{
	struct cell cell = seated();
	const struct gap_tally *t = &result.kind[GAP_OLD_FRONT];
	uint64_t sum = 0, torn;

	(void)state;
	cell.toggles = 100000;
	cell.seconds = 60;
	cell.executors = 2;
	cell.placement = PLACEMENT_OVERSUBSCRIBED;
	run_simulated(&cell, GAP_FRONT, 20000);
	/* A store to each part per toggle; the end is looked for every 64 stores. */
	assert_in_range(result.stores, 200000, 200063);
	for (unsigned i = 0; i < GAP_BUCKETS; i++)
		sum += t->bucket[i];
	assert_int_equal(sum, t->count);
	torn = t->count + discarded(&result);
	assert_true(torn <= result.executions + 4 * 256);
	for (unsigned i = 0; i < t->tails; i++) {
		assert_true(i == 0 || t->tail[i] <= t->tail[i - 1]);
		assert_true(t->tail_time[i] < UINT64_C(60) * 10000000000u);
	}
	assert_int_equal(t->tails, t->count < GAP_TAIL ? t->count : GAP_TAIL);
}

/* The code of the site with all that may stand before it. */
static void every_site_runs(void **state)
{
	struct cell cell = seated();

	(void)state;
	cell.seconds = 0.05;
	cell.provokers = 1u << PROVOKER_CHAIN;
	cell.loop = CELL_LOOP_MAX;
	for (int crossing = 0; crossing < CROSSING_COUNT; crossing++) {
		for (cell.split = 2; cell.split <= 4 && crossing != CROSSING_INSIDE; cell.split++) {
			cell.crossing = (enum crossing)crossing;
			for (cell.seed = 0; cell.seed < 8; cell.seed += 7)
				run(&cell);
		}
	}
}

static void refused(struct cell cell, const char *word)
{
	char reason[160];

	assert_int_equal(gap_check(&cell, reason, sizeof(reason)), -EINVAL);
	assert_non_null(strstr(reason, word));
	assert_int_equal(gap_run(&cell, &how, &result), -EINVAL);
}

static void what_makes_no_sense_is_refused(void **state)
{
	const struct cell good = seated();
	struct cell cell = good;
	char reason[160];

	(void)state;
	assert_int_equal(gap_check(&good, reason, sizeof(reason)), 0);
	cell.split = 1;
	refused(cell, "split");
	cell.split = 5;
	refused(cell, "split");
	cell = good;
	cell.pair = PAIR_CALL_CALL;
	refused(cell, "pair");
	cell = good;
	cell.oracle = ORACLE_CRASH;
	refused(cell, "oracle");
	cell = good;
	cell.protocol = PROTOCOL_NO_INT3;
	refused(cell, "protocol");
	cell = good;
	cell.provokers = 1u << PROVOKER_SITES;
	refused(cell, "sites");
	cell = good;
	cell.crossing = CROSSING_INSIDE;
	refused(cell, "inside");
	cell = good;
	cell.executors = 0;
	refused(cell, "executors");
	cell = good;
	cell.crossing = CROSSING_NONE;
	assert_int_equal(gap_check(&cell, reason, sizeof(reason)), 0);
}

static volatile sig_atomic_t asked;

static void stop_once_running(void *arg, const struct cell_result *so_far)
{
	(void)arg;
	if (so_far->toggles > 0)
		asked = 1;
}

/* Asked to stop, it stops, keeps what it has and leaves no child. */
static void it_can_be_stopped(void **state)
{
	struct run_options stopping = how;
	struct cell cell = seated();

	(void)state;
	asked = 0;
	stopping.stop = &asked;
	stopping.progress = stop_once_running;
	cell.seconds = 3600;
	assert_int_equal(gap_run(&cell, &stopping, &result), 0);
	assert_int_equal(result.outcome, OUTCOME_INTERRUPTED);
	assert_true(result.stores > 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* With itself there is no offset; with another CPU there is one that a repetition confirms. */
static void an_offset_is_confirmed(void **state)
{
	struct seating seating;
	struct tsc_offset here, one, two;
	char reason[160];

	(void)state;
	if (alone)
		skip();
	assert_int_equal(placement_seat(how.topology, PLACEMENT_SPREAD, 1, 0, &seating, reason,
					sizeof(reason)),
			 0);
	assert_int_equal(pin_this_thread(how.topology, seating.patcher), 0);
	assert_int_equal(tsc_offset_measure(how.topology, seating.patcher, seating.patcher, &here),
			 0);
	assert_int_equal(here.offset, 0);
	assert_int_equal(here.error, 0);
	assert_int_equal(
		tsc_offset_measure(how.topology, seating.patcher, seating.executor[0], &one), 0);
	assert_int_equal(
		tsc_offset_measure(how.topology, seating.patcher, seating.executor[0], &two), 0);
	/* Two true intervals of one number overlap. */
	assert_true(llabs(one.offset - two.offset) <= (long long)(one.error + two.error));
}

static int open_topology(void **state)
{
	char reason[160];
	int foreign;

	(void)state;
	if (topology_open(&how.topology, &foreign) < 0 || foreign)
		return -1;
	alone = placement_max(how.topology, PLACEMENT_SPREAD, reason, sizeof(reason)) == 0;
	return 0;
}

static int close_topology(void **state)
{
	(void)state;
	hwloc_topology_destroy(how.topology);
	return 0;
}

/* So that no beat of the machine's can keep step with them. */
static void rests_have_no_period(void **state)
{
	const uint64_t mean = 1000;
	uint64_t random = 1, again = 1, sum = 0, least = mean, most = mean;

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		uint64_t length = random_about(&random, mean);

		assert_int_equal(length, random_about(&again, mean));
		assert_in_range(length, mean / 2, mean + mean / 2);
		least = length < least ? length : least;
		most = length > most ? length : most;
		sum += length;
	}
	assert_true(least < 510 && most > 1490);
	assert_in_range(sum / 10000, 980, 1020);
	assert_int_equal(random_about(&random, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rests_have_no_period),
		cmocka_unit_test(an_aligned_site_has_no_gap),
		cmocka_unit_test(a_fence_leaves_no_gap),
		cmocka_unit_test(a_delay_is_found_with_its_size),
		cmocka_unit_test(everything_adds_up),
		cmocka_unit_test(every_site_runs),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(it_can_be_stopped),
		cmocka_unit_test(an_offset_is_confirmed),
	};

	return cmocka_run_group_tests(tests, open_topology, close_topology);
}
