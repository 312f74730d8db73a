/* SPDX-License-Identifier: MIT */
/*
 * The gap oracle: how long after one part of an instruction is the other part
 * read? Generations on both sides of the boundary, no INT3, no waits: every pair
 * that never stood in memory gives a lower bound in ticks (stress/run/gap_judge.h).
 *
 * A gap is seen if the end of one value and the begin of another fall into it.
 * So half of the stores follow the one before at once, and the others after up
 * to four times the cell's rest, which is the mean. What is told of a gap much
 * longer than the rest is nearly its size, of a short one it may be far less.
 *
 * What it cannot see: a part that is behind by a whole number of wraps. Compared are
 * as many bits as both parts have, 8 at splits 2 and 4, 16 at split 3, so of gaps that
 * span hundreds of generations 2 in 256 look whole there (2 in 65536 at split 3).
 */
#ifndef STRESS_RUN_GAP_H
#define STRESS_RUN_GAP_H

#include "stress/cell/cell.h"
#include "stress/run/gap_judge.h"
#include "stress/run/run.h"
#include "stress/witness/tsc_offset.h"

struct gap_result {
	enum outcome outcome;
	int signal; /* that ended the child, 0 if none */
	int error;  /* negative errno, 0 if none */
	uint64_t stores;
	uint64_t executions;		 /* over all executors, while these were made */
	double seconds;			 /* that they took */
	struct tsc_offset offset;	 /* of the executor whose is known least well */
	uint64_t discarded[GAP_REASONS]; /* torn pairs that gave no gap */
	struct gap_tally kind[GAP_KINDS];
	struct witness witness;
	struct seating seating;
};

/* gap_defaults - cell_defaults for a gap run: pair word, no waits, five seconds. */
void gap_defaults(struct cell *cell);

/*
 * gap_check - can this cell be run as a gap run? 0, or -EINVAL with the reason in words: pair
 * word, oracle count, split 2 to 4, any crossing; protocol wait (the rest is the only distance
 * between stores) or membarrier (one after each store: then no gap can be). A toggle is two
 * stores.
 */
int gap_check(const struct cell *cell, char *reason, size_t size);

/*
 * gap_run - run it in a child and wait for it, as cell_run does. An outcome of "error" with
 * -ERANGE: the TSCs moved apart by more than can be told from generations.
 */
int gap_run(const struct cell *cell, const struct run_options *options, struct gap_result *result);

/* Runs a site, and gives what it found there. */
typedef uint32_t gap_fetch_fn(const uint8_t *site, unsigned split);

/* For the tests: what executors do in place of running the site; NULL. */
extern gap_fetch_fn *gap_fetch_instead;

/* gap_command - the command line that runs this cell again. Length as snprintf. */
int gap_command(const struct cell *cell, char *buf, size_t size);

static inline double gap_rate(uint64_t stores, double seconds)
{
	return seconds > 0 ? (double)stores / seconds : 0;
}

#endif
