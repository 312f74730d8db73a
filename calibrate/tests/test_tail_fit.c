/* SPDX-License-Identifier: MIT */
/* Rule by rule; how often the answers hold is test_coverage's question. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include <cmocka.h>

#include "calibrate/bound.h"
#include "calibrate/gpd.h"
#include "calibrate/serial.h"
#include "calibrate/tail_fit.h"

#define GAPS	 3000
#define DURATION 1e9
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static gsl_rng *rng;
static double gap[GAPS], when[GAPS];
static struct tail_sample sample;
static struct tail_fit fit;

static void assert_close(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance * fabs(expected)))
		fail_msg("%.17g is not %.17g within %g of it", value, expected, tolerance);
}

/* A clean sample: excesses over 500 at even distances of probability, in random order. */
static void even_sample(const struct gpd *g, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		gap[i] = 500 + gpd_quantile(g, ((double)i + 0.5) / (double)count);
		when[i] = DURATION * ((double)i + gsl_rng_uniform(rng)) / (double)count;
	}
	gsl_ran_shuffle(rng, gap, count, sizeof(*gap));
	for (size_t i = 0; i < count; i++)
		when[i] = DURATION * gsl_rng_uniform(rng);
	sample = (struct tail_sample){ gap, when,	   count, DURATION, 100000000,
				       0,   TAIL_TARGET_P, 0.95,  5 };
}

static int begin(void **state)
{
	(void)state;
	rng = gsl_rng_alloc(gsl_rng_taus2);
	gsl_rng_set(rng, 4);
	even_sample(&(struct gpd){ 0, 100 }, 400);
	return 0;
}

static int end(void **state)
{
	(void)state;
	gsl_rng_free(rng);
	return 0;
}

static void refused_for(const char *words)
{
	assert_int_equal(tail_fit(&sample, &fit), 0);
	assert_false(fit.accepted);
	assert_true(isnan(fit.level) && isnan(fit.level_upper) && isnan(fit.supported_p));
	if (!strstr(fit.reason, words))
		fail_msg("\"%s\" does not say \"%s\"", fit.reason, words);
}

/* --- The distribution ---------------------------------------------------------------- */

static void survival_and_quantile_are_inverse(void **state)
{
	static const double shapes[] = { -0.4, -1e-3, -1e-7, 0, 1e-7, 0.3, 1.5 };

	(void)state;
	for (size_t i = 0; i < COUNT(shapes); i++) {
		const struct gpd g = { shapes[i], 70 };

		for (double p = 0.9; p > 1e-9; p /= 7)
			assert_close(gpd_survival(&g, gpd_quantile(&g, p)), p, 1e-6);
	}
	assert_close(gpd_survival(&(struct gpd){ 0.5, 100 }, 200), 0.25, 1e-12);
	assert_true(gpd_survival(&(struct gpd){ -0.5, 100 }, 201) == 0);
}

static double log_likelihood(const double *x, size_t count, double xi, double sigma)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum -= log(sigma) + (1 + 1 / xi) * log1p(xi * x[i] / sigma);
	return sum;
}

/* No neighbour is more likely, and what is said to be the likelihood is it. */
static void fit_is_the_most_likely(void **state)
{
	static const double shapes[] = { -0.4, -0.1, 0.05, 0.3, 0.9 };
	double x[200];

	(void)state;
	for (size_t i = 0; i < COUNT(shapes); i++) {
		struct gpd g;
		double best;

		gpd_draw(&(struct gpd){ shapes[i], 80 }, rng, x, COUNT(x));
		best = gpd_fit(x, COUNT(x), x[COUNT(x) - 1], &g);
		assert_close(log_likelihood(x, COUNT(x), g.xi, g.sigma), best, 1e-7);
		for (double a = -0.2; a <= 0.2; a += 0.02)
			for (double b = 0.8; b <= 1.2; b += 0.02) {
				double l = log_likelihood(x, COUNT(x), g.xi + a, g.sigma * b);

				assert_true(!(l > best + 1e-4));
			}
	}
}

static void draws_are_sorted_and_of_the_distribution(void **state)
{
	double x[GAPS], mean = 0;

	(void)state;
	gpd_draw(&(struct gpd){ 0.2, 80 }, rng, x, GAPS);
	for (size_t i = 0; i < GAPS; i++) {
		assert_true(x[i] > 0 && (i == 0 || x[i] >= x[i - 1]));
		mean += x[i] / GAPS;
	}
	/* sigma / (1 - xi), and over 5 of its deviates around it. */
	assert_true(mean > 85 && mean < 115);
}

