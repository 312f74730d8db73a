/* SPDX-License-Identifier: MIT */
/*
 * What executors, which run the probe functions, share with the thread of epochs.
 */
#ifndef PROBES_PROFILE_SAMPLE_SAMPLE_H
#define PROBES_PROFILE_SAMPLE_SAMPLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "probes/include/fastinst.h"
#include "probes/profile/sample/relaxed.h"

#define NEVER UINT64_MAX

/* --- watch.c: the probe functions, and the window of each probe ------------------------------- */

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
	bool hooks;		  /* see frames_find_activation() */
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
	clockid_t own;		    /* clock of the thread of epochs */
	double per_second;	    /* ticks */
	double price;		    /* ticks of a call of the probe function, caches warm */
	double warm;		    /* of them, those that its meter sees; 0: not known */
	uint64_t whole_price;	    /* the same */
	uint64_t pair;		    /* ticks of the probes of a call that is timed, in its time */
	uint64_t between;	    /* ticks of the probes from one event of a burst to the next */
	uint64_t ticks_per_4s;	    /* of 2^32 ns, to be exact */
	uint64_t recent;	    /* ticks for which a look at a thread's clock holds */
	uint64_t overlong;	    /* see frames_is_overlong() */
	uint32_t callers;	    /* of calls in a window whose callers are kept */
	_Atomic uint64_t burst;	    /* its number; 0: none is under way. See burst_start() */
	_Atomic uint64_t burst_end; /* ticks; NEVER: it goes on */
	_Atomic uint64_t
		affordable_calls;   /* ring_run() until which windows of a whole epoch go on */
	_Atomic uint64_t spent;	    /* ticks in turning off */
	_Atomic uint64_t off_ticks; /* of them, in the library */
	_Atomic uint64_t offs;
};

extern struct watch watches[]; /* by probe id */
extern struct watch_common watch_common;

/*
 * watch_next - nothing is counted from here on, until the next window starts. False: the state is
 * another by now.
 */
bool watch_next(struct watch *watch, uint64_t state);

/* watch_start - learn which vectors there are. */
void watch_start(void);

/*
 * watch_clock - CPU time of the program's threads, in ticks. Between a window's start and its end
 * the program may wait for a CPU, often just because the thread of epochs has taken it.
 */
uint64_t watch_clock(void);

/* watch_slowed - share of a window of so many ticks of CPU time that the profile took so far. */
double watch_slowed(const struct watch *watch, uint64_t ticks);

/* watch_mark - what the profile takes from here on is the window's. */
void watch_mark(struct watch *watch);

/* watch_call, watch_exit - the probe functions of entries and exits. Change no vector register. */
fi_function watch_call, watch_exit;

/* --- ring.c: what each thread notes ----------------------------------------------------------- */

/* A call that is timed. */
struct frame {
	uint64_t slot;	   /* where its return address is */
	uint64_t function; /* id of its entry, or its address: see frames_find_activation() */
	uint64_t from;
	uint64_t start, waited; /* ticks; of the thread, without a CPU */
	uint64_t run, spent;	/* by the thread before it */
	uint32_t id;
	uint32_t cuts;
};

#define FRAMES 256u

#define BURST_SLOTS 512u /* a power of two */

/* What the thread did in a burst: see burst_start(). */
struct burst {
	_Atomic uint64_t start;	 /* of the burst; 0: the thread was not known by then */
	_Atomic uint64_t waited; /* ticks without a CPU until then, from some time on */
	_Atomic uint64_t number; /* of the burst that the rest is of */
	_Atomic uint64_t done;	 /* of the last whose end the thread has seen */
	_Atomic uint64_t last;	 /* until when it is known what the thread did */
	_Atomic uint64_t idle;	 /* ticks without a CPU until then */
	_Atomic uint64_t used;	 /* with a CPU, those of probes among them */
	_Atomic uint64_t beyond; /* at addresses that found no room */
	uint64_t polled;	 /* ticks with a CPU, when it was last asked for them */
	struct {
		_Atomic uint64_t at, ticks;
	} slot[BURST_SLOTS];
};

