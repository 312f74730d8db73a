/* SPDX-License-Identifier: MIT */
/* What threads of the program, which run the probe functions, share with the thread of epochs. */
#ifndef PROFILE_SAMPLE_SAMPLE_H
#define PROFILE_SAMPLE_SAMPLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "probes/include/fastinst.h"

#define NEVER UINT64_MAX

/* Atomic accesses by the order that they have. */
#define load_relaxed(at)	 atomic_load_explicit(at, memory_order_relaxed)
#define load_acquire(at)	 atomic_load_explicit(at, memory_order_acquire)
#define store_relaxed(at, value) atomic_store_explicit(at, value, memory_order_relaxed)
#define store_release(at, value) atomic_store_explicit(at, value, memory_order_release)
#define add_relaxed(at, value)	 atomic_fetch_add_explicit(at, value, memory_order_relaxed)
#define swap_relaxed(at, value)	 atomic_exchange_explicit(at, value, memory_order_relaxed)

/* --- watch.c: the probe functions, and the window of each probe ----------------------------- */

/* The low bits of watch.state; above them a number that each window changes. */
enum {
	WATCH_OPEN = 0,
	WATCH_OVER = 1, /* a call came after the window's end: the probe turned itself off */
	WATCH_FULL = 2, /* the window was full of calls: the probe turned itself off */
	WATCH_BITS = 3,
	WATCH_WAITS = 4,  /* over, but on until timed calls have ended */
	WATCH_LEAVES = 8, /* over, and being turned off */
	WATCH_LOW = 15,
};

/*
 * An entry. An exit has a state, open or over, group, next and entry only. The members that every
 * call reads come first: most functions are called so seldom that they are not in the cache.
 */
struct watch {
	_Alignas(64) _Atomic uint64_t state;
	struct group *group;	 /* NULL: it has no exits */
	_Atomic uint64_t from;	 /* start of the window, in ticks; NEVER: none is open */
	_Atomic uint64_t warm;	 /* ticks of the program's own time before it; 0: it has begun */
	_Atomic uint64_t window; /* ticks from the start in which no clock need be read */
	_Atomic uint64_t calls;	 /* counted, ever */
	_Atomic uint64_t base;	 /* calls that were counted before the window */
	_Atomic uint64_t limit;	 /* most calls in the window */

	uint32_t next;		  /* next entry, or exit, of the group; NO_PROBE */
	uint32_t entry;		  /* of an exit: its entry */
	bool hooks;		  /* see frames_find_activation() */
	_Atomic uint64_t pending; /* timed calls under way, and how often those were cut */
	_Atomic uint64_t skip;	  /* first calls of a window that are not timed: caches are cold */
	_Atomic uint64_t wish;	  /* wanted length of the window, in ticks of the program's clock */
	_Atomic uint64_t began;	  /* start of the window, by the program's clock */
	_Atomic uint64_t first;	  /* ticks from the start to the first call */
	_Atomic uint64_t middle;  /* ticks from the start until half of the calls were counted */
	_Atomic uint64_t filled;  /* ticks from the start until the window was full */
	_Atomic uint64_t waited;  /* of these, ticks without a CPU */
	_Atomic uint64_t run;	  /* ring_run() at the start of the window */
	_Atomic uint64_t spent;	  /* watch_common.spent at the start of the window */
	_Atomic uint64_t slowed;  /* share of the window that probe functions took, / 2^32 */
	_Atomic uint64_t until;	  /* ticks from the start until timed calls are cut */
	_Atomic uint64_t timed;	  /* timed calls that ended; their ticks, with a CPU and in all */
	_Atomic int64_t time, wall;
	_Atomic uint64_t taken; /* ticks of the profile that were taken off these */
	_Atomic uint64_t torn,
		cut; /* timed calls without an exit, and those that went on for too long */
};

/* The entries and the exits of a function: several where functions are inlined in it. */
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
	double warm;		    /* ticks of these that ring_metered() sees; 0: not known */
	uint64_t whole_price;	    /* price, as a number for code without vectors */
	uint64_t pair;		    /* ticks of the two probes within the time of a timed call */
	uint64_t between;	    /* ticks of the probes from one event of a burst to the next */
	uint64_t ticks_per_4s;	    /* ticks in 2^32 ns */
	uint64_t recent;	    /* ticks until a thread's clock is read again */
	uint64_t overlong;	    /* see frames_is_overlong() */
	uint32_t callers;	    /* calls of a window whose callers are counted */
	_Atomic uint64_t burst;	    /* number of the burst under way, or 0. See burst_start() */
	_Atomic uint64_t burst_end; /* ticks; NEVER: it goes on */
	_Atomic uint64_t affordable_calls; /* ring_run() at which windows of a whole epoch end */
	_Atomic uint64_t spent;		   /* ticks in turning off */
	_Atomic uint64_t off_ticks;	   /* of them, in the library */
	_Atomic uint64_t offs;
};

extern struct watch watches[]; /* by probe id */
extern struct watch_common watch_common;