static void limit_grows_with_confidence_and_distance(void **state)
{
	double x[400], l;
	struct gpd g;

	(void)state;
	gpd_draw(&(struct gpd){ 0, 100 }, rng, x, COUNT(x));
	l = gpd_fit(x, COUNT(x), x[COUNT(x) - 1], &g);
	for (double p = 1e-2; p > 1e-7; p /= 10) {
		double half = gpd_level_upper(&g, l, x, COUNT(x), x[COUNT(x) - 1], p, 0.8);
		double most = gpd_level_upper(&g, l, x, COUNT(x), x[COUNT(x) - 1], p, 0.99);
		double next = gpd_level_upper(&g, l, x, COUNT(x), x[COUNT(x) - 1], p / 10, 0.8);

		assert_true(half > gpd_quantile(&g, p));
		assert_true(most > half && next > half && isfinite(most));
	}
}

/* A lognormal body is no Pareto tail; and a single stall among 2000 is none either. */
static void misfits_are_seen(void **state)
{
	double x[2000], room[2000];
	struct gpd g;

	(void)state;
	for (size_t i = 0; i < 400; i++)
		x[i] = exp(gsl_cdf_ugaussian_Pinv(((double)i + 0.5) / 400) * 0.4);
	gpd_fit(x, 400, x[399], &g);
	assert_true(gpd_fit_p(&g, x, 400, rng, 199, room) < TAIL_FIT_P);
	for (size_t i = 0; i < 2000; i++)
		x[i] = -100 * log1p(-((double)i + 0.5) / 2000);
	gpd_fit(x, 2000, x[1999], &g);
	assert_true(gpd_fit_p(&g, x, 2000, rng, 199, room) > 0.5);
	x[1999] = 2000;
	gpd_fit(x, 2000, x[1999], &g);
	assert_true(gpd_fit_p(&g, x, 2000, rng, 199, room) < TAIL_FIT_P);
}

/* --- Fitting a sample ----------------------------------------------------------------- */

static void clean_sample_is_accepted(void **state)
{
	const double truth = 500 + 100 * log(400 / 1e8 / 1e-9);

	(void)state;
	assert_int_equal(tail_fit(&sample, &fit), 0);
	assert_true(fit.accepted);
	assert_true(fit.thresholds > 1 && fit.chosen.fit_p >= TAIL_FIT_P);
	assert_close(fit.chosen.threshold, fit.tried[0].threshold, 1e-12);
	assert_close(fit.level, truth, 0.05);
	assert_true(fit.level_upper > fit.level);
	assert_true(fit.independence_p >= TAIL_P && fit.stationarity_p >= TAIL_P);
	assert_close(fit.supported_p, bound_upper(0, sample.stores, 0.95), 0.8);
	assert_true(isnan(fit.tried[1].fit_p) && isfinite(fit.tried[1].xi));
}

static void same_seed_same_answer(void **state)
{
	struct tail_fit again;

	(void)state;
	sample.granule = 26;
	assert_int_equal(tail_fit(&sample, &fit), 0);
	assert_int_equal(tail_fit(&sample, &again), 0);
	assert_memory_equal(&fit, &again, sizeof(fit));
	sample.seed++;
	assert_int_equal(tail_fit(&sample, &again), 0);
	assert_true(fit.chosen.sigma != again.chosen.sigma);
}

/* Ties of a coarse clock: without the jitter no distribution fits them. */
static void ties_are_spread_over_the_granule(void **state)
{
	(void)state;
	even_sample(&(struct gpd){ 0, 100 }, GAPS);
	for (size_t i = 0; i < GAPS; i++)
		gap[i] = 52 * floor(gap[i] / 52);
	assert_true(tail_granule(gap, GAPS) == 52);
	refused_for("fits");
	sample.granule = 52;
	assert_int_equal(tail_fit(&sample, &fit), 0);
	assert_true(fit.accepted);
	/* Never down: the threshold is above the whole lowest granule. */
	assert_true(fit.tried[0].threshold >= 468 + 52);
}

