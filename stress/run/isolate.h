/* SPDX-License-Identifier: MIT */
/*
 * Running something in a child process of its own, so that a crash, a hang or a
 * kill costs that and nothing else. Private to stress.
 */
#ifndef STRESS_RUN_ISOLATE_H
#define STRESS_RUN_ISOLATE_H

#include <stdatomic.h>

#include "stress/run/run.h"

/* What to run. The atomics lie in memory that parent and child share. */
struct isolated {
	void (*inside)(void *arg);	   /* in the child, which ends when it returns */
	void (*look)(void *arg);	   /* in the parent, see below; may be NULL */
	void *arg;			   /* of both */
	_Atomic(int) *stop;		   /* set when the child is to end early */
	const _Atomic(uint64_t) *life;	   /* changes as long as the child gets on */
	const struct run_options *options; /* stop and hang_seconds are looked at here */
	const struct seating *seating;	   /* CPUs that are measured, or NULL */
};

/* How it ended, for whoever finds that it did not finish. */
struct ending {
	enum outcome outcome; /* crash, killed, hang or interrupted */
	int signal;	      /* that ended it, 0 if none */
};

/*
 * isolate - run it and wait for its end.
 *
 * Meanwhile the caller keeps off the CPUs that are measured, and looks four times a
 * second. Where it may use no others it looks once a second: each look takes a CPU
 * from who is measured there.
 *
 * The caller must have one thread only (it forks). No child is left behind on
 * return; if the caller dies, the kernel ends the child. 0, or a negative errno
 * if no child could be started.
 */
int isolate(const struct isolated *what, struct ending *ending);

#endif
