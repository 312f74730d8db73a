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

#include "calibrate/bound.h"
#include "calibrate/gpd.h"
#include "calibrate/sequential.h"
#include "calibrate/tail_fit.h"
#include "patchcore/tests/scale.h"

#define CHANCE	 1e-6
#define DURATION 1e10
#define GAPS_MAX 1200
#define LOOKS	 60

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
			const struct rate_band b = bound_band(k, n, 0.95);

			above += bound_upper(k, n, 0.95) >= p;
			below += bound_lower(k, n, 0.95) <= p;
			band += b.lower <= p && b.upper >= p;
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

/* --- Looking as often as one likes --------------------------------------------------- */

struct stopping {
	bool upper_failed, lower_failed;
	enum decision decision;
};

#define more_at(look, promise) ((unsigned)(0.05 / (promise)*pow(1.12, (look))))

static struct stopping stop(double p, double promise)
{
	struct stopping s = { .decision = DECISION_CONTINUE };
	uint64_t k = 0, n = 0;

	for (unsigned look = 0; look < LOOKS; look++) {
		unsigned more = more_at(look, promise);

		k += gsl_ran_binomial(rng, p, more);
		n += more;
		s.upper_failed |= sequential_upper(k, n, promise, 0.05) < p;
		s.lower_failed |= sequential_lower(k, n, promise, 0.05) > p;
		if (s.decision == DECISION_CONTINUE)
			s.decision = sequential_decide(k, n, promise, 0.05);
	}
	return s;
}

/* Does the bound for a fixed number of toggles fail at any look? */
static bool peeking_fails(double p)
{
	uint64_t k = 0, n = 0;

	for (unsigned look = 0; look < LOOKS; look++) {
		unsigned more = more_at(look, p);

		k += gsl_ran_binomial(rng, p, more);
		n += more;
		if (bound_upper(k, n, 0.95) < p)
			return true;
	}
	return false;
}

static void peeking_at_a_fixed_bound_does_not(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		failed += peeking_fails(1e-5);
	/* Else the sequential bounds would be of no use. */
	assert_share(failed, 200, 0.15);
}

static void bounds_hold_under_optional_stopping(void **state)
{
	static const double rates[] = { 1e-3, 1e-5, 2e-7 };
	const unsigned runs = scaled(1000);

	(void)state;
	for (size_t c = 0; c < sizeof(rates) / sizeof(rates[0]); c++) {
		unsigned both = 0;

		for (unsigned i = 0; i < runs; i++) {
			struct stopping s = stop(rates[c], rates[c]);

			both += !s.upper_failed && !s.lower_failed;
		}
		assert_share(both, runs, 0.95);
	}
}

static void early_stopping_keeps_its_error(void **state)
{
	const unsigned runs = scaled(1000);
	const double promise = 1e-6;
	unsigned accepted = 0, rejected = 0, accepted_good = 0, rejected_bad = 0;

	(void)state;
	for (unsigned i = 0; i < runs; i++) {
		accepted += stop(promise * 1.001, promise).decision == DECISION_ACCEPT;
		rejected += stop(promise * 0.999, promise).decision == DECISION_REJECT;
		accepted_good += stop(promise / 10, promise).decision == DECISION_ACCEPT;
		rejected_bad += stop(promise * 10, promise).decision == DECISION_REJECT;
	}
	assert_at_most(accepted, runs, 0.05);
	assert_at_most(rejected, runs, 0.05);
	/* And it does decide where there is something to decide. */
	assert_share(accepted_good, runs, 0.95);
	assert_share(rejected_bad, runs, 0.95);
}

/* --- Tails --------------------------------------------------------------------------- */

struct run {
	double gap[GAPS_MAX], time[GAPS_MAX];
	struct tail_sample sample;
	struct tail_fit fit;
};

static void new_run(struct run *run, size_t count, uint64_t stores)
{
	run->sample = (struct tail_sample){
		.gap = run->gap,
		.time = run->time,
		.count = count,
		.duration = DURATION,
		.stores = stores,
		.target_p = TAIL_TARGET_P,
		.confidence = 0.95,
		.seed = gsl_rng_get(rng),
	};
	for (size_t i = 0; i < count; i++)
		run->time[i] = gsl_rng_uniform(rng) * DURATION;
}

