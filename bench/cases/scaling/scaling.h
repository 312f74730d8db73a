/* SPDX-License-Identifier: MIT */
/*
 * What more of everything costs.
 *
 *	more patchers	"changes", changes/s of all patchers together, each of which turns a site
 *			of its own on and off as fast as it can; of executors that run these
 *			sites, dealt out to them in turn. Rows call, aligned, straddler. With
 *			one-site 1 two patchers have one site between them: a change that is
 *			refused since the other is just at it is not counted.
 *	more sites	"change", ticks of a straddler where so many sites are known
 *
 * Baselines are other cases of the same operation:
 *
 *	no-executor	one patcher, no executor
 *	one-patcher	one patcher, as many executors: the ratio is best if it is `patchers`
 *	own-sites	as many patchers and executors, a site for each
 *	10-sites	10 sites known
 *
 * Extras: per_patcher changes/s, efficiency (ratio to one-patcher over patchers; where
 * no executor runs, else the executors of one site are dealt out to many), refused (share of
 * the attempts).
 */
#ifndef BENCH_CASES_SCALING_SCALING_H
#define BENCH_CASES_SCALING_SCALING_H

#include <stdbool.h>

#include "bench/method/method.h"

/* So many patchers and executors. */
struct scaling_mix {
	unsigned patchers, executors;
	bool one_site; /* for all patchers */
	bool shared;   /* there are more threads than CPUs */
};

#define SCALING_MIXES 64

/* scaling_mixes - those that are measured on so many CPUs, two at least. Returns how many. */
unsigned scaling_mixes(unsigned cpus, struct scaling_mix *mixes);

/* scaling_base - what a mix is compared with, and the name of that. NULL: with nothing. */
const char *scaling_base(struct scaling_mix mix, struct scaling_mix *base);

#define SCALING_SLICE 0.004 /* seconds of one sample of "changes" */

/*
 * The parts of bench_scaling(): each adds its rows. 0 or a negative errno.
 *
 * scaling_patchers - with slices of so many seconds; five times that where threads share CPUs,
 * so that each has its turns, and then at most 8 rounds.
 */
int scaling_patchers(const struct bench_run *run, double slice, struct bench_result *result);

/*
 * With so many sites known, at most SCALING_KNOWN_MOST numbers; known[0] is the baseline of all
 * others. The waits are those of result.
 */
#define SCALING_KNOWN_MOST 4
int scaling_known(const struct bench_run *run, const unsigned long *known, unsigned count,
		  struct bench_result *result);

/*
 * scaling_know - a process that scaling_known() starts, as "PROGRAM bench SCALING_KNOW" with so
 * many numbers. Returns when its input ends: 0, or a negative errno.
 */
#define SCALING_KNOW	"--known-sites"
#define SCALING_NUMBERS 4
int scaling_know(char *const numbers[SCALING_NUMBERS]);

#endif
