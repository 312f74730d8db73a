/* SPDX-License-Identifier: MIT */
/*
 * The statistics on trial: calibrations simulated with known answers. How often does
 * a bound that says 95 % hold? TMAX_STRESS_SCALE makes more of them. Every
 * check of a share allows for chance: a sound share fails one run in a million.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include <cmocka.h>

#include "calibrate/statistics/bound.h"
#include "calibrate/statistics/estimate.h"
#include "patchcore/tests/scale.h"

#define CHANCE 1e-6

static gsl_rng *rng;

static unsigned scaled(unsigned count)
{
	double scale = test_scale();

	return scale > 1 ? (unsigned)(count * scale) : count;
}

/* So many of so many, where each should have come out with probability p or more. */
static void assert_share(unsigned held, unsigned tried, double p)
{
	if (gsl_cdf_binomial_P(held, p, tried) < CHANCE)
		fail_msg("%u of %u held, where %g of them should", held, tried, p);
}

static void assert_at_most(unsigned held, unsigned tried, double p)
{
	if (held > 0 && gsl_cdf_binomial_Q(held - 1, p, tried) < CHANCE)
		fail_msg("%u of %u, where %g of them are allowed", held, tried, p);
}

/* --- Counts -------------------------------------------------------------------------- */

static void counted_bounds_hold(void **state)
{
	static const struct {
		double p;
		unsigned toggles;
	} cases[] = { { 0.3, 10 }, { 1e-3, 10000 }, { 1e-5, 1000000 }, { 3e-9, 1000000000 } };
	const unsigned runs = scaled(2000);

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		unsigned above = 0, below = 0, band = 0;

		for (unsigned i = 0; i < runs; i++) {
			const double p = cases[c].p;
			const unsigned n = cases[c].toggles, k = gsl_ran_binomial(rng, p, n);

			above += bound_upper(k, n, 0.95) >= p;
			below += bound_lower(k, n, 0.95) <= p;
			band += bound_lower(k, n, 0.975) <= p && bound_upper(k, n, 0.975) >= p;
		}
		assert_share(above, runs, 0.95);
		assert_share(below, runs, 0.95);
		assert_share(band, runs, 0.95);
	}
}

static void all_cells_hold_at_once(void **state)
{
	const unsigned runs = scaled(1000), cells = 20, n = 100000;
	const double p = 1e-4, each = bound_confidence_each(0.95, cells);
	unsigned held = 0, uncorrected = 0;

	(void)state;
	for (unsigned i = 0; i < runs; i++) {
		unsigned k_min = n;

		for (unsigned cell = 0; cell < cells; cell++) {
			unsigned k = gsl_ran_binomial(rng, p, n);

			k_min = k < k_min ? k : k_min;
		}
		held += bound_upper(k_min, n, each) >= p;
		uncorrected += bound_upper(k_min, n, 0.95) >= p;
	}
	assert_share(held, runs, 0.95);
	/* That the correction is needed: (1 - 0.05)^20 = 0.36. */
	assert_at_most(uncorrected, runs, 0.8);
}

/* --- Storms ----------------------------------------------------------------------------------- */

/*
 * A machine whose rate changes with time: storms of 10 s to 10 min, in which toggles tear many
 * times as often, and two states of distance. And with the site: each slice has another.
 */
struct weather {
	double storm;	  /* mean length, seconds */
	double calm;	  /* between storms */
	double times;	  /* as often in a storm */
	double far_times; /* as often with the CPUs far apart, half of the time */
	double site;	  /* spread between sites */
};

static const struct weather weathers[] = {
	{ 1, 1e9, 1, 1, 0 },	 /* none */
	{ 10, 60, 30, 1, 0 },	 /* short storms */
	{ 10, 60, 30, 4, 2 },	 /* with all the rest */
	{ 60, 300, 30, 4, 1 },	 /* */
	{ 600, 1800, 30, 4, 1 }, /* long ones */
};

#define WEATHERS      (sizeof(weathers) / sizeof(weathers[0]))
#define SLICE	      0.25 /* seconds */
#define EVERY	      12   /* slices, of which one is of the rung looked at */
#define SLICE_TOGGLES 50000.0
#define CALM_RATE     3e-6

struct sky {
	const struct weather *weather;
	bool storm, far;
	double storm_ends, far_ends;
};

static struct sky open_sky(const struct weather *w)
{
	struct sky sky = { .weather = w };

