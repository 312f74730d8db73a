/* SPDX-License-Identifier: MIT */
/*
 * What one pass of a loop takes the thread that runs it, while nobody changes anything: a
 * site that is off (latent) or on (invoke), and what people use instead.
 *
 * A sample is the time of PASS_TIMES passes in a row, divided by their number, so the clock and
 * its reading (some 40 ticks) are some hundredths of a tick in it. It is throughput: a machine
 * that does several things at once hides what fits beside the loop itself. The empty loop is one
 * cycle a pass, because of its branch, and a NOP fits beside that; in a loop that has work to do
 * more fits.
 *
 * The TSC ticks at a rate of its own. The row "clock" says how many ticks a cycle of the core
 * took in this run, and "over_cycles" is "over_empty" by that.
 */
#ifndef BENCH_CASES_PASS_PASS_H
#define BENCH_CASES_PASS_PASS_H

#include "bench/method/loop.h"
#include "bench/method/method.h"
#include "bench/peers/peer.h"
#include "patchcore/call.h"

#define PASS_TIMES   10000
#define PASS_SAMPLES 50 /* in a block */
#define PASS_SPECS   64 /* that a benchmark has at most */

/* What was done to the loop before it is timed. */
enum pass_state {
	PASS_BUILT,	 /* nothing: a call is there, a flag is up */
	PASS_FLAG_DOWN,	 /* the flag is down */
	PASS_NOP,	 /* pc_patch() of the site to a NOP */
	PASS_PATCHED,	 /* and back to the call */
	PASS_CALL_OFF,	 /* pc_deactivate_call() */
	PASS_CALL_ON,	 /* and pc_activate_call() with the target it had */
	PASS_CALL_OTHER, /* with another, next to that one */
	PASS_CALL_FAR,	 /* with one further than 2 GiB away */
};

struct pass_spec {
	const char *name;
	enum pass_state state;
	struct loop_spec loop;
	bool peer;
	bool split;	    /* is a param of the row */
	const char *target; /* a param, too; NULL: none */
};

struct pass {
	struct pass_spec spec;
	struct loop loop;
	struct pc_call call;
	void *far; /* a target, mapped on its own */
};

/*
 * pass_build - the loop, in its state. 0, or a negative errno with a line in why; there is
 * nothing to free then. pass_free - nobody runs it any more.
 */
int pass_build(struct pass *pass, const struct pass_spec *spec, char *why);
void pass_free(struct pass *pass);

/* pass_split - as rows have it: "0", "1|4". */
const char *pass_split(unsigned split);

/*
 * For lists of loops: pass_add_splits - one of that state, with its site at each split.
 * pass_add_others - as they are listed. Return how many.
 */
size_t pass_add_splits(struct pass_spec *to, const struct pass_spec *spec, bool work);
size_t pass_add_others(struct pass_spec *to, const struct pass_spec *others, size_t count,
		       bool work);

/*
 * The loops of the two benchmarks, PASS_SPECS at most, in the order of their rows. Return how
 * many.
 */
size_t latent_specs(struct pass_spec *spec);
size_t invoke_specs(struct pass_spec *spec);

/* One of the two benchmarks. */
struct pass_bench {
	const char *measure;
	size_t (*specs)(struct pass_spec *spec);
	struct pass_spec base; /* but for its split and work: those of the case */
	bool base_empty;       /* it is the empty loop */
	bool body;	       /* is a param of the rows */
	bool peers_on; /* of a peer, the cost on is wanted; else off, against its own loop */
};

/*
 * pass_measure - all rows of it. Each is told by "over_empty": how much longer a pass takes than
 * one of the empty loop that lies as this one, with its interval "over_low", "over_high".
 */
int pass_measure(const struct pass_bench *bench, const struct bench_run *run,
		 struct bench_result *result);

#endif
