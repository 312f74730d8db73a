/* SPDX-License-Identifier: MIT */
#include "stress/run/gap_child.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "patchcore/machine/wait.h"
#include "stress/base/clock.h"
#include "stress/base/random.h"
#include "stress/oracle/gap_code.h"
#include "stress/provoke/provoker.h"
#include "stress/witness/witness.h"

#define ROUND	      256   /* executions between two looks at the quit flag */
#define HISTORY	      65536 /* stores that are remembered */
#define LOG	      4096  /* torn pairs that an executor can log until they are judged */
#define JUDGE_EVERY   (HISTORY / 4)
#define LOOK_EVERY    64	     /* stores between two looks at the clock and the logs, */
#define LOOK_TICKS    1000000	     /* unless one store takes so long */
#define PROVOKED_REST 1		     /* ticks: so that the clock is read again */
#define BARE_TICKS    10000000	     /* the mean of a phase's length, */
#define STAMPED_TICKS 40000000	     /* drawn anew each time: what is periodic has another period */
#define SETTLE_TICKS  (3 * GAP_LEAD) /* after it nobody is left with an older fetch */

struct gap_child {
	const struct cell *cell;
	hwloc_topology_t topology;
	struct gap_shared *shared;
	struct gap_code code;
	struct provokers *provokers; /* NULL: none */
	struct gap_history history;
	struct gap_executor *executors;
	pthread_barrier_t ready; /* patcher and executors, before the first store */
	uint64_t random;
	uint64_t phases;     /* another source, so that the rests stay what they are */
	uint64_t look_every; /* stores */
	uint64_t stored;     /* TSC after the latest stamped store */
	uint64_t rest;	     /* ticks from there to the next */
	uint64_t begin;	     /* TSC */
	double deadline;     /* 0: none */
	_Atomic(int) quit __attribute__((aligned(128)));
	_Atomic(int) error; /* the first negative errno of an executor */
};

/* What an executor writes lies on cache lines of its own. */
struct gap_executor {
	struct gap_child *child;
	struct tsc_offset offset;
	unsigned cpu;
	pthread_t thread;
	uint64_t judged; /* entries of the log */
	_Atomic(uint64_t) logged __attribute__((aligned(128)));
	_Atomic(uint64_t) executions; /* of finished rounds */
	_Atomic(uint64_t) lost;	      /* torn pairs that had no room */
	struct gap_fetch log[LOG];
} __attribute__((aligned(128)));

static void note(struct gap_executor *e, uint32_t value, uint64_t before, uint64_t after)
{
	uint64_t at = atomic_load_explicit(&e->logged, memory_order_relaxed);

	/* Acquire: pairs with the patcher's release when it has read them. */
	if (at - __atomic_load_n(&e->judged, __ATOMIC_ACQUIRE) >= LOG) {
		atomic_fetch_add_explicit(&e->lost, 1, memory_order_relaxed);
		return;
	}
	e->log[at % LOG] = (struct gap_fetch){ value, before, after };
	atomic_store_explicit(&e->logged, at + 1, memory_order_release);
}

/*
 * RDTSC without a fence is late enough: it is fetched behind the site, so it runs
 * after the site was fetched, and a fence would keep the front end from running
 * ahead as it does in programs.
 */
static void run_round(struct gap_executor *e, gap_fetch_fn *fetch, const void *arg)
{
	struct gap_layout layout = e->child->code.layout;
	uint64_t before = __rdtsc(), after;

	for (unsigned i = 0; i < ROUND; i++) {
		uint32_t value = fetch(arg);

		after = __rdtsc();
		if (__builtin_expect(gap_is_torn(layout, value), 0))
			note(e, value, before, after);
		before = after;
	}
	atomic_fetch_add_explicit(&e->executions, ROUND, memory_order_relaxed);
}

