/* SPDX-License-Identifier: MIT */
/*
 * What executors and the thread of epochs share, and what runs at an entry.
 */
#ifndef PROBES_PROFILE_SAMPLE_WATCH_H
#define PROBES_PROFILE_SAMPLE_WATCH_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "probes/include/fastinst.h"

#define NEVER UINT64_MAX

/* The low bits of watch.state; above them a number that each window changes. */
enum {
	WATCH_OPEN = 0,
	WATCH_OVER = 1, /* a call came behind the window's end: the probe turned itself off */
	WATCH_FULL = 2, /* as many calls came as were allowed: the same */
	WATCH_BITS = 3,
	WATCH_NEXT = 4,
};

/* One entry. */
struct watch {
	_Atomic uint64_t calls;	 /* that were ever counted */
	_Atomic uint64_t base;	 /* of them before the window */
	_Atomic uint64_t from;	 /* start of the window, in ticks; NEVER: none is open */
	_Atomic uint64_t window; /* until when no clock of the program's need be asked */
	_Atomic uint64_t warm;	 /* ticks of the program's own time before it; 0: it has begun */
	_Atomic uint64_t wish;	 /* ticks of the program's own time that it shall have */
	_Atomic uint64_t began;	 /* at its start, by that clock */
	_Atomic uint64_t first;	 /* call in it */
	_Atomic uint64_t filled; /* when it was full: since the start */
	_Atomic uint64_t waited; /* of that, without a CPU */
	_Atomic uint64_t run;	 /* calls of the probe function before it, by all probes */
	_Atomic uint64_t spent;	 /* ticks in turning probes off before it */
	_Atomic uint64_t
		slowed; /* share of the window that calls of the probe function took, / 2^32 */
	_Atomic uint64_t state;
	_Atomic uint64_t late; /* calls that came while none was open */
};

/* What all entries share. */
struct watch_common {
	clockid_t own;		/* clock of the thread of epochs */
	double per_second;	/* ticks */
	double price;		/* ticks of a call of the probe function */
	uint32_t limit;		/* of calls in a window */
	uint32_t callers;	/* of calls in a window whose callers are kept */
	_Atomic uint64_t spent; /* ticks in turning off */
	_Atomic uint64_t offs;
};

extern struct watch *watches; /* by probe id */
extern struct watch_common watch_common;

/* watch_start - 0 or -ENOMEM. */
int watch_start(void);

/*
 * watch_clock - CPU time of the program's threads, in ticks. Between a window's start and its end
 * the program may wait for a CPU, often just because the thread of epochs has taken it.
 */
uint64_t watch_clock(void);

/* watch_call - the probe function. Changes no vector register. */
fi_function watch_call;

/* --- Who called: a ring per thread ------------------------------------------------------------ */

#define RING 1024u

struct caller {
	uint64_t id;
	uint64_t from; /* address behind the call */
};

struct ring {
	_Atomic uint64_t head; /* written by the thread */
	_Atomic uint64_t tail; /* by the reader */
	_Atomic uint64_t lost;
	_Atomic uint64_t run; /* calls of the probe function */
	_Atomic uint32_t taken;
	_Atomic int32_t thread; /* its number in the kernel */
	struct ring *next;
	struct caller caller[RING];
};

/* ring_here - the calling thread's, or NULL. ring_make - a new one, if there is memory. */
struct ring *ring_here(void) __attribute__((target("general-regs-only")));
struct ring *ring_make(void);

int ring_start(void);
struct ring *ring_list(void);

/* ring_run - calls of the probe function by all threads. */
uint64_t ring_run(void);

/* ring_refresh - the kernel adds up what threads that run right now have used. */
void ring_refresh(void);

/* watch_slowed - share of a window of so many ticks of CPU time that the profile took so far. */
double watch_slowed(const struct watch *watch, uint64_t ticks);

/* watch_mark - what the profile takes from here on is the window's. */
void watch_mark(struct watch *watch);

/* ring_forked - in the child: other threads' rings are free, and none holds anything. */
void ring_forked(void);

#endif
