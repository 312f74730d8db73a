/* SPDX-License-Identifier: MIT */
/*
 * What executors and the thread of epochs share, and what runs at an entry.
 */
#ifndef PROBES_PROFILE_SAMPLE_WATCH_H
#define PROBES_PROFILE_SAMPLE_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "probes/include/fastinst.h"
#include "probes/profile/sample/relaxed.h"

#define NEVER UINT64_MAX

/* The low bits of watch.state; above them a number that each window changes. */
enum {
	WATCH_OPEN = 0,
	WATCH_OVER = 1, /* a call came behind the window's end: the probe turned itself off */
	WATCH_FULL = 2, /* as many calls came as were allowed: the same */
	WATCH_BITS = 3,
	WATCH_WAITS = 4,  /* over, and on until the calls that are timed have ended */
	WATCH_LEAVES = 8, /* over, and being turned off */
	WATCH_LOW = 15,
};

/*
 * One entry; of an exit the state, open or over, the group, next and entry. What every call reads
 * comes first: most functions are called so seldom that it is not in the cache.
 */
struct watch {
	_Alignas(64) _Atomic uint64_t state;
	struct group *group;	 /* NULL: it has no exits */
	_Atomic uint64_t from;	 /* start of the window, in ticks; NEVER: none is open */
	_Atomic uint64_t warm;	 /* ticks of the program's own time before it; 0: it has begun */
	_Atomic uint64_t window; /* until when no clock of the program's need be asked */
	_Atomic uint64_t calls;	 /* that were ever counted */
	_Atomic uint64_t base;	 /* of them before the window */
	_Atomic uint64_t limit;	 /* of calls in it */

	uint32_t next;		  /* entry, or exit, of the group; NO_PROBE */
	uint32_t entry;		  /* of an exit */
	bool hooks;		  /* see frames.h */
	_Atomic uint64_t pending; /* calls that are timed, and how often those were cut */
	_Atomic uint64_t skip; /* first calls of a window that are not timed: the probes are cold */
	_Atomic uint64_t wish; /* ticks of the program's own time that it shall have */
	_Atomic uint64_t began;	 /* at its start, by that clock */
	_Atomic uint64_t first;	 /* call in it */
	_Atomic uint64_t middle; /* as many calls were counted as then came until it was full */
	_Atomic uint64_t filled; /* when it was full: since the start */
	_Atomic uint64_t waited; /* of that, without a CPU */
	_Atomic uint64_t run;	 /* calls of the probe function before it, by all probes */
	_Atomic uint64_t spent;	 /* ticks in turning probes off before it */
	_Atomic uint64_t
		slowed; /* share of the window that calls of the probe function took, / 2^32 */
	_Atomic uint64_t until; /* since the start of the window: no call is waited for longer */
	_Atomic uint64_t timed; /* calls that ended, and their ticks, with a CPU and in all */
	_Atomic int64_t time, wall;
	_Atomic uint64_t taken;	    /* off these: what the profile took */
	_Atomic uint64_t torn, cut; /* calls that were timed in vain */
};

/* The entries and the exits of a function: more than one where others are inlined in it. */
struct group {
	uint32_t entries, exits; /* the first of each */
};

#define NO_PROBE UINT32_MAX

#define PENDING_CALLS(pending) ((uint32_t)(pending))
#define PENDING_CUTS(pending)  ((uint32_t)((pending) >> 32))

/* What all entries share. */
struct watch_common {
	clockid_t own;		 /* clock of the thread of epochs */
	double per_second;	 /* ticks */
	double price;		 /* ticks of a call of the probe function, caches warm */
	double warm;		 /* of them, those that its meter sees; 0: not known */
	uint64_t whole_price;	 /* the same */
	uint64_t pair;		 /* ticks of the probes of a call that is timed, in its time */
	uint64_t between;	 /* ticks of the probes from one event of a glance to the next */
	uint64_t ticks_per_4s;	 /* of 2^32 ns, to be exact */
	uint64_t recent;	 /* ticks for which a look at a thread's clock holds */
	uint64_t overlong;	 /* see frames_overlong() */
	uint32_t callers;	 /* of calls in a window whose callers are kept */
	_Atomic uint64_t glance; /* its number; 0: none is under way. See glance.h */
	_Atomic uint64_t glance_end; /* ticks; NEVER: it goes on */
	_Atomic uint64_t affordable; /* ring_run() until which windows of a whole epoch go on */
	_Atomic uint64_t spent;	     /* ticks in turning off */
	_Atomic uint64_t off_ticks;  /* of them, in the library */
	_Atomic uint64_t offs;
};

