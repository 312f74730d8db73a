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

static struct count as_one_slice(struct count c)
{
	double n = (double)c.toggles, t = (double)c.tears;

	c.slices = 1;
	c.unevenness = n > 0 ? t * t / n : 0;
	c.squares = n * n;
	c.worst_tears = c.tears;
	c.worst_toggles = c.toggles;
	return c;
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
				struct count c = as_one_slice(run_under(&weathers[w], 55, &truth));

				count_add(&all, &c);
			}
			held += bound_of(&all) >= mean_rate(&weathers[w]);
		}
		print_message("# storms of %.0f s, %u runs of 55 s: %.1f %% for the long run\n",
			      weathers[w].storm, LONG_RUN, 100.0 * held / stores);
		assert_share(held, stores, 0.88);
	}
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
	};

	return cmocka_run_group_tests(tests, begin, end);
}