static void fit(struct run *run)
{
	assert_int_equal(tail_fit(&run->sample, &run->fit), 0);
	assert_true(run->fit.reason[0] != '\0');
	if (run->fit.accepted)
		assert_true(run->fit.level_upper >= run->fit.level);
	else
		assert_true(isnan(run->fit.level) && isnan(run->fit.level_upper));
	/* Never more than so many stores can show. */
	for (unsigned i = 0; i < run->fit.rows; i++)
		assert_true(run->fit.row[i].upper_p >= bound_upper(0, run->sample.stores, 0.95));
	if (run->fit.accepted)
		assert_true(run->fit.supported_p >= bound_upper(0, run->sample.stores, 0.95));
}

/* Counts as they come: a store gives a gap over 500 with probability 1e-5. */
static void level_limit_holds(const struct gpd *g, double granule, double holds)
{
	const uint64_t stores = 30000000;
	const double truth = 500 + gpd_quantile(g, TAIL_TARGET_P / 1e-5);
	const unsigned runs = scaled(1000);
	unsigned held = 0, accepted = 0, row_held = 0;
	struct run run;

	for (unsigned i = 0; i < runs; i++) {
		new_run(&run, gsl_ran_poisson(rng, 1e-5 * (double)stores), stores);
		for (size_t n = 0; n < run.sample.count; n++) {
			run.gap[n] = 500 + gpd_quantile(g, gsl_rng_uniform_pos(rng));
			if (granule > 0)
				run.gap[n] = granule * floor(run.gap[n] / granule);
		}
		run.sample.granule = granule;
		fit(&run);
		row_held +=
			1e-5 * gpd_survival(g, run.fit.row[0].wait - 500) <= run.fit.row[0].upper_p;
		accepted += run.fit.accepted;
		held += run.fit.accepted && run.fit.level_upper >= truth;
	}
	/* What is clean must not be refused for nothing. */
	assert_share(accepted, runs, 0.85);
	assert_share(held, accepted, holds);
	assert_share(row_held, runs, 0.95);
#ifdef SHOW
	print_message("xi %g: accepted %u held %g row %g\n", g->xi, accepted,
		      (double)held / accepted, (double)row_held / runs);
#endif
}

static void limit_of_an_exponential_tail(void **state)
{
	(void)state;
	level_limit_holds(&(struct gpd){ 0, 120 }, 26, 0.95);
}

static void limit_of_a_tail_that_ends(void **state)
{
	(void)state;
	level_limit_holds(&(struct gpd){ -0.2, 200 }, 0, 0.95);
}

static void limit_of_a_heavy_tail(void **state)
{
	(void)state;
	level_limit_holds(&(struct gpd){ 0.1, 100 }, 0, 0.95);
}

/* --- Two causes ---------------------------------------------------------------------- */

struct bimodal {
	unsigned runs, seen, small, small_seen, accepted_seen, unsupported, row_held;
};

#define FAST_RATE 1e-5 /* of gaps over 500, per store */

/* Rate of gaps over a wait: exponential above 500, and stalls from 3000 to 20000. */
static double rate_over(double wait, double stall_rate)
{
	double stalls = fmin(1, fmax(0, (20000 - wait) / 17000));

	return FAST_RATE * exp(-(wait - 500) / 60) + stall_rate * stalls;
}

static void bimodal_run(struct bimodal *b, double stall_rate)
{
	const uint64_t stores = 50000000;
	const unsigned stalls = gsl_ran_poisson(rng, stall_rate * (double)stores);
	const unsigned fast = gsl_ran_poisson(rng, FAST_RATE * (double)stores);
	struct run run;
	bool small;

	new_run(&run, fast + stalls, stores);
	for (unsigned i = 0; i < fast; i++)
		run.gap[i] = 500 + gsl_ran_exponential(rng, 60);
	for (unsigned i = 0; i < stalls; i++)
		run.gap[fast + i] = gsl_ran_flat(rng, 3000, 20000);
	fit(&run);
	/* Too small: gaps are beyond it more often than the target. */
	small = run.fit.accepted && rate_over(run.fit.level_upper, stall_rate) > TAIL_TARGET_P;
	b->runs++;
	b->seen += stalls > 0;
	b->small += small;
	b->small_seen += small && stalls > 0;
	b->unsupported += run.fit.accepted &&
			  rate_over(run.fit.level_upper, stall_rate) > run.fit.supported_p;
	b->accepted_seen += run.fit.accepted && stalls > 0;
	b->row_held += rate_over(run.fit.row[0].wait, stall_rate) <= run.fit.row[0].upper_p;
}