	sky.storm = gsl_rng_uniform(rng) < w->storm / (w->storm + w->calm);
	sky.far = gsl_rng_uniform(rng) < 0.5;
	sky.storm_ends = gsl_ran_exponential(rng, sky.storm ? w->storm : w->calm);
	sky.far_ends = gsl_ran_exponential(rng, 30);
	return sky;
}

static double rate_now(struct sky *sky, double now)
{
	const struct weather *w = sky->weather;

	while (sky->storm_ends < now) {
		sky->storm = !sky->storm;
		sky->storm_ends += gsl_ran_exponential(rng, sky->storm ? w->storm : w->calm);
	}
	while (sky->far_ends < now) {
		sky->far = !sky->far;
		sky->far_ends += gsl_ran_exponential(rng, 30);
	}
	return CALM_RATE * (sky->storm ? w->times : 1) * (sky->far ? w->far_times : 1);
}

static double mean_rate(const struct weather *w)
{
	double storms = w->storm / (w->storm + w->calm);

	return CALM_RATE * (1 + storms * (w->times - 1)) * (1 + 0.5 * (w->far_times - 1));
}

/* What one run counts of a rung, and the mean rate of its time. */
static struct count run_under(const struct weather *w, double seconds, double *truth)
{
	struct sky sky = open_sky(w);
	struct count all = { 0 };
	double sum = 0;
	unsigned slices = (unsigned)(seconds / SLICE);

	for (unsigned i = 0; i < slices; i++) {
		double rate = rate_now(&sky, i * SLICE);
		struct count c = { .slices = 1, .toggles = (uint64_t)SLICE_TOGGLES };

		sum += rate;
		if (gsl_rng_uniform_int(rng, EVERY))
			continue;
		if (w->site > 0)
			rate *= gsl_ran_gamma(rng, 1 / w->site, w->site);
		c.tears = gsl_ran_poisson(rng, rate * SLICE_TOGGLES);
		c.unevenness = (double)c.tears * (double)c.tears / SLICE_TOGGLES;
		c.squares = SLICE_TOGGLES * SLICE_TOGGLES;
		c.worst_tears = c.tears;
		c.worst_toggles = c.toggles;
		count_add(&all, &c);
	}
	*truth = sum / slices;
	return all;
}

/* As the estimate takes it from the rungs that tear: here from this one, if it does. */
static double spread_between(const struct count *c)
{
	if (c->slices < 2 || c->tears < 2)
		return SPREAD_NONE;
	return (count_dispersion(c) - 1) / ((double)c->tears / count_units(c));
}

static double bound_of(const struct count *c)
{
	double cap = c->worst_toggles ? 2 * (double)c->worst_tears / (double)c->worst_toggles : 0;

	return estimate_bound(c, spread_between(c), cap, 0.95);
}

/*
 * The bound of one run holds for the time of that run: in four of five at least, and in nine
 * of ten or more but for short runs in which few tears tell of the spread. (The model's storms
 * are no gamma distribution; nor are a machine's.)
 */
static void a_run_speaks_for_its_time(void **state)
{
	static const double seconds[] = { 55, 870 };
	const unsigned runs = scaled(400);

	(void)state;
	for (size_t w = 0; w < WEATHERS; w++) {
		for (size_t k = 0; k < 2; k++) {
			unsigned held = 0, plain = 0, beyond = 0;

			for (unsigned i = 0; i < runs; i++) {
				double truth;
				struct count c = run_under(&weathers[w], seconds[k], &truth);

				held += bound_of(&c) >= truth;
				plain += bound_upper(c.tears, c.toggles, 0.95) >= truth;
				beyond += bound_of(&c) >= mean_rate(&weathers[w]);
			}
			print_message(
				"# storms of %.0f s, run of %.0f s: %.1f %% for its time (%.1f "
				"%% without the spread), %.1f %% for the long run\n",
				weathers[w].storm, seconds[k], 100.0 * held / runs,
				100.0 * plain / runs, 100.0 * beyond / runs);
			assert_share(held, runs, 0.8);
		}
	}
}

/* A bound that takes slices for alike fails in storms: else the spread would be of no use. */
static void without_the_spread_it_does_not(void **state)
{
	const unsigned runs = scaled(400);
	unsigned held = 0;

	(void)state;
	for (unsigned i = 0; i < runs; i++) {
		double truth;
		struct count c = run_under(&weathers[2], 55, &truth);

		held += bound_upper(c.tears, c.toggles, 0.95) >= truth;
	}
	assert_at_most(held, runs, 0.9);
}

