/* SPDX-License-Identifier: MIT */
/* What bench_growth measures: operations, and what there is more of. */
#ifndef BENCH_CASES_GROWTH_H
#define BENCH_CASES_GROWTH_H

#include <semaphore.h>

#include "bench/method/method.h"
#include "patchcore/call.h"

#define PAGE  ((size_t)4096)
#define PAGES ((size_t)1 << 18)
#define OPS   16 /* samples of a cell, at most */
#define TIMES 64 /* that an operation is done for one, if OFTEN */
#define SIZES 3

/* All of a cell's, in its child. */
struct ground {
	unsigned size;
	const struct bench_run *run;
	uint8_t *code; /* PAGES pages that may be run and not be written */
	struct pc_call *call;
	sem_t ready;
	unsigned process; /* of those that patch at once, from 0 */
};

typedef int ground_fn(struct ground *c, unsigned i);

/* An operation, and what there is more of. */
struct axis {
	const char *name;
	const char *of;
	unsigned size[SIZES];
	ground_fn *grow;  /* makes one more; NULL: the operation itself is what there is more of */
	ground_fn *ready; /* before each operation, untimed; may be NULL */
	ground_fn *work;
	enum {
		ALONE,	/* timed one by one */
		OFTEN,	/* many to a sample, where one is too short for the clock */
		ONCE,	/* one, with all that there is: the cost is for each of these */
		FORKED, /* one by one, in a forked child that has the grown state */
	} kind;
};

extern const struct axis growth_axes[];
extern const unsigned growth_axes_count;

#endif
