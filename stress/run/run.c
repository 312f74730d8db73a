/* SPDX-License-Identifier: MIT */
#include "stress/run/run.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stress/placement/place.h"
#include "stress/run/child.h"

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

static void run_inside(void *arg)
{
	struct watch *w = arg;

	child_run(w->cell, w->options->topology, w->shared);
}

/* The child did not finish: rescue what its executors had counted. */
static void rescue_counts(struct watch *w, const struct ending *ending, struct cell_result *result)
{
	for (unsigned i = 0; w->shared->code.loop && i < w->cell->executors; i++) {
		struct executor_counts *counts = &w->shared->executor[i];

		uint64_t known = 0, finished = atomic_load(&counts->executions);

		/* The round in which it died was not added, but its slots were counted. */
		for (unsigned k = 0; k < CODE_SLOTS; k++)
			known += counts->slots[0].at[k];
		/* NOPs leave no trace: only finished rounds tell of them. */
		if (w->shared->code.codes == 2 && finished > known)
			known = finished;
		code_collect(&w->shared->code, counts->slots, known, result);
	}
	result->toggles = atomic_load(&w->shared->leash.life);
	if (w->shared->code.loop)
		child_sum(w->shared, result);
	result->signal = ending->signal;
	result->outcome = ending->outcome;
	if (result->outcome != OUTCOME_CRASH)
		return;
	/*
	 * A mix that was not foreseen; with the crash oracle, any mix. It is counted here and
	 * nowhere else. The toggle that it tore may be beyond those that were told of.
	 */
	result->tears[TEAR_OTHER]++;
	result->torn++;
	/* Of several sites it may be any. */
	for (unsigned i = 0; i < CELL_INSIDE && w->cell->crossing == CROSSING_INSIDE; i++)
		result->torn_inside[i]++;
	if (result->toggles < result->torn)
		result->toggles = result->torn;
}

int cell_run(const struct cell *cell, const struct run_options *options, struct cell_result *result)
{
	struct watch w = { .cell = cell, .options = options };
	struct isolated what = { .inside = run_inside, .arg = &w, .parts = 1, .options = options };
	struct ending ending;
	char reason[160];
	int ret;

	*result = (struct cell_result){ 0 };
	ret = cell_check(cell, reason, sizeof(reason));
	if (ret == 0 && cell->place)
		ret = place_open();
	if (ret < 0)
		return ret;
	w.shared = mmap(NULL, shared_size(cell), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (w.shared == MAP_FAILED)
		return -ENOMEM;
	what.leash = &w.shared->leash;
	what.seating = &w.shared->result.seating;
	what.witness = &w.shared->result.witness;
	ret = cell_seat(cell, options->topology, &w.shared->result.seating, reason, sizeof(reason));
	if (ret == 0)
		ret = isolate(&what, &ending);
	if (ret == 0)
		*result = w.shared->result;
	if (ret == 0 && !ending.finished) {
		rescue_counts(&w, &ending, result);
		result->seconds = ending.seconds;
	}
	munmap(w.shared, shared_size(cell));
	return ret;
}
