/* SPDX-License-Identifier: MIT */
/* A cell in its child: patcher and executors; and the parent, which waits for it. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/random.h"
#include "patchcore/machine/wait.h"
#include "patchcore/sigtrap/trap.h"
#include "patchcore/site/site.h"
#include "patchcore/word/word.h"
#include "stress/cell/code.h"
#include "stress/placement/placement.h"
#include "stress/run/gap.h"
#include "stress/run/run.h"
#include "stress/witness/witness.h"

#define ROUND	   1000	   /* executions between two looks at the stop flag */
#define LOOK_EVERY 64	   /* toggles between two looks at the clock and the parent, */
#define LOOK_TICKS 1000000 /* unless one toggle takes so long */

/* One executor's memory, on cache lines of its own. */
struct executor_counts {
	struct code_slots slots[CELL_INSIDE]; /* of each site; only crossing inside has three */
	_Atomic(uint64_t) executions;	      /* of finished rounds */
} __attribute__((aligned(128)));

/* Memory shared by parent and child; survives the child. */
struct shared {
	const struct cell *cell; /* the caller's, as these two */
	const struct run_options *options;
	struct leash leash;		   /* its life is the toggles done so far */
	struct cell_result result;	   /* complete when the child has finished */
	uint64_t provoked[PROVOKER_COUNT]; /* see provokers_done() */
	uint64_t torn_twice; /* toggles that the executors' counts have more than once */
	uint64_t stirred;    /* extra sites that were rewritten */
	struct code code;    /* so that the parent can read the slots of a dead child */
	struct executor_counts executor[];
};

/* --- How the last toggles went, and store latencies ----------------------------------------- */

#define TRACE_TOGGLES 256 /* looked through at least four times in so many */

struct trace_entry {
	uint64_t begun; /* TSC */
	struct word_trace trace;
};

struct trace_log {
	struct trace_entry entry[TRACE_TOGGLES];
	uint64_t toggles;	       /* begun so far */
	uint64_t latencies;	       /* measured so far */
	uint64_t latency[GAP_BUCKETS]; /* of INT3, by size */
	uint64_t latency_max;
	uint64_t torn[TRACE_TOGGLES]; /* number of a torn toggle, plus 1 */
	/* Of each executor at each site. */
	struct trace_seen {
		uint64_t marks;
		uint64_t torn_last; /* as torn */
	} seen[PLACEMENT_EXECUTORS_MAX][CELL_INSIDE];
};

static struct trace_entry *entry_of(struct trace_log *log, uint64_t toggle)
{
	return &log->entry[toggle % TRACE_TOGGLES];
}

/* About to try this toggle, or again: returns what is to be filled in. */
static struct word_trace *trace_begin(struct trace_log *log, uint64_t toggle)
{
	struct trace_entry *entry = entry_of(log, toggle);

	*entry = (struct trace_entry){ .begun = ticks_now() };
	log->toggles = toggle + 1;
	return &entry->trace;
}

/* It is done: take down latency and steps. */
static void trace_end(struct trace_log *log, uint64_t toggle, struct witness *witness)
{
	const struct word_trace *trace = &entry_of(log, toggle)->trace;
	uint64_t latency = trace->latency[0];

	for (unsigned i = 0; i < 2; i++)
		if (trace->step[i])
			witness_step(witness, trace->step[i]);
	if (!latency)
		return;
	log->latencies++;
	log->latency[gap_bucket(latency)]++;
	if (latency > log->latency_max)
		log->latency_max = latency;
}

/* When the site could not be run as a whole any more. */
static uint64_t closed_at(const struct trace_entry *entry)
{
	return entry->trace.visible[0] ? entry->trace.visible[0] : entry->begun;
}

/*
 * Add the new tears of one executor at one site to the result's events. Returns how many toggles,
 * torn for the first time by it there, others had torn already.
 *
 * A tear is taken to belong to the last toggle whose INT3 was visible when it was counted: right
 * within the rest between toggles. Its stamp is off by the offset of the two TSCs.
 */
static uint64_t trace_tears(struct trace_log *log, const struct code *code, unsigned executor,
			    unsigned site, const struct code_slots *slots,
			    struct cell_result *result)
{
	uint64_t made = __atomic_load_n(&slots->marks, __ATOMIC_ACQUIRE);
	struct trace_seen *seen = &log->seen[executor][site];
	uint64_t number = seen->marks, twice = 0;
	const struct trace_entry *entry;
	const struct word_trace *trace;
	struct tear_event *event;
	struct code_mark mark;
	uint64_t toggle, known;

