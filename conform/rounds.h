/* SPDX-License-Identifier: MIT */
/*
 * Trying promises on all CPUs for a while, and what came of it.
 */
#ifndef CONFORM_ROUNDS_H
#define CONFORM_ROUNDS_H

#include "conform/guarantee.h"
#include "conform/suspects.h"

#define PROMISES_MAX 16
#define FAILED_MAX   16 /* cells that are told one by one */
#define LOAD_NONE    (-1)
#define LOAD_IN_TURN (-2)
#define AGAIN_MOST   24 /* cells with other partners, after failures */

struct conform_request {
	const struct guarantee *promise[PROMISES_MAX];
	unsigned promises;
	const unsigned *cpu;
	unsigned cpus;
	bool fixed;    /* of two CPUs the first is always the writer; the first cell has the seed */
	double budget; /* seconds */
	bool strict;   /* not all CPUs get their turn within a budget that is too short for that */
	uint64_t seed;
	int load; /* CPU of the memory traffic, or LOAD_NONE, LOAD_IN_TURN */
	enum fault fault;
	bool fault_on_one;
	unsigned fault_on;
	/* conform_run(), or a test's. */
	int (*try_one)(const struct conform_cell *cell, const struct run_options *options,
		       struct conform_result *result);
	const volatile sig_atomic_t *stop;
};

struct tried {
	const struct guarantee *guarantee;
	uint64_t trials, failures;
	unsigned cells, failed, untried, hung; /* cells */
	int error;			       /* why one could not be tried; 0: it hung */
	double seconds;
	double until; /* of trying it, seconds, to its first failure */
};

struct failed {
	struct conform_cell cell;
	struct conform_result result;
};

struct conformance {
	struct tried tried[PROMISES_MAX];
	unsigned count;
	struct failed failed[FAILED_MAX];
	unsigned faileds;
	struct tried_pair *pair; /* one for each cell */
	size_t pairs, room;
	unsigned reached; /* CPUs that were the writer of every promise and its executor */
	struct suspect suspect[SUSPECTS_MAX];
	int suspects;
	double seconds;
};

/* conformance_try - 0 or -ENOMEM. The caller frees, always. */
int conformance_try(struct conformance *c, const struct conform_request *request);
void conformance_free(struct conformance *c);

/* conformance_status - EXIT_PASS, EXIT_TEARS, or EXIT_INCONCLUSIVE: one could not be tried. */
enum conformance_status {
	CONFORMS,
	CONFORM_BROKEN,
	CONFORM_UNTRIED,
};
enum conformance_status conformance_status(const struct conformance *c);

const char *conformance_verdict(const struct conformance *c); /* "conforms", ... */
const char *tried_status(const struct tried *t);	      /* "holds", "BROKEN", "not tried" */

/* tried_reason - in a line. conform_command - that runs a cell again. Into size bytes. */
void tried_reason(const struct tried *t, char *text, size_t size);
void conform_command(const struct conform_cell *cell, char *text, size_t size);

#endif