/* Thirty runs, at thirty times, speak for the long run. */
static void many_runs_speak_for_the_long_run(void **state)
{
	const unsigned stores = scaled(200);

	(void)state;
	for (size_t w = 0; w < WEATHERS; w++) {
		unsigned held = 0;

		for (unsigned i = 0; i < stores; i++) {
			struct count all = { 0 };

			for (unsigned run = 0; run < LONG_RUN; run++) {
				double truth;
				struct count c = count_as_unit(run_under(&weathers[w], 55, &truth));

				count_add(&all, &c);
			}
			held += bound_of(&all) >= mean_rate(&weathers[w]);
		}
		print_message("# storms of %.0f s, %u runs of 55 s: %.1f %% for the long run\n",
			      weathers[w].storm, LONG_RUN, 100.0 * held / stores);
		assert_share(held, stores, 0.88);
	}
}

/*
 * A share of the runs is bad as a whole, so many times as often. For those shares that as many runs
 * do not miss, the bound holds; the lower of both bounds, as for slices, does so in fewer. A share
 * that is missed is bounded by nothing: that is told apart.
 */
static void rare_bad_runs_are_bounded_if_they_are_met(void **state)
{
	static const struct {
		double share, times, least, lower_most;
	} cases[] = { { 0, 10, 0.95, 1 },      { 0.01, 10, 0.95, 1 },  { 0.03, 10, 0.95, 0.9 },
		      { 0.01, 30, 0.95, 0.7 }, { 0.03, 30, 0.7, 0.7 }, { 0.1, 30, 0.92, 1 },
		      { 0.3, 30, 0.95, 1 },    { 0.1, 300, 0.92, 1 },  { 0.03, 300, 0, 0.7 } };
	const struct weather steady = { 1, 1e9, 1, 1, 1 };
	const unsigned stores = scaled(400);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double truth = CALM_RATE * (1 + cases[i].share * (cases[i].times - 1));
		unsigned held = 0, lower = 0;

		for (unsigned store = 0; store < stores; store++) {
			struct count all = { 0 };
			double mean;

			for (unsigned run = 0; run < LONG_RUN; run++) {
				bool bad = gsl_rng_uniform(rng) < cases[i].share;
				struct weather w = steady;
				struct count c;

				w.far_times = 1;
				w.times = bad ? cases[i].times : 1;
				w.storm = bad ? 1e9 : 1;
				w.calm = bad ? 1 : 1e9;
				c = count_as_unit(run_under(&w, 55, &mean));
				count_add(&all, &c);
			}
			held += bound_of(&all) >= truth;
			all.are_runs = false;
			lower += bound_of(&all) >= truth;
		}
		print_message("# %g %% of 30 runs tear %g times as often: holds in %.1f %%, the "
			      "lower bound in %.1f %%\n",
			      100 * cases[i].share, cases[i].times, 100.0 * held / stores,
			      100.0 * lower / stores);
		assert_share(held, stores, cases[i].least);
		assert_at_most(lower, stores, cases[i].lower_most);
	}
	/* 30 runs miss less than a tenth of all times, with 95 %. */
	assert_true(fabs(bound_missed(LONG_RUN) - (1 - pow(0.05, 1.0 / LONG_RUN))) < 1e-9);
}

/* --- The worst part of the slices ------------------------------------------------------------- */

/* Slices of a rung: one, or as many executors as there is room for, left alone or provoked. */
static const struct {
	enum sum_kind kind;
	unsigned executors, slices;
	double times; /* as often as the first */
} parts[] = {
	{ SUM_ALONE, 1, 40, 1 },
	{ SUM_WAIT, 1, 20, 0.4 },
	{ SUM_ALONE, 15, 8, 6 },
	{ SUM_WAIT, 15, 4, 6 },
};

#define PART_RATE 2e-5

/*
 * A user's program has no provoker, and may have as many threads as the machine has CPUs. The
 * bound of all slices together does not hold for it; that of the claim does.
 */