/* watch_next - end the window: no call counts until the next. False: the state has changed. */
bool watch_next(struct watch *watch, uint64_t state);

/* watch_start - learn which vectors there are. */
void watch_start(void);

/* watch_clock - CPU time of the program's threads, in ticks: windows are to leave waits out. */
uint64_t watch_clock(void);

/* watch_slowed - share of the window that the profile took. @ticks: of CPU time in the window */
double watch_slowed(const struct watch *watch, uint64_t ticks);

/* watch_mark - start to note what the profile takes in the window. */
void watch_mark(struct watch *watch);

/* watch_call, watch_exit - the probe functions of entries and exits. Change no vector register. */
fi_function watch_call, watch_exit;

/* --- ring.c: what each thread notes --------------------------------------------------------- */

/* A timed call under way. */
struct frame {
	uint64_t slot;	   /* address of its return address on the stack */
	uint64_t function; /* id of its entry, or its address: see frames_find_activation() */
	uint64_t from;
	uint64_t start, waited; /* ticks; ticks of the thread without a CPU */
	uint64_t run, spent;	/* of the ring, at its start */
	uint32_t id;
	uint32_t cuts;
};

#define FRAMES 256u

#define BURST_SLOTS 512u /* a power of two */

/* Where the thread spent its time in a burst: see burst_start(). */
struct burst {
	_Atomic uint64_t start;	 /* of the burst, in ticks; 0: the thread was not known then */
	_Atomic uint64_t waited; /* ticks without a CPU until then, from some time on */
	_Atomic uint64_t number; /* of the burst that the members below belong to */
	_Atomic uint64_t done;	 /* of the last burst whose end the thread has seen */
	_Atomic uint64_t last;	 /* ticks at its last event */
	_Atomic uint64_t idle;	 /* ticks without a CPU until then */
	_Atomic uint64_t used;	 /* ticks with a CPU, with those of probes */
	_Atomic uint64_t beyond; /* ticks at addresses that found no room */
	uint64_t polled;	 /* ticks with a CPU at the last burst_poll() */
	struct {
		_Atomic uint64_t at, ticks;
	} slot[BURST_SLOTS];
};

struct ring {
	_Atomic uint64_t run;	  /* calls of the probe function */
	_Atomic uint64_t metered; /* calls whose ticks are in meter: see ring_metered() */
	_Atomic uint64_t meter;
	_Atomic uint32_t taken;
	_Atomic int32_t thread; /* its number in the kernel */
	uint64_t spent;		/* ticks that the profile took in the thread, without calls */
	uint64_t looked;	/* when the thread's clock was read, in ticks */
	uint64_t waited;	/* ticks without a CPU until then, from some time on */
	uint32_t depth;		/* frames; the last one is the innermost */
	struct burst burst;
	struct ring *next;
	struct frame frame[FRAMES];
};

/* add_own - by the thread of the ring alone. A signal handler's may get lost: no harm. */
static inline FI_FUNCTION void add_own(_Atomic uint64_t *sum, uint64_t value)
{
	store_relaxed(sum, load_relaxed(sum) + value);
}

/* ring_here - the calling thread's ring, or NULL. ring_make - a new one, or NULL. */
struct ring *ring_here(void) FI_FUNCTION;
struct ring *ring_make(void);

int ring_start(void);
struct ring *ring_list(void);

/* ring_run - calls of the probe function by all threads. */
uint64_t ring_run(void);

/* ring_waited - ticks that its thread was without a CPU until @now, from some time on. */
uint64_t ring_waited(const struct ring *ring, uint64_t now);

/* ring_known - from @ring on, the next of another thread. NULL after so many. */
struct ring *ring_known(struct ring *ring, unsigned *most);

/* ring_reset_in_child - free the rings of the parent's threads, and drop all frames. */
void ring_reset_in_child(void);

/*
 * Of every METERED calls of the probe function one is metered: most calls find caches cold, and
 * cost more than the price that is measured at start.
 *
 * ring_metered - ticks inside of it per metered call; 0: none was. ring_price - ticks of a call:
 * the price at start, times the mean of metered calls over that at start, but no less.
 */
#define METERED 16
double ring_metered(void);
double ring_price(void);

/* --- ring.c: calls that are timed, from entry to exit: a stack per thread ----------------- */

/*
 * An exit belongs to an entry of the same function whose return address is in the same slot of the
 * stack: no two calls under way share that. A call may leave without an exit (tail call,
 * exception, longjmp): the next entry or exit of the thread at that slot or above it drops its
 * frame, as torn. The probe of an entry is turned off only when no call is timed, or all timed
 * calls have been cut: so no exit of a later call can be taken for one of them.
 *
 * With -finstrument-functions a probe is a call of a hook, which gets the address of the function;
 * the slot of the return address is searched for above the stack pointer.
 */

/* A call as a probe sees it: its function, the slot of its return address, and that. */
struct activation {
	uint64_t function, slot, from;
};

