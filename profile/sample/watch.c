/* SPDX-License-Identifier: MIT */
/* The probe functions. The first call after the window, or one that fills it, turns a probe off. */
#include "profile/sample/sample.h"

#include <cpuid.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "profile/estimate/estimate.h"

#define DEAREST	      100000 /* ticks to turn a probe off, at most: beyond, it waited for a CPU */
#define REFRESH	      16     /* threads whose clocks are read: each is a system call */
#define PATIENCE      5	     /* times the window: how long timed calls may go on */
#define VECTOR_STATES 0xe6   /* as the core's trampoline has them; they take 2,688 bytes */

static uint32_t vector_states;

void watch_start(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return;
	asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	vector_states = a & VECTOR_STATES;
}

bool watch_next(struct watch *watch, uint64_t state)
{
	return atomic_compare_exchange_strong(&watch->state, &state, (state | WATCH_LOW) + 1);
}

/* --- What changes vector registers, and saves them ------------------------------------------ */

struct vectors {
	_Alignas(64) uint64_t area[2752 / 8];
};

FI_FUNCTION static inline void save_vectors(struct vectors *vectors)
{
	if (!vector_states) {
		asm volatile("fxsave64 %0" : "=m"(*vectors));
		return;
	}
	for (int i = 64; i < 72; i++)
		vectors->area[i] = 0;
	asm volatile("xsave64 %0" : "+m"(*vectors) : "a"(vector_states), "d"(0));
}

FI_FUNCTION static inline void restore_vectors(const struct vectors *vectors)
{
	if (!vector_states)
		asm volatile("fxrstor64 %0" : : "m"(*vectors));
	else
		asm volatile("xrstor64 %0" : : "m"(*vectors), "a"(vector_states), "d"(0));
}

uint64_t watch_clock(void)
{
	unsigned most = REFRESH;
	double own, all;

	/* The process's clock lacks up to a scheduler's tick, ten windows, of each thread that
	 * runs: reading the thread's clock adds it. */
	for (struct ring *ring = ring_list(); (ring = ring_known(ring, &most)); ring = ring->next)
		ring_waited(ring, 0);
	own = clock_seconds(watch_common.own);
	all = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	return all > own ? (uint64_t)((all - own) * watch_common.per_second) : 0;
}

/* Ticks since the start of the window, by the program's clock. */
static uint64_t window_time(const struct watch *watch)
{
	uint64_t now = watch_clock();
	uint64_t began = load_relaxed(&watch->began);

	return now > began ? now - began : 0;
}

void watch_mark(struct watch *watch)
{
	store_relaxed(&watch->run, ring_run());
	store_relaxed(&watch->spent, load_relaxed(&watch_common.spent));
}

double watch_slowed(const struct watch *watch, uint64_t ticks)
{
	uint64_t run = ring_run() - load_relaxed(&watch->run);
	uint64_t spent = load_relaxed(&watch_common.spent) - load_relaxed(&watch->spent);

	return estimate_slowed((double)run, watch_common.price, (double)spent, (double)ticks);
}

static void note_slowed(struct watch *watch, uint64_t own)
{
	double share = watch_slowed(watch, own);

	store_relaxed(&watch->slowed, (uint64_t)(share * 4294967296.0));
}

static bool claim_state(struct watch *watch, uint64_t state, uint64_t why)
{
	return atomic_compare_exchange_strong(&watch->state, &state, state | why);
}

/* --- Ends of windows ------------------------------------------------------------------------ */

FI_FUNCTION static bool is_pending(const struct watch *watch)
{
	return PENDING_CALLS(atomic_load(&watch->pending)) > 0;
}

static void turn_probe_off(uint32_t id)
{
	uint64_t before = __builtin_ia32_rdtsc(), ticks;

	fi_deactivate(id);
	/* A thread that was preempted meanwhile adds DEAREST at most. */
	ticks = __builtin_ia32_rdtsc() - before;
	add_relaxed(&watch_common.off_ticks, ticks < DEAREST ? ticks : DEAREST);
	add_relaxed(&watch_common.offs, 1);
}

