/* SPDX-License-Identifier: MIT */
/* A cell in a child of its own: a crash, a hang or a kill costs that cell and nothing else. */
#ifndef STRESS_RUN_RUN_H
#define STRESS_RUN_RUN_H

#include <hwloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "stress/cell/cell.h"

struct run_options {
	hwloc_topology_t topology;
	const volatile sig_atomic_t *stop; /* non-zero: end early; may be NULL */
	/* Called once a second or a few times with what is known so far; may be NULL. */
	void (*progress)(void *arg, const struct cell_result *so_far);
	void *arg;
	/* Without a toggle until it is ended; 0 is 20. Ten times that while it takes no CPU. */
	double hang_seconds;
};

/*
 * cell_run - run one cell and wait for it; result->outcome tells what became of the child, counts
 * up to that are kept. The caller has one thread only (it forks). No child is left behind, also if
 * the caller dies.
 *
 * 0, or a negative errno if no child could be started. -ENOENT: the placement cannot seat the
 * executors (result->seating is empty).
 */
int cell_run(const struct cell *cell, const struct run_options *options,
	     struct cell_result *result);

/* --- What cells, gap runs and trials of promises have in common ----------------------------- */

/* What parent and child share of a run besides its result: memory that survives the child. */
struct leash {
	_Atomic(int) stop;	/* the parent asks the child to end */
	_Atomic(uint64_t) life; /* toggles or stores so far: changes as long as the child gets on */
	_Atomic(uint64_t) tears; /* seen so far */
	_Atomic(int) finished;	 /* the result is complete */
};

/* What to run. */
struct isolated {
	void (*inside)(void *arg); /* in the child, which ends when it returns */
	void *arg;
	struct leash *leash;
	unsigned parts;			   /* steps of leash->life in a toggle */
	const struct run_options *options; /* but for the topology, which is the child's affair */
	const struct seating *seating;	   /* CPUs that are measured, or NULL */
	struct witness *witness;	   /* gets what went on beside it; NULL: nothing does */
};

/* How it ended. */
struct ending {
	bool finished;	      /* the child did, else: */
	enum outcome outcome; /* crash, killed, hang or interrupted */
	int signal;	      /* that ended it, 0 if none */
	double seconds;	      /* from beginning to end */
};

/*
 * isolate - run it and wait for its end. Meanwhile the caller keeps off the CPUs that are
 * measured, and looks four times a second; once where it may use no others.
 *
 * The caller has one thread only (it forks). No child is left behind, also if the caller dies. 0,
 * or a negative errno if no child could be started.
 */
int isolate(const struct isolated *what, struct ending *ending);

/* isolate_finish - by the child, at its end: its error and outcome. */
void isolate_finish(struct leash *leash, int ret, int *error, enum outcome *outcome);

/* isolate_pin - put the calling thread on one CPU. 0 or a negative errno. */
int isolate_pin(unsigned cpu);

/* serialize_core - by CPUID, what the SDM's algorithm has between the flag and the new code. */
static inline void serialize_core(void)
{
	unsigned a = 0, b, c = 0, d;

	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
}

/* --- provoker.c: what is done on purpose to pull the two fetches of a straddler apart ------- */

struct provokers;

/* provokers_possible - has this machine what they take? 0, or -ENOTSUP with the reason in words. */
int provokers_possible(unsigned set, hwloc_topology_t topology, const struct seating *seating,
		       char *reason, size_t size);

/*
 * provokers_start - start those of the cell, for the site at this address. By the patcher, before
 * there are executors: it forks. 0, or a negative errno, -ENOTSUP if one is not possible here,
 * with nothing left running.
 */
int provokers_start(struct provokers **provokers, const struct cell *cell,
		    hwloc_topology_t topology, const struct seating *seating, const uint8_t *site);

/* provokers_stop - end all of it and free. NULL is fine. */
void provokers_stop(struct provokers *provokers);

/* provoke_toggle - by the patcher, before the first store of each toggle. */
void provoke_toggle(struct provokers *provokers);

/* provoke_round - by each executor, now and then, some thousand executions apart. */
void provoke_round(struct provokers *provokers);

/* provokers_done - flushes, changes of pages, bytes, processes, rounds or bursts so far. */
uint64_t provokers_done(const struct provokers *provokers, enum provoker which);

#endif
