/* SPDX-License-Identifier: MIT */
#include "stress/bench_toggle.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchcore/patchcore.h"
#include "patchcore/wait.h"
#include "stress/clock.h"

#define BLOCK  100  /* operations in a row, then as many of the floor */
#define REST   2000 /* ticks between operations */
#define STARTS 50
#define ROUND  200 /* executions between two looks at which site is on */

/*
 * What patcher and executor share is kept on lines of its own: a patcher that
 * meets the executor anywhere but on the site would be charged for it.
 */
#define OWN_LINE __attribute__((aligned(128)))

struct hot {
	hwloc_topology_t topology;
	unsigned cpu;
	_Atomic(struct bench_site *) target OWN_LINE; /* NULL: end */
	_Atomic(struct bench_site *) seen OWN_LINE;   /* the one that the executor is in */
	_Atomic(uint64_t) rounds;
	struct code_slots slots OWN_LINE;
};

struct samples {
	uint64_t *ticks;
	size_t count;
};

static void *hot_main(void *arg)
{
	static const uint64_t direction;
	struct hot *hot = arg;
	struct bench_site *target;

	pin_this_thread(hot->topology, hot->cpu);
	while ((target = atomic_load_explicit(&hot->target, memory_order_acquire))) {
		atomic_store_explicit(&hot->seen, target, memory_order_relaxed);
		target->code.loop(ROUND, &hot->slots, &direction);
		atomic_fetch_add_explicit(&hot->rounds, 1, memory_order_relaxed);
	}
	return NULL;
}

static void heat(struct hot *hot, struct bench_site *target)
{
	atomic_store_explicit(&hot->target, target, memory_order_release);
	while (atomic_load_explicit(&hot->seen, memory_order_relaxed) != target)
		;
}

/*
 * Between two operations: until the executor has run the site again, whole
 * rounds of it. An executor that lost its CPU would make every figure look good.
 */
static void cool(struct hot *hot)
{
	uint64_t rounds = atomic_load_explicit(&hot->rounds, memory_order_relaxed);

	ticks_wait(REST);
	while (atomic_load_explicit(&hot->rounds, memory_order_relaxed) - rounds < 2)
		_mm_pause();
}

static uint64_t *word_of(const struct bench_site *target)
{
	return (uint64_t *)((uintptr_t)target->code.site & ~(uintptr_t)7);
}

/* The value is the one that stands there; a load here would fetch the line untimed. */
static uint64_t time_floor(uint64_t *word, uint64_t same)
{
	uint64_t start = ticks_now();

	__atomic_exchange_n(word, same, __ATOMIC_SEQ_CST);
	return ticks_now() - start;
}

static int block_of_changes(struct hot *hot, struct bench_work *work, enum bench_op op,
			    struct samples *s)
{
	for (unsigned i = 0; i < BLOCK; i++) {
		int ret;

		cool(hot);
		ret = bench_op_time(work, op, &s->ticks[s->count]);
		if (ret < 0)
			return ret;
		s->count++;
	}
	return 0;
}

static void block_of_floors(struct hot *hot, struct bench_site *target, struct samples *s)
{
	uint64_t *word = word_of(target);
	uint64_t same = __atomic_load_n(word, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < BLOCK; i++) {
		cool(hot);
		s->ticks[s->count++] = time_floor(word, same);
	}
}

/* A B, then B A: slow drift hits both alike. */
static int block_pair(struct hot *hot, struct bench_work *work, enum bench_op op, bool floor_first,
		      struct samples *ticks, struct samples *floor)
{
	struct bench_site *site = bench_op_site(work, op);
	int ret;

	if (floor_first)
		block_of_floors(hot, site, floor);
	ret = block_of_changes(hot, work, op, ticks);
	if (!floor_first)
		block_of_floors(hot, site, floor);
	return ret;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double quantile(const struct samples *s, double q)
{
	return (double)s->ticks[(size_t)(q * (double)(s->count - 1))];
}

static void sum_up(struct bench_figures *f, struct samples *op, struct samples *floor)
{
	qsort(op->ticks, op->count, sizeof(*op->ticks), by_value);
	qsort(floor->ticks, floor->count, sizeof(*floor->ticks), by_value);
	f->samples = op->count;
	f->median = quantile(op, 0.5);
	f->p99 = quantile(op, 0.99);
	f->floor_median = quantile(floor, 0.5);
	f->floor_p99 = quantile(floor, 0.99);
}

/* Nothing is measured of what is not to be had here; why says so. */
static int begin(struct hot *hot, struct bench_work *work, enum bench_op op,
		 struct bench_toggle *bench)
{
	struct bench_figures *f = &bench->op[op];
	struct pc_status status;
	int ret = bench_op_begin(work, op, f->why, sizeof(f->why));