/* WATCH_LEAVES keeps the thread of epochs away until the probe is off. */
static void turn_off(struct watch *watch, uint32_t id, uint64_t state)
{
	if (!claim_state(watch, state, WATCH_LEAVES))
		return;
	frames_cut(watch);
	turn_probe_off(id);
	atomic_fetch_and(&watch->state, ~(uint64_t)(WATCH_WAITS | WATCH_LEAVES));
}

/* The probe stays on while calls are timed, for PATIENCE windows at most. */
static void close_window(struct watch *watch, uint32_t id, uint64_t state, uint64_t why,
			 uint64_t since)
{
	why |= WATCH_WAITS;
	store_relaxed(&watch->until, since * PATIENCE);
	if (claim_state(watch, state, why) && !is_pending(watch))
		turn_off(watch, id, state | why);
}

struct call {
	struct watch *watch;
	uint64_t state; /* as the call saw it: the next window may have been opened since */
	uint64_t now;
	uint64_t since; /* the start of the window */
	uint64_t burst; /* number of the burst that the call is in, or 0 */
	uint32_t id;
};

/*
 * False: the warm-up is over, unless the program was not running: then it lasts longer. The window
 * starts where the warm-up ended, not at this call: a window that starts by a call sees bursts too
 * often.
 */
static bool extend_warm_up(const struct call *call)
{
	struct watch *watch = call->watch;
	uint64_t warm = load_relaxed(&watch->warm);
	uint64_t wish = load_relaxed(&watch->wish);
	uint64_t own = window_time(watch);

	if (!warm)
		return false;
	if (own + warm / 64 < warm) {
		add_relaxed(&watch->from, call->since + warm - own);
		return true;
	}
	if (!atomic_compare_exchange_strong_explicit(&watch->warm, &warm, 0, memory_order_relaxed,
						     memory_order_relaxed))
		return false;
	own = own > warm ? own - warm : 0;
	add_relaxed(&watch->began, warm);
	store_relaxed(&watch->window, own < wish ? call->since + wish - own : 0);
	watch_mark(watch);
	return false;
}

/* The window is over, unless the program was not running: then it lasts longer. */
static bool end_window(const struct call *call)
{
	struct watch *watch = call->watch;
	uint64_t wish = load_relaxed(&watch->wish);
	uint64_t own = window_time(watch);

	if (own + wish / 64 < wish) {
		store_relaxed(&watch->window, call->since + wish - own);
		return false;
	}
	note_slowed(watch, own);
	close_window(watch, call->id, call->state, WATCH_OVER, call->since);
	return true;
}

/* A window of a whole epoch goes on where as many calls again can be afforded. */
static bool extend_window(const struct call *call)
{
	struct watch *watch = call->watch;
	uint64_t limit = load_relaxed(&watch->limit);

	if (load_relaxed(&watch->window) != WINDOW_WHOLE ||
	    ring_run() + limit > load_relaxed(&watch_common.affordable_calls))
		return false;
	store_relaxed(&watch->middle, call->since);
	store_relaxed(&watch->limit, 2 * limit);
	return true;
}

static bool end_full(const struct call *call)
{
	struct watch *watch = call->watch;
	uint64_t own;

	if (extend_window(call))
		return false;
	own = window_time(watch);
	note_slowed(watch, own);
	store_relaxed(&watch->filled, call->since);
	store_relaxed(&watch->waited, own < call->since ? call->since - own : 0);
	close_window(watch, call->id, call->state, WATCH_FULL, call->since);
	return true;
}

static bool end_waiting(const struct call *call)
{
	turn_off(call->watch, call->id, call->state);
	return true;
}

static bool end_exit(const struct call *call)
{
	struct watch *watch = call->watch;

	if (!claim_state(watch, call->state, WATCH_OVER | WATCH_LEAVES))
		return false;
	turn_probe_off(call->id);
	atomic_fetch_and(&watch->state, ~(uint64_t)WATCH_LEAVES);
	return true;
}

FI_FUNCTION static void note_ticks(struct ring *ring, uint64_t spent)
{
	if (ring)
		ring->spent += spent;
	add_relaxed(&watch_common.spent, spent);
}

FI_FUNCTION static void note_spent(uint64_t before)
{
	uint64_t spent = __builtin_ia32_rdtsc() - before;

	note_ticks(ring_here(), spent < DEAREST ? spent : DEAREST);
}

