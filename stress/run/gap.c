/* SPDX-License-Identifier: MIT */
#include "stress/run/gap.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include "base/clock.h"
#include "base/random.h"
#include "patchcore/machine/wait.h"
#include "patchcore/word/word.h"
#include "stress/cell/code.h"
#include "stress/run/run.h"
#include "stress/witness/witness.h"

/* Stores follow each other closely: what is shorter than the rest is seen seldom. */
#define DEFAULT_REST	500 /* ticks */
#define DEFAULT_SECONDS 5.0
#define LATE_SECONDS	10.0 /* beyond what was asked for, if nothing was run until then */

#define ROUND	      256   /* executions between two looks at the quit flag */
#define HISTORY	      65536 /* stores that are remembered */
#define LOG	      4096  /* torn pairs that an executor can log until they are judged */
#define JUDGE_EVERY   (HISTORY / 4)
#define LOOK_EVERY    64	     /* stores between two looks at the clock and the logs, */
#define LOOK_TICKS    1000000	     /* unless one store takes so long */
#define PROVOKED_REST 1		     /* ticks: so that the clock is read again */
#define SETTLE_TICKS  (3 * GAP_LEAD) /* after it no executor is left with an older fetch */

#define PAGE	    4096u
#define LEAD_PAGES  4 /* in front of the arena: room for all that runs before the site */
#define CHAIN_LINKS 40
#define OPCODE_MOV  0xb8 /* mov eax, imm32 */
#define OPCODE_RET  0xc3

/* Memory shared by parent and child; survives the child. */
struct gap_shared {
	const struct cell *cell; /* the caller's, as these two */
	const struct run_options *options;
	struct leash leash; /* its life: stores */
	struct gap_result result;
};

gap_fetch_fn *gap_fetch_instead;

