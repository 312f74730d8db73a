/* SPDX-License-Identifier: MIT */
/*
 * What the files of this room tell each other.
 */
#ifndef PROBES_PROFILE_EDGES_EDGES_H
#define PROBES_PROFILE_EDGES_EDGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "probes/include/fastinst.h"
#include "probes/profile/session/report.h"

/*
 * --- edges.c: which block is run behind which, in phases. A thread's first block of a phase has
 * none before it.
 */

struct edge {
	uint32_t from, to;
	uint64_t count[2]; /* in odd and in even phases */
	double weighed[2]; /* the same, each as often as its phase counts */
};

/* edges_start - memory for what is counted. -ENOMEM. */
int edges_start(void);

/* edges_phase - from now on blocks are counted, in a phase of that number; 0: they are not. */
void edges_phase(uint64_t number);

/*
 * edges_runs - how many edges were run since the last edges_weigh(), which has each of these count
 * so much. Between phases.
 */
uint64_t edges_runs(void);
void edges_weigh(double weight);

/* edges_block - the probe function of all blocks. Keeps the vectors. */
fi_function edges_block;

/* edges_next - the edge at or behind *next, which moves on; 0: there is no more. As they were
 * found. */
int edges_next(uint32_t *next, struct edge *edge);

/*
 * edges_ran - whether the block was ever run when it was on. Where that was outside of a phase for
 * the first time, the thread of phases is woken up.
 */
bool edges_ran(uint32_t id);

/* edges_sums - blocks outside of a phase, and those that there was no room for. */
void edges_sums(struct quality *sum);

/*
 * edges_wake - wake up the thread of phases. Async-signal-safe, takes no lock, and keeps errno and
 * the vectors. edges_wakes - how often that was called.
 */
void edges_wake(void);
uint32_t edges_wakes(void);

/*
 * edges_wait - until edges_wakes() is more than that, or until a time of CLOCK_MONOTONIC. False: it
 * is that late. May come back early.
 */
bool edges_wait(uint32_t wakes, const struct timespec *until);

/*
 * --- weight.c: how much a phase counts for
 *
 * Each phase is to stand for as much of the program's own time as any other. But with all blocks
 * on most of a phase is the price of probes: where blocks are short, a phase shows less of the
 * program's time. So its counts are multiplied by how many times slower the program was:
 *
 *	time of a block in the phase / (time of a block in the phase - price of a probe)
 *
 * The price is taken to be three quarters of the time of a block where the program was at its
 * quickest of late: the fourth least of 64 phases. A higher one would tell phases apart by noise.
 */
#define WEIGHT_RECENT 64u

struct weights {
	double recent[WEIGHT_RECENT]; /* seconds for a block */
	size_t n;
};

/*
 * weight_of_phase - per second of the phase. @seconds: its length; @cpu: of all threads in it;
 * @runs: blocks that were run. 0: none were.
 */
double weight_of_phase(struct weights *weights, double seconds, double cpu, uint64_t runs);

/* --- phases.c --- */

struct phases {
	struct quality sum;
	struct moments moments; /* in seconds; calls are runs of blocks */
};

/*
 * phases_start - a thread that turns all blocks on for a time, once in a period, whose length it
 * draws from half to one and a half. @visit: in a process that runs, objects with blocks are pinned
 * (probes/agent/pin.h). Negative errno.
 */
int phases_start(double period, double on, bool visit);

/* phases_stop - the thread ends, and blocks are off. -ETIMEDOUT: it did not, in two seconds. */
int phases_stop(void);

/* phases_run - what the thread runs. */
void phases_run(uintptr_t unused);

/*
 * phases_lock_off - take the lock, and all blocks are off.
 * phases_forked - in the child of a fork that was made so, in place of phases_unlock(): there are
 * no blocks.
 */
void phases_lock_off(void);
void phases_unlock(void);
void phases_forked(void);

/* phases_begin_unload - no phase begins from here until phases_end_unload() by the same thread.
 * True. */
bool phases_begin_unload(void);
void phases_end_unload(void);

/* phases_get - until phases_stop(). */
const struct phases *phases_get(void);

#endif
