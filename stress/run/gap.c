/* SPDX-License-Identifier: MIT */
#include "stress/run/gap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "stress/base/clock.h"
#include "stress/run/gap_child.h"
#include "stress/run/isolate.h"
#include "stress/witness/witness.h"

/* Stores follow each other closely: what is shorter than the rest is seen seldom. */
#define DEFAULT_REST	500 /* ticks */
#define DEFAULT_SECONDS 5.0

/* A gap run: what the parent holds of it. */
struct gap_parent {
	const struct cell *cell;
	const struct run_options *options;
	struct gap_shared *shared;
};

void gap_defaults(struct cell *cell)
{
	cell_defaults(cell);
	cell->pair = PAIR_WORD;
	cell->first_wait = 0;
	cell->second_wait = 0;
	cell->rest = DEFAULT_REST;
	cell->toggles = CELL_TOGGLES_MAX;
	cell->seconds = DEFAULT_SECONDS;
}

static int refuse(char *reason, size_t size, const char *text)
{
	snprintf(reason, size, "%s", text);
	return -EINVAL;
}

int gap_check(const struct cell *cell, char *reason, size_t size)
{
	struct cell plain = *cell;

	if (cell->split == 1)
		return refuse(reason, size,
			      "the split must be 2 to 4: one byte in front is the opcode alone");
	if (cell->pair != PAIR_WORD || cell->oracle != ORACLE_COUNT)
		return refuse(reason, size, "a gap run has pair word and oracle count");
	if (cell->protocol != PROTOCOL_WAIT && cell->protocol != PROTOCOL_MEMBARRIER)
		return refuse(reason, size, "the protocol must be wait or membarrier");
	if (cell->provokers & (1u << PROVOKER_SITES))
		return refuse(reason, size, "a gap run has one site: no provoker sites");
	/* Here crossing none is a control: its two parts are stored apart all the same. */
	if (plain.crossing == CROSSING_NONE)
		plain.crossing = CROSSING_8;
	return cell_check(&plain, reason, size);
}

static void run_inside(void *arg)
{
	struct gap_parent *p = arg;

	gap_child_run(p->cell, p->options->topology, p->shared);
}

static void tell_progress(void *arg)
{
	struct gap_parent *p = arg;
	struct cell_result so_far = { 0 };

	if (!p->options->progress)
		return;
	so_far.toggles = atomic_load_explicit(&p->shared->stores, memory_order_relaxed) / 2;
	p->options->progress(p->options->arg, &so_far);
}

static int run_seated(struct gap_parent *p, struct gap_result *result)
{
	const struct isolated what = {
		.inside = run_inside,
		.look = tell_progress,
		.arg = p,
		.stop = &p->shared->stop,
		.life = &p->shared->stores,
		.options = p->options,
		.seating = &p->shared->result.seating,
	};
	struct gap_result *inside = &p->shared->result;
	struct witness_mark before, after;
	double begin = seconds_now();
	struct ending ending;
	int ret;

	witness_clear(&inside->witness);
	witness_mark(&inside->seating, &before);
	ret = isolate(&what, &ending);
	if (ret < 0)
		return ret;
	witness_mark(&inside->seating, &after);
	*result = *inside;
	if (!atomic_load_explicit(&p->shared->finished, memory_order_acquire)) {
		result->outcome = ending.outcome;
		result->signal = ending.signal;
		witness_threads_lost(&result->witness);
	}
	witness_between(&result->witness, &result->seating, &before, &after, seconds_now() - begin);
	result->witness.load = witness_load();
	return 0;
}

int gap_run_simulated(const struct cell *cell, const struct run_options *options,
		      struct gap_simulation *simulation, struct gap_result *result)
{
	struct gap_parent p = { .cell = cell, .options = options };
	char reason[160];
	int ret;

	*result = (struct gap_result){ 0 };
	ret = gap_check(cell, reason, sizeof(reason));
	if (ret < 0)
		return ret;
	p.shared = mmap(NULL, sizeof(*p.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (p.shared == MAP_FAILED)
		return -ENOMEM;
	p.shared->simulation = *simulation;
	ret = cell_seat(cell, options->topology, &p.shared->result.seating, reason, sizeof(reason));
	if (ret == 0)
		ret = run_seated(&p, result);
	*simulation = p.shared->simulation;
	munmap(p.shared, sizeof(*p.shared));
	return ret;
}

int gap_run(const struct cell *cell, const struct run_options *options, struct gap_result *result)
{
	struct gap_simulation none = { .on = false };

	return gap_run_simulated(cell, options, &none, result);
}

int gap_command(const struct cell *c, char *buf, size_t size)
{
	char provokers[PROVOKERS_MAX];

	return snprintf(
		buf, size,
		"tmax gaps --placement %s --crossing %s --split %u --executors %u "
		"--protocol %s --rest %" PRIu64 " --provoker %s --loop %u --toggles %" PRIu64
		" --seconds %.9g --seed %" PRIu64,
		placement_name(c->placement), crossing_name(c->crossing), c->split, c->executors,
		protocol_name(c->protocol), c->rest, provokers_name(c->provokers, provokers),
		c->loop, c->toggles, c->seconds, c->seed);
}