static void granule_of_whole_ticks(void **state)
{
	static const double steps[] = { 1026, 1000, 1078, 1000 };
	static const double same[] = { 700, 700 };

	(void)state;
	assert_true(tail_granule(steps, COUNT(steps)) == 26);
	assert_true(tail_granule(same, COUNT(same)) == 1);
	assert_true(tail_granule(same, 0) == 1);
}

static void too_few_are_refused(void **state)
{
	(void)state;
	even_sample(&(struct gpd){ 0, 100 }, TAIL_EXCEEDANCES);
	refused_for("too few");
	assert_int_equal(fit.thresholds, 0);
	assert_true(isnan(fit.chosen.xi) && isnan(fit.independence_p));
	/* What was counted holds all the same. */
	assert_true(fit.rows > 0 && fit.row[0].above == 0);
	even_sample(&(struct gpd){ 0, 100 }, TAIL_EXCEEDANCES + 1);
	assert_int_equal(tail_fit(&sample, &fit), 0);
	assert_null(strstr(fit.reason, "too few"));
}

static void far_targets_are_refused(void **state)
{
	(void)state;
	sample.stores = 400000;
	sample.target_p = 0.9 / 400000 / 1e4;
	refused_for("decades");
	sample.target_p = 1.1 / 400000 / 1e4;
	assert_int_equal(tail_fit(&sample, &fit), 0);
	assert_true(fit.accepted);
}

static void near_targets_need_no_fit(void **state)
{
	(void)state;
	sample.target_p = 400 / 1e8;
	refused_for("count them");
	sample.target_p = 390 / 1e8;
	assert_int_equal(tail_fit(&sample, &fit), 0);
	assert_int_equal(fit.thresholds, 1);
}

static void heavy_tails_are_refused(void **state)
{
	(void)state;
	even_sample(&(struct gpd){ 0.6, 100 }, 400);
	refused_for("too heavy");
	/* Its upper limit decides, not its estimate. */
	even_sample(&(struct gpd){ 0.45, 100 }, 400);
	refused_for("too heavy");
	assert_true(fit.chosen.xi < TAIL_XI_MAX);
}

static void abrupt_ends_are_refused(void **state)
{
	(void)state;
	even_sample(&(struct gpd){ -0.7, 100 }, 400);
	refused_for("abruptly");
}

static void a_second_cause_is_refused(void **state)
{
	(void)state;
	even_sample(&(struct gpd){ 0, 100 }, 1000);
	for (size_t i = 0; i < 1000; i += 50)
		gap[i] = 3000 + i;
	refused_for("no generalised Pareto tail fits");
	assert_true(fit.chosen.fit_p < TAIL_FIT_P);
	for (unsigned i = 0; i < fit.thresholds; i++)
		assert_true(fit.tried[i].fit_p <= fit.chosen.fit_p);
}

/* The sizes are random, but they come five at a time. */
static void dependence_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < 400; i++)
		when[i] = i % 5 ? when[i - 1] + 1 : DURATION * gsl_rng_uniform(rng) * 0.999;
	refused_for("independent");
	assert_true(fit.independence_p < TAIL_P);
}

static void drift_is_refused(void **state)
{
	(void)state;
	/* Rates alike, more of the larger ones in the second half: neighbours hardly tell. */
	for (size_t i = 0; i < 200; i++) {
		double small = fmin(gap[i], gap[i + 200]), large = fmax(gap[i], gap[i + 200]);

		when[i] = DURATION / 2 * gsl_rng_uniform(rng);
		when[i + 200] = DURATION / 2 * (1 + gsl_rng_uniform(rng));
		if (i % 2)
			continue;
		gap[i] = small;
		gap[i + 200] = large;
	}
	refused_for("changed during the run");
	assert_true(fit.stationarity_p < TAIL_P);
}

static void only_the_largest_are_kept(void **state)
{
	(void)state;
	even_sample(&(struct gpd){ 0, 100 }, GAPS);
	assert_int_equal(tail_fit(&sample, &fit), 0);
	assert_int_equal(fit.tried[0].exceedances, TAIL_KEPT);
	assert_close(fit.tried[0].threshold, 500 + 100 * log((double)GAPS / TAIL_KEPT), 1e-3);
	assert_true(fit.accepted);
	assert_close(fit.level, 500 + 100 * log(GAPS / 1e8 / 1e-9), 0.05);
}

