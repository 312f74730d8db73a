/* SPDX-License-Identifier: MIT */
#include "bench/method/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stress/base/random.h"

#define BINS_PER_OCTAVE 8

static bool grow(void *array, size_t count, size_t *room, size_t size)
{
	void **p = array;
	size_t more = *room ? 2 * *room : 64;
	void *grown;

	if (count < *room)
		return true;
	grown = reallocarray(*p, more, size);
	if (!grown)
		return false;
	*p = grown;
	*room = more;
	return true;
}

void samples_add(struct samples *s, double value)
{
	if (!isfinite(value))
		s->odd = true;
	if (isnan(value))
		return;
	if (grow(&s->value, s->count, &s->room, sizeof(*s->value)))
		s->value[s->count++] = value;
	else
		s->lost = true;
}

static size_t block_begin(const struct samples *s, size_t block)
{
	return block ? s->end[block - 1] : 0;
}

static bool empty_block(const struct samples *s, size_t block)
{
	return s->end[block] == block_begin(s, block);
}

void samples_end_block(struct samples *s)
{
	if (grow(&s->end, s->blocks, &s->blocks_room, sizeof(*s->end)))
		s->end[s->blocks++] = s->count;
	else
		s->lost = true;
}

void samples_free(struct samples *s)
{
	free(s->value);
	free(s->end);
	*s = (struct samples){ 0 };
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double *sorted(const double *values, size_t count)
{
	double *copy = reallocarray(NULL, count, sizeof(*copy));

	if (!copy)
		return NULL;
	memcpy(copy, values, count * sizeof(*copy));
	qsort(copy, count, sizeof(*copy), by_value);
	return copy;
}

/* Of sorted values; between two of them in proportion. */
static double quantile(const double *values, size_t count, double q)
{
	double at = q * (double)(count - 1);
	size_t i = (size_t)at;

	if (i + 1 >= count)
		return values[count - 1];
	/* Also where they are infinite. */
	if (at <= (double)i || values[i] == values[i + 1])
		return values[i];
	return values[i] + (at - (double)i) * (values[i + 1] - values[i]);
}

static double median_of(const double *values, size_t count)
{
	double *copy = count ? sorted(values, count) : NULL, median;

	if (!copy)
		return NAN;
	median = quantile(copy, count, 0.5);
	free(copy);
	return median;
}

double samples_block_median(const struct samples *s, size_t block)
{
	size_t begin = block_begin(s, block);

	return median_of(s->value + begin, s->end[block] - begin);
}

/* Values with their places in time, which sorting would lose. */
struct draws {
	double *value;	 /* sorted */
	size_t *rank;	 /* of the value that was measured as i-th: its place in value[] */
	unsigned *drawn; /* how often, by place */
	double *medians;
	size_t count;
};

static void draws_free(struct draws *d)
{
	free(d->value);
	free(d->rank);
	free(d->drawn);
	free(d->medians);
}

/* Where a value stands: equals take the same place, which does not matter to a median. */
static size_t place_of(const struct draws *d, double value)
{
	const double *found = bsearch(&value, d->value, d->count, sizeof(value), by_value);

	return (size_t)(found - d->value);
}

static bool draws_make(struct draws *d, const double *values, size_t count)
{
	*d = (struct draws){
		.value = sorted(values, count),
		.rank = calloc(count, sizeof(*d->rank)),
		.drawn = calloc(count, sizeof(*d->drawn)),
		.medians = calloc(BOOTSTRAP_DRAWS, sizeof(*d->medians)),
		.count = count,
	};
	if (!d->value || !d->rank || !d->drawn || !d->medians)
		return false;
	for (size_t i = 0; i < count; i++)
		d->rank[i] = place_of(d, values[i]);
	return true;
}

/* The median of a draw, told by how often each place was drawn: so many in all. */
static double drawn_median(const struct draws *d, size_t all)
{
	size_t below = 0, i = 0;
	double low;

	while (below + d->drawn[i] <= (all - 1) / 2)
		below += d->drawn[i++];
	low = d->value[i];
	while (below + d->drawn[i] <= all / 2)
		below += d->drawn[i++];
	return (low + d->value[i]) / 2;
}

/* As many groups as there are, each of neighbours in time, drawn whole. */
static double draw_median(struct draws *d, size_t group, uint64_t *state)
{
	size_t groups = (d->count + group - 1) / group, all = 0;

	memset(d->drawn, 0, d->count * sizeof(*d->drawn));
	for (size_t k = 0; k < groups; k++) {
		double u = (double)(random_next(state) >> 11) * 0x1p-53;
		size_t i = (size_t)(u * (double)groups) * group;

		for (size_t end = i + group; i < end && i < d->count; i++, all++)
			d->drawn[d->rank[i]]++;
	}
	return drawn_median(d, all);
}

static void bootstrap(struct draws *d, size_t group, uint64_t seed, struct bench_value *v)
{
	for (size_t i = 0; i < BOOTSTRAP_DRAWS; i++)
		d->medians[i] = draw_median(d, group, &seed);
	qsort(d->medians, BOOTSTRAP_DRAWS, sizeof(*d->medians), by_value);
	v->low = quantile(d->medians, BOOTSTRAP_DRAWS, 0.025);
	v->high = quantile(d->medians, BOOTSTRAP_DRAWS, 0.975);
}

static bool all_numbers(const double *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!isfinite(values[i]))
			return false;
	return true;
}

