/* SPDX-License-Identifier: MIT */
#include "stress/child.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "patchcore/trap.h"
#include "patchcore/wait.h"
#include "patchcore/word.h"
#include "stress/clock.h"
#include "stress/toggle.h"
#include "stress/witness.h"

#define ROUND	   1000	   /* executions between two looks at the stop flag */
#define LOOK_EVERY 64	   /* toggles between two looks at the clock and the parent, */
#define LOOK_TICKS 1000000 /* unless one toggle takes so long */

struct child {
	const struct cell *cell;
	hwloc_topology_t topology;
	struct shared *shared;
	pthread_barrier_t ready; /* patcher and executors, before the first toggle */
	_Atomic(int) quit;
	_Atomic(int) error; /* the first negative errno of an executor */
	/* Written by the patcher before each toggle, read by whoever ran a mix. */
	uint64_t direction __attribute__((aligned(128)));
};

struct executor {
	struct child *child;
	struct executor_counts *counts;
	unsigned cpu;
	pthread_t thread;
};

static void execute(struct executor *e)
{
	struct child *c = e->child;
	code_loop_fn *loop = c->shared->code.loop;

	while (!atomic_load_explicit(&c->quit, memory_order_relaxed)) {
		loop(ROUND, &e->counts->slots, &c->direction);
		atomic_fetch_add_explicit(&e->counts->executions, ROUND, memory_order_relaxed);
	}
}

static void *executor_main(void *arg)
{
	struct executor *e = arg;
	int ret = pin_this_thread(e->child->topology, e->cpu);

	if (ret < 0)
		atomic_store(&e->child->error, ret);
	pthread_barrier_wait(&e->child->ready);
	execute(e);
	witness_add_thread(&e->child->shared->result.witness);
	return NULL;
}

static uint64_t tears_now(const struct child *c)
{
	uint64_t tears = 0;

	for (unsigned i = 0; i < c->cell->executors; i++)
		tears += code_tears(&c->shared->code, &c->shared->executor[i].slots);
	return tears;
}

/* Is the cell over? Also tells the parent how far it is. */
static bool is_over(struct child *c, uint64_t toggles, double deadline)
{
	uint64_t tears = tears_now(c);

	atomic_store_explicit(&c->shared->toggles, toggles, memory_order_relaxed);
	atomic_store_explicit(&c->shared->tears, tears, memory_order_relaxed);
	if (atomic_load_explicit(&c->shared->stop, memory_order_relaxed) ||
	    atomic_load_explicit(&c->error, memory_order_relaxed) < 0)
		return true;
	if (c->cell->stop_tears && tears >= c->cell->stop_tears)
		return true;
	return deadline > 0 && seconds_now() >= deadline;
}

/* splitmix64 (Steele, Lea, Flood 2014): enough to keep toggles off any beat. */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* From half the mean to one and a half of it: never so short that directions blur. */
static void rest(uint64_t mean, uint64_t *random)
{
	if (mean)
		ticks_wait(mean / 2 + random_next(random) % (mean + 1));
}

static int patch(struct child *c)
{
	const struct cell *cell = c->cell;
	struct code *code = &c->shared->code;
	struct cell_result *result = &c->shared->result;
	struct sync sync = toggle_sync(cell);
	toggle_fn *toggle = toggle_of(cell->protocol);
	double deadline = cell->seconds > 0 ? seconds_now() + cell->seconds : 0;
	uint64_t toggle_ticks = cell->first_wait + cell->second_wait + cell->rest;
	uint64_t look_every = toggle_ticks > LOOK_TICKS ? 1 : LOOK_EVERY;
	uint64_t random = cell->seed, i = 0;
	unsigned next = 1;
	int ret = 0;

	while (i < cell->toggles) {
		__atomic_store_n(&c->direction, i & 1, __ATOMIC_RELAXED);
		ret = toggle(code->site, code->bytes[next], &sync);
		if (ret == 0) {
			next = next + 1 == code->codes ? 0 : next + 1;
			i++;
		} else if (ret == -EAGAIN) {
			result->retries++;
		} else {
			break;
		}
		rest(cell->rest, &random);
		if ((i % look_every == 0 || ret == -EAGAIN) && is_over(c, i, deadline))
			break;
	}
	result->toggles = i;
	atomic_store_explicit(&c->shared->toggles, i, memory_order_relaxed);
	return ret == -EAGAIN ? 0 : ret;
}

static int patch_timed(struct child *c)
{
	struct cell_result *result = &c->shared->result;
	double start = seconds_now();
	uint64_t ticks = ticks_now();
	int ret = patch(c);

	result->ticks = ticks_now() - ticks;
	result->seconds = seconds_now() - start;
	return ret;
}

static int start_executors(struct child *c, struct executor *executors)
{
	for (unsigned i = 0; i < c->cell->executors; i++) {
		executors[i] = (struct executor){
			.child = c,
			.counts = &c->shared->executor[i],
			.cpu = c->shared->result.seating.executor[i],
		};
		/* Those already started wait at the barrier; the exit of the child ends them. */
		if (pthread_create(&executors[i].thread, NULL, executor_main, &executors[i]) != 0)
			return -EAGAIN;
	}
	return 0;
}

static void collect(struct child *c)
{
	struct cell_result *result = &c->shared->result;

	for (unsigned i = 0; i < c->cell->executors; i++) {
		struct executor_counts *counts = &c->shared->executor[i];

		code_collect(&c->shared->code, &counts->slots,
			     atomic_load_explicit(&counts->executions, memory_order_relaxed),
			     result);
	}
	result->traps = trap_count();
	witness_add_thread(&result->witness);
}

static int prepare(struct child *c)
{
	int ret = pin_this_thread(c->topology, c->shared->result.seating.patcher);

	if (ret == 0)
		ret = code_build(&c->shared->code, c->cell);
	if (ret == 0)
		ret = trap_install();
	if (ret == 0 && c->cell->protocol == PROTOCOL_MEMBARRIER)
		ret = membarrier_register();
	if (ret == 0)
		ret = -pthread_barrier_init(&c->ready, NULL, c->cell->executors + 1);
	return ret;
}

static int run(struct child *c)
{
	struct executor *executors = calloc(c->cell->executors, sizeof(*executors));
	int ret = executors ? prepare(c) : -ENOMEM;

	if (ret == 0)
		ret = start_executors(c, executors);
	if (ret < 0)
		return ret;
	pthread_barrier_wait(&c->ready);
	ret = patch_timed(c);
	atomic_store_explicit(&c->quit, 1, memory_order_relaxed);
	for (unsigned i = 0; i < c->cell->executors; i++)
		pthread_join(executors[i].thread, NULL);
	free(executors);
	collect(c);
	return ret < 0 ? ret : atomic_load(&c->error);
}

void child_run(const struct cell *cell, hwloc_topology_t topology, struct shared *shared)
{
	static struct child child;

	child.cell = cell;
	child.topology = topology;
	child.shared = shared;
	shared->result.error = run(&child);
	shared->result.outcome = OUTCOME_DONE;
	if (shared->result.error < 0)
		shared->result.outcome = OUTCOME_ERROR;
	else if (atomic_load(&shared->stop))
		shared->result.outcome = OUTCOME_INTERRUPTED;
	/* Release: pairs with the parent's acquire. */
	atomic_store_explicit(&shared->finished, 1, memory_order_release);
	_exit(0);
}