extern struct watch *watches; /* by probe id */
extern struct watch_common watch_common;

/*
 * watch_next - nothing is counted from here on, until the next window starts. False: the state is
 * another by now.
 */
bool watch_next(struct watch *watch, uint64_t state);

/* watch_start - 0 or -ENOMEM. */
int watch_start(void);

/*
 * watch_clock - CPU time of the program's threads, in ticks. Between a window's start and its end
 * the program may wait for a CPU, often just because the thread of epochs has taken it.
 */
uint64_t watch_clock(void);

/* watch_call, watch_exit - the probe functions of entries and exits. Change no vector register. */
fi_function watch_call, watch_exit;

/* --- Callers: a ring per thread --------------------------------------------------------------- */

#define RING 1024u

#define NOT_TIMED INT64_MIN

struct caller {
	uint64_t id;
	uint64_t from; /* address behind the call */
	int64_t time;  /* ticks that the call took; NOT_TIMED: it begins */
};

/* A call that is timed. */
struct frame {
	uint64_t slot;	   /* where its return address is */
	uint64_t function; /* id of its entry, or its address: see frames.h */
	uint64_t from;
	uint64_t start, waited; /* ticks; of the thread, without a CPU */
	uint64_t run, spent;	/* by the thread before it */
	uint32_t id;
	uint32_t cuts;
};

#define FRAMES 256u

#define PLACES 512u /* a power of two */

/* What the thread did in a glance: see glance.h. */
struct glimpse {
	_Atomic uint64_t start;	 /* of the glance; 0: the thread was not known by then */
	_Atomic uint64_t waited; /* ticks without a CPU until then, from some time on */
	_Atomic uint64_t number; /* of the glance that the rest is of */
	_Atomic uint64_t done;	 /* of the last whose end the thread has seen */
	_Atomic uint64_t last;	 /* until when it is known what the thread did */
	_Atomic uint64_t idle;	 /* ticks without a CPU until then */
	_Atomic uint64_t used;	 /* with a CPU, those of probes among them */
	_Atomic uint64_t beyond; /* in places that found no room */
	uint64_t polled;	 /* ticks with a CPU, when it was last asked for them */
	struct {
		_Atomic uint64_t at, ticks;
	} place[PLACES];
};

struct ring {
	_Atomic uint64_t head; /* written by the thread */
	_Atomic uint64_t tail; /* by the reader */
	_Atomic uint64_t lost;
	_Atomic uint64_t run;	  /* calls of the probe function */
	_Atomic uint64_t metered; /* of them, those that have a part in meter: see meter.h */
	_Atomic uint64_t meter;
	_Atomic uint32_t taken;
	_Atomic int32_t thread; /* its number in the kernel */
	uint64_t spent;		/* ticks of the thread in turning off */
	uint64_t looked;	/* when the thread's clock was read, in ticks */
	uint64_t waited;	/* ticks without a CPU until then, from some time on */
	uint32_t depth;		/* frames; the last one is the innermost */
	struct glimpse glimpse;
	struct ring *next;
	struct frame frame[FRAMES];
	struct caller caller[RING];
};

/* ring_here - the calling thread's, or NULL. ring_make - a new one, if there is memory. */
struct ring *ring_here(void) __attribute__((target("general-regs-only")));
struct ring *ring_make(void);

int ring_start(void);
struct ring *ring_list(void);

/* ring_run - calls of the probe function by all threads. */
uint64_t ring_run(void);

/* ring_waited - ticks that its thread was without a CPU until @now, from some time on. */
uint64_t ring_waited(const struct ring *ring, uint64_t now);

/* ring_refresh - the kernel adds up what threads that run right now have used. */
void ring_refresh(void);

/* watch_slowed - share of a window of so many ticks of CPU time that the profile took so far. */
double watch_slowed(const struct watch *watch, uint64_t ticks);

/* watch_mark - what the profile takes from here on is the window's. */
void watch_mark(struct watch *watch);

/* ring_forget - what the reader has not read is never read: its call. */
void ring_forget(void);

/* ring_forked - in the child: other threads' rings are free, and none holds anything. */
void ring_forked(void);

#endif
