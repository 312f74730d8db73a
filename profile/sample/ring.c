/* SPDX-License-Identifier: MIT */
/*
 * What each thread notes, with a stack of timed calls from entry to exit. Rings are never unmapped:
 * the next thread takes the one of a thread that has ended.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profile/estimate/estimate.h"
#include "profile/sample/sample.h"

#define LARGEST_FRAME 256 /* words in which a return address is looked for */

struct watch watches[FI_PROBES_MAX];
struct watch_common watch_common;

/* The hook got the return address as an argument: it is in its frame at the latest. */
FI_FUNCTION static uint64_t slot_above(uint64_t rsp, uint64_t from)
{
	const uint64_t *word = (const uint64_t *)(rsp & ~UINT64_C(7));

	for (unsigned i = 0; i < LARGEST_FRAME; i++)
		if (word[i] == from)
			return (uint64_t)&word[i];
	return 0;
}

FI_FUNCTION bool frames_find_activation(struct activation *activation, uint32_t entry,
					const struct fi_regs *regs)
{
	if (watches[entry].hooks) {
		activation->function = regs->rdi;
		activation->from = regs->rsi;
		activation->slot = slot_above(regs->rsp, regs->rsi);
		return activation->slot;
	}
	activation->function = entry;
	activation->slot = regs->rsp;
	activation->from = *(const uint64_t *)regs->rsp;
	return true;
}

/* No call of libc, whose functions change vectors. */
FI_FUNCTION static void thread_clock(struct timespec *time)
{
	long ret = SYS_clock_gettime;

	asm volatile("syscall"
		     : "+a"(ret)
		     : "D"((long)CLOCK_THREAD_CPUTIME_ID), "S"(time)
		     : "rcx", "r11", "memory");
}

/* Ticks without a CPU until @now, of a thread that has @used one for that. */
FI_FUNCTION static uint64_t without_cpu(const struct timespec *used, uint64_t now)
{
	uint64_t ns = (uint64_t)used->tv_sec * 1000000000 + (uint64_t)used->tv_nsec;

	return now - (uint64_t)((unsigned __int128)ns * watch_common.ticks_per_4s >> 32);
}

FI_FUNCTION uint64_t frames_read_waited(struct ring *ring, uint64_t now)
{
	struct timespec used = { 0 };

	thread_clock(&used);
	ring->waited = without_cpu(&used, now);
	ring->looked = now;
	return ring->waited;
}

/* Take a timed call off those pending. False: it was cut, with all calls that were pending then. */
FI_FUNCTION static bool take_pending_back(struct watch *watch, uint32_t cuts)
{
	uint64_t pending = atomic_load(&watch->pending);

	while (PENDING_CUTS(pending) == cuts)
		if (atomic_compare_exchange_weak(&watch->pending, &pending, pending - 1))
			return true;
	return false;
}

FI_FUNCTION static void drop_last_frame(struct ring *ring)
{
	const struct frame *frame = &ring->frame[--ring->depth];
	struct watch *watch = &watches[frame->id];

	if (take_pending_back(watch, frame->cuts))
		add_relaxed(&watch->torn, 1);
}

FI_FUNCTION void frames_cut(struct watch *watch)
{
	uint64_t pending = atomic_load(&watch->pending);

	while (PENDING_CALLS(pending))
		if (atomic_compare_exchange_weak(&watch->pending, &pending,
						 (uint64_t)(PENDING_CUTS(pending) + 1) << 32))
			break;
	add_relaxed(&watch->cut, PENDING_CALLS(pending));
}

/* A tail call has the return address of its caller; so has what is inlined in a function. */
FI_FUNCTION void frames_clear(struct ring *ring, const struct activation *activation, bool hooks)
{
	while (ring->depth) {
		const struct frame *last = &ring->frame[ring->depth - 1];

		if (last->slot > activation->slot || (last->slot == activation->slot && hooks &&
						      last->function != activation->function))
			return;
		drop_last_frame(ring);
	}
}

/* Who turns the entry off sees that this call is timed, or this call sees the new state. */
FI_FUNCTION struct frame *frames_enter(struct ring *ring, uint32_t id, uint64_t state,
				       const struct activation *activation)
{
	struct watch *watch = &watches[id];
	struct frame *frame = &ring->frame[ring->depth];
	uint64_t now = __builtin_ia32_rdtsc();

	if (ring->depth == FRAMES)
		return NULL;
	frame->cuts = PENDING_CUTS(atomic_fetch_add(&watch->pending, 1));
	if (atomic_load(&watch->state) != state) {
		take_pending_back(watch, frame->cuts);
		return NULL;
	}
	if (now - ring->looked > watch_common.recent)
		frames_read_waited(ring, now);
	frame->id = id;
	frame->function = activation->function;
	frame->slot = activation->slot;
	frame->from = activation->from;
	frame->waited = ring->waited;
	ring->depth++;
	return frame;
}