static void counting_needs_no_fit(void **state)
{
	static const double few[] = { 900, 1000, 1000, 700, 500 };
	static const double times[] = { 1, 2, 3, 4, 5 };

	(void)state;
	sample.gap = few;
	sample.time = times;
	sample.count = 5;
	sample.granule = 20;
	refused_for("too few");
	assert_true(fit.largest == 1000);
	/* 1020, 920 and 720 remain: the second 1000 is no row of its own. */
	assert_int_equal(fit.rows, 2);
	assert_true(fit.row[0].wait == 1020 && fit.row[0].above == 0);
	assert_true(fit.row[0].upper_p == bound_upper(0, sample.stores, 0.95));
	assert_true(fit.row[1].wait == 920 && fit.row[1].above == 2);
	assert_true(fit.row[1].upper_p == bound_upper(2, sample.stores, 0.95));
}

static void what_is_no_sample(void **state)
{
	const struct tail_sample good = sample;

	(void)state;
#define bad(field, value)                                                                          \
	do {                                                                                       \
		sample = good;                                                                     \
		sample.field = (value);                                                            \
		assert_int_equal(tail_fit(&sample, &fit), -EINVAL);                                \
		assert_false(fit.accepted);                                                        \
	} while (0)
	bad(count, 0);
	bad(stores, 0);
	bad(duration, 0);
	bad(duration, INFINITY);
	bad(duration, DURATION / 1000);
	bad(granule, -1);
	bad(granule, NAN);
	bad(target_p, 0);
	bad(target_p, 1);
	bad(confidence, 0.5);
	bad(confidence, 1);
#undef bad
	sample = good;
	gap[3] = NAN;
	assert_int_equal(tail_fit(&sample, &fit), -EINVAL);
	gap[3] = 900;
	when[3] = -1;
	assert_int_equal(tail_fit(&sample, &fit), -EINVAL);
}

/* --- The journal's line --------------------------------------------------------------- */

static const struct tail_origin origin = { "simulation", "line", "old-front", "none" };

static void json_of_an_accepted_fit(void **state)
{
	json_t *body;

	(void)state;
	assert_int_equal(tail_fit(&sample, &fit), 0);
	body = tail_fit_to_json(&fit, &origin);
	assert_non_null(body);
	assert_string_equal(json_string_value(json_object_get(body, "source")), "simulation");
	assert_string_equal(json_string_value(json_object_get(body, "kind")), "old-front");
	assert_true(json_is_true(json_object_get(body, "accepted")));
	assert_true(json_real_value(json_object_get(body, "level_upper")) == fit.level_upper);
	assert_true(json_real_value(json_object_get(body, "supported_p")) == fit.supported_p);
	assert_true(json_real_value(json_object_get(body, "xi")) == fit.chosen.xi);
	assert_int_equal(json_array_size(json_object_get(body, "thresholds")), fit.thresholds);
	assert_int_equal(json_array_size(json_object_get(body, "empirical")), fit.rows);
	json_decref(body);
}

static void json_of_a_refusal(void **state)
{
	static const char *const unknown[] = { "level", "level_upper",	  "supported_p",
					       "xi",	"sigma",	  "threshold",
					       "fit_p", "independence_p", "stationarity_p" };
	json_t *body;

	(void)state;
	sample.count = 20;
	refused_for("too few");
	body = tail_fit_to_json(&fit, &origin);
	assert_non_null(body);
	assert_false(json_is_true(json_object_get(body, "accepted")));
	for (size_t i = 0; i < COUNT(unknown); i++)
		assert_true(json_is_null(json_object_get(body, unknown[i])));
	assert_string_equal(json_string_value(json_object_get(body, "reason")), fit.reason);
	json_decref(body);
}

#define test(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(survival_and_quantile_are_inverse),
		test(fit_is_the_most_likely),
		test(draws_are_sorted_and_of_the_distribution),
		test(limit_grows_with_confidence_and_distance),
		test(misfits_are_seen),
		test(clean_sample_is_accepted),
		test(same_seed_same_answer),
		test(ties_are_spread_over_the_granule),
		test(granule_of_whole_ticks),
		test(too_few_are_refused),
		test(far_targets_are_refused),
		test(near_targets_need_no_fit),
		test(heavy_tails_are_refused),
		test(abrupt_ends_are_refused),
		test(a_second_cause_is_refused),
		test(dependence_is_refused),
		test(drift_is_refused),
		test(only_the_largest_are_kept),
		test(counting_needs_no_fit),
		test(what_is_no_sample),
		test(json_of_an_accepted_fit),
		test(json_of_a_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