/* False: out of memory. */
static bool bootstrap_groups(const double *values, size_t count, size_t group, uint64_t seed,
			     struct bench_value *v)
{
	struct draws d;
	bool made;

	*v = (struct bench_value){ NAN, NAN, NAN };
	if (!count || !all_numbers(values, count))
		return true;
	made = draws_make(&d, values, count);
	if (made) {
		*v = (struct bench_value){ quantile(d.value, count, 0.5), d.value[0],
					   d.value[count - 1] };
		if ((count + group - 1) / group >= BOOTSTRAP_LEAST)
			bootstrap(&d, group, seed, v);
	}
	draws_free(&d);
	return made;
}

struct bench_value bootstrap_median(const double *values, size_t count, uint64_t seed)
{
	struct bench_value v;

	bootstrap_groups(values, count, 1, seed, &v);
	return v;
}

/*
 * The two blocks of a quadruple are close in time and so have their noise in common: one
 * tells little that the other does not. They are drawn together, or the interval would
 * be too narrow by up to the square root of two.
 */
static bool of_blocks(const struct samples *s, uint64_t seed, struct bench_value *v)
{
	double *medians = calloc(s->blocks + !s->blocks, sizeof(*medians));
	size_t count = 0;
	bool done;

	if (!medians)
		return false;
	for (size_t i = 0; i < s->blocks; i++)
		if (!empty_block(s, i))
			medians[count++] = samples_block_median(s, i);
	done = bootstrap_groups(medians, count, 2, seed, v);
	free(medians);
	return done;
}

/* Has a whole quadruple samples? */
static bool whole(const struct samples *s, size_t pair)
{
	return !empty_block(s, 2 * pair) && !empty_block(s, 2 * pair + 1);
}

static double of_two(const struct samples *s, size_t pair)
{
	return samples_block_median(s, 2 * pair) + samples_block_median(s, 2 * pair + 1);
}

/* Quadruples of which a block is empty have no ratio. */
static bool of_ratios(const struct samples *s, const struct samples *base, uint64_t seed,
		      struct bench_row *row)
{
	size_t pairs = (s->blocks < base->blocks ? s->blocks : base->blocks) / 2;
	double *ratios = calloc(pairs + !pairs, sizeof(*ratios));
	bool done;

	if (!ratios)
		return false;
	row->pairs = 0;
	for (size_t i = 0; i < pairs; i++)
		if (whole(s, i) && whole(base, i))
			ratios[row->pairs++] = of_two(s, i) / of_two(base, i);
	done = bootstrap_groups(ratios, row->pairs, 1, seed, &row->ratio);
	free(ratios);
	return done;
}