	seen->marks = made;
	if (!log->toggles)
		return 0;
	if (made - number >= CODE_MARKS)
		number = made - CODE_MARKS + 1;
	for (; number < made; number++) {
		if (!code_mark(slots, number, &mark))
			continue;
		/* Torn for the first time by this executor: has another one done so before? */
		toggle = code_mark_toggle(&mark);
		if (seen->torn_last != toggle + 1) {
			twice += log->torn[toggle % TRACE_TOGGLES] == toggle + 1;
			log->torn[toggle % TRACE_TOGGLES] = toggle + 1;
			seen->torn_last = toggle + 1;
		}
		if (result->events == TEAR_EVENTS_MAX)
			continue;
		/* The last toggle whose INT3 was visible by then; else the first that is known. */
		known = log->toggles < TRACE_TOGGLES ? log->toggles : TRACE_TOGGLES;
		toggle = log->toggles;
		while (known-- > 0)
			if ((int64_t)(mark.tsc - closed_at(entry_of(log, --toggle))) >= 0)
				break;
		entry = entry_of(log, toggle);
		trace = &entry->trace;
		event = &result->event[result->events++];
		*event = (struct tear_event){
			.toggle = toggle,
			.kind = code_mark_kind(code, &mark),
			.tsc = mark.tsc,
			.after_int3 = (int64_t)(mark.tsc - closed_at(entry)),
			.after_front = (int64_t)(mark.tsc - trace->visible[2]),
			.latency = { trace->latency[0], trace->latency[1], trace->latency[2] },
			.waited = { trace->waited[0], trace->waited[1] },
			.step = { trace->step[0], trace->step[1] },
			.executor = executor,
		};
	}
	return twice;
}

/* The middle of the bucket in which the one of that rank is, from 0. */
static uint64_t ranked(const struct trace_log *log, uint64_t rank)
{
	uint64_t below = 0;
	unsigned i = 0;

	while (i < GAP_BUCKETS - 1 && below + log->latency[i] <= rank)
		below += log->latency[i++];
	return gap_bucket_low(i) + (gap_bucket_low(i + 1) - gap_bucket_low(i)) / 2;
}

static void trace_latency(const struct trace_log *log, struct latency *latency)
{
	if (!log->latencies)
		return;
	latency->median = ranked(log, log->latencies / 2);
	latency->p99 = ranked(log, log->latencies - 1 - log->latencies / 100);
	latency->max = log->latency_max;
}

/* --- The child ------------------------------------------------------------------------------ */

struct child {
	const struct cell *cell;
	hwloc_topology_t topology;
	struct shared *shared;
	struct provokers *provokers;
	struct trace_log trace;
	pthread_barrier_t ready; /* patcher and executors, before the first toggle */
	_Atomic(int) quit;
	_Atomic(int) error; /* the first negative errno of an executor */
	/* Written by the patcher before each toggle, read by the executor that ran a mix. */
	uint64_t toggle __attribute__((aligned(128)));
};

struct executor {
	struct child *child;
	struct executor_counts *counts;
	unsigned cpu;
	pthread_t thread;
};

static void *executor_main(void *arg)
{
	struct executor *e = arg;
	struct child *c = e->child;
	int ret = pin_this_thread(c->topology, e->cpu);
	struct rusage begin;

	if (ret < 0)
		atomic_store(&c->error, ret);
	pthread_barrier_wait(&c->ready);
	getrusage(RUSAGE_THREAD, &begin);
	/* One that comes when all is over runs a round: each has looked at the site. */
	do {
		code_run(&c->shared->code, ROUND, e->counts->slots, &c->toggle);
		atomic_fetch_add_explicit(&e->counts->executions, ROUND, memory_order_relaxed);
		provoke_round(c->provokers);
	} while (!atomic_load_explicit(&c->quit, memory_order_relaxed));
	witness_add_usage(&c->shared->result.witness, RUSAGE_THREAD, &begin);
	return NULL;
}

static uint64_t tears_now(struct child *c)
{
	struct code *code = &c->shared->code;
	uint64_t tears = 0;

	for (unsigned i = 0; i < c->cell->executors; i++) {
		struct code_slots *slots = c->shared->executor[i].slots;

		tears += code_tears(code, slots);
		for (unsigned site = 0; site < code->sites; site++)
			c->shared->torn_twice += trace_tears(&c->trace, code, i, site, slots + site,
							     &c->shared->result);
	}
	return tears;
}

static void on_prepared(void *provokers)
{
	provoke_toggle(provokers);
}