static uint32_t fetch_simulated(const void *arg)
{
	struct gap_child *c = (struct gap_child *)(uintptr_t)arg;
	struct gap_simulation *s = &c->shared->simulation;
	uint64_t begin = ticks_now(), lasted;
	uint32_t value = gap_code_load(&c->code, s->first, s->ticks);
	uint64_t longest = __atomic_load_n(&s->longest, __ATOMIC_RELAXED);

	lasted = ticks_now() - begin;
	while (lasted > longest && !__atomic_compare_exchange_n(&s->longest, &longest, lasted, true,
								__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return value;
}

static void *executor_main(void *arg)
{
	struct gap_executor *e = arg;
	struct gap_child *c = e->child;
	gap_fetch_fn *fetch = c->shared->simulation.on ? fetch_simulated : c->code.fetch;
	int ret = pin_this_thread(c->topology, e->cpu);
	struct rusage begin;

	if (ret < 0)
		atomic_store(&c->error, ret);
	pthread_barrier_wait(&c->ready);
	witness_thread_begin(&begin);
	while (!atomic_load_explicit(&c->quit, memory_order_relaxed)) {
		run_round(e, fetch, c);
		if (c->provokers)
			provoke_round(c->provokers);
	}
	witness_thread_end(&c->shared->result.witness, &begin);
	return NULL;
}

static void judge(struct gap_child *c, const struct gap_executor *e, const struct gap_fetch *fetch)
{
	struct gap_result *result = &c->shared->result;
	struct gap_verdict v = gap_judge(&c->history, c->code.layout, &e->offset, fetch);
	uint64_t time = fetch->after - (uint64_t)e->offset.offset - c->begin;

	if (v.is_gap)
		gap_tally_add(&result->kind[v.kind], v.ticks, time);
	else
		result->discarded[v.reason]++;
}

static void judge_log(struct gap_child *c, struct gap_executor *e)
{
	uint64_t logged = atomic_load_explicit(&e->logged, memory_order_acquire);

	for (uint64_t i = e->judged; i != logged; i++)
		judge(c, e, &e->log[i % LOG]);
	__atomic_store_n(&e->judged, logged, __ATOMIC_RELEASE);
}

static void judge_all(struct gap_child *c)
{
	for (unsigned i = 0; i < c->cell->executors; i++) {
		struct gap_executor *e = &c->executors[i];

		judge_log(c, e);
		c->shared->result.discarded[GAP_LOST] += atomic_exchange(&e->lost, 0);
	}
}

static bool is_half_full(const struct gap_executor *e)
{
	return atomic_load_explicit(&e->logged, memory_order_relaxed) - e->judged > LOG / 2;
}

static void judge_full(struct gap_child *c)
{
	for (unsigned i = 0; i < c->cell->executors; i++)
		if (is_half_full(&c->executors[i]))
			judge_log(c, &c->executors[i]);
}

/*
 * Forget what was logged while nothing was stamped. Except where the execution
 * began earlier, and its executor came to log it only now.
 */
static void forget_logs(struct gap_child *c, uint64_t since)
{
	for (unsigned i = 0; i < c->cell->executors; i++) {
		struct gap_executor *e = &c->executors[i];
		uint64_t logged = atomic_load_explicit(&e->logged, memory_order_acquire);

		for (uint64_t k = e->judged; k != logged; k++)
			if (e->log[k % LOG].before - (uint64_t)e->offset.offset < since)
				c->shared->result.discarded[GAP_PREEMPTED]++;
		__atomic_store_n(&e->judged, logged, __ATOMIC_RELEASE);
		atomic_store_explicit(&e->lost, 0, memory_order_relaxed);
	}
}

static uint64_t executions_now(const struct gap_child *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < c->cell->executors; i++)
		sum += atomic_load_explicit(&c->executors[i].executions, memory_order_relaxed);
	return sum;
}

/*
 * Half of the stores follow at once, so that short gaps are seen, and of both
 * kinds: either part may come first. The others keep the mean.
 */
static uint64_t draw_rest(struct gap_child *c)
{
	uint64_t random = random_next(&c->random);

	if (random % 2 || !c->cell->rest)
		return 0;
	return random / 2 % (4 * c->cell->rest + 1);
}

static int fence(const struct gap_child *c)
{
	return c->cell->protocol == PROTOCOL_MEMBARRIER ? membarrier_sync() : 0;
}

static void put_next(struct gap_child *c, uint64_t number)
{
	gap_code_store(&c->code, (enum gap_part)(number % GAP_PARTS), number / GAP_PARTS);
}

static int store_bare(struct gap_child *c)
{
	uint64_t rest = draw_rest(c);

	put_next(c, c->history.next++);
	if (rest)
		ticks_wait(rest);
	if (rest && c->provokers)
		provoke_toggle(c->provokers);
	return fence(c);
}

/*
 * The last reading of the clock before the store. Whether the loop ends depends
 * on it, so the locked store cannot be visible any earlier.
 */
static uint64_t rest_since(uint64_t start, uint64_t ticks)
{
	uint64_t now;

	do
		now = __rdtsc();
	while (now - start < ticks);
	return now;
}

static int store_stamped(struct gap_child *c)
{
	uint64_t rest = draw_rest(c), number = c->history.next;
	struct gap_store *store = gap_history_add(&c->history);

	store->before = rest_since(c->stored, c->rest);
	if (c->rest && c->provokers) {
		provoke_toggle(c->provokers);
		store->before = rest_since(ticks_now(), PROVOKED_REST);
	}
	put_next(c, number);
	c->stored = store->after = ticks_now();
	c->rest = rest;
	return fence(c);
}

static bool is_over(const struct gap_child *c)
{
	if (atomic_load_explicit(&c->shared->stop, memory_order_relaxed) ||
	    atomic_load_explicit(&c->error, memory_order_relaxed) < 0)
		return true;
	if (c->shared->result.stores >= GAP_PARTS * c->cell->toggles)
		return true;
	return c->deadline > 0 && seconds_now() >= c->deadline;
}

/* The stores of one phase are told to the parent, and counted, at each look. */
static void look(struct gap_child *c, uint64_t *stores, uint64_t done)
{
	*stores += done;
	atomic_fetch_add_explicit(&c->shared->stores, done, memory_order_relaxed);
}

static int run_bare(struct gap_child *c)
{
	struct gap_result *result = &c->shared->result;
	double begin = seconds_now();
	uint64_t length = random_about(&c->phases, BARE_TICKS), ticks = ticks_now();
	int ret = 0;

	while (ret == 0 && ticks_now() - ticks < length && !is_over(c)) {
		for (uint64_t i = 0; i < c->look_every && ret == 0; i++)
			ret = store_bare(c);
		look(c, &result->bare_stores, c->look_every);
	}
	result->bare_seconds += seconds_now() - begin;
	return ret;
}

static int run_stamped(struct gap_child *c)
{
	struct gap_result *result = &c->shared->result;
	uint64_t executions = executions_now(c), judged = c->history.next;
	uint64_t length = random_about(&c->phases, STAMPED_TICKS);
	uint64_t ticks = c->stored = ticks_now();
	double begin = seconds_now();
	int ret = 0;

	while (ret == 0 && ticks_now() - ticks < length && !is_over(c)) {
		for (uint64_t i = 0; i < c->look_every && ret == 0; i++)
			ret = store_stamped(c);
		look(c, &result->stores, c->look_every);
		judge_full(c);
		if (c->history.next - judged >= JUDGE_EVERY) {
			judge_all(c);
			judged = c->history.next;
		}
	}
	judge_all(c);
	result->seconds += seconds_now() - begin;
	result->executions += executions_now(c) - executions;
	return ret;
}

static int patch(struct gap_child *c)
{
	uint64_t since = 0;
	int ret = 0;

	while (ret == 0 && !is_over(c)) {
		ret = run_bare(c);
		gap_history_restart(&c->history, ticks_now());
		ticks_wait(SETTLE_TICKS);
		forget_logs(c, since);
		if (ret == 0)
			ret = run_stamped(c);
		since = ticks_now();
		ticks_wait(SETTLE_TICKS);
		judge_all(c);
	}
	return ret;
}

static int measure_offsets(struct gap_child *c)
{
	unsigned here = c->shared->result.seating.patcher;
	int ret = 0;

	for (unsigned i = 0; i < c->cell->executors && ret == 0; i++)
		ret = tsc_offset_measure(c->topology, here, c->executors[i].cpu,
					 &c->executors[i].offset);
	return ret;
}

/* Again, and what is known of the worst of them. */
static int measure_offsets_after(struct gap_child *c)
{
	struct gap_result *result = &c->shared->result;
	int ret = 0;

	for (unsigned i = 0; i < c->cell->executors && ret == 0; i++) {
		struct gap_executor *e = &c->executors[i];
		struct tsc_offset after, joined;

		ret = tsc_offset_measure(c->topology, result->seating.patcher, e->cpu, &after);
		if (ret < 0)
			return ret;
		joined = tsc_offset_join(&e->offset, &after);
		if (i == 0 || joined.error > result->offset.error)
			result->offset = joined;
		if (joined.error > e->offset.error + GAP_DRIFT)
			ret = -ERANGE;
	}
	return ret;
}

static int start_executors(struct gap_child *c)
{
	for (unsigned i = 0; i < c->cell->executors; i++) {
		struct gap_executor *e = &c->executors[i];

		/* Those already started wait at the barrier; the exit of the child ends them. */
		if (pthread_create(&e->thread, NULL, executor_main, e) != 0)
			return -EAGAIN;
	}
	return 0;
}

static int allocate(struct gap_child *c)
{
	size_t size = c->cell->executors * sizeof(*c->executors);

	c->history.size = HISTORY;
	c->history.ring = calloc(HISTORY, sizeof(*c->history.ring));
	/* Pages of a log are touched as it fills: most never are. */
	c->executors = aligned_alloc(_Alignof(struct gap_executor), size);
	if (!c->history.ring || !c->executors)
		return -ENOMEM;
	for (unsigned i = 0; i < c->cell->executors; i++) {
		struct gap_executor *e = &c->executors[i];

		e->child = c;
		e->cpu = c->shared->result.seating.executor[i];
		e->judged = 0;
		atomic_init(&e->logged, 0);
		atomic_init(&e->executions, 0);
		atomic_init(&e->lost, 0);
	}
	return 0;
}

static int prepare(struct gap_child *c)
{
	int ret = pin_this_thread(c->topology, c->shared->result.seating.patcher);

	if (ret == 0)
		ret = allocate(c);
	if (ret == 0)
		ret = gap_code_build(&c->code, c->cell);
	if (ret == 0 && c->cell->protocol == PROTOCOL_MEMBARRIER)
		ret = membarrier_register();
	if (ret == 0)
		ret = measure_offsets(c);
	if (ret == 0)
		ret = -pthread_barrier_init(&c->ready, NULL, c->cell->executors + 1);
	return ret;
}

static int run(struct gap_child *c)
{
	struct witness *witness = &c->shared->result.witness;
	struct rusage usage;
	int ret = prepare(c);

	if (ret < 0)
		return ret;
	witness_before(witness, c->topology, &c->shared->result.seating);
	if (c->cell->provokers)
		ret = provokers_start(&c->provokers, c->cell, c->topology,
				      &c->shared->result.seating, c->code.site);
	if (ret == 0)
		ret = start_executors(c);
	if (ret < 0)
		return ret;
	pthread_barrier_wait(&c->ready);
	witness_thread_begin(&usage);
	c->begin = ticks_now();
	c->deadline = c->cell->seconds > 0 ? seconds_now() + c->cell->seconds : 0;
	ret = patch(c);
	witness_thread_end(witness, &usage);
	atomic_store_explicit(&c->quit, 1, memory_order_relaxed);
	for (unsigned i = 0; i < c->cell->executors; i++)
		pthread_join(c->executors[i].thread, NULL);
	judge_all(c);
	provokers_stop(c->provokers);
	witness_after(witness);
	if (ret == 0)
		ret = atomic_load(&c->error);
	return ret < 0 ? ret : measure_offsets_after(c);
}

void gap_child_run(const struct cell *cell, hwloc_topology_t topology, struct gap_shared *shared)
{
	static struct gap_child child;

	child.cell = cell;
	child.topology = topology;
	child.shared = shared;
	child.random = cell->seed;
	child.phases = ~cell->seed;
	child.look_every = cell->rest > LOOK_TICKS / LOOK_EVERY ? 1 : LOOK_EVERY;
	shared->result.error = run(&child);
	shared->result.outcome = OUTCOME_DONE;
	if (shared->result.error < 0)
		shared->result.outcome = OUTCOME_ERROR;
	else if (atomic_load(&shared->stop))
		shared->result.outcome = OUTCOME_INTERRUPTED;
	/* Release: pairs with the parent's acquire. */
	atomic_store_explicit(&shared->finished, 1, memory_order_release);
}