static int describe(const struct samples *s, struct bench_row *row)
{
	double *all, fence;

	row->least = row->p5 = row->p25 = row->p75 = row->p95 = row->p99 = row->most = NAN;
	row->outliers = 0;
	if (!s->count)
		return 0;
	all = sorted(s->value, s->count);
	if (!all)
		return -ENOMEM;
	row->least = all[0];
	row->p5 = quantile(all, s->count, 0.05);
	row->p25 = quantile(all, s->count, 0.25);
	row->p75 = quantile(all, s->count, 0.75);
	row->p95 = quantile(all, s->count, 0.95);
	row->p99 = quantile(all, s->count, 0.99);
	row->most = all[s->count - 1];
	fence = row->p75 + 3 * (row->p75 - row->p25);
	for (size_t i = s->count; i > 0 && all[i - 1] > fence; i--)
		row->outliers++;
	free(all);
	return 0;
}

/* Of blocks with samples. */
static uint64_t blocks_of(const struct samples *s)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < s->blocks; i++)
		blocks += !empty_block(s, i);
	return blocks;
}

static bool sum_up_base(const struct samples *s, const struct samples *base, uint64_t seed,
			struct bench_row *row)
{
	return !base || (of_blocks(base, seed, &row->base) && of_ratios(s, base, seed, row));
}

int samples_sum_up(const struct samples *s, const struct samples *base, uint64_t seed,
		   struct bench_row *row)
{
	if (s->lost || (base && base->lost))
		return -ENOMEM;
	if (s->odd || (base && base->odd))
		return -EDOM;
	row->value = row->base = row->ratio = (struct bench_value){ NAN, NAN, NAN };
	row->samples = s->count;
	row->pairs = blocks_of(s);
	if (!of_blocks(s, seed, &row->value) || !sum_up_base(s, base, seed, row))
		return -ENOMEM;
	return describe(s, row);
}

static double bin_low(unsigned bin)
{
	return bin ? exp2((double)(bin - 1) / BINS_PER_OCTAVE) : 0;
}

/* The logarithm may be off by its last digit: the bounds decide. */
static unsigned bin_of(double value)
{
	double about = value < 1 ? 0 : 1 + floor(log2(value) * BINS_PER_OCTAVE);
	unsigned bin = about < BENCH_HIST_MAX ? (unsigned)about : BENCH_HIST_MAX - 1;

	while (bin > 0 && value < bin_low(bin))
		bin--;
	while (bin < BENCH_HIST_MAX - 1 && value >= bin_low(bin + 1))
		bin++;
	return bin;
}

/* The outermost bins hold whatever is beyond the scale. */
static void stretch_bins(struct bench_row *row, double least, double most)
{
	struct bench_bin *last = &row->bin[row->bins - 1];

	if (least < row->bin[0].low)
		row->bin[0].low = least;
	if (most >= last->high)
		last->high = nextafter(most, INFINITY);
}

static int make_bins(struct bench_row *row, const uint64_t *count, unsigned first, unsigned last)
{
	row->bin = calloc(last - first + 1, sizeof(*row->bin));
	if (!row->bin)
		return -ENOMEM;
	for (unsigned i = first; i <= last; i++)
		row->bin[row->bins++] = (struct bench_bin){ bin_low(i), bin_low(i + 1), count[i] };
	return 0;
}

int samples_histogram(const struct samples *s, struct bench_row *row)
{
	double least = INFINITY, most = -INFINITY;
	uint64_t count[BENCH_HIST_MAX] = { 0 };
	int ret;

	free(row->bin);
	row->bin = NULL;
	row->bins = 0;
	if (!s->count)
		return 0;
	for (size_t i = 0; i < s->count; i++) {
		count[bin_of(s->value[i])]++;
		least = fmin(least, s->value[i]);
		most = fmax(most, s->value[i]);
	}
	ret = make_bins(row, count, bin_of(least), bin_of(most));
	if (ret == 0)
		stretch_bins(row, least, most);
	return ret;
}