static void a_claim_is_that_of_the_worst_part(void **state)
{
	const unsigned runs = scaled(300);
	struct plan plan = *plan_find("quick");
	unsigned held = 0, pooled = 0;

	(void)state;
	plan.seats = 2;
	plan.seat[0] = (struct seat){ PLACEMENT_SPREAD, 1 };
	plan.seat[1] = (struct seat){ PLACEMENT_SPREAD, 15 };
	for (unsigned i = 0; i < runs; i++) {
		static struct estimate e;
		struct sums sums = { 0 };
		const struct claim *claim = &e.level[0].claim[CLAIM_LINE];

		for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
			for (unsigned slice = 0; slice < parts[k].slices; slice++) {
				double mean = PART_RATE * parts[k].times * SLICE_TOGGLES;
				uint64_t tears = gsl_ran_poisson(rng, mean);
				struct sum sum = { .kind = parts[k].kind,
						   .rung.stretch = LADDER_STRETCH,
						   .crossing = CROSSING_LINE,
						   .placement = PLACEMENT_SPREAD,
						   .executors = parts[k].executors,
						   .count = { .slices = 1,
							      .toggles = (uint64_t)SLICE_TOGGLES,
							      .tears = tears } };

				sum.count.unevenness = (double)(tears * tears) / SLICE_TOGGLES;
				sum.count.squares = SLICE_TOGGLES * SLICE_TOGGLES;
				sum.count.worst_tears = tears;
				sum.count.worst_toggles = sum.count.toggles;
				assert_int_equal(sums_add(&sums, &sum), 0);
			}
		estimate_so_far(&e, &sums, 1, &plan);
		held += claim->upper_p >= 6 * PART_RATE;
		pooled += claim->section[0].upper_p >= 6 * PART_RATE;
		/* What machine.conf says the bound rests on is that part. */
		assert_int_equal(claim->rests.slices, 12);
		sums_free(&sums);
	}
	print_message("# worst part: %.1f %% held, %.1f %% of all slices' bounds\n",
		      100.0 * held / runs, 100.0 * pooled / runs);
	assert_share(held, runs, 0.95);
	assert_at_most(pooled, runs, 0.5);
}

/* --- Single stores inside a line -------------------------------------------------------------- */

/*
 * Stores across 32 bytes, and those that tore, of each run on AMD family 26 in
 * results/runs/amd-26-2-1-kvm-*.
 */
static const struct {
	double tears, stores;
} runs_26[] = {
	{ 35, 12832113 },   { 1531, 201283287 }, { 2984, 213370641 }, { 5, 11981563 },
	{ 12, 12321958 },   { 0, 10681640 },	 { 0, 10615124 },     { 748, 11102091 },
	{ 47, 12306180 },   { 6, 12016230 },	 { 19, 13901546 },    { 16, 13016157 },
	{ 523, 12687033 },  { 7, 10313714 },	 { 46, 12172470 },    { 10, 12526233 },
	{ 5483, 13708749 }, { 6, 13108227 },	 { 182, 12444354 },   { 9, 12856495 },
	{ 7, 11500242 },    { 0, 10692323 },	 { 41, 13317178 },
};

#define RUNS_26	   (sizeof(runs_26) / sizeof(runs_26[0]))
#define RUN_STORES 1e7 /* of a quick run */

static double rate_26(size_t i)
{
	return runs_26[i].tears / runs_26[i].stores;
}

static double mean_26(void)
{
	double sum = 0;

	for (size_t i = 0; i < RUNS_26; i++)
		sum += rate_26(i);
	return sum / RUNS_26;
}

/* That so many runs like those see no tear, where the mean of their rates is another one. */
static double chance_of_none(unsigned runs, double mean)
{
	double one = 0;

	for (size_t i = 0; i < RUNS_26; i++)
		one += exp(-rate_26(i) * mean / mean_26() * RUN_STORES);
	return pow(one / RUNS_26, runs);
}

/* Of numbers of runs: how many have a bound that runs like those break too often? */
static unsigned count_broken(double spread)
{
	unsigned broken = 0;

	for (unsigned runs = 1; runs <= 200; runs++) {
		double p = bound_mixed(0, (uint64_t)(runs * RUN_STORES), runs, spread, 0.95);

		broken += p < 1 && chance_of_none(runs, p) > 0.05;
	}
	return broken;
}

