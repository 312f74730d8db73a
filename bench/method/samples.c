/* SPDX-License-Identifier: MIT */
#include "bench/method/result.h"

#include <errno.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/random.h"

#define BOOTSTRAP_DRAWS 2000
#define BOOTSTRAP_LEAST 8
#define OVER_SEED	1 /* of the bootstrap; any will do */

void samples_add(struct samples *s, double value)
{
	if (!isfinite(value))
		s->odd = true;
	if (!isnan(value) && ARRAY_ADD(s->value, s->count, value) < 0)
		s->lost = true;
}

void samples_end_block(struct samples *s)
{
	if (ARRAY_ADD(s->end, s->blocks, s->count) < 0)
		s->lost = true;
}

void samples_free(struct samples *s)
{
	free(s->value);
	free(s->end);
	*s = (struct samples){ 0 };
}

static double *sorted(const double *values, size_t count)
{
	double *copy = reallocarray(NULL, count, sizeof(*copy));

	if (!copy)
		return NULL;
	memcpy(copy, values, count * sizeof(*copy));
	gsl_sort(copy, 1, count);
	return copy;
}

static double sample_quantile(const double *values, size_t count, double q)
{
	size_t low = (size_t)(q * (double)(count - 1)), high = low + 1 < count ? low + 1 : low;

	/* Interpolation between two equal values may miss them by a rounding error. */
	return fmin(fmax(gsl_stats_quantile_from_sorted_data(values, 1, count, q), values[low]),
		    values[high]);
}

double samples_block_median(const struct samples *s, size_t block)
{
	size_t begin = block ? s->end[block - 1] : 0, count = s->end[block] - begin;
	double *copy = count ? sorted(s->value + begin, count) : NULL, median;

	if (!copy)
		return NAN;
	median = sample_quantile(copy, count, 0.5);
	free(copy);
	return median;
}

/*
 * The median, and its 95 % percentile interval from BOOTSTRAP_DRAWS draws of as many groups as
 * there are, each of neighbours in time, drawn whole. Of fewer than BOOTSTRAP_LEAST groups the
 * interval is from the least to the most; for one value it is that value, and tells nothing. Same
 * seed, same interval. Without values, or if one is not finite: NAN. False: out of memory.
 */
static bool bootstrap_groups(const double *values, size_t count, size_t group, uint64_t seed,
			     struct bench_value *v)
{
	size_t groups = (count + group - 1) / group;
	double *value, *drawn, *medians;
	bool made;

	*v = (struct bench_value){ NAN, NAN, NAN };
	for (size_t i = 0; i < count; i++)
		if (!isfinite(values[i]))
			return true;
	if (!count)
		return true;
	value = sorted(values, count);
	drawn = calloc(groups * group, sizeof(*drawn));
	medians = calloc(BOOTSTRAP_DRAWS, sizeof(*medians));
	made = value && drawn && medians;
	if (made)
		*v = (struct bench_value){ sample_quantile(value, count, 0.5), value[0],
					   value[count - 1] };
	if (made && groups >= BOOTSTRAP_LEAST) {
		for (size_t draw = 0; draw < BOOTSTRAP_DRAWS; draw++) {
			size_t all = 0;

			for (size_t k = 0; k < groups; k++) {
				double u = (double)(random_next(&seed) >> 11) * 0x1p-53;
				size_t i = (size_t)(u * (double)groups) * group;

				for (size_t end = i + group; i < end && i < count; i++)
					drawn[all++] = values[i];
			}
			medians[draw] = gsl_stats_median(drawn, 1, all);
		}
		gsl_sort(medians, 1, BOOTSTRAP_DRAWS);
		v->low = sample_quantile(medians, BOOTSTRAP_DRAWS, 0.025);
		v->high = sample_quantile(medians, BOOTSTRAP_DRAWS, 0.975);
	}
	free(value);
	free(drawn);
	free(medians);
	return made;
}

/*
 * Without a base: all blocks that are not empty, each by its median. The two blocks of a quadruple
 * are close in time and so have their noise in common: one tells little that the other does not.
 * They are drawn together, or the interval would be too narrow by up to the square root of two.
 *
 * Else of each pair of blocks of both the ratio, or the difference. With an empty block a pair has
 * no ratio. The median goes to v. How many there were, or -ENOMEM.
 */
static int estimate(const struct samples *s, const struct samples *base, bool ratio, uint64_t seed,
		    struct bench_value *v)
{
	size_t pairs = (base && base->blocks < s->blocks ? base->blocks : s->blocks) / 2;
	size_t most = base ? pairs : s->blocks, count = 0;
	double *values = calloc(most + !most, sizeof(*values));
	bool done;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < most; i++) {
		size_t k = base ? 2 * i : i;
		double over = samples_block_median(s, k), under = 1;

		if (!base && s->end[i] == (i ? s->end[i - 1] : 0))
			continue;
		if (base) {
			over += samples_block_median(s, k + 1);
			under = samples_block_median(base, k) + samples_block_median(base, k + 1);
		}
		if (base && !ratio)
			values[count++] = (over - under) / 2;
		else if (!base || (!isnan(over) && !isnan(under)))
			values[count++] = over / under;
	}
	done = bootstrap_groups(values, count, base ? 1 : 2, seed, v);
	free(values);
	return done ? (int)count : -ENOMEM;
}

struct bench_value over_pairs(const struct samples *s, const struct samples *base)
{
	struct bench_value v = { NAN, NAN, NAN };

	estimate(s, base, false, OVER_SEED, &v);
	return v;
}

double bench_row_over(struct bench_row *row, const struct samples *s, const struct samples *base)
{
	struct bench_value over = over_pairs(s, base);

	bench_row_extra(row, "over_empty", over.median);
	bench_row_extra(row, "over_low", over.low);
	bench_row_extra(row, "over_high", over.high);
	return over.median;
}

int samples_sum_up(const struct samples *s, const struct samples *base, uint64_t seed,
		   struct bench_row *row)
{
	static const double at[] = { 0, 0.05, 0.25, 0.75, 0.95, 0.99, 1 };
	double *const to[] = { &row->least, &row->p5,  &row->p25, &row->p75,
			       &row->p95,   &row->p99, &row->most };
	double *all, fence;
	int pairs;

	if (s->lost || (base && base->lost))
		return -ENOMEM;
	if (s->odd || (base && base->odd))
		return -EDOM;
	row->base = row->ratio = (struct bench_value){ NAN, NAN, NAN };
	row->samples = s->count;
	row->outliers = 0;
	pairs = estimate(s, NULL, true, seed, &row->value);
	if (pairs >= 0 && base && estimate(base, NULL, true, seed, &row->base) < 0)
		return -ENOMEM;
	if (pairs >= 0 && base)
		pairs = estimate(s, base, true, seed, &row->ratio);
	row->pairs = (uint64_t)pairs;
	/* Of all samples, no matter of which block. */
	all = s->count ? sorted(s->value, s->count) : NULL;
	if (pairs < 0 || (s->count && !all)) {
		free(all);
		return -ENOMEM;
	}
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		*to[i] = all ? sample_quantile(all, s->count, at[i]) : NAN;
	fence = row->p75 + 3 * (row->p75 - row->p25);
	for (size_t i = s->count; i > 0 && all[i - 1] > fence; i--)
		row->outliers++;
	free(all);
	return 0;
}