struct ring {
	_Atomic uint64_t run;	  /* calls of the probe function */
	_Atomic uint64_t metered; /* of them, those that have a part in meter: see ring_metered() */
	_Atomic uint64_t meter;
	_Atomic uint32_t taken;
	_Atomic int32_t thread; /* its number in the kernel */
	uint64_t spent;		/* ticks of the thread in turning off */
	uint64_t looked;	/* when the thread's clock was read, in ticks */
	uint64_t waited;	/* ticks without a CPU until then, from some time on */
	uint32_t depth;		/* frames; the last one is the innermost */
	struct burst burst;
	struct ring *next;
	struct frame frame[FRAMES];
};

/*
 * add_own - by the thread of the ring. A signal handler of its may come between, whose addition is
 * lost then, which does no harm.
 */
static inline FI_FUNCTION void add_own(_Atomic uint64_t *sum, uint64_t value)
{
	store_relaxed(sum, load_relaxed(sum) + value);
}

/* ring_here - the calling thread's, or NULL. ring_make - a new one, if there is memory. */
struct ring *ring_here(void) FI_FUNCTION;
struct ring *ring_make(void);

int ring_start(void);
struct ring *ring_list(void);

/* ring_run - calls of the probe function by all threads. */
uint64_t ring_run(void);

/* ring_waited - ticks that its thread was without a CPU until @now, from some time on. */
uint64_t ring_waited(const struct ring *ring, uint64_t now);

/* ring_refresh - the kernel adds up what threads that run right now have used. */
void ring_refresh(void);

/* ring_reset_in_child - in the child: other threads' rings are free, and none holds anything. */
void ring_reset_in_child(void);

/*
 * Each thread reads its clock at the end of one call of the probe function in METERED, too: most
 * find caches cold, so they cost more than the price that is measured at start.
 *
 * ring_metered - ticks inside of the probe function per metered call of the thread; 0: none was.
 * ring_price - ticks of a call: the price that was measured at start, times what calls took since
 * then over what they took when it was measured. No less than that price.
 */
#define METERED 16
double ring_metered(const struct ring *ring);
double ring_price(void);

/* --- frames.c: calls that are timed, from entry to exit: a stack per thread ------------------- */

/*
 * An exit belongs to an entry if it has the same function, and its return address is in the same
 * slot: no two calls that are under way share that. Of an entry whose exit never comes (tail call,
 * exception, longjmp) nothing is told but that there was one: the next entry or exit of the thread
 * at that slot or above it drops it. Between such an entry and the next call of the function the
 * probe of the entry is never off: it is turned off only when no call of the function is timed, or
 * all that are have been cut. So no exit of a later call, which was not seen to begin, can be taken
 * for it.
 *
 * With -finstrument-functions a probe is a call of a hook in the function, and the function is told
 * by its address; its return address is looked for above the stack pointer.
 */

/* What a probe is at: the function, the slot of its return address, and the address. */
struct activation {
	uint64_t function, slot, from;
};

/* frames_find_activation - false: the return address was not found. @entry: the probe of the
 * function's entry
 */
bool frames_find_activation(struct activation *activation, uint32_t entry,
			    const struct fi_regs *regs) FI_FUNCTION;

/* frames_clear - what cannot be under way any more when a function is entered there. */
void frames_clear(struct ring *ring, const struct activation *activation, bool hooks) FI_FUNCTION;

/*
 * frames_enter - a call begins, if the state of its watch is still the one that it saw, and there
 * is room: then depth is one more. frames_start - from here on its time is taken.
 */
void frames_enter(struct ring *ring, uint32_t id, uint64_t state,
		  const struct activation *activation) FI_FUNCTION;

void frames_start(struct ring *ring) FI_FUNCTION;

/* frames_leave - one ends, that was entered or not. True: it was, and frame has it. */
bool frames_leave(struct ring *ring, const struct activation *activation, bool hooks,
		  struct frame *frame) FI_FUNCTION;

/* frames_cut - no call of it that is under way is timed any more. */
void frames_cut(struct watch *watch) FI_FUNCTION;

/* frames_without_cpu - ticks until now that are not in what was used, from some time on. */
uint64_t frames_without_cpu(const struct timespec *used, uint64_t now) FI_FUNCTION;

/* frames_read_waited - ticks that the calling thread was without a CPU, from some time on until
 * now. */
uint64_t frames_read_waited(struct ring *ring, uint64_t now) FI_FUNCTION;

/*
 * frames_is_overlong - a function that is called so often that it has windows took so long for one
 * call: so the machine was stopped in it, or many threads were. The clocks of threads run on then.
 */