struct gap_child {
	const struct cell *cell;
	hwloc_topology_t topology;
	struct gap_shared *shared;
	gap_fetch_fn *fetch; /* takes no notice of its arguments */
	uint8_t *site;	     /* mov eax, imm32; ret, with the boundary inside the immediate */
	struct gap_layout layout;
	struct word word;	     /* for the library's own stores */
	struct provokers *provokers; /* NULL: none */
	struct gap_history history;
	struct gap_executor *executors;
	pthread_barrier_t ready; /* patcher and executors, before the first store */
	uint64_t random;
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

/* So many copies that end at `end`. Returns where they begin. */
static uint8_t *put_before(uint8_t *end, const uint8_t *code, size_t len, unsigned copies)
{
	for (unsigned i = 0; i < copies; i++) {
		end -= len;
		memcpy(end, code, len);
	}
	return end;
}

/* Generation 0 in both parts. Never unmapped: it is made once, in the child that runs the cell. */
static int build_site(struct gap_child *c)
{
	static const uint8_t code[] = { OPCODE_MOV, 0, 0, 0, 0, OPCODE_RET };
	static const uint8_t filler[] = { 0x0f, 0x1f, 0x00 };		/* nop dword [rax] */
	static const uint8_t chain_link[] = { 0x48, 0x0f, 0xaf, 0xc0 }; /* imul rax, rax */
	const struct cell *cell = c->cell;
	uint8_t *arena =
		mmap(NULL, (LEAD_PAGES + CODE_ARENA_PAGES) * PAGE,
		     PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *entry;

	if (arena == MAP_FAILED)
		return -ENOMEM;
	c->site = entry = code_place_site(arena + LEAD_PAGES * PAGE, cell);
	c->layout = gap_layout_of(cell->split);
	memcpy(c->site, code, sizeof(code));
	if (cell->provokers & (1u << PROVOKER_CHAIN))
		entry = put_before(entry, chain_link, sizeof(chain_link), CHAIN_LINKS);
	entry = put_before(entry, filler, sizeof(filler), cell->loop);
	c->fetch = (gap_fetch_fn *)(uintptr_t)entry;
	c->word = (struct word){
		.front_at = c->site,
		.back_at = c->site + cell->split,
		.span.len = CODE_LENGTH,
		.front = cell->split,
	};
	return 0;
}

/* One locked store, as the library makes it, of one part. */
static void put_next(struct gap_child *c, uint64_t number)
{
	enum gap_part part = (enum gap_part)(number % GAP_PARTS);
	uint64_t generation = number / GAP_PARTS % (UINT64_C(1) << c->layout.bits[part]);

	if (part == GAP_BACK) {
		c->word.new_back = generation;
		word_put_back(&c->word);
		return;
	}
	c->word.new_front = OPCODE_MOV | generation << 8;
	word_put_front(&c->word);
}

static void *executor_main(void *arg)
{
	struct gap_executor *e = arg;
	struct gap_child *c = e->child;
	gap_fetch_fn *fetch = gap_fetch_instead ? gap_fetch_instead : c->fetch;
	struct gap_layout layout = c->layout;
	/* Of their own: the patcher writes beside the others at every store. */
	const uint8_t *site = c->site;
	unsigned split = c->cell->split;
	int ret = pin_this_thread(c->topology, e->cpu);
	struct rusage begin;

	if (ret < 0)
		atomic_store(&c->error, ret);
	pthread_barrier_wait(&c->ready);
	getrusage(RUSAGE_THREAD, &begin);
	while (!atomic_load_explicit(&c->quit, memory_order_relaxed)) {
		/* No fence: RDTSC runs after the site was fetched, and fetch runs ahead. */
		uint64_t before = __rdtsc(), after, at;

		for (unsigned i = 0; i < ROUND; i++, before = after) {
			uint32_t value = fetch(site, split);

			after = __rdtsc();
			if (!__builtin_expect(gap_is_torn(layout, value), 0))
				continue;
			at = atomic_load_explicit(&e->logged, memory_order_relaxed);
			/* Acquire: pairs with the patcher's release when it has read them. */
			if (at - __atomic_load_n(&e->judged, __ATOMIC_ACQUIRE) >= LOG) {
				atomic_fetch_add_explicit(&e->lost, 1, memory_order_relaxed);
				continue;
			}
			e->log[at % LOG] = (struct gap_fetch){ value, before, after };
			atomic_store_explicit(&e->logged, at + 1, memory_order_release);
		}
		atomic_fetch_add_explicit(&e->executions, ROUND, memory_order_relaxed);
		if (c->provokers)
			provoke_round(c->provokers);
	}
	witness_add_usage(&c->shared->result.witness, RUSAGE_THREAD, &begin);
	return NULL;
}

/* The logs that hold more than so many pairs. */
static void judge_logs(struct gap_child *c, uint64_t more_than)
{
	struct gap_result *result = &c->shared->result;

	for (struct gap_executor *e = c->executors; e < c->executors + c->cell->executors; e++) {
		uint64_t logged = atomic_load_explicit(&e->logged, memory_order_acquire);

		if (more_than && logged - e->judged <= more_than)
			continue;
		for (uint64_t i = e->judged; i != logged; i++) {
			const struct gap_fetch *fetch = &e->log[i % LOG];
			struct gap_verdict v = gap_judge(&c->history, c->layout, &e->offset, fetch);

			if (v.is_gap)
				gap_tally_add(&result->kind[v.kind], v.ticks,
					      fetch->after - (uint64_t)e->offset.offset - c->begin);
			else
				result->discarded[v.reason]++;
		}
		__atomic_store_n(&e->judged, logged, __ATOMIC_RELEASE);
		result->discarded[GAP_LOST] += atomic_exchange(&e->lost, 0);
	}
}

/* The last reading before the store: the loop hangs on it, so no store is visible earlier. */
static uint64_t rest_since(uint64_t start, uint64_t ticks)
{
	uint64_t now;

	do
		now = __rdtsc();
	while (now - start < ticks);
	return now;
}

static int store_next(struct gap_child *c)
{
	uint64_t number = c->history.next, random = random_next(&c->random);
	struct gap_store *store = gap_history_add(&c->history);

	store->before = rest_since(c->stored, c->rest);
	if (c->rest && c->provokers) {
		provoke_toggle(c->provokers);
		store->before = rest_since(ticks_now(), PROVOKED_REST);
	}
	put_next(c, number);
	c->stored = store->after = ticks_now();
	/* Half follow at once: short gaps, of both kinds, are seen. The others keep the mean. */
	c->rest = random % 2 ? 0 : random / 2 % (4 * c->cell->rest + 1);
	return c->cell->protocol == PROTOCOL_MEMBARRIER ? membarrier_sync() : 0;
}

static bool is_over(const struct gap_child *c)
{
	if (atomic_load_explicit(&c->shared->leash.stop, memory_order_relaxed) ||
	    atomic_load_explicit(&c->error, memory_order_relaxed) < 0)
		return true;
	if (c->shared->result.stores >= GAP_PARTS * c->cell->toggles)
		return true;
	/* Where others took the CPUs it may take longer until one has run. */
	return c->deadline > 0 &&
	       seconds_now() >= c->deadline + (c->shared->result.executions ? 0 : LATE_SECONDS);
}

/* Stores are told to the parent, and counted, at each look. */
static int store_until_over(struct gap_child *c)
{
	struct gap_result *result = &c->shared->result;
	double begin = seconds_now();
	uint64_t judged, executions;
	int ret = 0;

	c->stored = ticks_now();
	gap_history_restart(&c->history, c->stored);
	judged = c->history.next;
	while (ret == 0 && !is_over(c)) {
		for (uint64_t i = 0; i < c->look_every && ret == 0; i++)
			ret = store_next(c);
		result->stores += c->look_every;
		executions = 0;
		for (unsigned i = 0; i < c->cell->executors; i++)
			executions += atomic_load_explicit(&c->executors[i].executions,
							   memory_order_relaxed);
		result->executions = executions;
		atomic_fetch_add_explicit(&c->shared->leash.life, c->look_every,
					  memory_order_relaxed);
		judge_logs(c, LOG / 2);
		if (c->history.next - judged >= JUDGE_EVERY) {
			judge_logs(c, 0);
			judged = c->history.next;
		}
	}
	result->seconds = seconds_now() - begin;
	ticks_wait(SETTLE_TICKS);
	return ret;
}

static int run_gaps(struct gap_child *c)
{
	struct gap_result *result = &c->shared->result;
	const struct seating *seating = &result->seating;
	struct rusage usage;
	int ret = pin_this_thread(c->topology, seating->patcher);

	c->history.size = HISTORY;
	c->history.ring = calloc(HISTORY, sizeof(*c->history.ring));
	/* Pages of a log are touched as it fills: most never are. */
	c->executors = mmap(NULL, c->cell->executors * sizeof(*c->executors),
			    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!c->history.ring || c->executors == MAP_FAILED)
		return -ENOMEM;
	if (ret == 0)
		ret = build_site(c);
	if (ret == 0 && c->cell->protocol == PROTOCOL_MEMBARRIER)
		ret = membarrier_register();
	for (unsigned i = 0; ret == 0 && i < c->cell->executors; i++) {
		struct gap_executor *e = &c->executors[i];

		e->child = c;
		e->cpu = seating->executor[i];
		ret = tsc_offset_measure(c->topology, seating->patcher, e->cpu, &e->offset);
	}
	if (ret == 0)
		ret = -pthread_barrier_init(&c->ready, NULL, c->cell->executors + 1);
	if (ret < 0)
		return ret;
	witness_before(&result->witness, c->topology, seating);
	if (c->cell->provokers)
		ret = provokers_start(&c->provokers, c->cell, c->topology, seating, c->site);
	for (unsigned i = 0; ret == 0 && i < c->cell->executors; i++)
		/* Those already started wait at the barrier; the exit of the child ends them. */
		if (pthread_create(&c->executors[i].thread, NULL, executor_main,
				   &c->executors[i]) != 0)
			ret = -EAGAIN;
	if (ret < 0)
		return ret;
	pthread_barrier_wait(&c->ready);
	getrusage(RUSAGE_THREAD, &usage);
	c->begin = ticks_now();
	c->deadline = c->cell->seconds > 0 ? seconds_now() + c->cell->seconds : 0;
	ret = store_until_over(c);
	witness_add_usage(&result->witness, RUSAGE_THREAD, &usage);
	atomic_store_explicit(&c->quit, 1, memory_order_relaxed);
	for (unsigned i = 0; i < c->cell->executors; i++)
		pthread_join(c->executors[i].thread, NULL);
	judge_logs(c, 0);
	provokers_stop(c->provokers);
	witness_after(&result->witness);
	if (ret == 0)
		ret = atomic_load(&c->error);
	/* The offsets again, and what is known of the worst of them. */
	for (unsigned i = 0; i < c->cell->executors && ret == 0; i++) {
		struct gap_executor *e = &c->executors[i];
		struct tsc_offset after, joined;

		ret = tsc_offset_measure(c->topology, seating->patcher, e->cpu, &after);
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

static void run_inside(void *arg)
{
	static struct gap_child child;
	struct gap_shared *s = arg;

	child.cell = s->cell;
	child.topology = s->options->topology;
	child.shared = s;
	child.random = s->cell->seed;
	child.look_every = s->cell->rest > LOOK_TICKS / LOOK_EVERY ? 1 : LOOK_EVERY;
	isolate_finish(&s->leash, run_gaps(&child), &s->result.error, &s->result.outcome);
}

void gap_defaults(struct cell *cell)
{
	cell_defaults(cell);
	cell->pair = PAIR_WORD;
	cell->waits.first = 0;
	cell->waits.second = 0;
	cell->rest = DEFAULT_REST;
	cell->toggles = CELL_TOGGLES_MAX;
	cell->seconds = DEFAULT_SECONDS;
}

int gap_check(const struct cell *cell, char *reason, size_t size)
{
	struct cell plain = *cell;
	const char *why = NULL;

	if (cell->split == 1)
		why = "the split must be 2 to 4: one byte in front is the opcode alone";
	else if (cell->pair != PAIR_WORD || cell->oracle != ORACLE_COUNT)
		why = "a gap run has pair word and oracle count";
	else if (cell->protocol != PROTOCOL_WAIT && cell->protocol != PROTOCOL_MEMBARRIER)
		why = "the protocol must be wait or membarrier";
	else if (provokers_have(cell->provokers, PROVOKER_SITED))
		why = "a gap run has one site: no provoker sites";
	else if (cell->crossing == CROSSING_INSIDE)
		why = "a gap run has one site: no crossing inside";
	if (why) {
		snprintf(reason, size, "%s", why);
		return -EINVAL;
	}
	/* Here crossing none is a control: its two parts are stored apart all the same. */
	if (plain.crossing == CROSSING_NONE)
		plain.crossing = CROSSING_8;
	return cell_check(&plain, reason, size);
}

int gap_run(const struct cell *cell, const struct run_options *options, struct gap_result *result)
{
	struct isolated what = { .inside = run_inside, .parts = GAP_PARTS, .options = options };
	struct gap_shared *s;
	struct ending ending;
	char reason[160];
	int ret;

	*result = (struct gap_result){ 0 };
	ret = gap_check(cell, reason, sizeof(reason));
	if (ret < 0)
		return ret;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
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
		result->outcome = ending.outcome;
		result->signal = ending.signal;
	}
	munmap(s, sizeof(*s));
	return ret;
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
