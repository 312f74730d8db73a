/* SPDX-License-Identifier: MIT */
#ifndef PROBES_PROFILE_EDGES_PHASES_H
#define PROBES_PROFILE_EDGES_PHASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct phases {
	uint64_t number;  /* of those that took place */
	double wall;	  /* seconds since the start */
	double on;	  /* of these, in phases */
	double toggling;  /* CPU seconds, turning blocks on and off */
	uint64_t refused; /* blocks, at the last look */
	uint64_t blocks;
};

/* One of them, or several one behind the other. Seconds from the start. */
struct moment {
	uint64_t phases;
	double start, length; /* until the next one's start */
	double on, toggling;
	uint64_t runs; /* of blocks */
};

/*
 * phases_start - a thread that turns all blocks on for a time, once in a period, whose length it
 * draws from half to one and a half. @visit: in a process that runs, objects with blocks are pinned
 * (probes/agent/pin.h). Negative errno.
 */
int phases_start(double period, double on, bool visit);

/* phases_stop - the thread ends, and blocks are off. -ETIMEDOUT: it did not, in two seconds. */
int phases_stop(void);

/* phases_hold, phases_let - no block is on between the two, by any number of threads. */
void phases_hold(void);
void phases_let(void);

/*
 * phases_lock, phases_unlock - no block is on meanwhile. phases_forked - in place of the latter, in
 * the child of a fork.
 */
void phases_lock(void);
void phases_unlock(void);
void phases_forked(void);

const struct phases *phases_get(void);

/* phases_moments - what happened when: each is of as many phases, but for the last. How many. */
size_t phases_moments(const struct moment **moments);

#endif
