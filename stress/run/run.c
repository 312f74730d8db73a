/* SPDX-License-Identifier: MIT */
#include "stress/run/run.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stress/base/clock.h"
#include "stress/placement/place.h"
#include "stress/run/child.h"
#include "stress/run/isolate.h"
#include "stress/witness/witness.h"

/* A cell being run: what the parent holds of it. */
struct watch {
	const struct cell *cell;
	const struct run_options *options;
	struct shared *shared;
};

static size_t shared_size(const struct cell *cell)
{
	return sizeof(struct shared) + cell->executors * sizeof(struct executor_counts);
}

static struct shared *share(const struct cell *cell)
{
	void *p = mmap(NULL, shared_size(cell), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void run_inside(void *arg)
{
	struct watch *w = arg;

	child_run(w->cell, w->options->topology, w->shared);
}

static void tell_progress(void *arg)
{
	struct watch *w = arg;
	struct cell_result so_far = { 0 };

	if (!w->options->progress)
		return;
	so_far.toggles = atomic_load_explicit(&w->shared->toggles, memory_order_relaxed);
	so_far.tears[TEAR_OTHER] = atomic_load_explicit(&w->shared->tears, memory_order_relaxed);
	w->options->progress(w->options->arg, &so_far);
}

/* The round in which it died was not added, but its slots were counted. */
static uint64_t known_executions(const struct watch *w, struct executor_counts *counts)
{
	uint64_t known = 0, finished = atomic_load(&counts->executions);

	for (unsigned i = 0; i < CODE_SLOTS; i++)
		known += counts->slots.at[i];
	/* NOPs leave no trace: only finished rounds tell of them. */
	return w->shared->code.codes == 2 && finished > known ? finished : known;
}

/*
 * A mix that was not foreseen; with the crash oracle, any mix. It is counted here and
 * nowhere else. The toggle that it tore may be beyond those that were told of.
 */
static void count_crash(struct cell_result *result)
{
	result->tears[TEAR_OTHER]++;
	result->torn++;
	if (result->toggles < result->torn)
		result->toggles = result->torn;
}

/* The child did not finish: rescue what its executors had counted. */
static void rescue(struct watch *w, const struct ending *ending, struct cell_result *result)
{
	for (unsigned i = 0; w->shared->code.loop && i < w->cell->executors; i++) {
		struct executor_counts *counts = &w->shared->executor[i];

		code_collect(&w->shared->code, &counts->slots, known_executions(w, counts), result);
	}
	result->toggles = atomic_load(&w->shared->toggles);
	if (w->shared->code.loop)
		child_sum(w->shared, result);
	result->signal = ending->signal;
	result->outcome = ending->outcome;
	if (result->outcome == OUTCOME_CRASH)
		count_crash(result);
}

static int run_seated(struct watch *w, struct cell_result *result)
{
	const struct isolated what = {
		.inside = run_inside,
		.look = tell_progress,
		.arg = w,
		.stop = &w->shared->stop,
		.life = &w->shared->toggles,
		.options = w->options,
		.seating = &w->shared->result.seating,
	};
	struct ending ending;
	struct seating *seating = &w->shared->result.seating;
	struct witness_mark before, after;
	double begin = seconds_now(), lasted;
	int ret;

	witness_clear(&w->shared->result.witness);
	witness_mark(seating, &before);
	ret = isolate(&what, &ending);
	if (ret < 0)
		return ret;
	lasted = seconds_now() - begin;
	*result = w->shared->result;
	if (!atomic_load_explicit(&w->shared->finished, memory_order_acquire)) {
		rescue(w, &ending, result);
		result->seconds = lasted;
		witness_threads_lost(&result->witness);
	}
	witness_mark(seating, &after);
	witness_between(&result->witness, seating, &before, &after, lasted);
	result->witness.load = witness_load();
	return 0;
}

int cell_run(const struct cell *cell, const struct run_options *options, struct cell_result *result)
{
	struct watch w = { .cell = cell, .options = options };
	char reason[160];
	int ret;

	*result = (struct cell_result){ 0 };
	ret = cell_check(cell, reason, sizeof(reason));
	if (ret == 0 && cell->place)
		ret = place_open();
	if (ret < 0)
		return ret;
	w.shared = share(cell);
	if (!w.shared)
		return -ENOMEM;
	ret = cell_seat(cell, options->topology, &w.shared->result.seating, reason, sizeof(reason));
	if (ret == 0)
		ret = run_seated(&w, result);
	munmap(w.shared, shared_size(cell));
	return ret;
}
