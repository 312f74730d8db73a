/* SPDX-License-Identifier: MIT */
/* Where slices go, on machines whose rates are known. */
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

#include "calibrate/session/schedule.h"
#include "calibrate/tests/sums_sample.h"

#define SPREAD 2.0 /* of the rate between slices */
#define SEEDS  5

/* Tears of a toggle: halved with each rung, down to none. */
static double rate_at(const struct waits *rung)
{
	return rung->first >= 3200 ? 0 : 1e-2 / (1 + (double)rung->first * (double)rung->first);
}

static struct count run_slice(const struct sum *kind, gsl_rng *rng)
{
	double each = 2000 + 2 * (double)kind->rung.first, n = SLICE_TICKS / each;
	double rate = rate_at(&kind->rung) * gsl_ran_gamma(rng, 1 / SPREAD, SPREAD);
	struct count c = sample_count(1, (uint64_t)n, 0);

	c.tears = gsl_ran_poisson(rng, rate * n);
	if (c.tears > c.toggles)
		c.tears = c.toggles;
	c.unevenness = (double)c.tears * (double)c.tears / (double)c.toggles;
	return c;
}

struct simulation {
	struct plan plan;
	struct schedule schedule;
	struct sums sums;
	struct estimate e;
	gsl_rng *rng;
};

static void start(struct simulation *s, unsigned seats, uint64_t seed)
{
	struct sums none = { 0 };

	*s = (struct simulation){ .plan = sample_plan(seats) };
	s->rng = gsl_rng_alloc(gsl_rng_mt19937);
	gsl_rng_set(s->rng, seed);
	sample_membarrier(&none, &s->plan, 20000);
	assert_int_equal(sums_add_all(&s->sums, &none), 0);
	sums_free(&none);
	estimate_make(&s->e, &s->sums, 1, &s->plan);
	assert_int_equal(schedule_make(&s->schedule, &s->plan, &s->e.ladder, seed), 0);
}

static void finish(struct simulation *s)
{
	schedule_free(&s->schedule);
	sums_free(&s->sums);
	gsl_rng_free(s->rng);
}

static void run(struct simulation *s, unsigned slices)
{
	for (unsigned i = 0; i < slices; i++) {
		struct sum sum = *schedule_next(&s->schedule, &s->e);

		sum.count = run_slice(&sum, s->rng);
		assert_int_equal(sums_add(&s->sums, &sum), 0);
		estimate_so_far(&s->e, &s->sums, 1, &s->plan);
	}
	estimate_make(&s->e, &s->sums, 1, &s->plan);
}

/* As if there were no focus. */
static void run_dealt(struct simulation *s, unsigned slices)
{
	for (unsigned i = 0; i < slices; i++) {
		s->schedule.turn = 0;
		run(s, 1);
	}
}

static double best_bound(const struct estimate *e)
{
	double p = 1;

	for (unsigned i = 0; i < e->levels; i++)
		p = fmin(p, e->level[i].upper_p);
	return p;
}

/* Half of the slices are dealt: each kind has had its turn after twice their number. */
static void every_kind_stays_alive(void **state)
{
	struct simulation s;

	(void)state;
	start(&s, 2, 1);
	run(&s, 2 * s.schedule.kinds);
	for (unsigned i = 0; i < s.schedule.kinds; i++)
		assert_non_null(sums_find(&s.sums, &s.schedule.kind[i]));
	finish(&s);
}

static void the_order_is_shuffled(void **state)
{
	struct simulation a, b;
	unsigned same = 0;

	(void)state;
	start(&a, 2, 1);
	start(&b, 2, 2);
	for (unsigned i = 0; i < a.schedule.kinds; i++)
		same += a.schedule.deck[i] == b.schedule.deck[i];
	assert_true(same < a.schedule.kinds / 4);
	finish(&a);
	finish(&b);
}

/* A minute of slices keeps what is required, and a decade more than dealing alone. */
static void focus_gains(void **state)
{
	double focused = 0, dealt = 0;
	unsigned passed = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct simulation s;

		start(&s, 1, seed);
		run(&s, 220);
		passed += s.e.verdict == VERDICT_PASS;
		focused += log10(best_bound(&s.e));
		finish(&s);
		start(&s, 1, seed);
		run_dealt(&s, 220);
		dealt += log10(best_bound(&s.e));
		finish(&s);
	}
	assert_int_equal(passed, SEEDS);
	assert_true(focused / SEEDS < dealt / SEEDS - 0.3);
}

/* What cannot be brought below the next decade gets none of the other half. */
static void what_tears_all_the_time_is_left(void **state)
{
	struct simulation s;
	unsigned lowest = 0, all = 120;

	(void)state;
	start(&s, 1, 5);
	run(&s, 60);
	for (unsigned i = 0; i < all; i++) {
		const struct sum *kind = schedule_focus(&s.schedule, &s.e);

		assert_non_null(kind);
		lowest += kind->rung.first == 0;
		run(&s, 1);
	}
	assert_true(lowest < all / 10);
	finish(&s);
}

