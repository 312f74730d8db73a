/* SPDX-License-Identifier: MIT */
#include "stress/cell/toggle.h"

#include <emmintrin.h>
#include <hwloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "patchcore/machine/wait.h"
#include "stress/cell/code.h"
#include "stress/placement/placement.h"

/* --- A thread that stores the back part in the patcher's place ------------------------------- */

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

/* By the patcher, after beside_start(): returns when the back part is stored. */
static void beside_store(struct word *word)
{
	atomic_store_explicit(&beside.word, word, memory_order_release);
	while (atomic_load_explicit(&beside.word, memory_order_acquire))
		_mm_pause();
}

/* --- Toggles --------------------------------------------------------------------------------- */

/* So that a tear of a broken protocol can be told with when it was. */
static void note_visible(const struct sync *sync, unsigned store)
{
	if (sync->trace)
		sync->trace->visible[store] = ticks_now();
}

/* Where no site is held, the first store is all there is to prepare. */
static void tell_prepared(const struct sync *sync)
{
	if (sync->trace && sync->trace->prepared)
		sync->trace->prepared(sync->trace->arg);
}

/*
 * Broken, both: no INT3, so no executor is kept out between the two parts; or an INT3 and the front
 * first, so the first byte is whole again before the back part is there.
 */
static int toggle_wrongly(const struct change *change, const struct sync *sync, bool front_first)
{
	struct word *word;
	int ret = word_hold(&word, change, sync);

	if (ret < 0)
		return ret;
	word_prepared(word);
	if (front_first)
		word_put_int3(word);
	note_visible(sync, 0);
	for (unsigned i = 0; i < 2; i++) {
		bool front = front_first == (i == 0);

		ticks_wait(i ? sync->waits.second : sync->waits.first);
		if (front)
			word_put_front(word);
		else
			word_put_back(word);
		note_visible(sync, front ? 2 : 1);
	}
	word_release(word);
	return 0;
}

/* A locked store that changes nothing: it takes the line from the executors. */
static void store_same(uint8_t *at)
{
	__asm__ volatile("lock orb $0, %0" : "+m"(*at) : : "memory");
}

/*
 * Tried against the slow tail: like word_patch() of a straddler, under policy wait, with something
 * more in its first wait, between INT3 and the back part, or with another thread that stores the
 * latter. docs/tail.md tells what came of each.
 */
static int toggle_variant(const struct change *change, const struct sync *sync,
			  enum protocol protocol)
{
	struct moment visible, asked;
	uint64_t from = 0, wait, start, latency;
	struct word *word;
	int ret = word_begin(&word, change, sync);

	if (ret < 0)
		return ret;
	visible = word_note_store(word, WORD_PART_INT3, word->asked);
	wait = word_stretch(word, sync->waits.first);
	switch (protocol) {
	case PROTOCOL_BESIDE:
		break;
	case PROTOCOL_READ: /* the back line is read */
		(void)*(volatile uint8_t *)word->back_at;
		break;
	case PROTOCOL_AGAIN: /* INT3 is put a second time, half way */
		ticks_wait_since(visible, wait / 2);
		store_same(word->front_at);
		break;
	default: /* touch, and halves: the wait in two halves, with a touch between */
		if (protocol == PROTOCOL_HALVES)
			ticks_wait_since(visible, wait / 2);
		/* The store of the back part then queues behind what an executor waits for. */
		start = ticks_now();
		store_same(word->back_at);
		latency = ticks_now() - start;
		if (latency > word->latency)
			word->latency = latency;
		from = ticks_now() - visible.ticks;
		/* The touch's latency stretches the wait that follows. */
		wait = word_stretch(word, sync->waits.first);
		if (protocol == PROTOCOL_HALVES)
			wait /= 2;
	}
	ticks_wait_since(visible, from + wait);
	asked = moment_now();
	if (protocol == PROTOCOL_BESIDE)
		beside_store(word);
	else
		word_store_back(word);
	visible = word_note_store(word, WORD_PART_BACK, asked);
	ticks_wait_since(visible, word_stretch(word, sync->waits.second));
	asked = moment_now();
	word_store_front(word);
	word_note_store(word, WORD_PART_FRONT, asked);
	word_release(word);
	return 0;
}

int toggle(enum protocol protocol, uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	struct change change = change_in_place(site, bytes, CODE_LENGTH);
	uint64_t word;
	int ret = 0;

	switch (protocol) {
	case PROTOCOL_WAIT:
	case PROTOCOL_MEMBARRIER:
		return word_patch(&change, sync);
	case PROTOCOL_ATOMIC:
		tell_prepared(sync);
		ret = word_store(site, bytes, CODE_LENGTH);
		note_visible(sync, 2);
		return ret;
	case PROTOCOL_NAIVE:
		/* Broken: a plain store of 8 bytes, boundary or not. No neighbour changes. */
		memcpy(&word, site, sizeof(word));
		memcpy(&word, bytes, CODE_LENGTH);
		tell_prepared(sync);
		__asm__ volatile("movq %1, %0" : "=m"(*(uint8_t(*)[8])site) : "r"(word) : "memory");
		note_visible(sync, 2);
		return 0;
	case PROTOCOL_NO_INT3:
	case PROTOCOL_FRONT_FIRST:
		return toggle_wrongly(&change, sync, protocol == PROTOCOL_FRONT_FIRST);
	default:
		return toggle_variant(&change, sync, protocol);
	}
}

struct sync toggle_sync(const struct cell *cell)
{
	return (struct sync){
		.policy = cell->protocol == PROTOCOL_MEMBARRIER ? PC_POLICY_MEMBARRIER
								: PC_POLICY_WAIT,
		.waits = cell->waits,
		/* The smallest window, so that every crossing is one to be straddled. */
		.window = 8,
	};
}
