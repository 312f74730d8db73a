/* SPDX-License-Identifier: MIT */
/*
 * What patching should cost, and whether it does: from the rows of the benchmarks.
 */
#ifndef BENCH_RECORD_TARGETS_H
#define BENCH_RECORD_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bench/method/result.h"

enum target_state {
	TARGET_REACHED, /* the whole interval is on the good side of the limit */
	TARGET_MISSED,	/* the whole interval is on the other side */
	TARGET_NOISE,	/* the limit lies within the interval, or the rounds were too few for one */
	TARGET_UNKNOWN, /* nothing was measured that could tell */
};

#define TARGET_NOTE 256

struct target {
	const char *what;
	const char *unit;  /* of value and limit: "x floor" */
	const char *paper; /* its figure for the same, empty: none */
	bool most;	   /* the limit is the most that is allowed, else the least */
	double limit;
	struct bench_value value; /* of the worst row: that with the least to spare */
	enum target_state state;
	char note[TARGET_NOTE]; /* which row that is, or why it is unknown: printable ASCII */
};

/*
 * targets_of - all targets in their order, of the results of so many benchmarks: the last of
 * each counts. Where a target is one of several rows, each must reach it. Returns how many
 * there are; no more than room are written.
 */
#define TARGETS_MAX 40
size_t targets_of(const struct bench_result *results, size_t count, struct target *targets,
		  size_t room);

/* target_state_text - "reached", "missed", "within the noise", "not measured". */
const char *target_state_text(enum target_state state);

/* targets_print - a table of them, without those that are unknown if none of a benchmark ran. */
void targets_print(const struct bench_result *results, size_t count, FILE *out);

#endif
