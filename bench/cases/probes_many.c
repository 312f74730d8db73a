/* SPDX-License-Identifier: MIT */
/*
 * What finding and switching many probes at once costs. Ids are not used twice, and what was
 * discovered stays so: the object with many probes is loaded by a child process.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "bench/cases/benchmarks.h"
#include "bench/peers/peer.h"
#include "patchcore/machine/wait.h"
#include "patchcore/mapping.h"
#include "probes/include/fastinst.h"

#define PROBES_MANY  20000
#define PROBES_BATCH 16753 /* the call sites of the paper's sqlite */
#define BATCHES	     3	   /* in a block */
#define MANY_ROUNDS  10
#define MANY_SECONDS 60

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

static struct peer many = {
	"many",
	"many.S",
	"gcc",
	.build = "cc -shared -nostdlib -DMANY=" TEXT(PROBES_MANY) " \"$2\" -o \"$1/many.so\"",
};

enum many_measure {
	DISCOVER,
	ACTIVATE,
	DEACTIVATE,
	EXCHANGE, /* what no change of so many sites can do without */
	MANY_MEASURES
};

/* What the child tells: ticks of a probe. */
struct many_answer {
	int ret;
	double ticks[MANY_MEASURES][BATCHES];
};

static uint32_t many_ids[PROBES_MANY];
static _Atomic(uint64_t) *many_word[PROBES_BATCH];

static int find_words(void)
{
	struct fi_probe probe;
	int ret = fi_find("f*", many_ids, PROBES_MANY) >= PROBES_MANY ? 0 : -ENOENT;

	for (unsigned i = 0; i < PROBES_BATCH && ret == 0; i++) {
		ret = fi_get(many_ids[i], &probe);
		if (ret == 0)
			many_word[i] = (void *)((uintptr_t)probe.address & ~UINT64_C(7));
	}
	return ret;
}

static int exchange_all(void)
{
	for (unsigned i = 0; i < PROBES_BATCH; i++)
		atomic_exchange_explicit(many_word[i],
					 atomic_load_explicit(many_word[i], memory_order_relaxed),
					 memory_order_seq_cst);
	return 0;
}

static int change_many(enum many_measure measure, double *ticks)
{
	void *first = (void *)(uintptr_t)many_word[0];
	size_t length = (size_t)((char *)many_word[PROBES_BATCH - 1] - (char *)first) + 8;
	int ret = measure == EXCHANGE ? pc_text_open(first, length) : 0;
	uint64_t start = ticks_now();

	if (ret < 0)
		return ret;
	ret = measure == ACTIVATE     ? fi_activate_batch(many_ids, PROBES_BATCH, NULL)
	      : measure == DEACTIVATE ? fi_deactivate_batch(many_ids, PROBES_BATCH)
				      : exchange_all();
	*ticks = (double)(ticks_now() - start) / PROBES_BATCH;
	return measure == EXCHANGE ? pc_text_close(first, length) : ret;
}

/* The first batch is a warm-up. */
static void load_many(void *arg, void *to)
{
	const enum many_measure *wanted = arg;
	unsigned batches = *wanted == DISCOVER ? 0 : BATCHES + 1;
	struct many_answer *answer = to;
	char path[PEER_PATH + 16];
	uint64_t start;
	int ret = fi_init();

	snprintf(path, sizeof(path), "%s/many.so", many.folder);
	if (ret == 0 && !dlmopen(LM_ID_BASE, path, RTLD_NOW))
		ret = -ENOEXEC;
	start = ticks_now();
	if (ret == 0)
		ret = (int)fi_scan();
	answer->ticks[DISCOVER][0] = (double)(ticks_now() - start) / PROBES_MANY;
	ret = ret < 0 ? ret : find_words();
	for (unsigned i = 0; i < batches; i++)
		for (enum many_measure m = ACTIVATE; m <= EXCHANGE && ret == 0; m++)
			ret = change_many(m, &answer->ticks[m][i ? i - 1 : 0]);
	answer->ret = ret;
}

static int many_block(struct bench_case *c, struct samples *s, char *why)
{
	const enum many_measure *wanted = c->arg;
	struct many_answer answer = { 0 };
	int ret = peer_opened(&many, why);

	if (ret == 0)
		ret = bench_ask_child(load_many, c->arg, &answer, sizeof(answer), MANY_SECONDS,
				      why);
	if (ret == 0 && answer.ret < 0)
		ret = bench_say(why, many.name, answer.ret);
	for (unsigned i = 0; i < (*wanted == DISCOVER ? 1 : BATCHES) && ret == 0; i++) {
		samples_add(&s[0], answer.ticks[*wanted][i]);
		if (*wanted == ACTIVATE)
			samples_add(&s[1], answer.ticks[DEACTIVATE][i]);
	}
	return ret;
}

int measure_many_probes(const struct bench_run *run, struct bench_result *result)
{
	static enum many_measure measures[] = { DISCOVER, ACTIVATE, EXCHANGE };
	struct bench_case exchange = { .block = many_block, .arg = &measures[2] };
	struct bench_case cases[] = {
		{ .block = many_block, .arg = &measures[0], .rounds = MANY_ROUNDS },
		{ .block = many_block,
		  .arg = &measures[1],
		  .base = &exchange,
		  .second_measure = "deactivate" },
	};
	int ret;

	bench_row_name(&exchange.row, "exchange", "activate", "ticks");
	bench_row_name(&cases[0].row, "init", "discover", "ticks");
	bench_row_param(&cases[0].row, "sites", PROBES_MANY);
	bench_row_name(&cases[1].row, "batch", "activate", "ticks");
	bench_row_param(&cases[1].row, "sites", PROBES_BATCH);
	peer_open(&many, run);
	ret = bench_measure(run, cases, sizeof(cases) / sizeof(*cases), result);
	peer_close(&many);
	return ret;
}
