/* SPDX-License-Identifier: MIT */
/* Trying promises on all CPUs for a while, and what came of it. */
#ifndef CONFORM_ROUNDS_H
#define CONFORM_ROUNDS_H

#include <stddef.h>

#include "conform/guarantee.h"
#include "patchcore/machine/cpus.h"

/* --- Which cell comes when -------------------------------------------------------------------- */

/*
 * In a round every CPU is the writer once and the executor once, of every promise. From round to
 * round the pairs change, so that a CPU that fails does so with more than one partner, and so does
 * the load beside them.
 */
struct order {
	unsigned cpus, promises;
	unsigned first; /* the CPU that every round begins with */
	bool fixed;	/* two CPUs that keep their roles, or one */
};

/* By index. */
struct turn {
	unsigned writer, executor, promise;
	bool loaded;
	unsigned load_on; /* neither of the two, where there is a third CPU */
};

/* count_turns - of a round. find_turn - the n-th of all rounds. */
uint64_t count_turns(const struct order *o);
struct turn find_turn(const struct order *o, uint64_t n);

/* find_partner - the k-th CPU, from 0, that is neither of these two; cpu itself if there is none.
 */
unsigned find_partner(const struct order *o, unsigned cpu, unsigned other, unsigned k);

/* --- Which CPU the cells that failed have in common ------------------------------------------- */

#define SUSPECTS_MAX   8
#define SUSPECT_CHANCE 0.01 /* that a CPU is named which has no part in the failures */

struct tried_pair {
	unsigned writer, executor; /* by index */
	bool failed;
};

enum role {
	ROLE_EITHER,
	ROLE_WRITER,
	ROLE_EXECUTOR,
	ROLES
};

struct suspect {
	unsigned cpu; /* by index */
	enum role role;
	unsigned cells, failed; /* in which it had that role */
	double chance; /* of so many, or more, if failures fell on cells at random: for all CPUs and
			  roles together */
};

/*
 * suspects_find - the CPUs that stand out, the most striking first. When one is named, its cells
 * accuse no other. Returns how many; two with the same chance are not told apart, and both named.
 * If all cells fail, or too few, none stands out. -ENOMEM.
 */
int suspects_find(const struct tried_pair *pairs, size_t count, unsigned cpus,
		  struct suspect suspects[SUSPECTS_MAX]);

const char *role_name(enum role role); /* "as either", ... */

/* --- Rounds ----------------------------------------------------------------------------------- */

#define PROMISES_MAX 16
#define FAILED_MAX   16 /* cells that reports list */
#define LOAD_NONE    (-1)
#define LOAD_IN_TURN (-2)
#define AGAIN_MOST   24 /* cells with other partners, after failures */

struct conform_request {
	const struct guarantee *promise[PROMISES_MAX];
	unsigned promises;
	unsigned *cpu;
	unsigned cpus;
	bool fixed;    /* of two CPUs the first is always the writer; the first cell has the seed */
	double budget; /* seconds */
	bool strict;   /* not all CPUs get their turn within a budget that is too short for that */
	uint64_t seed;
	int load; /* CPU of the memory traffic, or LOAD_NONE, LOAD_IN_TURN */
	enum fault fault;
	bool fault_on_one;
	unsigned fault_on;
	bool broadcast; /* has_broadcast_flush() */
	/* conform_run(), or a test's. */
	int (*try_one)(const struct conform_cell *cell, const struct run_options *options,
		       struct conform_result *result);
	const volatile sig_atomic_t *stop;
};

struct tried {
	const struct guarantee *guarantee;
	uint64_t trials, failures;
	unsigned cells, failed, untried, hung; /* cells */
	int error;			       /* why one could not be tried, or 0 */
	bool excused; /* no interrupt is promised here: a failure shows no defect */
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
	size_t pairs;
	unsigned reached; /* CPUs that were the writer of every promise and its executor */
	struct suspect suspect[SUSPECTS_MAX];
	int suspects;
	double seconds;
};

/* conform_request_all - ask for all promises on all these CPUs. 0 or -ENOMEM; free request->cpu. */
int conform_request_all(struct conform_request *request, const struct cpus *cpus);

/* conformance_try - 0 or -ENOMEM. The caller frees, always. */
int conformance_try(struct conformance *c, const struct conform_request *request);
void conformance_free(struct conformance *c);

/* conformance_status - EXIT_PASS, EXIT_TEARS, or EXIT_INCONCLUSIVE: not all hold, none is broken.
 */
enum conformance_status {
	CONFORMS,
	CONFORM_BROKEN,
	CONFORM_INCONCLUSIVE,
};
enum conformance_status conformance_status(const struct conformance *c);

const char *conformance_verdict(const struct conformance *c); /* "conforms", ... */

/* A promise holds only if failures of this rate, per trial, would have shown with 99 %. */
#define RATE_TO_SHOW 0.01

enum promise_status {
	PROMISE_HOLDS,
	PROMISE_BROKEN,
	PROMISE_UNCLEAR,    /* failures, where nothing promises an interrupt */
	PROMISE_TOO_LITTLE, /* trials */
	PROMISE_ERROR,	    /* of the test: CONFORM_UNSEATED, CONFORM_IDLE, or a cell hung */
	PROMISE_UNTRIED,
};
enum promise_status tried_status(const struct tried *t);
const char *promise_status_name(enum promise_status status); /* "holds", "BROKEN", ... */

/* tried_reason - in a line. conform_command - that runs a cell again. Into size bytes. */
void tried_reason(const struct tried *t, char *text, size_t size);
void conform_command(const struct conform_cell *cell, char *text, size_t size);

#endif
