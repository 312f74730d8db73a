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
	int error; /* of pinning; written before it takes part in anything */
};

struct crew {
	hwloc_topology_t topology;
	pthread_mutex_t lock; /* protects what follows, up to arg */
	pthread_cond_t wake;
	uint64_t turn; /* of crew_run() */
	unsigned members;
	bool end;
	crew_fn *fn;
	void *arg;
	_Atomic(unsigned) arrived; /* in this turn */
	_Atomic(unsigned) done;
	unsigned count; /* with the caller */
	struct member member[];
};

static void await_count(_Atomic(unsigned) *count, unsigned wanted)
{
	unsigned spins = 0;

	while (atomic_load_explicit(count, memory_order_acquire) < wanted) {
		if (++spins > SPINS)
			sched_yield();
		else
			_mm_pause();
	}
}

static void take_part(struct crew *crew, unsigned number)
{
	atomic_fetch_add_explicit(&crew->arrived, 1, memory_order_acq_rel);
	await_count(&crew->arrived, crew->members);
	crew->fn(crew->arg, number);
	atomic_fetch_add_explicit(&crew->done, 1, memory_order_acq_rel);
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct crew *crew = m->crew;
	uint64_t turn = 0;

	m->error = pin_this_thread(crew->topology, m->cpu);
	for (;;) {
		bool end;

		pthread_mutex_lock(&crew->lock);
		while (!crew->end && (crew->turn == turn || m->number >= crew->members))
			pthread_cond_wait(&crew->wake, &crew->lock);
		turn = crew->turn;
		end = crew->end;
		pthread_mutex_unlock(&crew->lock);
		if (end)
			return NULL;
		take_part(crew, m->number);
	}
}

void crew_run(struct crew *crew, unsigned members, crew_fn *fn, void *arg)
{
	pthread_mutex_lock(&crew->lock);
	atomic_store_explicit(&crew->arrived, 0, memory_order_relaxed);
	atomic_store_explicit(&crew->done, 0, memory_order_relaxed);
	crew->members = members < crew->count ? members : crew->count;
	crew->fn = fn;
	crew->arg = arg;
	crew->turn++;
	pthread_cond_broadcast(&crew->wake);
	pthread_mutex_unlock(&crew->lock);
	take_part(crew, 0);
	await_count(&crew->done, crew->members);
}

static void do_nothing(void *arg, unsigned member)
{
	(void)arg;
	(void)member;
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
	for (unsigned i = 1; i < members && ret == 0; i++) {
		struct member *m = &crew->member[i];

		*m = (struct member){ .crew = crew, .number = i, .cpu = cpu[i] };
		ret = -pthread_create(&m->thread, NULL, member_main, m);
		crew->count += ret == 0;
	}
	/* One that is not pinned runs where it likes, and may sit on the CPU of another. */
	crew_run(crew, members, do_nothing, NULL);
	for (unsigned i = 1; i < crew->count && ret == 0; i++)
		ret = crew->member[i].error;
	if (ret < 0)
		crew_stop(crew);
	else
		*result = crew;
	return ret;
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