static void nothing_is_left_to_focus_on(void **state)
{
	struct simulation s;

	(void)state;
	start(&s, 1, 1);
	for (unsigned i = 0; i < CLAIMS * (s.e.ladder.count + s.e.ladder.rested); i++)
		s.e.level[i / CLAIMS].claim[i % CLAIMS].upper_p = 1e-12;
	assert_null(schedule_focus(&s.schedule, &s.e));
	assert_non_null(schedule_next(&s.schedule, &s.e));
	assert_non_null(schedule_next(&s.schedule, &s.e));
	finish(&s);
}

/* --- Near and far ----------------------------------------------------------------------------- */

#define STAY_FAR  3.0 /* slices, mean */
#define STAY_NEAR 15.0

/* So many slices of a machine that is far now and then; told: the schedule is told of it. */
static void run_apart(struct simulation *s, unsigned slices, bool told)
{
	enum distance now = DISTANCE_NEAR;

	for (unsigned i = 0; i < slices; i++) {
		struct sum sum = *schedule_next(&s->schedule, &s->e);

		sum.count = sum.at[now] = run_slice(&sum, s->rng);
		assert_int_equal(sums_add(&s->sums, &sum), 0);
		estimate_so_far(&s->e, &s->sums, 1, &s->plan);
		if (gsl_rng_uniform(s->rng) < 1 / (now == DISTANCE_FAR ? STAY_FAR : STAY_NEAR))
			now = now == DISTANCE_FAR ? DISTANCE_NEAR : DISTANCE_FAR;
		for (unsigned k = 0; told && k < s->plan.seats; k++)
			schedule_saw(&s->schedule, s->plan.seat[k].placement, now);
	}
	estimate_make(&s->e, &s->sums, 1, &s->plan);
}

/* The most slices far that a rung has less than its share of the time, by all slices. */
static double worst_lack(const struct estimate *e)
{
	double share = (double)e->slices_at[DISTANCE_FAR] /
		       (double)(e->slices_at[DISTANCE_FAR] + e->slices_at[DISTANCE_NEAR]);
	double lack = 0;

	for (unsigned i = 0; i < CLAIMS * e->levels; i++) {
		const struct claim *claim = &e->level[i / CLAIMS].claim[i % CLAIMS];

		for (unsigned k = 0; k < claim->sections; k++) {
			double far = (double)claim->part[PART_FAR][k].count.slices;
			double near = (double)claim->part[PART_NEAR][k].count.slices;

			lack = fmax(lack, share * (near + far) - far);
		}
	}
	return lack;
}

/* Broken: a schedule that is not told leaves it to chance which wait is tried far. */
static void each_wait_has_its_share_of_far_time(void **state)
{
	double told = 0, chance = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct simulation s;

		start(&s, 2, seed);
		run_apart(&s, 900, true);
		told += worst_lack(&s.e);
		finish(&s);
		start(&s, 2, seed);
		run_apart(&s, 900, false);
		chance += worst_lack(&s.e);
		finish(&s);
	}
	print_message("# slices far that the worst wait lacks: %.1f, %.1f by chance\n",
		      told / SEEDS, chance / SEEDS);
	assert_true(told < chance);
}

/* Every other slice is dealt to all kinds, however far apart the CPUs are. */
static void what_is_dealt_knows_no_distance(void **state)
{
	struct simulation a, b;

	(void)state;
	start(&a, 2, 1);
	start(&b, 2, 1);
	run_apart(&a, 100, true);
	run_apart(&b, 100, false);
	assert_int_equal(a.schedule.dealt, b.schedule.dealt);
	assert_memory_equal(a.schedule.deck, b.schedule.deck,
			    a.schedule.kinds * sizeof(*a.schedule.deck));
	finish(&a);
	finish(&b);
}

/* Where a state is the usual one, or was never seen to change, there is nothing to seek. */
static void only_what_is_rare_is_sought(void **state)
{
	struct simulation s;

	(void)state;
	start(&s, 1, 1);
	assert_null(schedule_rare(&s.schedule, &s.e));
	run_apart(&s, 600, false);
	schedule_saw(&s.schedule, PLACEMENT_SAME_L3, DISTANCE_NEAR);
	assert_null(schedule_rare(&s.schedule, &s.e));
	schedule_saw(&s.schedule, PLACEMENT_SAME_L3, DISTANCE_FAR);
	assert_non_null(schedule_rare(&s.schedule, &s.e));
	/* What is not known now is as it was. */
	schedule_saw(&s.schedule, PLACEMENT_SAME_L3, DISTANCES);
	assert_non_null(schedule_rare(&s.schedule, &s.e));
	finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_stays_alive),
		cmocka_unit_test(the_order_is_shuffled),
		cmocka_unit_test(focus_gains),
		cmocka_unit_test(what_tears_all_the_time_is_left),
		cmocka_unit_test(nothing_is_left_to_focus_on),
		cmocka_unit_test(each_wait_has_its_share_of_far_time),
		cmocka_unit_test(what_is_dealt_knows_no_distance),
		cmocka_unit_test(only_what_is_rare_is_sought),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
