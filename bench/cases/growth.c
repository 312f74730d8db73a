/* SPDX-License-Identifier: MIT */
/*
 * How the cost of an operation grows with what there is of sites, mappings, aliases, threads,
 * processes and the like, and what it keeps: bench_growth.
 *
 * A cell is an operation at one size. It runs in a child process of its own: what it leaves behind
 * would be in the next cell's way. The child makes as many of what grows as the size says, or as it
 * can within a limit of time, and then times some operations one by one. An operation without end
 * ends with the child.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/method/method.h"
#include "patchcore/async.h"
#include "patchcore/call.h"
#include "patchcore/merge.h"

#define PAGE	  ((size_t)4096)
#define PAGES	  ((size_t)1 << 18)
#define STRIDE	  64 /* of sites, each across a line */
#define SPLIT	  3
#define LENGTH	  5
#define OPS	  16 /* samples of a cell, at most */
#define TIMES	  64
#define OPS_S	  0.2 /* at most for them, but for the first */
#define SIZES	  3
#define MIB	  ((size_t)1 << 20)
#define GIB	  ((size_t)1 << 30)
#define STACK	  ((size_t)262144)
#define ROUND_S	  0.05 /* limit of a cell for each of the rounds asked for */
#define ROUNDS_OF 40   /* of them make one more round here */
#define GROWS	  1.1  /* per doubling: less is flat */

/* All of a cell's, in its child. */
struct ground {
	unsigned size;
	const struct bench_run *run;
	uint8_t *code; /* PAGES pages that may be run and not be written */
	struct pc_call *call;
	sem_t ready;
	unsigned process; /* of those that patch at once, from 0 */
};

typedef int ground_fn(struct ground *c, unsigned i);

/* An operation, and what there is more of. */
struct axis {
	const char *name;
	const char *of;
	unsigned size[SIZES];
	ground_fn *grow;  /* makes one more; NULL: the operation itself is what there is more of */
	ground_fn *ready; /* before each operation, untimed; may be NULL */
	ground_fn *work;
	enum {
		ALONE,	/* timed one by one */
		OFTEN,	/* many to a sample, where one is too short for the clock */
		ONCE,	/* one, with all that there is: the cost is for each of these */
		FORKED, /* one by one, in a forked child that has the grown state */
	} kind;
};

/* The child's answer. */
struct answer {
	int ret;
	unsigned reached, samples;
	double us[OPS], heap, mappings;
};

#define OPERATION(name, what)                                                                      \
	static int name(struct ground *c, unsigned i)                                              \
	{                                                                                          \
		(void)c;                                                                           \
		(void)i;                                                                           \
		return what;                                                                       \
	}

/* --- Sites and pages -------------------------------------------------------------------------- */

/* mov eax, imm32 */
static const uint8_t codes[2][LENGTH] = { { 0xb8, 1, 2, 3, 4 }, { 0xb8, 5, 6, 7, 8 } };
static const uint8_t nops[LENGTH] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
static const uint8_t nop[LENGTH] = { 0x0f, 0x1f, 0x44 };

static uint8_t *page_at(const struct ground *c, unsigned i)
{
	return c->code + i % PAGES * PAGE;
}

static uint8_t *site_at(const struct ground *c, unsigned i)
{
	return c->code + (i + 1) * (size_t)STRIDE - SPLIT;
}

/* A site on the last page, which the operations that grow leave alone. */
static uint8_t *lone_site(const struct ground *c)
{
	return page_at(c, PAGES - 1) + STRIDE - SPLIT;
}

OPERATION(open_all, i ? 0 : pc_text_open(c->code, (c->size + 1) * (size_t)STRIDE))
OPERATION(add_site, open_all(c, i) ?: pc_patch(site_at(c, i), codes[i % 2], LENGTH))

/* The kernel merges mappings of one protection. */
OPERATION(add_mapping, mprotect(page_at(c, 2 * i), PAGE, PROT_READ) < 0 ? -errno : 0)
OPERATION(add_alias, pc_text_alias(page_at(c, i), PAGE))

static int add_opened(struct ground *c, unsigned i)
{
	uint8_t *at = c->code + i * MIB;

	return pc_text_open(at, MIB) ?: pc_text_close(at, MIB);
}

OPERATION(add_started, open_all(c, i) ?: pc_start_patch(site_at(c, i), codes[i % 2], LENGTH))
OPERATION(do_nothing, 0)
OPERATION(change_site, pc_patch(site_at(c, 0), codes[i % 2], LENGTH))

/* In one word. */
OPERATION(change_closed, pc_patch(lone_site(c) + SPLIT, codes[i % 2], LENGTH))

