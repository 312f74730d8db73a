/* SPDX-License-Identifier: MIT */
/* What the files of this room share. */
#ifndef PROFILE_SAMPLER_EDGES_H
#define PROFILE_SAMPLER_EDGES_H

#include <stddef.h>
#include <time.h>

#include "probes/include/fastinst.h"
#include "profile/sampler/session.h"

/* --- edges.c: which block runs behind which; a thread's first one in a phase, behind none --- */

struct edge {
	uint32_t from, to;
	uint64_t count[2]; /* in odd and in even phases */
	double weighed[2]; /* the same, times the weights of their phases */
};

/* edges_start - empty the table. Negative errno. */
int edges_start(void);

/* edges_phase - count blocks from now on, in the phase of that number; 0: stop counting. */
void edges_phase(uint64_t number);

/*
 * edges_runs - how many edges were run since the last edges_weigh().
 * edges_weigh - give the runs since the last call a weight; how many there were. Between phases.
 */
uint64_t edges_runs(void);
uint64_t edges_weigh(double weight);

/* edges_block - the probe function of all blocks. Changes no vector register. */
fi_function edges_block;

/* edges_next - the next edge, in the order they were found. *next begins as 0. 0: no more. */
int edges_next(uint32_t *next, struct edge *edge);

/* edges_has_run - has that block run, ever? Its first run outside of a phase is a wake. */
bool edges_has_run(uint32_t id);

/* edges_sums - how many blocks ran outside of a phase, and how many edges found no room. */
void edges_sums(struct quality *sum);

/*
 * edges_wake - wake up the thread of phases, now or in its next edges_wait(). Async-signal-safe;
 * takes no lock, and changes neither errno nor vectors. edges_forget_wakes - forget those so far.
 */
void edges_wake(void);
void edges_forget_wakes(void);

/* edges_wait - wait for a wake, or until a time of CLOCK_MONOTONIC. False: that time has come. */
bool edges_wait(const struct timespec *until);

/*
 * How much a phase counts for
 *
 * Each phase is to stand for as much of the program's own time as any other. But with all blocks
 * on most of it is the price of probes, and the more so the shorter blocks are. So its counts are
 * multiplied by how many times slower the program was:
 *
 * time of a block in the phase / (time of a block in the phase - price of a probe)
 *
 * The price is taken to be three quarters of the time of a block at the quickest of late, the
 * fourth least of 64 phases. A higher one would tell phases apart by noise.
 */
#define WEIGHT_RECENT 64u

struct weights {
	double recent[WEIGHT_RECENT]; /* seconds for a block */
	size_t n;
};

/* weight_of_phase - per second of the phase. @cpu: seconds of all threads; @runs: of edges. */
double weight_of_phase(struct weights *weights, double seconds, double cpu, uint64_t runs);

#endif
