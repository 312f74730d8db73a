/* SPDX-License-Identifier: MIT */
/*
 * What processors and kernels promise about code that changes, each as a loop that cannot fail on a
 * machine that keeps it. One failure is a defect of a core, its microcode, hypervisor or kernel.
 *
 * A cell is one promise, tried for a while by a writer on one CPU and an executor on another. All
 * code in it returns a number, so that every execution tells which version ran.
 */
#ifndef CONFORM_GUARANTEE_H
#define CONFORM_GUARANTEE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "stress/run/run.h"

struct conform_child;

/* Broken on purpose, to see that the oracle of a promise would notice. */
enum fault {
	FAULT_NONE,
	FAULT_STALE,	    /* now and then the executor runs an older copy */
	FAULT_LOST,	    /* now and then a store of the writer's is lost */
	FAULT_UNSYNCED,	    /* the executor does not wait for the writer */
	FAULT_TORN,	    /* a change that is one store is made by two */
	FAULT_EXCHANGED,    /* a litmus test is made that has its stores in the other order */
	FAULT_UNSERIALIZED, /* nothing serialises between new code and its run: may not show */
	FAULTS
};

struct guarantee {
	const char *name;
	const char *promise; /* one line */
	const char *source;  /* who promises it */
	unsigned threads;    /* 1: the writer executes itself */
	unsigned faults;     /* bits: those that apply; all but FAULT_UNSERIALIZED must show */
	int (*prepare)(struct conform_child *c);
	void (*write)(struct conform_child *c);
	void (*execute)(struct conform_child *c);
	/* Of write_in_turn(): code of that trial, and where it is. NULL: the kernel has no page. */
	uint8_t *(*place)(struct conform_child *c, uint64_t trial);
	bool by_interrupt; /* it holds where the flush of TLBs interrupts the executor */
};

/* Errors of a cell that was no test: a thread was not on its CPU; the executor never ran. */
#define CONFORM_UNSEATED (-ENODEV)
#define CONFORM_IDLE	 (-ECHILD)

struct conform_cell {
	const struct guarantee *guarantee;
	unsigned writer, executor; /* CPUs */
	double seconds;
	uint64_t seed;
	enum fault fault;
	bool fault_on_one; /* the fault is that of one CPU: */
	unsigned fault_on;
	bool loaded; /* with memory traffic on CPU load_on */
	unsigned load_on;
};

struct conform_result {
	enum outcome outcome; /* a crash is a failure: code ran that was never written */
	int signal;
	int error; /* negative errno: it could not be tried, or CONFORM_UNSEATED, CONFORM_IDLE */
	uint64_t trials;
	uint64_t failures;
	char test[32];	      /* the litmus test that was run, or "" */
	uint64_t wanted, got; /* by the first failure */
	double until;	      /* seconds to it */
	double seconds;
};

/* All of them, up to one without a name. */
extern const struct guarantee guarantees[];

const struct guarantee *guarantee_named(const char *name);
const char *fault_name(enum fault fault);
int fault_parse(const char *name);

/*
 * conform_run - try it in a child process. The caller has one thread only. 0, also if it failed, or
 * a negative errno if there was no child.
 */
int conform_run(const struct conform_cell *cell, const struct run_options *options,
		struct conform_result *result);

/*
 * rate_excluded - the rate of failures, per trial, that so many trials would have shown with 99 %;
 * 1 if there were too few.
 */
double rate_excluded(uint64_t trials);

/* has_broadcast_flush - may this kernel flush TLBs by INVLPGB, which interrupts no executor? */
bool has_broadcast_flush(void);

/* seconds_to_exclude - until a failure of that rate, per trial, shows with 99 %. */
double seconds_to_exclude(double rate, double trials_per_second);

#endif