/* Index of the last frame of that activation, and 1. 0: there is none. */
FI_FUNCTION static uint32_t find_frame(const struct ring *ring, const struct activation *activation)
{
	for (uint32_t i = ring->depth; i > 0 && ring->frame[i - 1].slot <= activation->slot; i--)
		if (ring->frame[i - 1].slot == activation->slot &&
		    ring->frame[i - 1].function == activation->function)
			return i;
	return 0;
}

FI_FUNCTION bool frames_leave(struct ring *ring, const struct activation *activation, bool hooks,
			      struct frame *frame)
{
	uint32_t found = find_frame(ring, activation);

	if (!found) {
		frames_clear(ring, activation, hooks);
		return false;
	}
	while (ring->depth > found)
		drop_last_frame(ring);
	*frame = ring->frame[--ring->depth];
	return take_pending_back(&watches[frame->id], frame->cuts);
}

FI_FUNCTION bool frames_is_overlong(const struct watch *watch, int64_t wall)
{
	return wall > (int64_t)watch_common.overlong && load_relaxed(&watch->wish) != WINDOW_WHOLE;
}

void frames_drop(struct ring *ring)
{
	while (ring->depth)
		drop_last_frame(ring);
}

/* --- Rings ---------------------------------------------------------------------------------- */

static __thread struct ring *own_ring __attribute__((tls_model("initial-exec")));

static _Atomic(struct ring *) rings;
static pthread_key_t key;

static void release_ring(void *ring)
{
	own_ring = NULL;
	frames_drop(ring);
	store_release(&((struct ring *)ring)->taken, 0);
}

int ring_start(void)
{
	return -pthread_key_create(&key, release_ring);
}

struct ring *ring_list(void)
{
	return load_acquire(&rings);
}

uint64_t ring_run(void)
{
	uint64_t sum = 0;

	for (struct ring *ring = ring_list(); ring; ring = ring->next)
		sum += load_relaxed(&ring->run);
	return sum;
}

/* The clock that pthread_getcpuclockid() names: ~thread << 3, per thread, user and system. */
uint64_t ring_waited(const struct ring *ring, uint64_t now)
{
	uint32_t thread = (uint32_t)load_relaxed(&ring->thread);
	struct timespec time = { 0 };

	clock_gettime((clockid_t)(~thread << 3 | 6), &time);
	return without_cpu(&time, now);
}

struct ring *ring_known(struct ring *ring, unsigned *most)
{
	for (; ring && *most; ring = ring->next)
		if (ring != own_ring && load_relaxed(&ring->taken)) {
			--*most;
			return ring;
		}
	return NULL;
}

struct ring *ring_here(void)
{
	return own_ring;
}

static struct ring *take_free_ring(void)
{
	for (struct ring *ring = ring_list(); ring; ring = ring->next)
		if (!load_relaxed(&ring->taken) &&
		    !atomic_exchange_explicit(&ring->taken, 1, memory_order_acquire))
			return ring;
	return NULL;
}

static struct ring *map_ring(void)
{
	struct ring *ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ring == MAP_FAILED)
		return NULL;
	store_relaxed(&ring->taken, 1);
	ring->next = ring_list();
	while (!atomic_compare_exchange_weak_explicit(&rings, &ring->next, ring,
						      memory_order_release, memory_order_acquire))
		;
	return ring;
}

/* Called by the probe function, so in any signal handler: no lock. */
struct ring *ring_make(void)
{
	struct ring *ring = take_free_ring();

	if (!ring)
		ring = map_ring();
	if (ring) {
		store_relaxed(&ring->thread, (int32_t)syscall(SYS_gettid));
		ring->looked = 0;
		own_ring = ring;
		pthread_setspecific(key, ring);
	}
	return ring;
}

void ring_reset_in_child(void)
{
	for (struct ring *ring = ring_list(); ring; ring = ring->next) {
		ring->depth = 0;
		if (ring == own_ring)
			store_relaxed(&ring->thread, (int32_t)syscall(SYS_gettid));
		else
			store_relaxed(&ring->taken, 0);
	}
}

double ring_metered(void)
{
	double calls = 0, ticks = 0;

	for (const struct ring *ring = ring_list(); ring; ring = ring->next) {
		calls += (double)load_relaxed(&ring->metered);
		ticks += (double)load_relaxed(&ring->meter);
	}
	return calls > 0 ? ticks / calls : 0;
}

/* The meter sees the probe function only. The trampoline finds the same caches: it scales alike. */
double ring_price(void)
{
	double mean = ring_metered();

	if (watch_common.warm <= 0 || mean <= watch_common.warm)
		return watch_common.price;
	return watch_common.price * mean / watch_common.warm;
}
