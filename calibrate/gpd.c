/* SPDX-License-Identifier: MIT */
#include "calibrate/gpd.h"

#include <float.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdbool.h>

#define GRID	     18
#define MINIMISE     60
#define CLOSE	     1e-5
#define EXPONENTIAL  1e-6 /* below, xi is as good as 0 and the general formula loses digits */
#define XI_MIN	     (-1.0)
#define XI_MAX	     4.0
#define NO	     1e300    /* the cost of what cannot be; GSL wants it finite */
#define AS_BAD	     8	      /* draws that settle a goodness of fit */
#define NONE_AS_BAD  60	      /* draws without any, which settle a badness */
#define LOG_LEFT_MIN (-700.0) /* the inverse of its exponential is still a number */
#define DOUBLINGS    60
#define HALVINGS     30

static double log_survival(const struct gpd *g, double x)
{
	double base;

	if (fabs(g->xi) < EXPONENTIAL)
		return -x / g->sigma;
	base = g->xi * x / g->sigma;
	return base <= -1 ? -INFINITY : -log1p(base) / g->xi;
}

double gpd_survival(const struct gpd *g, double x)
{
	return exp(log_survival(g, x));
}

double gpd_quantile(const struct gpd *g, double p)
{
	double r = -log(p);

	return g->sigma * (fabs(g->xi) < EXPONENTIAL ? r : expm1(g->xi * r) / g->xi);
}

/*
 * Sum of log(1 + theta x). The logarithms cost the most here: one for eight factors,
 * each of which is between 1e-16 and 1e38 where a tail is at all likely.
 */
static double sum_logs(const double *x, size_t count, double theta)
{
	double sum = 0;
	size_t i = 0;

	for (; i + 8 <= count; i += 8) {
		double product = 1;

		for (size_t n = i; n < i + 8; n++)
			product *= 1 + theta * x[n];
		sum += log(product);
	}
	for (; i < count; i++)
		sum += log1p(theta * x[i]);
	return sum;
}

struct sample {
	const double *x;
	size_t count;
	double largest, mean;
	double ratio; /* log of threshold's rate over target, for a level */
	double level;
};

static double mean_of(const double *x, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += x[i];
	return sum / (double)count;
}

/* The least cost within [low, high]: a grid finds the valley, Brent its floor. */
static double minimise(gsl_function *f, double low, double high, double *cost)
{
	const double step = (high - low) / GRID;
	double best = low, values[GRID + 1];
	unsigned at = 0;
	gsl_min_fminimizer *m;

	for (unsigned i = 0; i <= GRID; i++) {
		values[i] = GSL_FN_EVAL(f, low + i * step);
		if (values[i] < values[at])
			at = i;
	}
	best = low + at * step;
	*cost = values[at];
	if (at == 0 || at == GRID || values[at - 1] <= *cost || values[at + 1] <= *cost)
		return best;
	m = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
	gsl_min_fminimizer_set_with_values(m, f, best, *cost, best - step, values[at - 1],
					   best + step, values[at + 1]);
	for (unsigned i = 0; i < MINIMISE; i++) {
		if (gsl_min_fminimizer_iterate(m) != GSL_SUCCESS)
			break;
		if (gsl_min_test_interval(gsl_min_fminimizer_x_lower(m),
					  gsl_min_fminimizer_x_upper(m), CLOSE, 0) == GSL_SUCCESS)
			break;
	}
	best = gsl_min_fminimizer_x_minimum(m);
	*cost = gsl_min_fminimizer_f_minimum(m);
	gsl_min_fminimizer_free(m);
	return best;
}

/* tau is log(1 + xi / sigma * largest): 0 is the exponential, and any value is allowed. */
static struct gpd at_tau(const struct sample *s, double tau)
{
	const double theta = expm1(tau) / s->largest;
	double xi;

	if (fabs(theta) * s->mean < EXPONENTIAL)
		return (struct gpd){ 0, s->mean };
	xi = sum_logs(s->x, s->count, theta) / (double)s->count;
	return (struct gpd){ xi, xi / theta };
}

static double fit_cost(double tau, void *context)
{
	const struct sample *s = context;
	const struct gpd g = at_tau(s, tau);

	if (!(g.sigma > 0) || g.xi < XI_MIN)
		return NO;
	return (double)s->count * (log(g.sigma) + g.xi + 1);
}

double gpd_fit(const double *excess, size_t count, double largest, struct gpd *g)
{
	struct sample s = { .x = excess, .count = count, .largest = largest };
	gsl_function f = { .function = fit_cost, .params = &s };
	double cost, tau;

	s.mean = mean_of(excess, count);
	tau = minimise(&f, -8, 13, &cost);
	*g = at_tau(&s, tau);
	return -cost;
}

