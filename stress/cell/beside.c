/* SPDX-License-Identifier: MIT */
#include "stress/cell/beside.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <emmintrin.h>

#include "stress/placement/placement.h"

static struct {
	hwloc_topology_t topology;
	unsigned cpu;
	pthread_barrier_t pinned;
	int error;
	_Atomic(struct word *) word __attribute__((aligned(128))); /* to be stored */
} beside;

static void *beside_main(void *arg)
{
	(void)arg;
	beside.error = pin_this_thread(beside.topology, beside.cpu);
	pthread_barrier_wait(&beside.pinned);
	for (;;) {
		/* Pairs with the patcher's release in beside_store(). */
		struct word *word = atomic_load_explicit(&beside.word, memory_order_acquire);

		if (!word) {
			_mm_pause();
			continue;
		}
		word_store_back(word);
		/* Pairs with the patcher's acquire there. */
		atomic_store_explicit(&beside.word, NULL, memory_order_release);
	}
	return NULL;
}

int beside_start(hwloc_topology_t topology, unsigned cpu)
{
	pthread_t thread;
	int ret = -pthread_barrier_init(&beside.pinned, NULL, 2);

	beside.topology = topology;
	beside.cpu = cpu;
	if (ret == 0)
		ret = -pthread_create(&thread, NULL, beside_main, NULL);
	if (ret < 0)
		return ret;
	pthread_barrier_wait(&beside.pinned);
	return beside.error;
}

void beside_store(struct word *word)
{
	atomic_store_explicit(&beside.word, word, memory_order_release);
	while (atomic_load_explicit(&beside.word, memory_order_acquire))
		_mm_pause();
}
