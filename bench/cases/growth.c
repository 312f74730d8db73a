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
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/cases/growth.h"

#define OPS_S	  0.2  /* at most for them, but for the first */
#define ROUND_S	  0.05 /* limit of a cell for each of the rounds asked for */
#define ROUNDS_OF 40   /* of them make one more round here */
#define GROWS	  1.1  /* per doubling: less is flat */

/* The child's answer. */
struct answer {
	int ret;
	unsigned reached, samples;
	double us[OPS], heap, mappings;
};

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
	const unsigned cells = growth_axes_count * SIZES;
	struct growth_case *g = calloc(cells, sizeof(*g));
	struct bench_case *bench = calloc(cells, sizeof(*bench));
	struct bench_run growth = *run;
	double limit = ROUND_S * run->rounds;
	unsigned first = result->rows;
	int ret = g && bench ? 0 : -ENOMEM;

	growth.rounds = 1 + run->rounds / ROUNDS_OF;
	for (size_t i = 0; i < cells && ret == 0; i++) {
		const struct axis *a = &growth_axes[i / SIZES];

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
		ret = bench_measure(&growth, bench, cells, result);
	for (size_t i = 0; i < growth_axes_count && ret == 0; i++)
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
