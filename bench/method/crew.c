/* SPDX-License-Identifier: MIT */
#include "bench/method/crew.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <x86intrin.h>

#include "stress/placement/placement.h"

#define SPINS 1000 /* then others may have the CPU */

struct member {
	struct crew *crew;
	pthread_t thread;
	unsigned number;
	unsigned cpu;
	int error; /* of pinning; written before it is counted as ready */
};

struct crew {
	hwloc_topology_t topology;
	pthread_mutex_t lock; /* protects what follows, up to go */
	pthread_cond_t wake;
	uint64_t turn; /* of crew_run() */
	unsigned members;
	bool end;
	crew_fn *fn;
	void *arg;
	_Atomic(unsigned) ready;   /* others, pinned or not */
	_Atomic(uint64_t) go;	   /* turn that may begin */
	_Atomic(unsigned) arrived; /* in this turn */
	_Atomic(unsigned) done;
	unsigned count; /* with the caller */
	struct member member[];
};

static void pause_or_yield(unsigned *spins)
{
	if (++*spins > SPINS)
		sched_yield();
	else
		_mm_pause();
}

static void await_count(_Atomic(unsigned) *count, unsigned wanted)
{
	unsigned spins = 0;

	while (atomic_load_explicit(count, memory_order_acquire) < wanted)
		pause_or_yield(&spins);
}

static void await_go(struct crew *crew, uint64_t turn)
{
	unsigned spins = 0;

	while (atomic_load_explicit(&crew->go, memory_order_acquire) < turn)
		pause_or_yield(&spins);
}

/* The turn to take part in, 0: the end. */
static uint64_t sleep_until_wanted(const struct member *m, uint64_t seen)
{
	struct crew *crew = m->crew;
	uint64_t turn;

	pthread_mutex_lock(&crew->lock);
	while (!crew->end && (crew->turn == seen || m->number >= crew->members))
		pthread_cond_wait(&crew->wake, &crew->lock);
	turn = crew->end ? 0 : crew->turn;
	pthread_mutex_unlock(&crew->lock);
	return turn;
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct crew *crew = m->crew;
	uint64_t turn = 0;

	m->error = pin_this_thread(crew->topology, m->cpu);
	atomic_fetch_add_explicit(&crew->ready, 1, memory_order_acq_rel);
	while ((turn = sleep_until_wanted(m, turn))) {
		atomic_fetch_add_explicit(&crew->arrived, 1, memory_order_acq_rel);
		await_go(crew, turn);
		crew->fn(crew->arg, m->number);
		atomic_fetch_add_explicit(&crew->done, 1, memory_order_acq_rel);
	}
	return NULL;
}

void crew_run(struct crew *crew, unsigned members, crew_fn *fn, void *arg)
{
	unsigned others = (members < crew->count ? members : crew->count) - 1;
	uint64_t turn;

	pthread_mutex_lock(&crew->lock);
	atomic_store_explicit(&crew->arrived, 0, memory_order_relaxed);
	atomic_store_explicit(&crew->done, 0, memory_order_relaxed);
	crew->members = others + 1;
	crew->fn = fn;
	crew->arg = arg;
	turn = ++crew->turn;
	pthread_cond_broadcast(&crew->wake);
	pthread_mutex_unlock(&crew->lock);
	await_count(&crew->arrived, others);
	atomic_store_explicit(&crew->go, turn, memory_order_release);
	fn(arg, 0);
	await_count(&crew->done, others);
}

static int start_one(struct crew *crew, unsigned number, unsigned cpu)
{
	struct member *m = &crew->member[number];
	int ret;

	*m = (struct member){ .crew = crew, .number = number, .cpu = cpu };
	ret = -pthread_create(&m->thread, NULL, member_main, m);
	if (ret == 0)
		crew->count++;
	return ret;
}

/* One that runs where it likes may sit on the CPU of another. */
static int all_pinned(struct crew *crew)
{
	int error = 0;

	await_count(&crew->ready, crew->count - 1);
	for (unsigned i = 1; i < crew->count && error == 0; i++)
		error = crew->member[i].error;
	return error;
}

int crew_start(struct crew **result, hwloc_topology_t topology, const unsigned *cpu,
	       unsigned members)
{
	struct crew *crew = calloc(1, sizeof(*crew) + members * sizeof(crew->member[0]));
	int ret = 0;

	if (!crew)
		return -ENOMEM;
	crew->topology = topology;
	crew->count = 1;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->wake, NULL);
	for (unsigned i = 1; i < members && ret == 0; i++)
		ret = start_one(crew, i, cpu[i]);
	if (ret == 0)
		ret = all_pinned(crew);
	if (ret < 0) {
		crew_stop(crew);
		return ret;
	}
	*result = crew;
	return 0;
}

void crew_stop(struct crew *crew)
{
	if (!crew)
		return;
	pthread_mutex_lock(&crew->lock);
	crew->end = true;
	pthread_cond_broadcast(&crew->wake);
	pthread_mutex_unlock(&crew->lock);
	for (unsigned i = 1; i < crew->count; i++)
		pthread_join(crew->member[i].thread, NULL);
	free(crew);
}