static void a_window_holds_between_runs(void **state)
{
	static const uint64_t alike[] = { 10000000, 10000000, 10000000, 10000000, 10000000 };
	uint64_t other[] = { 10000000, 10000000, 10000000, 10000000, 500000000 };
	double five = bound_unseen(alike, 5, WINDOW_SPREAD, 0.95);

	(void)state;
	assert_true(fabs(five / bound_mixed(0, 50000000, 5, WINDOW_SPREAD, 0.95) - 1) < 1e-6);
	/* A longer run is worth more, but not ten runs. */
	assert_true(bound_unseen(other, 5, WINDOW_SPREAD, 0.95) < five);
	assert_true(bound_unseen(other, 5, WINDOW_SPREAD, 0.95) >
		    bound_mixed(0, 150000000, 15, WINDOW_SPREAD, 0.95));
	assert_true(bound_unseen(alike, 1, WINDOW_SPREAD, 0.95) == 1);
	assert_true(bound_unseen(NULL, 0, WINDOW_SPREAD, 0.95) == 1);
	assert_int_equal(count_broken(WINDOW_SPREAD), 0);
	/* Stores as units, or half of that spread, promise too much. */
	assert_int_equal(count_broken(0), 200);
	assert_true(count_broken(WINDOW_SPREAD / 2) > 20);
	for (unsigned runs = 1; runs <= 30; runs += runs == 1 ? 2 : 9)
		print_message(
			"# %u runs of 1e7 stores without a tear: below %.2g; stores as "
			"units: below %.2g, where none torn has a chance of %.2g\n",
			runs,
			bound_mixed(0, (uint64_t)(runs * RUN_STORES), runs, WINDOW_SPREAD, 0.95),
			bound_upper(0, (uint64_t)(runs * RUN_STORES), 0.95),
			chance_of_none(runs, bound_upper(0, (uint64_t)(runs * RUN_STORES), 0.95)));
}

static struct sums draw_run_26(double times)
{
	static const enum crossing inside[] = { CROSSING_8, CROSSING_16, CROSSING_32 };
	double rate = times * rate_26(gsl_rng_uniform_int(rng, RUNS_26));
	struct sums sums = { 0 };

	for (int i = 0; i < 3; i++) {
		struct sum sum = { .kind = SUM_STORE, .crossing = inside[i], .executors = 1 };

		sum.count.slices = 1;
		sum.count.toggles = (uint64_t)RUN_STORES;
		sum.count.squares = RUN_STORES * RUN_STORES;
		sum.count.tears = i == 2 ? gsl_ran_poisson(rng, rate * RUN_STORES) : 0;
		assert_int_equal(sums_add(&sums, &sum), 0);
	}
	return sums;
}

/* The same of the estimate itself, which sees tears in some runs, and then says 32 bytes. */
static void an_estimate_claims_no_window_too_small(void **state)
{
	static const unsigned counts[] = { 1, 3, 10, 30 };
	const unsigned tried = scaled(100);
	unsigned as_stores = 0;

	(void)state;
	for (double mean = 1e-9; mean < 1e-4; mean *= 10) {
		for (size_t k = 0; k < 4; k++) {
			unsigned broken = 0;

			for (unsigned i = 0; i < tried; i++) {
				struct sums runs[30];
				struct estimate e;

				for (unsigned run = 0; run < counts[k]; run++)
					runs[run] = draw_run_26(mean / mean_26());
				estimate_make(&e, runs, counts[k], plan_find("quick"));
				broken += e.window.bytes == 64 && e.window.upper_p < mean;
				as_stores += e.window.bytes == 64 &&
					     bound_upper(0, e.window.toggles, 0.95) < mean;
				for (unsigned run = 0; run < counts[k]; run++)
					sums_free(&runs[run]);
			}
			assert_at_most(broken, tried, 0.05);
		}
	}
	/* As it was with stores as units. */
	assert_true(as_stores > tried);
}

static int begin(void **state)
{
	(void)state;
	rng = gsl_rng_alloc(gsl_rng_taus2);
	gsl_rng_set(rng, 20240229);
	return 0;
}

static int end(void **state)
{
	(void)state;
	gsl_rng_free(rng);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted_bounds_hold),
		cmocka_unit_test(all_cells_hold_at_once),
		cmocka_unit_test(a_run_speaks_for_its_time),
		cmocka_unit_test(without_the_spread_it_does_not),
		cmocka_unit_test(many_runs_speak_for_the_long_run),
		cmocka_unit_test(rare_bad_runs_are_bounded_if_they_are_met),
		cmocka_unit_test(a_claim_is_that_of_the_worst_part),
		cmocka_unit_test(a_window_holds_between_runs),
		cmocka_unit_test(an_estimate_claims_no_window_too_small),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