/* The patcher: toggle after toggle, until there are enough of them or of tears, or time is up. */
static int patch_until_over(struct child *c)
{
	const struct cell *cell = c->cell;
	struct shared *shared = c->shared;
	const struct code *code = &shared->code;
	double deadline = cell->seconds > 0 ? seconds_now() + cell->seconds : 0;
	uint64_t toggle_ticks = cell->waits.first + cell->waits.second + cell->rest;
	uint64_t look_every = toggle_ticks > LOOK_TICKS ? 1 : LOOK_EVERY;
	uint64_t random = cell->seed, i = 0, tears;
	unsigned next = 1;
	int ret = 0;

	while (i < cell->toggles) {
		struct sync sync = toggle_sync(cell);

		__atomic_store_n(&c->toggle, i, __ATOMIC_RELAXED);
		sync.trace = trace_begin(&c->trace, i);
		/* Not before: to hold the site brings its lines in. */
		sync.trace->prepared = on_prepared;
		sync.trace->arg = c->provokers;
		ret = 0;
		for (unsigned site = 0; site < code->sites && ret == 0; site++)
			ret = toggle(cell->protocol, code, site, next, &sync);
		if (ret == 0) {
			trace_end(&c->trace, i, &shared->result.witness);
			shared->stirred += code_stir(code, i);
			next = next + 1 == code->codes ? 0 : next + 1;
			i++;
		} else if (ret == -EAGAIN) {
			shared->result.retries++;
		} else {
			break;
		}
		/* From half the mean to one and a half: never so short that directions blur. */
		if (cell->rest)
			ticks_wait(random_about(&random, cell->rest));
		if (i % look_every && ret == 0)
			continue;
		/* Is it over? Also tells the parent how far it is. */
		tears = tears_now(c);
		atomic_store_explicit(&shared->leash.life, i, memory_order_relaxed);
		atomic_store_explicit(&shared->leash.tears, tears, memory_order_relaxed);
		if (atomic_load_explicit(&shared->leash.stop, memory_order_relaxed) ||
		    atomic_load_explicit(&c->error, memory_order_relaxed) < 0 ||
		    (cell->stop_tears && tears >= cell->stop_tears) ||
		    (deadline > 0 && seconds_now() >= deadline))
			break;
	}
	shared->result.toggles = i;
	atomic_store_explicit(&shared->leash.life, i, memory_order_relaxed);
	return ret == -EAGAIN ? 0 : ret;
}

/* What exposed and torn are, by the executors' counters. Also of a child that died. */
static void sum_toggles(const struct shared *shared, struct cell_result *result)
{
	uint64_t torn = 0;

	result->exposed = result->toggles;
	for (unsigned site = 0; site < shared->code.sites; site++) {
		uint64_t most = 0, here = 0;

		for (unsigned i = 0; i < result->seating.executors; i++) {
			const struct code_slots *slots = &shared->executor[i].slots[site];
			uint64_t exposed = code_exposed(&shared->code, slots, result->toggles);

			if (exposed > most)
				most = exposed;
			here += slots->torn;
		}
		if (most < result->exposed)
			result->exposed = most;
		if (shared->code.sites > 1)
			result->torn_inside[site] = here < result->toggles ? here : result->toggles;
		torn += here;
	}
	torn -= shared->torn_twice;
	/* The last one may have been tried, and not done. */
	result->torn = torn < result->toggles ? torn : result->toggles;
}

/* Threads that run into what stands there for a while: the library's INT3, or a file's guards. */
static int take_traps(const struct code *code)
{
	const uint8_t *at[CELL_INSIDE];

	for (unsigned i = 0; i < code->sites; i++)
		at[i] = code->site[i].at;
	return code->protocol ? protocol_begin(code->protocol, at, code->sites, code->again)
			      : trap_install();
}

