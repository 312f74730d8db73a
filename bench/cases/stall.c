/* SPDX-License-Identifier: MIT */
/*
 * What an executor loses while the site that it runs is being changed.
 *
 * Some 50,000 ticks after one change, never the same, comes the next. The sample of a change is
 * the longest pass that the executor made from just before it until the next. The baseline
 * "idle" is that of the same executor in windows just as long, one for one, in which nothing is
 * changed: so interrupts, and the reading of the clock, are in both.
 *
 * In two parts, each a bench_measure() of its own: first everything with one executor, while no
 * other exists, since stop-the-world and ptrace stop every thread there is, also sleeping ones;
 * then the loss of more executors.
 *
 * It reads the TSC behind every pass, so each pass is timed from the end of the one before, and
 * nothing that holds the executor up is missed. The patcher announces a number before each
 * change; the executor looks at it behind each pass, and keeps the longest pass per number. A
 * pass belongs to the number that stood when it had ended. When the number has changed the
 * executor lost the line that it stands in, through the measuring alone: the clock is read anew
 * then, so that this is in no pass. Let it see the number before the change is made.
 *
 * How fine that is: a reading is an LFENCE and an RDTSC, 20 to 40 ticks, and is part of each
 * pass, so an untouched pass is some 40 to 80 ticks, and the machine cannot run ahead from one
 * pass into the next. The TSC of some machines moves in steps of up to 40 ticks. What holds an
 * executor up for less than about 50 ticks is not seen. Two readings in STALL_ROUND passes
 * have the executor's other business between them; what falls there is not seen either.
 *
 * tmax-bench(1) has the extras of a row.
 */
#include <errno.h>
#include <gsl/gsl_sort_ulong.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench/peers/ways.h"
#include "patchcore/async.h"
#include "patchcore/site/site.h"

#define STALL_WINDOWS 50  /* numbers that can be announced, from 1 on */
#define STALL_ROUND   32  /* passes at once */
#define STALL_EARLY   257 /* passes that tell what is usual */

/* What happened under one number, ticks. */
struct stall_window {
	uint64_t worst;	 /* the longest pass */
	uint64_t passes; /* that ended then */
};

/* Of one executor, written by it alone. */
struct stall_log {
	unsigned at;		 /* number seen last */
	_Atomic(uint64_t) usual; /* median pass under number 0; 0: not yet known */
	unsigned early;
	uint64_t early_pass[STALL_EARLY];
	struct stall_window window[STALL_WINDOWS + 1];
} __attribute__((aligned(128)));

struct stall_record {
	_Atomic(unsigned) announced __attribute__((aligned(128)));
	loop_fn *run __attribute__((aligned(128))); /* one pass: run(1, counts) */
	struct stall_log *log;			    /* one per executor */
};

#define STALL_BATCH 100 /* sites */
#define STALL_SPECS 14

struct stall_spec {
	struct site_spec site;
	bool all;	  /* also with all executors there are */
	unsigned windows; /* in a block; 0: STALL_WINDOWS */
};

#define REST   37500 /* ticks from a change to the next, at least */
#define JITTER 25000 /* ticks, up to */
#define CASES  32

/* clang-format off */
static const struct stall_spec stall_specs[STALL_SPECS] = {
	{ .site = { WAY_ALIGNED, .has_split = true }, .all = true },
	{ .site = { WAY_CALL, .has_split = true } },
	{ .site = { WAY_CALL, 3, .has_split = true }, .all = true },
	{ .site = { WAY_STRADDLER, 3, .has_split = true, SITE_WAIT }, .all = true },
	{ .site = { WAY_STRADDLER, 3, .has_split = true, SITE_MEMBARRIER }, .all = true },
	{ .site = { WAY_START, 3, .has_split = true, SITE_WAIT } },
	{ .site = { WAY_START, 3, .has_split = true, SITE_MEMBARRIER } },
	{ .site = { WAY_BATCH, 3, .has_split = true, SITE_WAIT, .batch = STALL_BATCH } },
	{ .site = { WAY_BATCH, 3, .has_split = true, SITE_MEMBARRIER, .batch = STALL_BATCH } },
	{ .site = { .way = WAY_FLAG } },
	{ .site = { .way = WAY_POINTER } },
	{ .site = { WAY_HAND, 3, .has_split = true }, .all = true },
	{ .site = { WAY_STOP, 3, .has_split = true }, .windows = 40 },
	{ .site = { WAY_PTRACE, 3, .has_split = true }, .windows = 20 },
};
/* clang-format on */

struct stall_case {
	struct bench_site site;
	const struct stall_spec *spec;
	const struct way *way;
	struct stall *stall;
	unsigned executors;
	struct spare spare;	      /* of a batch */
	unsigned state;		      /* that the site is in */
	uint64_t changes;	      /* so far */
	uint64_t traps;		      /* that they made */
	uint64_t took[STALL_WINDOWS]; /* of the last block: ticks of each change */
	uint64_t usual;		      /* pass of the first executor, ticks */
	int ret;		      /* of its being built, and why */
	char why[BENCH_WHY];
};