OPERATION(open_and_close, pc_text_open(lone_site(c), LENGTH) ?: pc_text_close(lone_site(c), LENGTH))
OPERATION(patch_apart, pc_patch(lone_site(c), codes[i % 2], LENGTH))
OPERATION(forget_apart, pc_forget(lone_site(c), LENGTH))
OPERATION(forget_all, pc_forget(c->code, (c->size + 1) * (size_t)STRIDE))

/* As a JIT that maps its code once for all. */
static int use_new_page(struct ground *c, unsigned i)
{
	uint8_t *page = page_at(c, i), *at = page + STRIDE - SPLIT;

	return pc_text_open(page, PAGE) ?: pc_patch(at, codes[0], LENGTH)
	       ?: pc_text_close(page, PAGE) ?: pc_forget(page, PAGE);
}

/* Where nothing is mapped by the kernel's choice. */
OPERATION(open_unmapped, pc_text_open((void *)(1024 * GIB), GIB * c->size) == -EFAULT ? 0 : -EILSEQ)
OPERATION(drain_started, pc_drain())

/* --- Calls ------------------------------------------------------------------------------------ */

/* Once for all; so that pages are written to before what is kept is counted. */
static int put_calls(struct ground *c)
{
	const size_t bytes = (c->size + OPS * TIMES + 1) * (size_t)STRIDE;
	const int32_t rel = 4096;

	if (mprotect(c->code, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return -errno;
	for (unsigned i = 0; i < c->size + OPS * TIMES; i++) {
		*site_at(c, i) = 0xe8;
		memcpy(site_at(c, i) + 1, &rel, sizeof(rel));
	}
	return pc_text_open(c->code, bytes);
}

static int add_call(struct ground *c, unsigned i)
{
	int ret = i ? 0 : put_calls(c);

	ret = ret < 0 ? ret : pc_call_init(&c->call[i], site_at(c, i));
	return ret < 0 ? ret : pc_activate_call(&c->call[i], lone_site(c));
}

static int use_one_call(struct ground *c, unsigned i)
{
	int ret = i ? 0 : put_calls(c);

	ret = ret < 0 ? ret : pc_call_init(c->call, site_at(c, 0));
	ret = ret < 0 ? ret
		      : pc_activate_call(c->call, i % 2 ? lone_site(c) : lone_site(c) + STRIDE);
	return ret < 0 ? ret : pc_forget(site_at(c, 0), LENGTH);
}

/* --- The library, threads and processes ------------------------------------------------------- */

OPERATION(start_again, pc_fini() ?: pc_init())
OPERATION(accept_another, pc_set_accept_p(1e-12 * (i + 1)))

/* Beside the patcher, so that a thread that is asked something answers. */
static void *sleep_beside(void *arg)
{
	struct ground *c = arg;

	if (c->run->seating.executors)
		pin_this_thread(c->run->topology, c->run->seating.executor[0]);
	pc_patch(lone_site(c), codes[0], LENGTH);
	sem_post(&c->ready);
	for (;;)
		pause();
	return NULL;
}

static int add_thread(struct ground *c, unsigned i)
{
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	(void)i;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	ret = pthread_create(&thread, &attr, sleep_beside, c);
	pthread_attr_destroy(&attr);
	while (ret == 0 && sem_wait(&c->ready) < 0)
		continue;
	return -ret;
}

static void *patch_and_end(void *arg)
{
	pc_patch(lone_site(arg), codes[0], LENGTH);
	return NULL;
}

static int use_thread(struct ground *c, unsigned i)
{
	pthread_t thread;
	int ret = pthread_create(&thread, NULL, patch_and_end, c);

	(void)i;
	return ret ? -ret : -pthread_join(thread, NULL);
}

OPERATION(put_nops, pc_patch_starts(lone_site(c), nops, LENGTH, (1u << LENGTH) - 1))
OPERATION(merge_nops, pc_patch_merge(lone_site(c), nop, LENGTH, PC_CHECK_THREADS))

static int fork_once(struct ground *c, unsigned i)
{
	pid_t child = fork();

	(void)c;
	(void)i;
	if (child == 0)
		_exit(0);
	return child < 0 || waitpid(child, NULL, 0) < 0 ? -errno : 0;
}

/* --- Processes that patch at once ------------------------------------------------------------- */

#define WORK 30000 /* additions, some 10 us of them */

static _Atomic(unsigned) *patching; /* processes that have begun; shared by them */

/* The seats in turn: a patcher and its executor side by side. */
static void take_seat(const struct ground *c, unsigned i)
{
	const struct seating *seating = &c->run->seating;

	i %= seating->executors + 1;
	pin_this_thread(c->run->topology, i ? seating->executor[i - 1] : seating->patcher);
}

static void *run_site(void *arg)
{
	struct ground *c = arg;
	void (*site)(void) = (void (*)(void))(uintptr_t)site_at(c, 0);

	take_seat(c, c->process + 1);
	for (;;)
		site();
	return NULL;
}

static int start_executor(struct ground *c)
{
	pthread_t thread;

	return -pthread_create(&thread, NULL, run_site, c);
}

static int begin_patching(struct ground *c, enum pc_policy policy)
{
	static const uint8_t ret_code[] = { 0xc3 };
	int ret = pc_set_policy(policy) ?: open_all(c, 0);

	patching = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ret == 0 && patching == MAP_FAILED)
		ret = -errno;
	return ret ?: pc_patch(site_at(c, 0) + LENGTH, ret_code, 1) ?: change_site(c, 0);
}

/* Until the parent ends. */
static void patch_for_good(struct ground *c)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take_seat(c, c->process);
	if (start_executor(c) < 0)
		_exit(1);
	for (unsigned i = 0; change_site(c, i) == 0; i++)
		if (i == 1)
			(*patching)++;
	_exit(1);
}