/* Run work that may change vectors and errno. */
FI_FUNCTION static __attribute__((noinline)) bool
call_with_vectors_saved(bool (*work)(const struct call *), const struct call *call)
{
	uint64_t before = __builtin_ia32_rdtsc();
	struct vectors vectors;
	bool result;
	int saved;

	save_vectors(&vectors);
	saved = errno;
	result = work(call);
	errno = saved;
	restore_vectors(&vectors);
	note_spent(before);
	return result;
}

static bool make_ring(const struct call *unused)
{
	(void)unused;
	return ring_make();
}

/* --- The probe function --------------------------------------------------------------------- */

FI_FUNCTION static struct ring *note_run(void)
{
	struct ring *ring = ring_here();

	if (!ring && call_with_vectors_saved(make_ring, NULL))
		ring = ring_here();
	if (ring)
		add_own(&ring->run, 1);
	return ring;
}

/* Frames that cannot be under way any more go, whether or not this call is counted. */
FI_FUNCTION static void clear_frames(struct ring *ring, const struct watch *watch, uint32_t id,
				     const struct fi_regs *regs)
{
	struct activation activation;

	if (ring && ring->depth && watch->group && frames_find_activation(&activation, id, regs))
		frames_clear(ring, &activation, watch->hooks);
}

/* The ticks that this takes are no time of the callers. */
FI_FUNCTION static void begin_time(struct ring *ring, const struct call *call,
				   const struct activation *activation)
{
	struct frame *frame = frames_enter(ring, call->id, call->state, activation);

	if (!frame)
		return;
	note_ticks(ring, __builtin_ia32_rdtsc() - call->now);
	frame->run = load_relaxed(&ring->run);
	frame->spent = ring->spent;
	frame->start = __builtin_ia32_rdtsc();
}

/* Note the caller of one of the first calls of a window, and time it. */
FI_FUNCTION static void sample_call(struct ring *ring, const struct call *call, uint64_t calls,
				    const struct fi_regs *regs)
{
	uint64_t skip = load_relaxed(&call->watch->skip);
	bool timed = call->watch->group && calls > skip && calls - skip <= watch_common.callers;
	bool noted = calls <= watch_common.callers;
	struct activation activation;

	if ((!timed && !noted) || !frames_find_activation(&activation, call->id, regs))
		return;
	if (noted)
		callers_add(call->id, activation.from, NOT_TIMED);
	if (timed)
		begin_time(ring, call, &activation);
}

FI_FUNCTION static void count_call(const struct call *call, const struct fi_regs *regs,
				   struct ring *ring)
{
	struct watch *watch = call->watch;
	uint64_t calls = add_relaxed(&watch->calls, 1) + 1 - load_relaxed(&watch->base);
	uint64_t limit = load_relaxed(&watch->limit);

	if (calls == 1)
		store_relaxed(&watch->first, call->since);
	if (calls == limit / 2)
		store_relaxed(&watch->middle, call->since);
	if (calls == limit)
		call_with_vectors_saved(end_full, call);
	else if (ring)
		sample_call(ring, call, calls, regs);
}

/* The window is over: the probe is on only until timed calls have ended. */
FI_FUNCTION static void end_wait(const struct call *call)
{
	uint64_t until = load_relaxed(&call->watch->until);

	if ((call->state & WATCH_LOW & ~WATCH_BITS) == WATCH_WAITS &&
	    (!is_pending(call->watch) || call->since > until))
		call_with_vectors_saved(end_waiting, call);
}

FI_FUNCTION static void take_call(struct call *call, const struct fi_regs *regs, struct ring *ring)
{
	struct watch *watch = call->watch;
	uint64_t from = load_acquire(&watch->from);

	call->since = call->now - from;
	clear_frames(ring, watch, call->id, regs);
	if ((call->state & WATCH_BITS) != WATCH_OPEN) {
		end_wait(call);
		return;
	}
	if (call->now < from ||
	    (load_relaxed(&watch->warm) && call_with_vectors_saved(extend_warm_up, call)))
		return;
	if (call->since >= load_relaxed(&watch->window) &&
	    call_with_vectors_saved(end_window, call))
		return;
	count_call(call, regs, ring);
}