/*
 * What a block needs, shared by the cases. What executors read has lines of its own, or they
 * would be held up by what the patcher writes beside it.
 */
struct stall {
	struct hot_work work __attribute__((aligned(128)));
	struct stall_record record __attribute__((aligned(128)));
	struct hot *hot __attribute__((aligned(128)));
	uint64_t random; /* of the jitter */
	struct stall_case site[CASES];
	struct bench_case cases[CASES], idle[CASES];
	size_t count;
};

/* --- What an executor notes ------------------------------------------------------------------ */

static void stall_record_begin(struct stall_record *record, loop_fn *run, unsigned executors)
{
	record->run = run;
	memset(record->log, 0, executors * sizeof(*record->log));
	atomic_store_explicit(&record->announced, 0, memory_order_relaxed);
}

/* One pass of so many ticks has ended, and this number stood then. */
static void stall_note(struct stall_log *log, unsigned number, uint64_t ticks)
{
	struct stall_window *window = &log->window[number];

	log->at = number;
	window->passes++;
	if (ticks > window->worst)
		window->worst = ticks;
	if (number || log->early == STALL_EARLY)
		return;
	log->early_pass[log->early++] = ticks;
	if (log->early < STALL_EARLY)
		return;
	gsl_sort_ulong(log->early_pass, 1, STALL_EARLY);
	/* Release: a patcher that sees it may announce, and then the early passes are over. */
	atomic_store_explicit(&log->usual, log->early_pass[STALL_EARLY / 2], memory_order_release);
}

/*
 * The number is loaded behind ticks_now(), whose LFENCE waits for the pass: so one that is older
 * than the pass was never seen after it. The calls are counted apart, or a patcher that looks
 * at the executor's counts would hold up its passes.
 */
static void stall_run(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	struct stall_record *record = work->arg;
	struct stall_log *log = &record->log[executor];
	uint64_t calls[2] = { 0, 0 }, last = ticks_now();

	for (unsigned i = 0; i < STALL_ROUND; i++) {
		unsigned before = log->at, number;
		uint64_t now;

		record->run(1, calls);
		now = ticks_now();
		number = atomic_load_explicit(&record->announced, memory_order_acquire);
		stall_note(log, number, now - last);
		last = number == before ? now : ticks_now();
	}
	for (unsigned i = 0; i < 2; i++)
		__atomic_store_n(&counts->calls[i], counts->calls[i] + calls[i], __ATOMIC_RELAXED);
	atomic_store_explicit(&counts->executed, counts->executed + STALL_ROUND,
			      memory_order_relaxed);
}

/* The next number; visible to all on return. STALL_WINDOWS is the last. */
static void stall_announce(struct stall_record *record)
{
	atomic_fetch_add_explicit(&record->announced, 1, memory_order_seq_cst);
}

/* --- Windows -------------------------------------------------------------------------------- */

/*
 * What happens in a window: a change; or nothing, for as long as the change took that the last
 * block made in its place. The executor has seen the number before the change begins, and has
 * ended the pass that it was in when the change did.
 */
static int run_windows(struct stall_case *c, struct samples *s, bool change)
{
	struct stall *stall = c->stall;
	struct stall_log *log = stall->record.log;
	unsigned windows = c->spec->windows ? c->spec->windows : STALL_WINDOWS;
	int ret = 0;

	stall_record_begin(&stall->record, c->site.loop.run, c->executors);
	hot_aim(stall->hot, &stall->work, c->executors);
	for (unsigned i = 0; i < c->executors; i++)
		while (!atomic_load_explicit(&log[i].usual, memory_order_acquire))
			hot_cool(stall->hot);
	for (unsigned w = 0; w < windows && ret == 0; w++) {
		uint64_t start;

		stall_announce(&stall->record);
		hot_cool(stall->hot);
		start = ticks_now();
		if (change) {
			ret = c->way->set(&c->site, !c->state);
			/* Step by step, as a program does that has other work meanwhile. */
			if (ret == 0 && c->spec->site.way == WAY_START)
				while ((ret = pc_finish_patch(c->site.at)) > PC_FINISHED)
					;
			c->took[w] = ticks_now() - start;
			c->changes++;
			c->state = !c->state;
		} else {
			ticks_wait(c->took[w]);
		}
		ticks_wait(REST + random_next(&stall->random) % JITTER);
		hot_cool(stall->hot);
	}
	hot_sleep(stall->hot);
	for (unsigned i = 0; i < c->executors && ret == 0; i++)
		for (unsigned w = 1; w <= windows; w++)
			samples_add(&s[0], (double)log[i].window[w].worst);
	c->usual = atomic_load_explicit(&log[0].usual, memory_order_relaxed);
	return ret;
}

/* --- Cases ---------------------------------------------------------------------------------- */