/* frames_find_activation - the call at a probe of that entry. False: no return address is found. */
bool frames_find_activation(struct activation *activation, uint32_t entry,
			    const struct fi_regs *regs) FI_FUNCTION;

/* frames_clear - drop frames that cannot be under way any more when that call begins. */
void frames_clear(struct ring *ring, const struct activation *activation, bool hooks) FI_FUNCTION;

/* frames_enter - push a frame whose time is yet to start. NULL: no room, or another state. */
struct frame *frames_enter(struct ring *ring, uint32_t id, uint64_t state,
			   const struct activation *activation) FI_FUNCTION;

/* frames_leave - a call ends. True: it was timed, and *frame has it. */
bool frames_leave(struct ring *ring, const struct activation *activation, bool hooks,
		  struct frame *frame) FI_FUNCTION;

/* frames_cut - stop timing the calls that are under way. */
void frames_cut(struct watch *watch) FI_FUNCTION;

/* frames_read_waited - read the calling thread's clock: ticks without a CPU until @now. */
uint64_t frames_read_waited(struct ring *ring, uint64_t now) FI_FUNCTION;

/*
 * frames_is_overlong - whether a call of a function that has windows took too long: then the
 * machine was stopped in it, or many threads were, whose clocks run on.
 */
bool frames_is_overlong(const struct watch *watch, int64_t wall) FI_FUNCTION;

/* frames_drop - drop all frames of a thread that ends. */
void frames_drop(struct ring *ring);

/* --- burst.c -------------------------------------------------------------------------------- */

/*
 * Burst samples: where the program spends its time, seen by turning all its probes on for a
 * moment.
 *
 * An event is an entry or an exit. Until an exit the thread was in the function of the exit, until
 * an entry in the caller: so the next event tells where the time since the last one went.
 *
 * 1. The thread of epochs turns all probes on that are off, and notes each thread's clock.
 * 2. It gives the burst a number. Threads add up ticks by address.
 * 3. It sets the burst's end. The first event after it tells where the thread was until then.
 * 4. When all threads that run have had one, or some patience is over, the number is 0 again, and
 * the thread of epochs reads the ticks.
 */

/* burst_number - number of the burst under way, or 0. */
static inline uint64_t burst_number(void)
{
	/* Pairs with the release of burst_start(): the clocks that it noted are there. */
	return load_acquire(&watch_common.burst);
}

/* burst_clock - ticks after all loads: who waits for memory is the function that loads. */
static inline FI_FUNCTION uint64_t burst_clock(void)
{
	asm volatile("lfence" : : : "memory");
	return __builtin_ia32_rdtsc();
}

/*
 * burst_add_event - until now the thread was at that address, but for ticks of its last probe, in
 * the burst of that number. burst_end_event - the event is over.
 */
void burst_add_event(struct ring *ring, uint64_t number, uint64_t at, uint64_t now) FI_FUNCTION;
void burst_end_event(struct ring *ring, uint64_t now) FI_FUNCTION;

/* The thread of epochs calls these. */

/* burst_start - note clocks, and step 2. burst_end - step 3. burst_close - step 4. */
void burst_start(void);
void burst_end(void);
void burst_close(void);

/* burst_poll - has a thread that ran since the last poll had no event after the end yet? */
bool burst_poll(void);

/* burst_unknown_ticks - CPU ticks before the end that no event has given an address. */
uint64_t burst_unknown_ticks(void);

/* --- exits.c, with the lock of epochs ------------------------------------------------------- */

/*
 * An exit is on while an entry of its function is on, and turns itself off after that.
 *
 * exits_find - find the exits of new entries among probes from @first on. How many functions have
 * some, or -ENOMEM.
 */
long exits_find(const uint32_t *entries, size_t n, uint32_t first);

/* exits_turn_on - those of entries, before the entries. How many were off, or a negative errno. */
long exits_turn_on(const uint32_t *entries, size_t n);

/*
 * exits_turn_all_on - all exits that are off. exits_turn_back_off - those that were not turned on
 * with their entries since. exits_turn_all_off - all. 0 or a negative errno.
 */
int exits_turn_all_on(void);
int exits_turn_back_off(void);
int exits_turn_all_off(void);

void exits_forget(void); /* unlink all exits from entries */

/* exits_reset_in_child - no exit is being turned off in the child. */
void exits_reset_in_child(void);

/* --- callers.c: who calls whom, as samples of calls tell it --------------------------------- */

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

/* callers_list - all counts; some may be empty. callers_lost - calls that found no room. */
const struct caller_count *callers_list(uint32_t *n);
uint64_t callers_lost(void);

/* callers_forget - drop all counts. No thread may be in a probe function. */
void callers_forget(void);

/* --- price.c: what a call of the probe function costs here, by a function of its own -------- */

/* price_measure - set the prices of watch_common, in about a millisecond. */
void price_measure(void);

/* price_is_own - whether a site is in the function that prices are measured by. */
bool price_is_own(const void *site);

#endif