void gpd_draw(const struct gpd *g, gsl_rng *rng, double *excess, size_t count)
{
	double total = 0;

	/* Uniforms in order are the steps of a random walk with exponential steps. */
	for (size_t i = 0; i < count; i++)
		excess[count - 1 - i] = total += gsl_ran_exponential(rng, 1);
	total += gsl_ran_exponential(rng, 1);
	for (size_t i = 0; i < count; i++)
		excess[i] = gpd_quantile(g, excess[i] / total);
}

struct misfit {
	double whole, tail;
};

static struct misfit misfit(const struct gpd *g, const double *excess, size_t count)
{
	const double n = (double)count;
	double sum = 0, logs = 0, inverse = 0;

	for (size_t i = 0; i < count; i++) {
		double log_left = fmax(log_survival(g, excess[i]), LOG_LEFT_MIN);
		double left = exp(log_left), rank = (double)i;

		sum += (2 * rank + 1) * log(fmax(1 - left, DBL_MIN));
		sum += (2 * n - 2 * rank - 1) * log_left;
		logs += log_left;
		inverse += (2 * n - 2 * rank - 1) / left;
	}
	return (struct misfit){ .whole = -n - sum / n, .tail = 2 * logs + inverse / n };
}

/* One statistic over the draws made so far. */
struct race {
	double seen;
	unsigned draws, as_bad;
};

static bool is_settled(const struct race *r)
{
	return r->as_bad >= AS_BAD || (r->as_bad == 0 && r->draws >= NONE_AS_BAD);
}

static void take(struct race *r, double drawn)
{
	if (is_settled(r))
		return;
	r->draws++;
	r->as_bad += drawn >= r->seen;
}

static double race_p(const struct race *r)
{
	if (r->as_bad >= AS_BAD)
		return (double)r->as_bad / r->draws;
	return (r->as_bad + 1.0) / (r->draws + 1.0);
}

double gpd_fit_p(const struct gpd *g, const double *excess, size_t count, gsl_rng *rng,
		 unsigned draws, double *room)
{
	const struct misfit seen = misfit(g, excess, count);
	struct race whole = { .seen = seen.whole }, tail = { .seen = seen.tail };

	for (unsigned i = 0; i < draws && !(is_settled(&whole) && is_settled(&tail)); i++) {
		struct gpd again;
		struct misfit m;

		gpd_draw(g, rng, room, count);
		gpd_fit(room, count, room[count - 1], &again);
		m = misfit(&again, room, count);
		take(&whole, m.whole);
		take(&tail, m.tail);
	}
	return fmin(1, 2 * fmin(race_p(&whole), race_p(&tail)));
}

/* Cost of the best fit of shape xi that has the level where it is asked to be. */
static double level_cost(double xi, void *context)
{
	const struct sample *s = context;
	const double n = (double)s->count;
	double sigma, theta, cost;

	if (fabs(xi) < EXPONENTIAL) {
		sigma = s->level / s->ratio;
		return n * (log(sigma) + s->mean / sigma);
	}
	sigma = s->level * xi / expm1(xi * s->ratio);
	theta = xi / sigma;
	if (!(sigma > 0) || !(theta * s->largest > -1 + DBL_EPSILON))
		return NO;
	cost = n * log(sigma) + (1 + 1 / xi) * sum_logs(s->x, s->count, theta);
	return isfinite(cost) ? cost : NO;
}

static bool level_possible(struct sample *s, double level, double cost_max)
{
	gsl_function f = { .function = level_cost, .params = s };
	double cost;

	s->level = level;
	minimise(&f, XI_MIN, XI_MAX, &cost);
	return cost <= cost_max;
}

double gpd_level_upper(const struct gpd *best, double log_likelihood, const double *excess,
		       size_t count, double largest, double p, double confidence)
{
	const double z = gsl_cdf_ugaussian_Pinv(confidence);
	const double cost_max = -log_likelihood + z * z / 2;
	struct sample s = { .x = excess, .count = count, .largest = largest, .ratio = -log(p) };
	double low = gpd_quantile(best, p), high = low;

	s.mean = mean_of(excess, count);
	for (unsigned i = 0; level_possible(&s, high, cost_max); i++) {
		if (i == DOUBLINGS)
			return INFINITY;
		low = high;
		high *= 1.25;
	}
	for (unsigned i = 0; i < HALVINGS && high - low > 1e-4 * high; i++) {
		double middle = (low + high) / 2;

		if (level_possible(&s, middle, cost_max))
			low = middle;
		else
			high = middle;
	}
	return high;
}
