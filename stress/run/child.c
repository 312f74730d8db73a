/* SPDX-License-Identifier: MIT */
#include "stress/run/child.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "patchcore/machine/wait.h"
#include "patchcore/trap/trap.h"
#include "patchcore/word/word.h"
#include "stress/base/clock.h"
#include "stress/base/random.h"
#include "stress/cell/toggle.h"
#include "stress/oracle/trace_log.h"
#include "stress/placement/place.h"
#include "stress/witness/witness.h"

#define ROUND	   1000	   /* executions between two looks at the stop flag */
#define LOOK_EVERY 64	   /* toggles between two looks at the clock and the parent, */
#define LOOK_TICKS 1000000 /* unless one toggle takes so long */

struct child {
	const struct cell *cell;
	hwloc_topology_t topology;
	struct shared *shared;
	struct provokers *provokers;
	struct trace_log trace;
	pthread_barrier_t ready; /* patcher and executors, before the first toggle */
	_Atomic(int) quit;
	_Atomic(int) error; /* the first negative errno of an executor */
	/* Written by the patcher before each toggle, read by whoever ran a mix. */
	uint64_t toggle __attribute__((aligned(128)));
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
	const struct code *code = &c->shared->code;

	while (!atomic_load_explicit(&c->quit, memory_order_relaxed)) {
		code_run(code, ROUND, &e->counts->slots, &c->toggle);
		atomic_fetch_add_explicit(&e->counts->executions, ROUND, memory_order_relaxed);
		provoke_round(c->provokers);
	}
}

static void *executor_main(void *arg)
{
	struct executor *e = arg;
	int ret = pin_this_thread(e->child->topology, e->cpu);
	struct rusage begin;

	if (ret < 0)
		atomic_store(&e->child->error, ret);
	pthread_barrier_wait(&e->child->ready);
	witness_thread_begin(&begin);
	execute(e);
	witness_thread_end(&e->child->shared->result.witness, &begin);
	return NULL;
}

static uint64_t tears_now(struct child *c)
{
	struct code *code = &c->shared->code;
	uint64_t tears = 0;

	for (unsigned i = 0; i < c->cell->executors; i++) {
		struct code_slots *slots = &c->shared->executor[i].slots;

		tears += code_tears(code, slots);
		c->shared->torn_twice += trace_tears(&c->trace, code, i, slots, &c->shared->result);
	}
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

/* From half the mean to one and a half of it: never so short that directions blur. */
static void rest(uint64_t mean, uint64_t *random)
{
	if (mean)
		ticks_wait(random_about(random, mean));
}

static void provoke(void *provokers)
{
	provoke_toggle(provokers);
}

/* Toggle number i, to these bytes, with all that goes with it. */
static int change(struct child *c, uint64_t i, const uint8_t *bytes)
{
	const struct code *code = &c->shared->code;
	struct sync sync = toggle_sync(c->cell);
	int ret;

	__atomic_store_n(&c->toggle, i, __ATOMIC_RELAXED);
	sync.trace = trace_begin(&c->trace, i);
	/* Not before: to hold the site brings its lines in. */
	sync.trace->prepared = provoke;
	sync.trace->arg = c->provokers;
	ret = toggle_of(c->cell->protocol)(code->site, bytes, &sync);
	if (ret < 0)
		return ret;
	trace_end(&c->trace, i, &c->shared->result.witness);
	c->shared->stirred += code_stir(code, i);
	return 0;
}

static int patch(struct child *c)
{
	const struct cell *cell = c->cell;
	struct code *code = &c->shared->code;
	struct cell_result *result = &c->shared->result;
	double deadline = cell->seconds > 0 ? seconds_now() + cell->seconds : 0;
	uint64_t toggle_ticks = cell->first_wait + cell->second_wait + cell->rest;
	uint64_t look_every = toggle_ticks > LOOK_TICKS ? 1 : LOOK_EVERY;
	uint64_t random = cell->seed, i = 0;
	unsigned next = 1;
	int ret = 0;

	while (i < cell->toggles) {
		ret = change(c, i, code->bytes[next]);
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
	struct rusage begin;
	int ret;

	witness_thread_begin(&begin);
	ret = patch(c);
	result->ticks = ticks_now() - ticks;
	result->seconds = seconds_now() - start;
	witness_thread_end(&result->witness, &begin);
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

void child_sum(const struct shared *shared, struct cell_result *result)
{
	uint64_t torn = 0;

	result->exposed = 0;
	for (unsigned i = 0; i < result->seating.executors; i++) {
		uint64_t exposed =
			code_exposed(&shared->code, &shared->executor[i].slots, result->toggles);

		if (exposed > result->exposed)
			result->exposed = exposed;
		torn += shared->executor[i].slots.torn;
	}
	torn -= shared->torn_twice;
	/* The last one may have been tried, and not done. */
	result->torn = torn < result->toggles ? torn : result->toggles;
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
	/* Those of the last toggles. */
	tears_now(c);
	child_sum(c->shared, result);
	trace_latency(&c->trace, &result->latency);
	result->traps = trap_count();
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
	if (ret == 0)
		witness_before(&c->shared->result.witness, c->topology, &c->shared->result.seating);
	/* Last, so that what was witnessed before is not their doing. */
	if (ret == 0)
		ret = provokers_start(&c->provokers, c->cell, c->topology,
				      &c->shared->result.seating, c->shared->code.site);
	for (unsigned i = 0; i < 2; i++)
		c->shared->result.frame[i] =
			place_frame(c->shared->code.site + (i ? c->cell->split : 0));
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
	provokers_count(c->provokers, &c->shared->provoked);
	provokers_stop(c->provokers);
	witness_after(&c->shared->result.witness);
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
