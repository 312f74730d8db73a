/* SPDX-License-Identifier: MIT */
/*
 * Throughput against toggles per second: a curve per method, and one per number of executors.
 */
#include <math.h>
#include <string.h>

#include "bench/figures/bench_figure.h"
#include "bench/record/bench_words.h"

#define MODES	  2
#define CURVES	  14
#define EXECUTORS 12 /* 1, 2, 4 ..., 1024 */

#define BALANCE_MOST 1e6

static const char *const not_in_names[] = { "rate", "mode", "executors", NULL };

struct curves {
	const struct bench_result *result;
	char name[CURVES][WORDS_ROOM];
	bool peer[CURVES];
	unsigned count;
	double executors[EXECUTORS]; /* in rising order */
	unsigned sizes;
	const struct bench_row *sample; /* of the method that stands for all, NULL: none */
};

/* Nothing said counts as one. */
static double executors_of(const struct bench_row *row)
{
	double executors = bench_row_number(row, "executors");

	return isnan(executors) ? 1 : executors;
}

static int mode_of(const struct bench_row *row)
{
	static const char *const modes[MODES] = { "call-call", "call-nop" };
	const char *mode = bench_row_text(row, "mode");

	for (int i = 0; mode && i < MODES; i++)
		if (strcmp(mode, modes[i]) == 0)
			return i;
	return -1;
}

static bool is_drawn(const struct bench_row *row)
{
	return row_measured(row) && mode_of(row) >= 0 && strcmp(row->measure, "calls") == 0 &&
	       isfinite(bench_row_number(row, "rate"));
}

static int curve_of(struct curves *c, const struct bench_row *row)
{
	unsigned before = c->count;
	char name[WORDS_ROOM];
	int curve;

	words_of_row(row, not_in_names, name, sizeof(name));
	curve = words_slot(c->name, &c->count, CURVES, name);
	if (c->count > before)
		c->peer[curve] = row->peer;
	return curve;
}

static struct curves curves_of(const struct bench_result *result)
{
	struct curves c = { .result = result };

	for (unsigned i = 0; i < result->rows; i++) {
		const struct bench_row *row = &result->row[i];
		bool call = strcmp(row->name, "call") == 0;
		double executors = executors_of(row);
		unsigned at = 0;

		if (!is_drawn(row))
			continue;
		curve_of(&c, row);
		/* The place of that many executors, or a new one. */
		while (at < c.sizes && c.executors[at] < executors)
			at++;
		if ((at == c.sizes || c.executors[at] != executors) && c.sizes < EXECUTORS) {
			memmove(&c.executors[at + 1], &c.executors[at],
				(c.sizes++ - at) * sizeof(c.executors[0]));
			c.executors[at] = executors;
		}
		/* Call toggling, as in the paper's figure 11; else the first of ours. */
		if (!row->peer && (!c.sample || (call && strcmp(c.sample->name, "call") != 0)))
			c.sample = row;
	}
	return c;
}

/* Where a row is drawn: at what it got, which may be less than what it was asked for. */
static double rate_of(const struct bench_row *row)
{
	double asked = bench_row_number(row, "rate");
	double got = bench_row_extra_of(row, "toggles_per_s");

	return asked > 0 && got > 0 ? got : asked;
}

void bench_throughput_print(FILE *stream, const void *arg)
{
	const struct bench_result *result = arg;
	const struct bench_row *end = result->row + result->rows;
	struct curves c = curves_of(result);
	char one[WORDS_ROOM], sample[WORDS_ROOM];

	fputs("# K curve peer name\n"
	      "# T curve mode toggles/s share low high balance: mode 0 call-call, 1 call-nop\n"
	      "# E executors mode toggles/s calls/s low high\n",
	      stream);
	for (unsigned i = 0; i < c.count; i++)
		fprintf(stream, "K %u %d \"%s\"\n", i, c.peer[i], c.name[i]);
	/* Rates of one curve stand in a block, for a line through them. */
	for (unsigned curve = 0; curve < c.count; curve++) {
		for (const struct bench_row *row = result->row; row < end; row++) {
			double share = row->ratio.median;
			double balance = bench_row_extra_of(row, "balance");

			if (!is_drawn(row) || curve_of(&c, row) != (int)curve ||
			    executors_of(row) != c.executors[0] || !isfinite(share))
				continue;
			/* One state was never executed: as far up as the scale goes. 0 for none. */
			balance = isinf(balance) ? BALANCE_MOST : finite_or(balance, 0);
			fprintf(stream, "T %u %d %.9g %.9g %.9g %.9g %.9g\n", curve, mode_of(row),
				rate_of(row), share, finite_or(row->ratio.low, share),
				finite_or(row->ratio.high, share), balance);
		}
		fputs("\n", stream);
	}
	if (c.sample)
		words_of_row(c.sample, not_in_names, sample, sizeof(sample));
	for (const struct bench_row *row = result->row; row < end && c.sample && c.sizes > 1;
	     row++) {
		if (!is_drawn(row) ||
		    strcmp(words_of_row(row, not_in_names, one, sizeof(one)), sample) != 0)
			continue;
		for (unsigned i = 0; i < c.sizes; i++)
			if (c.executors[i] == executors_of(row))
				fprintf(stream, "E %u %d %.9g %.9g %.9g %.9g\n", i, mode_of(row),
					rate_of(row), row->value.median,
					finite_or(row->value.low, row->value.median),
					finite_or(row->value.high, row->value.median));
	}
}

/* 0 if there is nothing to draw; how many CURVES; the EXECUTORS of the last panels, empty without
 * them; whose they are. */
unsigned bench_throughput_args(const struct bench_result *result, char (*args)[BENCH_ARGS_SIZE])
{
	struct curves c = curves_of(result);
	char name[WORDS_ROOM];
	size_t length = 0;

	args[1][0] = args[2][0] = '\0';
	snprintf(args[0], BENCH_ARGS_SIZE, "%u", c.count);
	for (unsigned i = 0; i < c.sizes && c.sizes > 1; i++)
		length += (size_t)snprintf(args[1] + length, BENCH_ARGS_SIZE - length, "%s%.0f",
					   i ? " " : "", c.executors[i]);
	if (c.sample)
		snprintf(args[2], BENCH_ARGS_SIZE, "%.100s",
			 words_of_row(c.sample, not_in_names, name, sizeof(name)));
	return c.count ? 3 : 0;
}
