/* SPDX-License-Identifier: MIT */
/*
 * Many probes in an object that is loaded when they are asked for.
 *
 * Ids are not used twice, and what was discovered stays so. So the object is loaded by a process of
 * its own: this program, started by exec() as
 *
 *	tmax bench --many-probes OBJECT
 *
 * It is asked by lines, see base/process.h. Before the first it tells the ticks of the
 * discovery; then for "COUNT" the ticks of so many batches: on, off, and the exchanges.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/method/method.h"
#include "bench/peers/peer.h"
#include "patchcore/machine/wait.h"
#include "patchcore/mapping.h"
#include "probes/include/fastinst.h"

#define PROBES_MANY  20000
#define PROBES_BATCH 16753 /* the call sites of the paper's sqlite */
#define ANSWER_TIME  60	   /* seconds */
#define BATCHES	     3	   /* in a block */
#define ROUNDS	     10

/* --- The process that has them --------------------------------------------------------------- */

static uint32_t ids[PROBES_MANY];
static _Atomic(uint64_t) *word[PROBES_BATCH];

/* What no change of so many sites can do without. */
static int exchange_all(uint64_t *ticks)
{
	void *first = (void *)(uintptr_t)word[0];
	size_t length = (size_t)((char *)word[PROBES_BATCH - 1] - (char *)first) + 8;
	int ret = pc_text_open(first, length);
	uint64_t start = ticks_now();

	if (ret < 0)
		return ret;
	for (unsigned i = 0; i < PROBES_BATCH; i++)
		atomic_exchange_explicit(word[i],
					 atomic_load_explicit(word[i], memory_order_relaxed),
					 memory_order_seq_cst);
	*ticks = ticks_now() - start;
	return pc_text_close(first, length);
}

static int change_all(bool on, uint64_t *ticks)
{
	uint64_t start = ticks_now();
	int ret = on ? fi_activate_batch(ids, PROBES_BATCH, NULL)
		     : fi_deactivate_batch(ids, PROBES_BATCH);

	*ticks = ticks_now() - start;
	return ret;
}

static void answer_many(const char *request)
{
	uint64_t on, off, floor;
	int count = atoi(request), ret = 0;

	for (int i = 0; i < count && ret == 0; i++) {
		ret = change_all(true, &on);
		if (ret == 0)
			ret = change_all(false, &off);
		if (ret == 0)
			ret = exchange_all(&floor);
		if (ret == 0)
			printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", on, off, floor);
	}
	if (ret < 0)
		printf("error %s\n", strerror(-ret));
	else
		puts(".");
	fflush(stdout);
}

static int find_words(void)
{
	struct fi_probe probe;
	int ret = fi_find("f*", ids, PROBES_MANY) >= PROBES_MANY ? 0 : -ENOENT;

	for (unsigned i = 0; i < PROBES_BATCH && ret == 0; i++) {
		ret = fi_get(ids[i], &probe);
		if (ret == 0)
			word[i] = (void *)((uintptr_t)probe.address & ~UINT64_C(7));
	}
	return ret;
}

int probes_know(const char *object)
{
	uint64_t start;
	char request[64];
	int ret = fi_init();

	if (ret == 0 && !dlmopen(LM_ID_BASE, object, RTLD_NOW))
		ret = -ENOEXEC;
	start = ticks_now();
	if (ret == 0)
		ret = fi_scan();
	start = ticks_now() - start;
	if (ret >= 0)
		ret = find_words();
	if (ret < 0)
		return ret;
	printf("%" PRIu64 "\n.\n", start);
	fflush(stdout);
	while (fgets(request, sizeof(request), stdin))
		answer_many(request);
	return 0;
}

/* --- Its parent ------------------------------------------------------------------------------- */

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

static struct peer object = {
	"many",
	"many.S",
	"gcc",
	.build = "cc -shared -nostdlib -DMANY=" TEXT(PROBES_MANY) " \"$2\" -o \"$1/many.so\"",
};

/* The ticks of its discovery are left in *init. */
static int start_many(const struct bench_run *run, struct process **process, double *init,
		      char *why)
{
	char path[PEER_PATH + 16];
	const char *const argv[] = { "/proc/self/exe", "bench", PROBES_KNOW, path, NULL };
	struct process_reply reply = { 0 };
	int ret = peer_opened(&object, why);

	snprintf(path, sizeof(path), "%s/many.so", object.folder);
	if (ret == 0)
		ret = process_start(process, argv, run->stop, why);
	if (ret == 0)
		ret = process_ask(*process, NULL, ANSWER_TIME, &reply, why);
	if (ret == 0)
		*init = reply.count == 1 ? reply.value[0] / PROBES_MANY : 0;
	process_reply_free(&reply);
	return ret;
}

static int init_block(struct bench_case *c, struct samples *s, char *why)
{
	struct process *process = NULL;
	double init = 0;
	int ret = start_many(c->arg, &process, &init, why);

	if (ret == 0)
		samples_add(&s[0], init);
	process_end(process);
	return ret;
}

/* The process of the batches is the peer's, and ends with it. */
static int begin_batches(struct bench_case *c, char *why)
{
	double init;

	return object.process ? 0 : start_many(c->arg, &object.process, &init, why);
}

/* Three numbers a batch, and the baseline wants the last. */
static int batch_block(struct bench_case *c, struct samples *s, char *why)
{
	struct process_reply reply = { 0 };
	bool floor = !c->second_measure;
	int ret = process_ask(object.process, TEXT(BATCHES), ANSWER_TIME, &reply, why);

	for (size_t i = 0; i + 2 < reply.count && ret == 0; i += 3) {
		samples_add(&s[0], reply.value[i + 2 * floor] / PROBES_BATCH);
		if (!floor)
			samples_add(&s[1], reply.value[i + 1] / PROBES_BATCH);
	}
	process_reply_free(&reply);
	return ret;
}

int probes_many(const struct bench_run *run, struct bench_result *result)
{
	void *arg = (void *)(uintptr_t)run;
	struct bench_case floor = { .begin = begin_batches, .block = batch_block, .arg = arg };
	struct bench_case cases[] = {
		{ .block = init_block, .arg = arg, .rounds = ROUNDS },
		{ .begin = begin_batches,
		  .block = batch_block,
		  .arg = arg,
		  .base = &floor,
		  .second_measure = "deactivate" },
	};
	int ret;

	bench_row_name(&floor.row, "exchange", "activate", "ticks");
	bench_row_name(&cases[0].row, "init", "discover", "ticks");
	bench_row_param(&cases[0].row, "sites", PROBES_MANY);
	bench_row_name(&cases[1].row, "batch", "activate", "ticks");
	bench_row_param(&cases[1].row, "sites", PROBES_BATCH);
	peer_open(&object, run);
	ret = bench_measure(run, cases, sizeof(cases) / sizeof(*cases), result);
	peer_close(&object);
	return ret;
}