/*
 * 20, 5, 2, 1 and 0.2 stalls per run. Seen even once, they must not lead to a T_max that
 * is too small. Not seen: nothing in the run tells of them, the fit may be
 * accepted, and its level is then wrong. What remains true is the count: no more than 3
 * gaps per so many stores are beyond the longest seen, or beyond the level, whatever
 * their cause.
 */
static void rare_stalls_give_no_small_wait(void **state)
{
	static const double rates[] = { 4e-7, 1e-7, 4e-8, 2e-8, 4e-9 };
	const unsigned runs = scaled(60);

	(void)state;
	for (size_t c = 0; c < sizeof(rates) / sizeof(rates[0]); c++) {
		struct bimodal b = { 0 };

		for (unsigned i = 0; i < runs; i++)
			bimodal_run(&b, rates[c]);
#ifdef SHOW
		print_message("stalls %g: seen %u accepted %u small %u, of all small %u row %u\n",
			      rates[c], b.seen, b.accepted_seen, b.small_seen, b.small, b.row_held);
#endif
		assert_at_most(b.small_seen, b.seen, 0.01);
		assert_share(b.row_held, runs, 0.95);
		assert_at_most(b.unsupported, runs, 0.05);
	}
}

/* --- What must be refused ------------------------------------------------------------ */

typedef void spoil_fn(struct run *run);

static void refused(spoil_fn *spoil, unsigned runs)
{
	unsigned accepted = 0;
	struct run run;

	for (unsigned i = 0; i < runs; i++) {
		new_run(&run, 1000, 30000000);
		spoil(&run);
		fit(&run);
		accepted += run.fit.accepted;
	}
#ifdef SHOW
	print_message("accepted %u of %u: %s\n", accepted, runs, run.fit.reason);
#endif
	assert_at_most(accepted, runs, 0.01);
}

static double exponential_of(double normal)
{
	return -log(gsl_cdf_ugaussian_Q(normal));
}

static void autocorrelated(struct run *run)
{
	double x = gsl_ran_ugaussian(rng);

	for (size_t i = 0; i < run->sample.count; i++) {
		x = 0.5 * x + sqrt(1 - 0.25) * gsl_ran_ugaussian(rng);
		run->gap[i] = 500 + 100 * exponential_of(x);
		run->time[i] = DURATION * ((double)i + 0.5) / (double)run->sample.count;
	}
}

static void in_bursts(struct run *run)
{
	for (size_t i = 0; i < run->sample.count; i++) {
		run->gap[i] = 500 + gsl_ran_exponential(rng, 100);
		if (i % 4)
			run->time[i] = fmin(DURATION, run->time[i - 1] + 1e4);
	}
}

static void growing(struct run *run)
{
	for (size_t i = 0; i < run->sample.count; i++)
		run->gap[i] = 500 + gsl_ran_exponential(rng, 60 + 80 * run->time[i] / DURATION);
}

static void more_and_more_often(struct run *run)
{
	for (size_t i = 0; i < run->sample.count; i++) {
		run->gap[i] = 500 + gsl_ran_exponential(rng, 100);
		run->time[i] = DURATION * sqrt(gsl_rng_uniform(rng));
	}
}

/* Up in the middle and down again: no trend over the whole. */
static void humped(struct run *run)
{
	for (size_t i = 0; i < run->sample.count; i++) {
		double t = run->time[i] / DURATION;

		run->gap[i] = 500 + gsl_ran_exponential(rng, t > 0.3 && t < 0.7 ? 160 : 80);
	}
}

static void too_heavy(struct run *run)
{
	for (size_t i = 0; i < run->sample.count; i++)
		run->gap[i] =
			500 + gpd_quantile(&(struct gpd){ 0.8, 60 }, gsl_rng_uniform_pos(rng));
}

static void spoilt_samples_are_refused(void **state)
{
	static spoil_fn *const ways[] = { autocorrelated,      in_bursts, growing,
					  more_and_more_often, humped,	  too_heavy };

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		refused(ways[i], scaled(40));
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
		cmocka_unit_test(bounds_hold_under_optional_stopping),
		cmocka_unit_test(peeking_at_a_fixed_bound_does_not),
		cmocka_unit_test(early_stopping_keeps_its_error),
		cmocka_unit_test(limit_of_an_exponential_tail),
		cmocka_unit_test(limit_of_a_tail_that_ends),
		cmocka_unit_test(limit_of_a_heavy_tail),
		cmocka_unit_test(rare_stalls_give_no_small_wait),
		cmocka_unit_test(spoilt_samples_are_refused),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
