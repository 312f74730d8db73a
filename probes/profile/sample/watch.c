/* SPDX-License-Identifier: MIT */
/*
 * A call that comes within the window is counted. The first one behind it turns the probe off; so
 * does one that is one too many.
 */
#include "probes/profile/sample/watch.h"

#include <cpuid.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "probes/profile/estimate/estimate.h"

#define WITHOUT_VECTORS __attribute__((target("general-regs-only")))
#define DEAREST		100000 /* ticks of a turning off; what took longer waited for a CPU */
#define RESUME		30e-6  /* seconds */
#define VECTOR_STATES	0xe6   /* as the core's trampoline has them; they take 2,688 bytes */

struct watch *watches;
struct watch_common watch_common;
static uint32_t vector_states;

static uint32_t states_here(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return a & VECTOR_STATES;
}

int watch_start(void)
{
	void *all = mmap(NULL, FI_PROBES_MAX * sizeof(struct watch), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (all == MAP_FAILED)
		return -ENOMEM;
	watches = all;
	vector_states = states_here();
	return 0;
}

/* --- What changes vector registers, and saves them ------------------------------------------- */

struct vectors {
	_Alignas(64) uint64_t area[2752 / 8];
};

WITHOUT_VECTORS static inline void save(struct vectors *vectors)
{
	if (!vector_states) {
		asm volatile("fxsave64 %0" : "=m"(*vectors));
		return;
	}
	for (int i = 64; i < 72; i++)
		vectors->area[i] = 0;
	asm volatile("xsave64 %0" : "+m"(*vectors) : "a"(vector_states), "d"(0));
}

WITHOUT_VECTORS static inline void restore(const struct vectors *vectors)
{
	if (!vector_states)
		asm volatile("fxrstor64 %0" : : "m"(*vectors));
	else
		asm volatile("xrstor64 %0" : : "m"(*vectors), "a"(vector_states), "d"(0));
}

static double seconds(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

uint64_t watch_clock(void)
{
	double own, all;

	ring_refresh();
	own = seconds(watch_common.own);
	all = seconds(CLOCK_PROCESS_CPUTIME_ID);
	return all > own ? (uint64_t)((all - own) * watch_common.per_second) : 0;
}

/* By its own clock. */
static uint64_t passed(const struct watch *watch)
{
	uint64_t now = watch_clock();
	uint64_t began = atomic_load_explicit(&watch->began, memory_order_relaxed);

	return now > began ? now - began : 0;
}

void watch_mark(struct watch *watch)
{
	atomic_store_explicit(&watch->run, ring_run(), memory_order_relaxed);
	atomic_store_explicit(&watch->spent,
			      atomic_load_explicit(&watch_common.spent, memory_order_relaxed),
			      memory_order_relaxed);
}

double watch_slowed(const struct watch *watch, uint64_t ticks)
{
	uint64_t run = ring_run() - atomic_load_explicit(&watch->run, memory_order_relaxed);
	uint64_t spent = atomic_load_explicit(&watch_common.spent, memory_order_relaxed) -
			 atomic_load_explicit(&watch->spent, memory_order_relaxed);

	return estimate_slowed((double)run, watch_common.price, (double)spent, (double)ticks);
}

static void note_slowed(struct watch *watch, uint64_t own)
{
	double share = watch_slowed(watch, own);

	atomic_store_explicit(&watch->slowed, (uint64_t)(share * 4294967296.0),
			      memory_order_relaxed);
}

static bool claim(struct watch *watch, uint64_t state, uint64_t why)
{
	return atomic_compare_exchange_strong_explicit(&watch->state, &state, state | why,
						       memory_order_acq_rel, memory_order_relaxed);
}

/*
 * The time before the window is up, unless the program was not running: then it lasts longer. No
 * call came since it was up, so the window starts there and not here: what starts by a call sees
 * bursts too often.
 */
static bool warm_up(struct watch *watch, uint64_t warm, uint64_t since)
{
	uint64_t wish = atomic_load_explicit(&watch->wish, memory_order_relaxed);
	uint64_t own = passed(watch);

	if (own + warm / 64 < warm) {
		atomic_fetch_add_explicit(&watch->from, since + warm - own, memory_order_relaxed);
		return false;
	}
	if (!atomic_compare_exchange_strong_explicit(&watch->warm, &warm, 0, memory_order_relaxed,
						     memory_order_relaxed))
		return true;
	own = own > warm ? own - warm : 0;
	atomic_fetch_add_explicit(&watch->began, warm, memory_order_relaxed);
	atomic_store_explicit(&watch->window, own < wish ? since + wish - own : 0,
			      memory_order_relaxed);
	watch_mark(watch);
	return true;
}

/* The time is up, unless the program was not running: then the window lasts longer. */
static bool end_window(struct watch *watch, uint32_t id, uint64_t state, uint64_t since)
{
	uint64_t wish = atomic_load_explicit(&watch->wish, memory_order_relaxed);
	uint64_t own = passed(watch);

	if (own + wish / 64 < wish) {
		atomic_store_explicit(&watch->window, since + wish - own, memory_order_relaxed);
		return false;
	}
	note_slowed(watch, own);
	if (claim(watch, state, WATCH_OVER))
		fi_deactivate(id);
	return true;
}

static void end_full(struct watch *watch, uint32_t id, uint64_t state, uint64_t since)
{
	uint64_t own = passed(watch);

	note_slowed(watch, own);
	atomic_store_explicit(&watch->filled, since, memory_order_relaxed);
	atomic_store_explicit(&watch->waited, own < since ? since - own : 0, memory_order_relaxed);
	if (claim(watch, state, WATCH_FULL))
		fi_deactivate(id);
}

WITHOUT_VECTORS static void note_spent(uint64_t before)
{
	uint64_t spent = __builtin_ia32_rdtsc() - before;

	atomic_fetch_add_explicit(&watch_common.spent, spent < DEAREST ? spent : DEAREST,
				  memory_order_relaxed);
}

/*
 * The state that this call saw: the thread of epochs may have opened the next window since. True:
 * this call is not to be counted.
 */
WITHOUT_VECTORS static __attribute__((noinline)) bool
stop(struct watch *watch, uint32_t id, uint64_t state, uint64_t since, bool full)
{
	uint64_t before = __builtin_ia32_rdtsc();
	struct vectors vectors;
	bool over = true;
	int saved;

	save(&vectors);
	saved = errno;
	if (full)
		end_full(watch, id, state, since);
	else
		over = end_window(watch, id, state, since);
	errno = saved;
	restore(&vectors);
	atomic_fetch_add_explicit(&watch_common.offs, over, memory_order_relaxed);
	note_spent(before);
	return over;
}

WITHOUT_VECTORS static __attribute__((noinline)) bool is_warm(struct watch *watch, uint64_t warm,
							      uint64_t since)
{
	uint64_t before = __builtin_ia32_rdtsc();
	struct vectors vectors;
	int saved;
	bool ready;

	save(&vectors);
	saved = errno;
	ready = warm_up(watch, warm, since);
	errno = saved;
	restore(&vectors);
	note_spent(before);
	return ready;
}

WITHOUT_VECTORS static __attribute__((noinline)) struct ring *first_ring(void)
{
	struct vectors vectors;
	struct ring *ring;

	save(&vectors);
	ring = ring_make();
	restore(&vectors);
	return ring;
}

/* --- The probe function ------------------------------------------------------------ */

WITHOUT_VECTORS static void note_caller(struct ring *ring, uint32_t id, const struct fi_regs *regs)
{
	struct caller *caller;
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) >= RING) {
		atomic_fetch_add_explicit(&ring->lost, 1, memory_order_relaxed);
		return;
	}
	caller = &ring->caller[head % RING];
	caller->id = id;
	caller->from = *(const uint64_t *)regs->rsp;
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

/* Its only writer is the thread, and a signal handler of its: one that is lost is no harm. */
WITHOUT_VECTORS static struct ring *note_run(void)
{
	struct ring *ring = ring_here();

	if (!ring)
		ring = first_ring();
	if (ring)
		atomic_store_explicit(&ring->run,
				      atomic_load_explicit(&ring->run, memory_order_relaxed) + 1,
				      memory_order_relaxed);
	return ring;
}

WITHOUT_VECTORS static void count(struct watch *watch, uint32_t id, uint64_t state, uint64_t since,
				  const struct fi_regs *regs, struct ring *ring)
{
	uint64_t calls = atomic_fetch_add_explicit(&watch->calls, 1, memory_order_relaxed) + 1 -
			 atomic_load_explicit(&watch->base, memory_order_relaxed);

	if (calls == 1)
		atomic_store_explicit(&watch->first, since, memory_order_relaxed);
	if (ring && calls <= watch_common.callers)
		note_caller(ring, id, regs);
	if (calls == watch_common.limit)
		stop(watch, id, state, since, true);
}

WITHOUT_VECTORS void watch_call(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	struct watch *watch = &watches[id];
	uint64_t state = atomic_load_explicit(&watch->state, memory_order_acquire);
	uint64_t from = atomic_load_explicit(&watch->from, memory_order_acquire);
	uint64_t now = __builtin_ia32_rdtsc();
	struct ring *ring = note_run();
	uint64_t warm;

	(void)site;
	(void)data;
	if ((state & WATCH_BITS) != WATCH_OPEN || now < from) {
		atomic_fetch_add_explicit(&watch->late, 1, memory_order_relaxed);
		return;
	}
	warm = atomic_load_explicit(&watch->warm, memory_order_relaxed);
	if (warm && !is_warm(watch, warm, now - from)) {
		atomic_fetch_add_explicit(&watch->late, 1, memory_order_relaxed);
		return;
	}
	if (now - from >= atomic_load_explicit(&watch->window, memory_order_relaxed) &&
	    stop(watch, id, state, now - from, false))
		return;
	count(watch, id, state, now - from, regs, ring);
}