static int run_cell(struct child *c)
{
	struct executor *executors = calloc(c->cell->executors, sizeof(*executors));
	struct shared *shared = c->shared;
	struct cell_result *result = &shared->result;
	uint64_t begin_ticks;
	struct rusage begin;
	double start;
	int ret = executors ? pin_this_thread(c->topology, result->seating.patcher) : -ENOMEM;

	if (ret == 0)
		ret = code_build(&shared->code, c->cell);
	if (ret == 0)
		ret = take_traps(&shared->code);
	if (ret == 0 && c->cell->protocol == PROTOCOL_MEMBARRIER)
		ret = membarrier_register();
	if (ret == 0)
		ret = -pthread_barrier_init(&c->ready, NULL, c->cell->executors + 1);
	if (ret == 0)
		witness_before(&result->witness, c->topology, &result->seating);
	/* Last, so that what was witnessed before is not their doing. */
	if (ret == 0)
		ret = provokers_start(&c->provokers, c->cell, c->topology, &result->seating,
				      shared->code.site[0].at);
	for (unsigned i = 0; i < 2; i++)
		result->frame[i] = place_frame(shared->code.site[0].at + (i ? c->cell->split : 0));
	for (unsigned i = 0; ret == 0 && i < c->cell->executors; i++) {
		executors[i] = (struct executor){
			.child = c,
			.counts = &shared->executor[i],
			.cpu = result->seating.executor[i],
		};
		/* Those already started wait at the barrier; the exit of the child ends them. */
		if (pthread_create(&executors[i].thread, NULL, executor_main, &executors[i]) != 0)
			ret = -EAGAIN;
	}
	if (ret < 0)
		return ret;
	pthread_barrier_wait(&c->ready);
	start = seconds_now();
	begin_ticks = ticks_now();
	getrusage(RUSAGE_THREAD, &begin);
	ret = patch_until_over(c);
	result->ticks = ticks_now() - begin_ticks;
	result->seconds = seconds_now() - start;
	witness_add_usage(&result->witness, RUSAGE_THREAD, &begin);
	atomic_store_explicit(&c->quit, 1, memory_order_relaxed);
	for (unsigned i = 0; shared->code.protocol && i < shared->code.sites; i++)
		toggle_settle(&shared->code, i, (unsigned)(result->toggles % shared->code.codes));
	for (unsigned i = 0; i < c->cell->executors; i++)
		pthread_join(executors[i].thread, NULL);
	for (unsigned i = 0; i < PROVOKER_COUNT; i++)
		shared->provoked[i] = provokers_done(c->provokers, i);
	provokers_stop(c->provokers);
	witness_after(&result->witness);
	witness_apart_after(&result->witness, c->topology, &result->seating);
	free(executors);
	for (unsigned i = 0; i < c->cell->executors; i++)
		code_collect(&shared->code, shared->executor[i].slots,
			     atomic_load(&shared->executor[i].executions), result);
	/* Those of the last toggles. */
	tears_now(c);
	sum_toggles(shared, result);
	trace_latency(&c->trace, &result->latency);
	result->traps = shared->code.protocol ? protocol_traps() : sites_count().traps;
	return ret < 0 ? ret : atomic_load(&c->error);
}

/* In the child: run the cell of a struct shared, with the seating in its result. */
static void child_run(void *shared)
{
	static struct child child;
	struct shared *s = shared;

	child.cell = s->cell;
	child.topology = s->options->topology;
	child.shared = s;
	isolate_finish(&s->leash, run_cell(&child), &s->result.error, &s->result.outcome);
}

/* The child did not finish: rescue what its executors had counted. */
static void rescue_counts(const struct shared *s, const struct ending *ending,
			  struct cell_result *result)
{
	for (unsigned i = 0; s->code.loop && i < s->cell->executors; i++) {
		const struct executor_counts *counts = &s->executor[i];
		uint64_t known = 0, finished = atomic_load(&counts->executions);

		/* The round in which it died was not added, but its slots were counted. */
		for (unsigned k = 0; k < CODE_SLOTS; k++)
			known += counts->slots[0].at[k];
		/* NOPs leave no trace: only finished rounds tell of them. */
		if (code_is_nop_pair(&s->code) && finished > known)
			known = finished;
		code_collect(&s->code, counts->slots, known, result);
	}
	result->toggles = atomic_load(&s->leash.life);
	if (s->code.loop)
		sum_toggles(s, result);
	result->signal = ending->signal;
	result->outcome = ending->outcome;
	if (result->outcome != OUTCOME_CRASH)
		return;
	/* A mix, not foreseen or of the crash oracle; its toggle may be beyond those told of. */
	result->tears[TEAR_OTHER]++;
	result->torn++;
	/* Of several sites it may be any. */
	for (unsigned i = 0; i < CELL_INSIDE && s->cell->crossing == CROSSING_INSIDE; i++)
		result->torn_inside[i]++;
	if (result->toggles < result->torn)
		result->toggles = result->torn;
}

int cell_run(const struct cell *cell, const struct run_options *options, struct cell_result *result)
{
	struct isolated what = { .inside = child_run, .parts = 1, .options = options };
	size_t size = sizeof(struct shared) + cell->executors * sizeof(struct executor_counts);
	struct shared *s;
	struct ending ending;
	char reason[160];
	int ret;

	*result = (struct cell_result){ 0 };
	ret = cell_check(cell, reason, sizeof(reason));
	if (ret == 0 && cell->place)
		ret = place_open();
	if (ret < 0)
		return ret;
	s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return -ENOMEM;
	what.arg = s;
	s->cell = cell;
	s->options = options;
	what.leash = &s->leash;
	what.seating = &s->result.seating;
	what.witness = &s->result.witness;
	ret = cell_seat(cell, options->topology, &s->result.seating, reason, sizeof(reason));
	if (ret == 0)
		ret = isolate(&what, &ending);
	if (ret == 0)
		*result = s->result;
	if (ret == 0 && !ending.finished) {
		rescue_counts(s, &ending, result);
		result->seconds = ending.seconds;
	}
	munmap(s, size);
	return ret;
}
