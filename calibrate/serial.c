/* SPDX-License-Identifier: MIT */
#include "calibrate/serial.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#include "calibrate/drift.h"

#define STRETCHES     8
#define CROWD	      5	 /* expected per short stretch: as few as chi-square bears */
#define RANKS_MIN     10 /* per stretch of Kruskal and Wallis */
#define FAR	      37 /* deviates beyond which GSL's normal tail would underflow */
#define TESTS_OF_EACH 3

static double two_sided(double z)
{
	return fabs(z) > FAR ? 0 : 2 * gsl_cdf_ugaussian_Q(fabs(z));
}

/* Equal ones share the mean of their ranks: any order among them would be a made-up one. */
static int rank(const double *value, size_t count, double *ranks)
{
	size_t *order = calloc(count, sizeof(*order));

	if (!order)
		return -1;
	gsl_sort_index(order, value, 1, count);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && value[order[to]] == value[order[from]];)
			to++;
		for (size_t i = from; i < to; i++)
			ranks[order[i]] = (double)(from + 1 + to) / 2;
	}
	free(order);
	return 0;
}

static double lag1_p(const double *value, size_t count)
{
	const double n = (double)count;
	double *ranks = calloc(count, sizeof(*ranks));
	double p = NAN;

	/* Under independence the expectation is -1/n and the variance 1/n. */
	if (ranks && rank(value, count, ranks) == 0)
		p = two_sided((gsl_stats_lag1_autocorrelation(ranks, 1, count) + 1 / n) * sqrt(n));
	free(ranks);
	return p;
}

static double interval_p(const double *time, size_t count)
{
	double *interval = calloc(count, sizeof(*interval));
	double p;

	if (!interval)
		return NAN;
	for (size_t i = 1; i < count; i++)
		interval[i - 1] = time[i] - time[i - 1];
	p = lag1_p(interval, count - 1);
	free(interval);
	return p;
}

static double uneven_p(const double *time, size_t count, double duration, size_t stretches)
{
	struct drift_block *blocks = calloc(stretches, sizeof(*blocks));
	double p;

	if (!blocks)
		return NAN;
	for (size_t i = 0; i < stretches; i++)
		blocks[i].exposure = 1;
	for (size_t i = 0; i < count; i++) {
		size_t at = (size_t)(time[i] / duration * (double)stretches);

		blocks[at < stretches ? at : stretches - 1].events++;
	}
	p = drift_p(blocks, stretches, 0);
	free(blocks);
	return p;
}

static double trend_p(const double *size, const double *time, size_t count)
{
	double *room = calloc(2 * count, sizeof(*room));
	double p;

	if (!room)
		return NAN;
	p = two_sided(gsl_stats_spearman(size, 1, time, 1, count, room) * sqrt((double)count - 1));
	free(room);
	return p;
}

static double kruskal_wallis(const double *ranks, size_t count, size_t stretches)
{
	const double n = (double)count;
	double sum = 0;

	for (size_t s = 0; s < stretches; s++) {
		size_t from = s * count / stretches, to = (s + 1) * count / stretches;
		double total = 0;

		for (size_t i = from; i < to; i++)
			total += ranks[i];
		sum += total * total / (double)(to - from);
	}
	return fmax(0, 12 * sum / (n * (n + 1)) - 3 * (n + 1));
}

static double steps_p(const double *size, size_t count)
{
	const size_t most = count / RANKS_MIN, stretches = most < STRETCHES ? most : STRETCHES;
	double *ranks = calloc(count, sizeof(*ranks));
	double p = NAN;

	if (ranks && rank(size, count, ranks) == 0) {
		double h = kruskal_wallis(ranks, count, stretches);

		p = h > FAR * FAR ? 0 : gsl_cdf_chisq_Q(h, (double)stretches - 1);
	}
	free(ranks);
	return p;
}

/* NAN if one of them is: fmin() would lose it. */
static double least_of(const double p[TESTS_OF_EACH])
{
	double least = 1;

	for (unsigned i = 0; i < TESTS_OF_EACH; i++) {
		if (isnan(p[i]))
			return NAN;
		least = fmin(least, TESTS_OF_EACH * p[i]);
	}
	return least;
}

double serial_independence_p(const double *size, const double *time, size_t count, double duration)
{
	const double p[TESTS_OF_EACH] = {
		lag1_p(size, count),
		interval_p(time, count),
		uneven_p(time, count, duration, count / CROWD),
	};

	return least_of(p);
}

double serial_stationarity_p(const double *size, const double *time, size_t count, double duration)
{
	const double p[TESTS_OF_EACH] = {
		trend_p(size, time, count),
		steps_p(size, count),
		uneven_p(time, count, duration, STRETCHES),
	};

	return least_of(p);
}