/* In a burst an entry tells that the caller ran until now. */
FI_FUNCTION static void note_entry(struct ring *ring, const struct call *call,
				   const struct fi_regs *regs)
{
	struct activation activation;

	if (frames_find_activation(&activation, call->id, regs))
		burst_add_event(ring, call->burst, activation.from, call->now);
}

/* See ring_metered(). Ticks that were noted as spent meanwhile are taken off. */
FI_FUNCTION static void meter_call(struct ring *ring, const struct call *call, uint64_t spent)
{
	uint64_t ticks = __builtin_ia32_rdtsc() - call->now - (ring->spent - spent);

	if (ticks > DEAREST)
		return;
	add_own(&ring->metered, 1);
	add_own(&ring->meter, ticks);
}

FI_FUNCTION static void end_call(struct ring *ring, const struct call *call, uint64_t spent)
{
	if (call->burst)
		burst_end_event(ring, call->now);
	else if (!(load_relaxed(&ring->run) % METERED))
		meter_call(ring, call, spent);
}

FI_FUNCTION void watch_call(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	struct watch *watch = &watches[id];
	struct call call = { .watch = watch, .id = id, .burst = burst_number() };
	struct ring *ring;
	uint64_t spent;

	(void)site;
	(void)data;
	call.state = load_acquire(&watch->state);
	call.now = __builtin_ia32_rdtsc();
	ring = note_run();
	if (call.burst && ring) {
		call.now = burst_clock();
		note_entry(ring, &call, regs);
	}
	spent = ring ? ring->spent : 0;
	take_call(&call, regs, ring);
	if (ring)
		end_call(ring, &call, spent);
}

/* --- Exits ---------------------------------------------------------------------------------- */

/* The time of a call, without the ticks that the profile took, and without waits for a CPU. */
FI_FUNCTION static void take_time(struct ring *ring, const struct frame *frame, uint64_t now)
{
	struct watch *watch = &watches[frame->id];
	uint64_t run = load_relaxed(&ring->run) - frame->run;
	uint64_t taken =
		ring->spent - frame->spent + run * watch_common.whole_price + watch_common.pair;
	int64_t wall = (int64_t)(now - frame->start - taken);
	int64_t time = wall, waited;

	if (frames_is_overlong(watch, wall)) {
		add_relaxed(&watch->cut, 1);
		return;
	}
	if (wall > (int64_t)watch_common.recent) {
		waited = (int64_t)(frames_read_waited(ring, now) - frame->waited);
		time -= waited < 0 ? 0 : waited < wall ? waited : wall;
	}
	add_relaxed(&watch->timed, 1);
	add_relaxed(&watch->time, time);
	add_relaxed(&watch->wall, wall);
	add_relaxed(&watch->taken, taken);
	callers_add(frame->id, frame->from, time);
	note_ticks(ring, __builtin_ia32_rdtsc() - now);
}

FI_FUNCTION static bool is_idle(const struct group *group)
{
	for (uint32_t id = group->entries; id != NO_PROBE; id = watches[id].next) {
		const struct watch *watch = &watches[id];

		if ((atomic_load(&watch->state) & WATCH_BITS) == WATCH_OPEN || is_pending(watch))
			return false;
	}
	return true;
}

FI_FUNCTION void watch_exit(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	uint64_t now = __builtin_ia32_rdtsc();
	struct watch *watch = &watches[id];
	struct call call = { .watch = watch, .id = id, .now = now, .burst = burst_number() };
	struct ring *ring = ring_here();
	uint64_t spent = ring ? ring->spent : 0;
	struct frame frame;
	struct activation activation;

	(void)data;
	call.state = atomic_load(&watch->state);
	if (call.burst && ring) {
		call.now = now = burst_clock();
		burst_add_event(ring, call.burst, (uint64_t)site, now);
	}
	if (ring && ring->depth && frames_find_activation(&activation, watch->entry, regs) &&
	    frames_leave(ring, &activation, watches[watch->entry].hooks, &frame))
		take_time(ring, &frame, now);
	note_run();
	if (!call.burst && (call.state & WATCH_BITS) == WATCH_OPEN && is_idle(watch->group))
		call_with_vectors_saved(end_exit, &call);
	if (ring)
		end_call(ring, &call, spent);
}
