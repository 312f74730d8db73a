/* SPDX-License-Identifier: MIT */
#include "bench/method/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stress/base/random.h"

#define BINS_PER_OCTAVE 8
#define OVER_SEED	1 /* of the bootstrap; any will do */

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
static double sample_quantile(const double *values, size_t count, double q)
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

double samples_block_median(const struct samples *s, size_t block)
{
	size_t begin = block_begin(s, block), count = s->end[block] - begin;
	double *copy = count ? sorted(s->value + begin, count) : NULL, median;

	if (!copy)
		return NAN;
	median = sample_quantile(copy, count, 0.5);
	free(copy);
	return median;
}

/* Values with their places in time, which sorting would lose. */
struct draws {
	double *value;	 /* sorted */
	size_t *rank;	 /* of the value that was measured as i-th: its place in value[] */
	unsigned *drawn; /* how often, by place */
	double *medians;
	size_t count;
};

/* The median of a draw of all together, told by how often each place was drawn. */
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

/* Each draw is of as many groups as there are, each of neighbours in time, drawn whole. */
static void bootstrap_medians(struct draws *d, size_t group, uint64_t seed, struct bench_value *v)
{
	size_t groups = (d->count + group - 1) / group;

	for (size_t draw = 0; draw < BOOTSTRAP_DRAWS; draw++) {
		size_t all = 0;

		memset(d->drawn, 0, d->count * sizeof(*d->drawn));
		for (size_t k = 0; k < groups; k++) {
			double u = (double)(random_next(&seed) >> 11) * 0x1p-53;
			size_t i = (size_t)(u * (double)groups) * group;

			for (size_t end = i + group; i < end && i < d->count; i++, all++)
				d->drawn[d->rank[i]]++;
		}
		d->medians[draw] = drawn_median(d, all);
	}
	qsort(d->medians, BOOTSTRAP_DRAWS, sizeof(*d->medians), by_value);
	v->low = sample_quantile(d->medians, BOOTSTRAP_DRAWS, 0.025);
	v->high = sample_quantile(d->medians, BOOTSTRAP_DRAWS, 0.975);
}

/* False: out of memory. */
static bool bootstrap_groups(const double *values, size_t count, size_t group, uint64_t seed,
			     struct bench_value *v)
{
	struct draws d;
	bool made;

	*v = (struct bench_value){ NAN, NAN, NAN };
	for (size_t i = 0; i < count; i++)
		if (!isfinite(values[i]))
			return true;
	if (!count)
		return true;
	d = (struct draws){
		.value = sorted(values, count),
		.rank = calloc(count, sizeof(*d.rank)),
		.drawn = calloc(count, sizeof(*d.drawn)),
		.medians = calloc(BOOTSTRAP_DRAWS, sizeof(*d.medians)),
		.count = count,
	};
	made = d.value && d.rank && d.drawn && d.medians;
	/* Equals take the same place, which does not matter to a median. */
	for (size_t i = 0; i < count && made; i++)
		d.rank[i] = (size_t)((double *)bsearch(&values[i], d.value, count, sizeof(*values),
						       by_value) -
				     d.value);
	if (made)
		*v = (struct bench_value){ sample_quantile(d.value, count, 0.5), d.value[0],
					   d.value[count - 1] };
	if (made && (count + group - 1) / group >= BOOTSTRAP_LEAST)
		bootstrap_medians(&d, group, seed, v);
	free(d.value);
	free(d.rank);
	free(d.drawn);
	free(d.medians);
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

/* Of the two blocks of a quadruple; NAN: one of them is empty. */
static double of_two(const struct samples *s, size_t pair)
{
	return samples_block_median(s, 2 * pair) + samples_block_median(s, 2 * pair + 1);
}

static size_t pairs_of(const struct samples *s, const struct samples *base)
{
	return (s->blocks < base->blocks ? s->blocks : base->blocks) / 2;
}

/* Quadruples of which a block is empty have no ratio. */
static bool of_ratios(const struct samples *s, const struct samples *base, uint64_t seed,
		      struct bench_row *row)
{
	size_t pairs = pairs_of(s, base);
	double *ratios = calloc(pairs + !pairs, sizeof(*ratios));
	bool done;

	if (!ratios)
		return false;
	row->pairs = 0;
	for (size_t i = 0; i < pairs; i++) {
		double over = of_two(s, i), under = of_two(base, i);

		if (!isnan(over) && !isnan(under))
			ratios[row->pairs++] = over / under;
	}
	done = bootstrap_groups(ratios, row->pairs, 1, seed, &row->ratio);
	free(ratios);
	return done;
}

struct bench_value over_pairs(const struct samples *s, const struct samples *base)
{
	size_t pairs = pairs_of(s, base);
	double *over = calloc(pairs + !pairs, sizeof(*over));
	struct bench_value v = { NAN, NAN, NAN };

	if (!over)
		return v;
	for (size_t i = 0; i < pairs; i++)
		over[i] = (of_two(s, i) - of_two(base, i)) / 2;
	v = bootstrap_median(over, pairs, OVER_SEED);
	free(over);
	return v;
}

/* Of all samples, no matter of which block. */
static int describe_samples(const struct samples *s, struct bench_row *row)
{
	static const double at[] = { 0, 0.05, 0.25, 0.75, 0.95, 0.99, 1 };
	double *const to[] = { &row->least, &row->p5,  &row->p25, &row->p75,
			       &row->p95,   &row->p99, &row->most };
	double *all = s->count ? sorted(s->value, s->count) : NULL, fence;

	if (s->count && !all)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		*to[i] = all ? sample_quantile(all, s->count, at[i]) : NAN;
	row->outliers = 0;
	fence = row->p75 + 3 * (row->p75 - row->p25);
	for (size_t i = s->count; i > 0 && all[i - 1] > fence; i--)
		row->outliers++;
	free(all);
	return 0;
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
	row->pairs = 0;
	for (size_t i = 0; i < s->blocks; i++)
		row->pairs += !empty_block(s, i);
	if (!of_blocks(s, seed, &row->value))
		return -ENOMEM;
	if (base && (!of_blocks(base, seed, &row->base) || !of_ratios(s, base, seed, row)))
		return -ENOMEM;
	return describe_samples(s, row);
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

int samples_histogram(const struct samples *s, struct bench_row *row)
{
	double least = INFINITY, most = -INFINITY;
	uint64_t count[BENCH_HIST_MAX] = { 0 };
	unsigned first, last;

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
	first = bin_of(least);
	last = bin_of(most);
	row->bin = calloc(last - first + 1, sizeof(*row->bin));
	if (!row->bin)
		return -ENOMEM;
	for (unsigned i = first; i <= last; i++)
		row->bin[row->bins++] = (struct bench_bin){ bin_low(i), bin_low(i + 1), count[i] };
	/* The outermost bins hold all that is beyond the scale. */
	row->bin[0].low = fmin(least, row->bin[0].low);
	if (most >= row->bin[row->bins - 1].high)
		row->bin[row->bins - 1].high = nextafter(most, INFINITY);
	return 0;
}
