/* SPDX-License-Identifier: MIT */
/*
 * The method, the same for all benchmarks: cases in random order, each in turn with its
 * baseline, A B B A, so that a machine that drifts hits both alike.
 */
#ifndef BENCH_METHOD_METHOD_H
#define BENCH_METHOD_METHOD_H

#include <hwloc.h>
#include <signal.h>

#include "bench/method/hot.h"
#include "bench/method/result.h"
#include "patchcore/patchcore.h"
#include "stress/witness/witness.h"

struct bench_case;

/*
 * One way to do one thing. All functions run on the patcher's thread, which is pinned.
 *
 *   begin   get ready for blocks. May be NULL.
 *   block   take some samples, of the case's own choice how many: samples_add(&s[0], ...),
 *           and of the second measure samples_add(&s[1], ...). The first block of a case
 *           is a warm-up, and its samples are forgotten.
 *   end     undo begin. May be NULL.
 *
 * begin and block return 0 or a negative errno with a line in why, of BENCH_WHY bytes:
 * then the case is skipped for good, its row says why; so it is where they say so in its
 * baseline. -EINTR ends the run. A block takes at least one sample of each measure that the
 * case has; without one, its quadruple has no ratio.
 */
struct bench_case {
	int (*begin)(struct bench_case *c, char *why);
	int (*block)(struct bench_case *c, struct samples *s, char *why);
	void (*end)(struct bench_case *c);
	/*
	 * At the end of a run that was not skipped: extras of the row, once for each row; the
	 * samples are still there. May be NULL.
	 */
	void (*sum_up)(struct bench_case *c, struct bench_row *row);
	void *arg;
	/*
	 * The policy is set before begin, and auto again after end. Unless hot is NULL so many of
	 * its executors run the work from begin to end.
	 */
	enum pc_policy policy;
	struct hot *hot;
	const struct hot_work *work;
	unsigned executors;
	/*
	 * Measured in turn with it; NULL: none. It may serve many, and need not be in the array.
	 * One without a second measure serves both measures.
	 */
	struct bench_case *base;
	unsigned rounds; /* at most so many; 0: no limit of its own */
	/*
	 * The row to be: name, measure, unit, peer, params. Blocks may bring samples of a
	 * second measure of the same thing, such as off beside on: it has a row of its own
	 * if second_measure is set.
	 */
	struct bench_row row;
	const char *second_measure;

	/* The method's own. */
	struct samples samples[2], base_samples[2];
	bool skipped, warm;
};

struct bench_run {
	hwloc_topology_t topology;
	struct seating seating; /* of the patcher and all executors there can be */
	unsigned rounds;
	uint64_t seed;
	bool peers;			   /* those that are programs of their own, too */
	const volatile sig_atomic_t *stop; /* set: -EINTR; may be NULL */
	void (*progress)(unsigned done, unsigned all, const char *what); /* may be NULL */
};

/*
 * bench_measure - measure the cases, and add a row per case (and per second measure) to
 * result, in the order of the array.
 *
 * Per round: the cases in an order drawn anew; of each A B B A, or A A without a baseline.
 * The caller's thread is pinned to the patcher's CPU. The cases' samples are freed. Whether
 * it shall stop is looked at between blocks.
 * 0, -EINTR, -ENOMEM or what pinning failed with.
 */
int bench_measure(const struct bench_run *run, struct bench_case *cases, size_t count,
		  struct bench_result *result);

/*
 * bench_result_begin - name, seed, seating, waits in use, witnesses before; bench_result_end -
 * witnesses after, date. pc_init() was called. Around all bench_measure() of a benchmark, by
 * the same thread, which is pinned to the patcher's CPU; no other thread may be busy then. The
 * witnesses' switches and faults are the whole process's. 0, or what pinning failed with.
 */
struct bench_watch {
	struct witness_mark mark;
	struct rusage usage;
	double seconds;
};
int bench_result_begin(const struct bench_run *run, const char *benchmark,
		       struct bench_result *result, struct bench_watch *watch);
void bench_result_end(const struct bench_run *run, struct bench_result *result,
		      struct bench_watch *watch);

/* --- A benchmark ---------------------------------------------------------------------------- */

enum bench_drawing {
	DRAWN_AS_ROWS,	 /* a line per case, a dot per measure */
	DRAWN_AS_RATES,	 /* calls and balance against toggles per second */
	DRAWN_AS_GROWTH, /* multiples of the smallest */
};

/* All that is known of a benchmark: what runs it, and how its result is told and drawn. */
struct benchmark {
	const char *name;
	const char *about;   /* in a line of the help */
	const char *title;   /* of its section in a report */
	const char *caption; /* how it is drawn, and what it does not show */
	enum bench_drawing drawing;
	/* Adds its rows. 0 or a negative errno. */
	int (*run)(const struct bench_run *run, struct bench_result *result);
};

/*
 * bench_ask_child - let a child process, which is all that it leaves behind, work out an answer of
 * size bytes. 0, or a negative errno with a line in why: it died, or took longer than that.
 */
int bench_ask_child(void (*work)(void *arg, void *answer), void *arg, void *answer, size_t size,
		    double seconds, char *why);

/* --- Policies, with the reason where one is refused; a why has BENCH_WHY bytes --------------- */

/*
 * bench_set_policy - pc_set_policy(). 0, or a negative errno and bench_policy_refused(). Auto is
 * never refused: without any safe policy there are still words and calls.
 */
int bench_set_policy(enum pc_policy policy, char *why);

/* bench_policy_refused - why the library will not. Auto: what the library says. */
void bench_policy_refused(enum pc_policy policy, char *why);

/* bench_policy_name - as rows have it: "auto", "wait", "membarrier". */
const char *bench_policy_name(enum pc_policy policy);

/* bench_say - "what: error" in why. Returns ret, which is negative. */
int bench_say(char *why, const char *what, int ret);

#endif