/* The first process is this one; the last one comes back when all others are at it. */
static int add_process(struct ground *c, unsigned i, enum pc_policy policy)
{
	pid_t child;

	if (i == 0)
		return begin_patching(c, policy);
	c->process = i;
	child = fork();
	if (child == 0)
		patch_for_good(c);
	if (child < 0)
		return -errno;
	if (i + 1 < c->size)
		return 0;
	while (*patching < i)
		sched_yield();
	c->process = 0;
	return start_executor(c);
}

OPERATION(add_by_membarrier, add_process(c, i, PC_POLICY_MEMBARRIER))
OPERATION(add_by_wait, add_process(c, i, PC_POLICY_WAIT))

/* Another set of threads runs at each operation. */
OPERATION(sleep_some, nanosleep(&(struct timespec){ .tv_nsec = 3000000 + i }, NULL))

static int work_beside(struct ground *c, unsigned i)
{
	(void)c;
	for (volatile unsigned k = i; k < i + WORK; k++)
		;
	return 0;
}

/* clang-format off */
static const struct axis axes[] = {
	{ "change", "sites", { 100, 3000, 100000 }, add_site, NULL, change_site, OFTEN },
	{ "change, page not open", "mappings", { 100, 2000, 30000 }, add_mapping, NULL, change_closed, ALONE },
	{ "change, page not open, in a child", "MiB once opened", { 1, 32, 1000 }, add_opened, NULL, change_closed, FORKED },
	{ "open and close", "mappings", { 100, 2000, 30000 }, add_mapping, NULL, open_and_close, ALONE },
	{ "open and close", "threads", { 1, 30, 1000 }, add_thread, NULL, open_and_close, ALONE },
	{ "open what is not mapped", "GiB", { 1, 90, 8192 }, do_nothing, NULL, open_unmapped, ALONE },
	{ "alias", "aliases", { 16, 250, 4000 }, NULL, NULL, add_alias, ALONE },
	{ "forget", "sites", { 100, 3000, 100000 }, add_site, patch_apart, forget_apart, ALONE },
	{ "forget all, each", "sites", { 100, 3000, 100000 }, add_site, NULL, forget_all, ONCE },
	{ "drain, each", "started", { 10, 300, 10000 }, add_started, NULL, drain_started, ONCE },
	{ "open, change, close, forget", "new pages", { 100, 500, 20000 }, NULL, NULL, use_new_page, OFTEN },
	{ "call to one target", "calls", { 100, 1500, 20000 }, NULL, NULL, add_call, OFTEN },
	{ "call and forget, one place", "times", { 100, 1500, 20000 }, NULL, NULL, use_one_call, OFTEN },
	{ "pc_fini and pc_init", "times", { 8, 64, 512 }, NULL, NULL, start_again, ALONE },
	{ "pc_set_accept_p", "times", { 10, 300, 10000 }, NULL, NULL, accept_another, OFTEN },
	{ "merge", "threads", { 1, 30, 1000 }, add_thread, put_nops, merge_nops, ALONE },
	{ "thread that changes and ends", "threads", { 10, 300, 3000 }, NULL, NULL, use_thread, ALONE },
	{ "fork", "sites", { 100, 3000, 100000 }, add_site, NULL, fork_once, ALONE },
	{ "fork", "aliases", { 16, 250, 4000 }, add_alias, NULL, fork_once, ALONE },
	{ "fork", "forks", { 10, 100, 1000 }, NULL, NULL, fork_once, ALONE },
	{ "change by membarrier", "processes", { 2, 8, 32 }, add_by_membarrier, sleep_some, change_site, ALONE },
	{ "change by wait", "processes", { 2, 8, 32 }, add_by_wait, sleep_some, change_site, ALONE },
	{ "work beside membarriers", "processes", { 3, 9, 33 }, add_by_membarrier, sleep_some, work_beside, ALONE },
	{ "work beside waits", "processes", { 3, 9, 33 }, add_by_wait, sleep_some, work_beside, ALONE },
};
/* clang-format on */

