/* SPDX-License-Identifier: MIT */
#include "conform/rounds.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/random.h"

#define SLICE_LEAST 0.01 /* seconds */
#define SLICE_MOST  1.0
#define AGAIN_EACH  3 /* other partners for either CPU of a cell that failed */

/* --- Order ------------------------------------------------------------------------------------ */

/* A step through all distances but 0, near the golden section, so that few rounds see all kinds. */
static unsigned step_of(unsigned distances)
{
	unsigned step = (unsigned)(0.618 * distances), a, b;

	for (step += step == 0;; step++) {
		for (a = distances, b = step; b;) {
			unsigned rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			return step;
	}
}

uint64_t count_turns(const struct order *o)
{
	return (uint64_t)o->promises * (o->fixed ? 1 : o->cpus);
}

unsigned find_partner(const struct order *o, unsigned cpu, unsigned other, unsigned k)
{
	unsigned left = o->cpus;

	for (unsigned i = (cpu + 1 + k * (o->cpus / 4 + 1)) % o->cpus; left > 0; left--) {
		if (i != cpu && i != other)
			return i;
		i = (i + 1) % o->cpus;
	}
	return cpu;
}

struct turn find_turn(const struct order *o, uint64_t n)
{
	unsigned distances = o->cpus > 1 ? o->cpus - 1 : 1;
	uint64_t round = n / count_turns(o), rest = n % count_turns(o);
	struct turn t = { .promise = (unsigned)(rest % o->promises) };
	unsigned distance = 1 + (unsigned)(round % distances * step_of(distances) % distances);

	/* Where the number of distances is even, each would have the same load every time. */
	t.loaded = (round + (distances % 2 ? 0 : round / distances)) % 2;
	t.writer = o->fixed ? 0 : (unsigned)((o->first + rest / o->promises) % o->cpus);
	t.executor = o->cpus > 1 ? (t.writer + (o->fixed ? 1 : distance)) % o->cpus : t.writer;
	t.load_on = find_partner(o, t.executor, t.writer, 0);
	return t;
}

/* --- Trying ----------------------------------------------------------------------------------- */

struct running {
	struct conformance *c;
	const struct conform_request *r;
	struct order order;
	double slice, begin, used;
	uint64_t cells; /* so far: their seeds differ */
	unsigned again;
};

/* By the clock, or by what the cells say that they took: tests have no machine of 200 CPUs. */
static double seconds_spent(const struct running *run)
{
	return fmax(seconds_now() - run->begin, run->used);
}

static bool is_stopped(const struct running *run)
{
	return run->r->stop && *run->r->stop;
}

static int run_turn(struct running *run, const struct turn *turn, bool *failed)
{
	const struct conform_request *r = run->r;
	struct tried *t = &run->c->tried[turn->promise];
	bool alone = t->guarantee->threads == 1;
	struct conform_cell cell = {
		.guarantee = t->guarantee,
		.writer = r->cpu[turn->writer],
		.executor = r->cpu[alone ? turn->writer : turn->executor],
		.seconds = run->slice,
		.fault = r->fault,
		.fault_on_one = r->fault_on_one,
		.fault_on = r->fault_on,
		.loaded = r->load == LOAD_IN_TURN ? turn->loaded : r->load != LOAD_NONE,
		.load_on = r->load < 0 ? r->cpu[turn->load_on] : (unsigned)r->load,
	};
	struct conformance *c = run->c;
	struct run_options options = { .stop = r->stop };
	struct conform_result result;
	int ret;

	cell.seed = r->fixed && run->cells == 0 ? r->seed : random_at(r->seed, run->cells) >> 1;
	run->cells++;
	ret = r->try_one(&cell, &options, &result);
	if (ret < 0)
		result = (struct conform_result){ .error = ret, .outcome = OUTCOME_ERROR };
	/* Trials of a cell that was no test show nothing, unless one failed. */
	if (result.error && !result.failures)
		result.trials = 0;
	run->used += result.seconds;
	t->cells++;
	if (result.failures && !t->failures)
		t->until = t->seconds + result.until;
	t->trials += result.trials;
	t->failures += result.failures;
	t->seconds += result.seconds;
	t->hung += result.outcome == OUTCOME_HANG;
	t->untried += !result.trials;
	t->error = result.error ? result.error : t->error;
	*failed = result.failures > 0;
	if (*failed) {
		t->failed++;
		if (c->faileds < FAILED_MAX)
			c->failed[c->faileds++] = (struct failed){ cell, result };
	}
	if (!result.trials || (*failed && t->excused))
		return 0;
	return ARRAY_ADD(c->pair, c->pairs,
			 (struct tried_pair){ turn->writer, alone ? turn->writer : turn->executor,
					      *failed });
}

/* Which of the two was it? Either with others. */
static int run_again(struct running *run, const struct turn *turn)
{
	bool failed;
	int ret = 0;

	if (run->r->fixed || run->order.cpus < 3 ||
	    run->c->tried[turn->promise].guarantee->threads == 1)
		return 0;
	for (unsigned k = 0; k < 2 * AGAIN_EACH && run->again < AGAIN_MOST && ret == 0; k++) {
		struct turn other = *turn;

		if (is_stopped(run))
			break;
		if (k % 2)
			other.writer =
				find_partner(&run->order, turn->executor, turn->writer, k / 2);
		else
			other.executor =
				find_partner(&run->order, turn->writer, turn->executor, k / 2);
		run->again++;
		ret = run_turn(run, &other, &failed);
	}
	return ret;
}

int conform_request_all(struct conform_request *r, const struct cpus *cpus)
{
	r->cpu = calloc(cpus_count(cpus) + 1, sizeof(*r->cpu));
	if (!r->cpu)
		return -ENOMEM;
	r->cpus = r->promises = 0;
	for (unsigned i = 0; i < CPUS_MAX; i++)
		if (cpus->word[i / 64] >> (i % 64) & 1)
			r->cpu[r->cpus++] = i;
	for (const struct guarantee *g = guarantees; g->name; g++)
		r->promise[r->promises++] = g;
	return 0;
}

int conformance_try(struct conformance *c, const struct conform_request *r)
{
	struct running run = {
		.c = c,
		.r = r,
		.order = { r->cpus, r->promises, r->strict ? (unsigned)(r->seed % r->cpus) : 0,
			   r->fixed },
		.begin = seconds_now(),
	};
	uint64_t round;
	int ret = 0;

	*c = (struct conformance){ .count = r->promises };
	for (unsigned i = 0; i < r->promises; i++)
		c->tried[i] = (struct tried){
			.guarantee = r->promise[i],
			.excused = r->broadcast && r->promise[i]->by_interrupt && !r->fault,
		};
	/* Two rounds: one without load, and one with it. */
	round = count_turns(&run.order);
	run.slice = r->budget / (2.0 * (double)round);
	run.slice = fmin(fmax(run.slice, SLICE_LEAST), SLICE_MOST);
	for (uint64_t n = 0; ret == 0 && !is_stopped(&run); n++) {
		struct turn turn = find_turn(&run.order, n);
		bool first = n < round, failed;

		if (seconds_spent(&run) + run.slice > r->budget &&
		    (!first || (r->strict && n >= run.order.promises)))
			break;
		ret = run_turn(&run, &turn, &failed);
		if (ret == 0 && failed)
			ret = run_again(&run, &turn);
		if (ret == 0 && first && turn.promise + 1 == run.order.promises)
			c->reached++;
	}
	c->seconds = seconds_spent(&run);
	if (ret == 0) {
		c->suspects = suspects_find(c->pair, c->pairs, r->cpus, c->suspect);
		ret = c->suspects < 0 ? c->suspects : 0;
	}
	return ret;
}

void conformance_free(struct conformance *c)
{
	free(c->pair);
}

/* --- In words --------------------------------------------------------------------------------- */

enum conformance_status conformance_status(const struct conformance *c)
{
	enum conformance_status status = CONFORMS;

	for (unsigned i = 0; i < c->count; i++) {
		enum promise_status promise = tried_status(&c->tried[i]);

		if (promise == PROMISE_BROKEN)
			return CONFORM_BROKEN;
		if (promise != PROMISE_HOLDS)
			status = CONFORM_INCONCLUSIVE;
	}
	return status;
}

const char *conformance_verdict(const struct conformance *c)
{
	static const char *const words[] = { "conforms", "broken", "inconclusive" };

	return words[conformance_status(c)];
}

enum promise_status tried_status(const struct tried *t)
{
	if (t->failures)
		return t->excused ? PROMISE_UNCLEAR : PROMISE_BROKEN;
	if (t->error == CONFORM_UNSEATED || t->error == CONFORM_IDLE || t->hung)
		return PROMISE_ERROR;
	if (!t->trials)
		return PROMISE_UNTRIED;
	return rate_excluded(t->trials) > RATE_TO_SHOW ? PROMISE_TOO_LITTLE : PROMISE_HOLDS;
}

const char *promise_status_name(enum promise_status status)
{
	static const char *const names[] = {
		[PROMISE_HOLDS] = "holds",     [PROMISE_BROKEN] = "BROKEN",
		[PROMISE_UNCLEAR] = "unclear", [PROMISE_TOO_LITTLE] = "too little",
		[PROMISE_ERROR] = "error",     [PROMISE_UNTRIED] = "not tried",
	};

	return names[status];
}

static const char *error_text(const struct tried *t)
{
	return t->error == CONFORM_UNSEATED ? "a thread was not on its CPU"
	       : t->error == CONFORM_IDLE   ? "the executor never ran"
	       : t->error		    ? strerror(-t->error)
	       : t->hung		    ? "a cell hung"
					    : "its turn did not come";
}

void tried_reason(const struct tried *t, char *text, size_t size)
{
	unsigned tried = t->cells - t->untried;

	if (t->failures)
		snprintf(text, size, "%" PRIu64 " failure%s in %s trials, in %u of %u cells%s",
			 t->failures, S(t->failures), NUMBER(t->trials), t->failed, t->cells,
			 t->excused ? "; no defect is shown: this kernel may flush TLBs by "
				      "broadcast (INVLPGB), without an interrupt"
				    : "");
	else if (tried_status(t) == PROMISE_ERROR)
		snprintf(text, size, "%s; %u of %u cells were tried", error_text(t), tried,
			 t->cells);
	else if (t->trials)
		snprintf(text, size,
			 "%s trials in %u cell%s; 1 failure in %s would have shown with 99 %%",
			 NUMBER(t->trials), tried, S(tried),
			 NUMBER(floor(1 / rate_excluded(t->trials))));
	else
		snprintf(text, size, "%s", error_text(t));
}

void conform_command(const struct conform_cell *cell, char *text, size_t size)
{
	char fault[64] = "", load[24] = "none", on[24] = "", executor[24] = "";

	if (cell->fault_on_one)
		snprintf(on, sizeof(on), " --broken-on %u", cell->fault_on);
	if (cell->fault)
		snprintf(fault, sizeof(fault), " --broken %s%s", fault_name(cell->fault), on);
	if (cell->loaded)
		snprintf(load, sizeof(load), "%u", cell->load_on);
	if (cell->executor != cell->writer)
		snprintf(executor, sizeof(executor), ",%u", cell->executor);
	snprintf(text, size, "tmax conform --only %s --cpus %u%s --load %s --seed %" PRIu64 "%s",
		 cell->guarantee->name, cell->writer, executor, load, cell->seed, fault);
}