bool frames_is_overlong(const struct watch *watch, int64_t wall) FI_FUNCTION;

/* frames_drop - all of a thread that ends. */
void frames_drop(struct ring *ring);

/* --- burst.c --------------------------------------------------------------------------------- */

/*
 * What the program does, seen by turning all its probes on for a moment.
 *
 * An event tells in which function the thread was until then: an exit in its own, an entry in the
 * caller. So what a thread does from one event to the next is known at the next one, also of
 * functions without exits, and without knowing how the thread came there.
 *
 * 1. The thread of epochs notes each thread's clock, and turns all probes on that are off.
 * 2. It gives the burst a number. Threads note how long they were where.
 * 3. It sets the burst's end. A thread's first event behind it tells what the thread did until it,
 *    so a long stretch without events is seen as well as a short one.
 * 4. When all threads that run have had one, or are not waited for any longer, the number is 0
 *    again, and the thread of epochs reads what was noted.
 */

/* burst_number - of the one under way, or 0. */
static inline uint64_t burst_number(void)
{
	/* Pairs with the release of burst_start(): the clocks that it noted are there. */
	return load_acquire(&watch_common.burst);
}

/*
 * burst_clock - when all loads of the program have come: a function that waits for memory has the
 * time of it, and not the next one.
 */
static inline FI_FUNCTION uint64_t burst_clock(void)
{
	asm volatile("lfence" : : : "memory");
	return __builtin_ia32_rdtsc();
}

/*
 * burst_add_event - until now the thread was at that address, but for what its last probe took.
 * burst_end_event - the event is over.
 * @number: of the burst
 */
void burst_add_event(struct ring *ring, uint64_t number, uint64_t at, uint64_t now) FI_FUNCTION;
void burst_end_event(struct ring *ring, uint64_t now) FI_FUNCTION;

/* The thread of epochs calls these. */

/* burst_start - step 1's clocks, and step 2. burst_end - step 3. burst_close - step 4. */
void burst_start(void);
void burst_end(void);
void burst_close(void);

/* burst_poll - whether a thread that has used a CPU since the last call has had no event yet. */
bool burst_poll(void);

/* burst_unknown_ticks - ticks of all threads until the end, of which none told. */
uint64_t burst_unknown_ticks(void);

/* --- exits.c, with the lock of epochs --------------------------------------------------------- */

/*
 * Which exits belong to which entries. An exit is on while an entry of its function is, and turns
 * itself off behind that.
 *
 * exits_find - finds the exits of entries that came.
 * @first: probes below that were looked at before
 *
 * Returns how many functions have some, or -ENOMEM.
 */
long exits_find(const uint32_t *entries, size_t n, uint32_t first);

/* exits_turn_on - those of entries, before these are turned on. How many were off; a negative
 * errno. */
long exits_turn_on(const uint32_t *entries, size_t n);

/*
 * exits_turn_all_on - all that are off, also where the entry is. exits_turn_back_off - all that
 * were not turned on with their entries since. 0 or a negative errno.
 */
int exits_turn_all_on(void);
int exits_turn_back_off(void);

/* exits_turn_all_off - all of them. 0 or a negative errno. exits_forget - there are none. */
int exits_turn_all_off(void);
void exits_forget(void);

/* exits_reset_in_child - in the child: none is being turned off. */
void exits_reset_in_child(void);

/* --- callers.c: who calls whom, as samples of calls tell it ----------------------------------- */

struct caller_count {
	uint64_t from; /* the return address */
	uint32_t id;
	uint32_t slot;
	_Atomic uint64_t calls, timed;
	_Atomic int64_t time; /* ticks */
};

#define NOT_TIMED INT64_MIN

/* callers_add - one more call; @time: the ticks that it took, or NOT_TIMED: it begins. */
void callers_add(uint32_t id, uint64_t from, int64_t time) FI_FUNCTION;

/* callers_list - those that there are. callers_lost - calls that found no room. */
const struct caller_count *callers_list(uint32_t *n);
uint64_t callers_lost(void);

/* callers_forget - none has called. No thread may be in a probe function. */
void callers_forget(void);

/* --- price.c: what a call of the probe function costs here, by a function of its own ---------- */

/* price_measure - sets the prices of watch_common; takes about a millisecond. */
void price_measure(void);

/* price_is_own - whether a site is one of the functions that are measured by. */
bool price_is_own(const void *site);

#endif
