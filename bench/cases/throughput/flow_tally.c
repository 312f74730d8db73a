/* SPDX-License-Identifier: MIT */
#include "bench/cases/throughput/flow_tally.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "bench/method/samples.h"

#define WARM_UP 1 /* blocks */

int flow_tally_add(struct flow_tally *tally, const struct flow_sum *sum)
{
	if (tally->count == tally->room) {
		size_t room = tally->room ? 2 * tally->room : 16;
		struct flow_sum *more = reallocarray(tally->sum, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		tally->sum = more;
		tally->room = room;
	}
	tally->sum[tally->count++] = *sum;
	return 0;
}

void flow_tally_free(struct flow_tally *tally)
{
	free(tally->sum);
	*tally = (struct flow_tally){ 0 };
}

/* One number of a block; rate: of either state untouched. */
typedef double figure_fn(const struct flow_sum *sum, const double *rate);

static double toggles_of(const struct flow_sum *sum, const double *rate)
{
	(void)rate;
	return (double)sum->toggles / sum->seconds;
}

/* Less to more: a median can be taken of that also where a balance is infinite. */
static double slant_of(const struct flow_sum *sum, const double *rate)
{
	(void)rate;
	return 1 / flow_balance((double)sum->ran[0], (double)sum->ran[1]);
}

static double slant_time_of(const struct flow_sum *sum, const double *rate)
{
	return 1 / flow_balance(sum->per_second[0] / rate[0], sum->per_second[1] / rate[1]);
}

static double kept_of(const struct flow_sum *sum, const double *rate)
{
	return (sum->per_second[0] / rate[0] + sum->per_second[1] / rate[1]) / 2;
}

static double first_of(const struct flow_sum *sum, const double *rate)
{
	(void)rate;
	return sum->per_second[0];
}

static double second_of(const struct flow_sum *sum, const double *rate)
{
	(void)rate;
	return sum->per_second[1];
}

static double median(const struct flow_tally *tally, figure_fn *figure, const double *rate)
{
	struct samples all = { 0 };
	double value = NAN;

	for (size_t i = WARM_UP; i < tally->count; i++)
		samples_add(&all, figure(&tally->sum[i], rate));
	samples_end_block(&all);
	if (all.blocks && !all.lost)
		value = samples_block_median(&all, 0);
	samples_free(&all);
	return value;
}

static double least(const struct flow_tally *tally, figure_fn *figure)
{
	double value = NAN;

	for (size_t i = WARM_UP; i < tally->count; i++)
		value = fmin(value, figure(&tally->sum[i], NULL));
	return value;
}

void flow_tally_extras(const struct flow_tally *tally, const struct flow_tally *untouched,
		       struct bench_row *row)
{
	double toggles = median(tally, toggles_of, NULL), rate[2];

	bench_row_extra(row, "toggles_per_s", toggles);
	if (!(toggles > 0))
		return;
	bench_row_extra(row, "balance", 1 / median(tally, slant_of, NULL));
	bench_row_extra(row, "balance_worst", 1 / least(tally, slant_of));
	if (!untouched)
		return;
	rate[0] = median(untouched, first_of, NULL);
	rate[1] = median(untouched, second_of, NULL);
	bench_row_extra(row, "balance_time", 1 / median(tally, slant_time_of, rate));
	bench_row_extra(row, "kept", median(tally, kept_of, rate));
}

bool flow_tally_stuck(const struct flow_tally *tally)
{
	uint64_t toggles = 0, ran[2] = { 0, 0 };

	for (size_t i = 0; i < tally->count; i++) {
		toggles += tally->sum[i].toggles;
		ran[0] += tally->sum[i].ran[0];
		ran[1] += tally->sum[i].ran[1];
	}
	return toggles > 1 && (!ran[0] || !ran[1]);
}