#define AXES  (sizeof(axes) / sizeof(axes[0]))
#define CELLS (AXES * SIZES)

/* --- In the child ----------------------------------------------------------------------------- */

struct kept {
	double heap, mappings;
};

static struct kept count_kept(void)
{
	static char text[65536];
	struct mallinfo2 heap = mallinfo2();
	struct kept kept = { .heap = (double)heap.uordblks + (double)heap.hblkhd };
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	ssize_t length;

	while ((length = read(maps, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < length; i++)
			kept.mappings += text[i] == '\n';
	close(maps);
	return kept;
}

static unsigned times_of(const struct axis *a)
{
	return a->kind == OFTEN ? TIMES : 1;
}

static int work_timed(const struct axis *a, struct ground *c, unsigned i, double *us)
{
	int ret = a->ready ? a->ready(c, i) : 0;
	double begin = seconds_now();

	for (unsigned k = 0; k < times_of(a) && ret == 0; k++)
		ret = a->work(c, i + k);
	*us = (seconds_now() - begin) * 1e6 / times_of(a);
	return ret;
}

/* What there is shall not double meanwhile. */
static int work_often(const struct axis *a, struct ground *c, unsigned done, struct answer *answer)
{
	unsigned most = a->kind == ONCE ? 1 : a->grow ? OPS : answer->reached / times_of(a), i = 0;
	double end = seconds_now() + OPS_S;
	int ret;

	do {
		ret = work_timed(a, c, done + i * times_of(a), &answer->us[i]);
	} while (ret == 0 && ++i < most && i < OPS && seconds_now() < end);
	if (a->kind == ONCE)
		answer->us[0] /= answer->reached;
	answer->samples = i;
	return ret;
}

/* The rest of it is a grandchild's, for which the child waits. */
static int go_on_in_child(void)
{
	pid_t child = fork();

	if (child)
		_exit(child < 0 || waitpid(child, NULL, 0) < 0);
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : 0;
}

/* The first operation makes room for others, and is not counted. */
static int make_cell(const struct axis *a, struct ground *c, double limit, struct answer *answer)
{
	double end = seconds_now() + limit, us;
	bool beside = a->grow && a->kind != ONCE; /* the timed operations do not grow the state */
	struct kept before = { 0 }, after;
	unsigned i = 0, worked;
	int ret = 0;

	while (ret == 0 && i < c->size && (i < 2 || seconds_now() < end)) {
		ret = a->grow ? a->grow(c, i) : a->work(c, i);
		if (!i++)
			before = count_kept();
	}
	answer->reached = i;
	if (ret == 0 && a->kind == FORKED)
		ret = go_on_in_child();
	if (ret == 0 && beside) {
		ret = work_timed(a, c, 1, &us);
		before = count_kept();
	}
	ret = ret < 0 ? ret : work_often(a, c, a->grow ? 0 : i, answer);
	after = count_kept();
	worked = (beside ? 0 : i - 1) + (a->kind == ONCE ? 0 : answer->samples * times_of(a));
	answer->heap = (after.heap - before.heap) / worked;
	answer->mappings = (after.mappings - before.mappings) / worked;
	return ret;
}

/* --- Cells and axes --------------------------------------------------------------------------- */

struct growth_case {
	const struct axis *axis;
	const struct bench_run *run;
	unsigned size;
	double limit, patience; /* seconds: to make it; to have an answer */
	struct answer last;
};

static void work_in_child(void *arg, void *to)
{
	const struct growth_case *g = arg;
	struct ground c = { .size = g->size, .run = g->run };
	size_t calls = (c.size + OPS * TIMES) * sizeof(*c.call);
	struct answer *answer = to;

	c.code = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	c.call = mmap(NULL, calls, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sem_init(&c.ready, 0, 0);
	*answer = (struct answer){ .ret = -ENOMEM };
	if (c.code != MAP_FAILED && c.call != MAP_FAILED)
		answer->ret = make_cell(g->axis, &c, g->limit, answer);
}

static int block_of_growth(struct bench_case *bench, struct samples *s, char *why)
{
	struct growth_case *g = bench->arg;
	int ret = bench_ask_child(work_in_child, g, &g->last, sizeof(g->last), g->patience, why);

	if (ret == 0 && g->last.ret < 0)
		return bench_say(why, g->axis->name, g->last.ret);
	for (unsigned i = 0; ret == 0 && i < g->last.samples; i++)
		samples_add(&s[0], g->last.us[i]);
	return ret;
}

static void sum_up_growth(struct bench_case *bench, struct bench_row *row)
{
	struct growth_case *g = bench->arg;

	bench_row_extra(row, "heap_kept", g->last.heap);
	bench_row_extra(row, "mappings_kept", g->last.mappings);
	if (g->last.reached < g->size)
		bench_row_extra(row, "cut_at", g->last.reached);
}

static double size_of(const struct bench_row *row)
{
	double cut = bench_row_extra_of(row, "cut_at");

	return isnan(cut) ? row->param[0].number : cut;
}

/*
 * A power law through the largest size that was measured and the next that is at most a quarter of
 * it: the part of a cost that does not grow hides the rest at small sizes. What comes in between
 * makes an operation longer and never shorter, so the quick ones count: from the 5th percentile to
 * the 25th.
 */
static int add_slope(struct bench_result *result, unsigned first)
{
	struct bench_row *row = bench_result_add(result), *least = &result->row[first];
	struct bench_row *large = least + SIZES - 1, *small;
	double power;

	if (!row)
		return -ENOMEM;
	while (large > least && !large->samples)
		large--;
	for (small = large; small > least && size_of(small) > size_of(large) / 4; small--)
		continue;
	power = 1 / log2(size_of(large) / size_of(small));
	bench_row_name(row, small->name, "slope", "x per doubling");
	bench_row_param_text(row, "of", small->param[0].key);
	if (!small->samples || !(power > 0 && power < 1)) {
		bench_row_skip(row, "%s", large->why[0] ? large->why : "cut before it grew");
		return 0;
	}
	row->samples = small->samples + large->samples;
	row->pairs = large->pairs;
	row->value.median = pow(large->p5 / small->p5, power);
	row->value.low = row->p5 = pow(large->p5 / small->p25, power);
	row->value.high = row->p99 = pow(large->p25 / small->p5, power);
	row->least = row->p25 = row->p5;
	row->most = row->p75 = row->p95 = row->p99;
	row->base = row->ratio = (struct bench_value){ NAN, NAN, NAN };
	bench_row_param_text(row, "verdict",
			     row->value.high < GROWS  ? "flat"
			     : row->value.low < GROWS ? "unclear"
						      : "grows");
	memcpy(row->extra, large->extra, sizeof(row->extra));
	row->extras = large->extras;
	return 0;
}

static int measure_growth(const struct bench_run *run, struct bench_result *result)
{
	struct growth_case *g = calloc(CELLS, sizeof(*g));
	struct bench_case *bench = calloc(CELLS, sizeof(*bench));
	struct bench_run growth = *run;
	double limit = ROUND_S * run->rounds;
	unsigned first = result->rows;
	int ret = g && bench ? 0 : -ENOMEM;

	growth.rounds = 1 + run->rounds / ROUNDS_OF;
	for (size_t i = 0; i < CELLS && ret == 0; i++) {
		const struct axis *a = &axes[i / SIZES];

		g[i] = (struct growth_case){ .axis = a,
					     .run = run,
					     .size = a->size[i % SIZES],
					     .limit = limit,
					     .patience = 4 * limit + 1 };
		bench[i] = (struct bench_case){ .block = block_of_growth,
						.sum_up = sum_up_growth,
						.arg = &g[i],
						.warm = true };
		bench_row_name(&bench[i].row, a->name, "operation", "us");
		bench_row_param(&bench[i].row, a->of, g[i].size);
	}
	if (ret == 0)
		ret = bench_measure(&growth, bench, CELLS, result);
	for (size_t i = 0; i < AXES && ret == 0; i++)
		ret = add_slope(result, first + SIZES * (unsigned)i);
	free(g);
	free(bench);
	return ret;
}

const struct benchmark bench_growth = {
	.name = "growth",
	.about = "cost against sites, mappings, threads and the like; what is kept",
	.title = "Cost against what there is",
	.caption =
		"Microseconds per operation, by how much there is of what its name has behind the "
		"colon, both as multiples of the smallest measured. A level line is flat.",
	.drawing = DRAWN_AS_GROWTH,
	.run = measure_growth,
};
