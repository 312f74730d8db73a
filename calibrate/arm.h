/* SPDX-License-Identifier: MIT */
/*
 * Arms: ways to run a cell that are measured against each other, to find the
 * one that tears most. A set of provokers, a rhythm of patching, and a length
 * of the executors' loop.
 */
#ifndef CALIBRATE_ARM_H
#define CALIBRATE_ARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "results/journal.h"

#define ARMS_MAX 32

struct arm {
	unsigned provokers;
	unsigned loop;
	uint64_t rest;
	uint64_t toggles;
	uint64_t tears;
	double rate;  /* tears per toggle, 0 if none */
	double lower; /* its confidence interval, two-sided */
	double upper;
	double ratio; /* of the rate to that of arm 0; negative: that one saw nothing */
	double p;     /* how often an arm no worse than arm 0 looks as bad as this */
};

struct arms {
	struct arm arm[ARMS_MAX]; /* the first is the one without anything */
	unsigned count;
};

/* arm_of - the arm that a cell belongs to, added if it is new. NULL: no room. */
struct arm *arm_of(struct arms *arms, const struct cell *cell);

/* arm_to_cell - run the cell that way. */
void arm_to_cell(const struct arm *arm, struct cell *cell);

/* arms_count - sum up the records of stage "provoke" and judge each arm. */
void arms_count(struct arms *arms, const struct cell_record *records, size_t count);

/*
 * arms_worst - indices of up to `room` arms for a campaign: that without
 * anything first, then by falling rate those that are worse than it at p < 0.05,
 * corrected for the number of arms. Returns how many.
 */
unsigned arms_worst(const struct arms *arms, unsigned *index, unsigned room);

/* arm_name - "none rest 2000 loop 0", "cold-back+chain rest 500 loop 64". Returns buf. */
char *arm_name(const struct arm *arm, char *buf, size_t size);

#endif
