/* SPDX-License-Identifier: MIT */
/*
 * What one pass of a loop takes the thread that runs it, while nothing is changed: a
 * site that is off (latent) or on (invoke), and what people use instead.
 *
 * A sample is the time of PASS_TIMES passes in a row, divided by their number, so the clock and
 * its reading (some 40 ticks) are some hundredths of a tick in it. It is throughput: a machine
 * that does several things at once hides what fits beside the loop itself. The empty loop is one
 * cycle a pass, because of its branch, and a NOP fits beside that; in a loop that has work to do
 * more fits.
 *
 * The TSC ticks at a rate of its own. The row "clock" says how many ticks a cycle of the core
 * took in this run, and "over_cycles" is "over_empty" by that. "over_empty" is how much longer a
 * pass takes than one of the empty loop that lies as this one, with its interval "over_low",
 * "over_high".
 *
 * Latent: what a site that is off costs the threads that pass it ("Living on the Edge",
 * section 8.5), beside the empty loop, and what a guard costs that is compiled in.
 *
 * "nop" is a site that pc_patch() has turned off. "call" was turned off by pc_deactivate_call():
 * a call of a ret at splits 0 and 1|4, a short jump at the others. A "pointer" is off when it
 * leads to an empty function. "direct" is never off; it tells the scale. "empty" against itself
 * is a second empty loop at another address: what is found there is what this method cannot
 * tell from nothing. Peers in processes of their own are measured against the empty loop of that
 * process.
 *
 * Invoke: what the call costs that a site makes while it is on (table 2's invocation): of an
 * empty function, beside a call that the compiler would have emitted and nothing ever changes.
 *
 * "aligned" was patched off and on by pc_patch(). "call" was by pc_deactivate_call() and
 * pc_activate_call(), with the target that it had, with an other one next to that, which splits
 * 2|3 to 4|1 reach through a stub, or with a far one, which all reach through a stub. "direct"
 * against itself is a second one at another address. A row's figure is the pass of the loop with
 * the call; "over_empty" is the call alone. Peers in processes of their own have an empty loop of
 * their own for that.
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
	bool split;	    /* it is a site, and that is a param of the row */
	bool only_split_0;  /* else it is measured at each */
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
 * nothing to free then. pass_free - no thread runs it any more.
 */
int pass_build(struct pass *pass, const struct pass_spec *spec, char *why);
void pass_free(struct pass *pass);

/*
 * The loops of the two benchmarks, PASS_SPECS at most, in the order of their rows. Return how
 * many.
 */
size_t latent_specs(struct pass_spec *spec);
size_t invoke_specs(struct pass_spec *spec);

#endif
