/* SPDX-License-Identifier: MIT */
#include "bench/method/hot.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "patchcore/machine/wait.h"

/*
 * What patcher and executor share is kept on lines of its own: a patcher that meets the
 * executor anywhere but on the site would be charged for it.
 */
#define OWN_LINES __attribute__((aligned(128)))

struct hot_executor {
	struct hot_counts counts OWN_LINES;
	_Atomic(const struct hot_work *) work OWN_LINES; /* NULL: sleep */
	sem_t wake; /* posted with work to do, or without: then it ends */
	sem_t slept;
	struct hot *hot OWN_LINES;
	pthread_t thread;
	unsigned number;
	unsigned cpu;
	int error; /* of pinning; written before it first sleeps */
} OWN_LINES;

struct hot {
	hwloc_topology_t topology;
	unsigned count;
	unsigned running; /* executors that were aimed */
	struct hot_executor executor[];
};

/* Only its owner writes it: no locked addition is needed, which would slow the loop. */
static void add_to(_Atomic(uint64_t) *counter, uint64_t more)
{
	uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, now + more, memory_order_relaxed);
}

void hot_loop(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	const struct loop *loop = work->arg;

	(void)executor;
	loop->run(HOT_ROUND, counts->calls);
	add_to(&counts->executed, HOT_ROUND);
}

static void wait_for(sem_t *event)
{
	while (sem_wait(event) < 0)
		continue;
}

static const struct hot_work *work_of(struct hot_executor *e)
{
	return atomic_load_explicit(&e->work, memory_order_acquire);
}

static void *executor_main(void *arg)
{
	struct hot_executor *e = arg;
	const struct hot_work *work;

	e->error = pin_this_thread(e->hot->topology, e->cpu);
	sem_post(&e->slept);
	for (wait_for(&e->wake); (work = work_of(e)); wait_for(&e->wake)) {
		for (; work; work = work_of(e)) {
			work->run(work, e->number, &e->counts);
			add_to(&e->counts.rounds, 1);
		}
		sem_post(&e->slept);
	}
	return NULL;
}

static uint64_t rounds_of(const struct hot_executor *e)
{
	return atomic_load_explicit(&e->counts.rounds, memory_order_relaxed);
}

/* A patcher that waits here leaves the CPU to an executor that shares it. */
static void await_rounds(const struct hot_executor *e, uint64_t rounds)
{
	uint64_t begin = ticks_now();

	while (rounds_of(e) < rounds) {
		if (ticks_now() - begin > 1000000)
			sched_yield();
		else
			_mm_pause();
	}
}

void hot_aim(struct hot *hot, const struct hot_work *work, unsigned executors)
{
	uint64_t before[PLACEMENT_EXECUTORS_MAX];

	hot_sleep(hot);
	hot->running = executors < hot->count ? executors : hot->count;
	for (unsigned i = 0; i < hot->running; i++) {
		before[i] = rounds_of(&hot->executor[i]);
		atomic_store_explicit(&hot->executor[i].work, work, memory_order_release);
	}
	for (unsigned i = 0; i < hot->running; i++)
		sem_post(&hot->executor[i].wake);
	for (unsigned i = 0; i < hot->running; i++)
		await_rounds(&hot->executor[i], before[i] + 1);
}

void hot_sleep(struct hot *hot)
{
	for (unsigned i = 0; i < hot->running; i++)
		atomic_store_explicit(&hot->executor[i].work, NULL, memory_order_release);
	for (unsigned i = 0; i < hot->running; i++)
		wait_for(&hot->executor[i].slept);
	hot->running = 0;
}

void hot_cool(struct hot *hot)
{
	uint64_t before[PLACEMENT_EXECUTORS_MAX];

	for (unsigned i = 0; i < hot->running; i++)
		before[i] = rounds_of(&hot->executor[i]);
	ticks_wait(HOT_REST);
	for (unsigned i = 0; i < hot->running; i++)
		await_rounds(&hot->executor[i], before[i] + 2);
}

struct hot_sum hot_count(const struct hot *hot)
{
	struct hot_sum sum = { { 0, 0 }, 0 };

	for (unsigned i = 0; i < hot->count; i++) {
		const struct hot_counts *c = &hot->executor[i].counts;

		for (unsigned t = 0; t < 2; t++)
			sum.calls[t] += __atomic_load_n(&c->calls[t], __ATOMIC_RELAXED);
		sum.executed += atomic_load_explicit(&c->executed, memory_order_relaxed);
	}
	return sum;
}

unsigned hot_executors(const struct hot *hot)
{
	return hot->count;
}

int hot_start(struct hot **result, hwloc_topology_t topology, const struct seating *seating)
{
	size_t size = sizeof(struct hot) + seating->executors * sizeof(struct hot_executor);
	struct hot *hot = aligned_alloc(128, (size + 127) & ~(size_t)127);
	int ret = 0;

	if (!hot)
		return -ENOMEM;
	memset(hot, 0, size);
	hot->topology = topology;
	for (unsigned i = 0; i < seating->executors && ret == 0; i++) {
		struct hot_executor *e = &hot->executor[i];

		e->hot = hot;
		e->number = i;
		e->cpu = seating->executor[i];
		sem_init(&e->wake, 0, 0);
		sem_init(&e->slept, 0, 0);
		ret = -pthread_create(&e->thread, NULL, executor_main, e);
		hot->count += ret == 0;
	}
	/* One that runs where it likes would sit on the patcher's CPU as likely as not. */
	for (unsigned i = 0; i < hot->count; i++) {
		wait_for(&hot->executor[i].slept);
		ret = ret < 0 ? ret : hot->executor[i].error;
	}
	if (ret < 0) {
		hot_stop(hot);
		return ret;
	}
	*result = hot;
	return 0;
}

void hot_stop(struct hot *hot)
{
	if (!hot)
		return;
	hot_sleep(hot);
	for (unsigned i = 0; i < hot->count; i++) {
		sem_post(&hot->executor[i].wake);
		pthread_join(hot->executor[i].thread, NULL);
	}
	free(hot);
}