static int begin_case(struct bench_case *b, char *why)
{
	struct stall_case *c = b->arg;
	int ret = c->ret;

	if (ret < 0)
		snprintf(why, BENCH_WHY, "%s", c->why);
	if (ret == 0)
		ret = bench_site_begin(&c->site, why);
	c->state = 0;
	return ret;
}

static void end_case(struct bench_case *b)
{
	bench_site_end(&((struct stall_case *)b->arg)->site);
}

static int block_of_changes(struct bench_case *b, struct samples *s, char *why)
{
	struct stall_case *c = b->arg;
	uint64_t traps = sites_count().traps;
	int ret = run_windows(c, s, true);

	c->traps += sites_count().traps - traps;
	return ret < 0 ? bench_say(why, c->way->name, ret) : 0;
}

static int idle_block(struct bench_case *b, struct samples *s, char *why)
{
	(void)why;
	return run_windows(b->arg, s, false);
}

static void sum_up(struct bench_case *b, struct bench_row *row)
{
	const struct stall_case *c = b->arg;
	struct bench_row idle = { 0 };

	if (samples_sum_up(&b->base_samples[0], NULL, 1, &idle) < 0)
		return;
	bench_row_extra(row, "typical", over_pairs(&b->samples[0], &b->base_samples[0]).median);
	bench_row_extra(row, "worst", row->most - idle.value.median);
	bench_row_extra(row, "idle_worst", idle.most - idle.value.median);
	bench_row_extra(row, "pass", (double)c->usual);
	if (!c->way->peer)
		bench_row_extra(row, "traps", (double)c->traps / (double)c->changes);
}

/* Spare sites are mapped last, below ours: so a batch, in order of address, ends with ours. */
static int stall_build(struct bench_site *site, struct spare *spare, const struct stall_spec *spec,
		       char *why)
{
	struct site_spec of = spec->site;
	int ret;

	of.target = LOOP_COUNT;
	of.spare = spare;
	ret = bench_site_build(site, &of, why);
	if (ret < 0 || of.way != WAY_BATCH)
		return ret;
	ret = spare_open(spare, STALL_BATCH, of.split);
	return ret < 0 ? bench_say(why, "spare sites", ret) : 0;
}

/* --- The parts ------------------------------------------------------------------------------ */

/* No other executors exist meanwhile, not even asleep. */
static int measure_with(const struct bench_run *run, struct stall *stall, unsigned executors,
			struct bench_result *result)
{
	struct seating seating = run->seating;
	size_t first = stall->count;
	int ret;

	seating.executors = executors;
	ret = hot_start(&stall->hot, run->topology, &seating);
	if (ret < 0)
		return ret;
	for (const struct stall_spec *spec = stall_specs; spec < stall_specs + STALL_SPECS;
	     spec++) {
		struct stall_case *c = &stall->site[stall->count];
		struct bench_case *b = &stall->cases[stall->count];
		struct bench_case *idle = &stall->idle[stall->count];

		if (executors > 1 && !spec->all)
			continue;
		stall->count++;
		c->spec = spec;
		c->way = &ways[spec->site.way];
		c->ret = stall_build(&c->site, &c->spare, spec, c->why);
		c->stall = stall;
		c->executors = executors;
		*idle = (struct bench_case){ .block = idle_block, .arg = c };
		bench_row_name(&idle->row, "idle", "stall", "ticks");
		*b = (struct bench_case){
			.begin = begin_case,
			.block = block_of_changes,
			.end = end_case,
			.sum_up = sum_up,
			.arg = c,
			.policy = spec->site.policy,
			.base = idle,
		};
		bench_row_name(&b->row, c->way->name, "stall", "ticks");
		bench_site_params(&b->row, &spec->site);
		bench_row_param(&b->row, "executors", executors);
	}
	ret = bench_measure(run, &stall->cases[first], stall->count - first, result);
	hot_stop(stall->hot);
	stall->hot = NULL;
	return ret;
}

static int measure_stall(const struct bench_run *run, struct bench_result *result)
{
	struct stall *stall = aligned_alloc(128, sizeof(*stall));
	struct stall_log *log =
		aligned_alloc(128, (run->seating.executors + 1) * sizeof(struct stall_log));
	int ret = stall && log ? 0 : -ENOMEM;

	if (ret == 0) {
		memset(stall, 0, sizeof(*stall));
		stall->work = (struct hot_work){ stall_run, &stall->record };
		stall->random = run->seed;
		stall->record.log = log;
		ret = measure_with(run, stall, 1, result);
		if (ret == 0 && run->seating.executors > 1)
			ret = measure_with(run, stall, run->seating.executors, result);
		for (size_t i = 0; i < stall->count; i++) {
			bench_site_free(&stall->site[i].site);
			spare_close(&stall->site[i].spare);
		}
	}
	free(log);
	free(stall);
	return ret;
}

const struct benchmark bench_stall = {
	.name = "stall",
	.about = "what an executor loses while its site is changed",
	.title = "What an executor loses",
	.caption = "The executor's longest pass per change. The baseline has no change, so that "
		   "interrupts are in both.",
	.run = measure_stall,
};
