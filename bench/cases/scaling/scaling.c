/* SPDX-License-Identifier: MIT */
#include "bench/cases/scaling/scaling.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/method/count.h"

#define FINDS_LESS 1000
#define FINDS_MORE 11000

/* A million would take callgrind a minute, and shows nothing that 100,000 do not. */
static const unsigned long known[] = { 10, 100, 1000, 10000, 100000, 1000000 };

#define KNOWN	(sizeof(known) / sizeof(*known))
#define COUNTED (KNOWN - 1)

/* This program, in which known sites are found so often. */
static int count(unsigned long sites, unsigned long finds, uint64_t *instructions, char *why)
{
	char exe[] = "/proc/self/exe", bench[] = "bench", option[] = "--count-finds";
	char sites_text[24], finds_text[24];
	char *argv[] = { exe, bench, option, sites_text, finds_text, NULL };

	snprintf(sites_text, sizeof(sites_text), "%lu", sites);
	snprintf(finds_text, sizeof(finds_text), "%lu", finds);
	return count_instructions(argv, instructions, why);
}

static int count_finds(unsigned long sites, double *per_find, char *why)
{
	uint64_t less, more;
	int ret = count(sites, FINDS_LESS, &less, why);

	if (ret == 0)
		ret = count(sites, FINDS_MORE, &more, why);
	if (ret == 0)
		*per_find = ((double)more - (double)less) / (FINDS_MORE - FINDS_LESS);
	return ret;
}

static int add_counted(const struct bench_run *run, double per_find, struct bench_row *row)
{
	struct samples s = { 0 };
	int ret;

	samples_add(&s, per_find);
	samples_end_block(&s);
	ret = samples_sum_up(&s, NULL, run->seed, row);
	samples_free(&s);
	return ret;
}

static int add_instructions(const struct bench_run *run, unsigned long sites,
			    struct bench_result *result)
{
	struct bench_row *row = bench_result_add(result);
	char why[BENCH_WHY] = "";
	double per_find;
	int ret;

	if (!row)
		return -ENOMEM;
	bench_row_name(row, "find", "find", "instructions");
	bench_row_param(row, "sites", (double)sites);
	ret = count_finds(sites, &per_find, why);
	if (ret == -EINTR || (run->stop && *run->stop))
		return -EINTR;
	if (ret == 0)
		return add_counted(run, per_find, row);
	bench_row_skip(row, "%s", why[0] ? why : strerror(-ret));
	return 0;
}

int scaling_instructions(const struct bench_run *run, const unsigned long *sites, unsigned n,
			 struct bench_result *result)
{
	int ret = 0;

	for (unsigned i = 0; i < n && ret == 0; i++)
		ret = add_instructions(run, sites[i], result);
	return ret;
}

int bench_scaling(const struct bench_run *run, struct bench_result *result)
{
	int ret = scaling_patchers(run, SCALING_SLICE, result);

	if (ret == 0)
		ret = scaling_known(run, known, KNOWN, result);
	return ret < 0 ? ret : scaling_instructions(run, known, COUNTED, result);
}