	if (ret < 0)
		return ret;
	if (op == BENCH_STRADDLER_WAIT && pc_get_status(&status) == 0) {
		bench->first_wait = status.first_wait;
		bench->second_wait = status.second_wait;
	}
	heat(hot, bench_op_site(work, op));
	return 0;
}

static int measure_op(struct hot *hot, struct bench_work *work, enum bench_op op, unsigned rounds,
		      const volatile sig_atomic_t *stop, struct bench_toggle *bench)
{
	size_t room = (size_t)rounds * BLOCK;
	struct samples ticks = { calloc(room, sizeof(uint64_t)), 0 };
	struct samples floors = { calloc(room, sizeof(uint64_t)), 0 };
	int ret = ticks.ticks && floors.ticks ? 0 : -ENOMEM;

	if (ret == 0 && begin(hot, work, op, bench) == 0) {
		for (unsigned i = 0; i < rounds && ret == 0; i++) {
			ret = block_pair(hot, work, op, i % 2, &ticks, &floors);
			if (*stop)
				ret = -EINTR;
		}
		if (ret == 0)
			sum_up(&bench->op[op], &ticks, &floors);
		bench_op_end(op);
	}
	free(ticks.ticks);
	free(floors.ticks);
	return ret;
}

static int measure_all(struct hot *hot, struct bench_work *work, unsigned rounds,
		       const volatile sig_atomic_t *stop, struct bench_toggle *bench)
{
	int ret = 0;

	for (int op = 0; op < BENCH_OPS && ret == 0; op++)
		ret = measure_op(hot, work, (enum bench_op)op, rounds, stop, bench);
	return ret;
}

/* Finding and reading the config, told apart from the first use of the program. */
static int time_starts(struct bench_toggle *bench)
{
	uint64_t us[STARTS];
	int ret = pc_init();

	for (unsigned i = 0; i < STARTS && ret == 0; i++) {
		double begin;

		ret = pc_fini();
		begin = seconds_now();
		if (ret == 0)
			ret = pc_init();
		us[i] = (uint64_t)((seconds_now() - begin) * 1e6);
	}
	qsort(us, STARTS, sizeof(us[0]), by_value);
	bench->start_median = (double)us[STARTS / 2];
	return ret;
}

int bench_toggle_run(struct bench_toggle *bench, hwloc_topology_t topology, unsigned rounds,
		     const volatile sig_atomic_t *stop, char *reason, size_t size)
{
	static struct bench_work work;
	struct seating seating;
	struct hot *hot = aligned_alloc(128, sizeof(*hot));
	pthread_t thread;
	int ret = hot ? 0 : -ENOMEM;

	*bench = (struct bench_toggle){ 0 };
	if (ret == 0)
		memset(hot, 0, sizeof(*hot));
	if (ret == 0)
		ret = placement_seat(topology, PLACEMENT_SPREAD, 1, &seating, reason, size);
	if (ret == 0)
		ret = pin_this_thread(topology, seating.patcher);
	if (ret == 0)
		ret = time_starts(bench);
	if (ret == 0)
		ret = bench_work_build(&work);
	if (ret == 0) {
		bench->patcher = seating.patcher;
		bench->executor = hot->cpu = seating.executor[0];
		hot->topology = topology;
		atomic_store(&hot->target, &work.site[0]);
		ret = -pthread_create(&thread, NULL, hot_main, hot);
	}
	if (ret == 0) {
		ret = measure_all(hot, &work, rounds, stop, bench);
		atomic_store_explicit(&hot->target, NULL, memory_order_release);
		pthread_join(thread, NULL);
	}
	free(hot);
	return ret;
}
