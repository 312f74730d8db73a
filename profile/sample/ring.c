/* SPDX-License-Identifier: MIT */
/* Rings are never unmapped: the next thread takes the one of a thread that has ended. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profile/sample/sample.h"

static __thread struct ring *own_ring __attribute__((tls_model("initial-exec")));
#define REFRESH 16 /* threads whose clocks are read: each is a system call */

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
static void read_clock(const struct ring *ring, struct timespec *time)
{
	uint32_t thread = (uint32_t)load_relaxed(&ring->thread);

	clock_gettime((clockid_t)(~thread << 3 | 6), time);
}

uint64_t ring_waited(const struct ring *ring, uint64_t now)
{
	struct timespec time = { 0 };

	read_clock(ring, &time);
	return frames_without_cpu(&time, now);
}

/*
 * The process's clock lags for threads on other CPUs by up to a tick of the kernel, which may be as
 * long as ten windows. Reading a thread's own clock brings it up to date.
 */
void ring_refresh(void)
{
	struct timespec time;
	unsigned n = 0;

	for (struct ring *ring = ring_list(); ring && n < REFRESH; ring = ring->next) {
		if (ring == own_ring || !load_relaxed(&ring->taken))
			continue;
		read_clock(ring, &time);
		n++;
	}
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
