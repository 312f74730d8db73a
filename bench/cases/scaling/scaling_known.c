/* SPDX-License-Identifier: MIT */
/*
 * A change where so many sites are known.
 *
 * What is known stays known as long as a process lives (see patchcore/site/site.h). So each number
 * has a process of its own that has patched nothing before: this program, started by exec() as
 *
 *	tmax bench --known-sites SITES FIRST SECOND STRETCH
 *
 * It is asked by lines, see stress/base/process.h: "POLICY COUNT" for the ticks of so many changes.
 * PATCHED of its sites are code, each across a line, and are changed in turn; the others are only
 * addresses, spread as calls in functions are.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/cases/scaling/scaling.h"
#include "bench/method/method.h"
#include "bench/ways/ways.h"
#include "patchcore/life/library.h"
#include "patchcore/machine/wait.h"
#include "patchcore/site/site.h"
#include "stress/base/process.h"
#include "stress/base/random.h"

#define PATCHED	    8u /* the least number of sites there can be, too */
#define SPLIT	    3u
#define CELL	    16u /* functions are aligned to it */
#define CELLS_MOST  24u /* of one function */
#define WARM_UP	    8u	/* changes; the CPU has just come from another process */
#define COUNT_MOST  1000u
#define ANSWER_TIME 60 /* seconds */

static const struct kind {
	enum pc_policy policy;
	unsigned changes; /* in a block */
} kinds[] = {
	{ PC_POLICY_WAIT, 20 },
	{ PC_POLICY_MEMBARRIER, 100 },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* --- The process that knows them ------------------------------------------------------------- */

/* The first spare site is left alone: see spare_set(). */
static int answer_spare(struct spare *spare, const char *request, unsigned *done)
{
	uint64_t ticks[WARM_UP + COUNT_MOST];
	unsigned policy, count = 0;
	int ret = -EINVAL;

	if (sscanf(request, "%u %u", &policy, &count) == 2 && count <= COUNT_MOST)
		ret = pc_set_policy((enum pc_policy)policy);
	for (unsigned i = 0; i < WARM_UP + count && ret == 0; i++, ++*done) {
		const struct pc_op *op = &spare->op[1 + *done % PATCHED];
		uint64_t start;

		if (*done % PATCHED == 0)
			spare_set(spare, PATCHED + 1, *done / PATCHED % 2 == 0);
		start = ticks_now();
		ret = pc_patch(op->addr, op->bytes, op->len);
		ticks[i] = ticks_now() - start;
	}
	for (unsigned i = 0; i < count && ret == 0; i++)
		printf("%" PRIu64 "\n", ticks[WARM_UP + i]);
	if (ret < 0)
		printf("error %s\n", strerror(-ret));
	return ret;
}

int scaling_know(char *const numbers[SCALING_NUMBERS])
{
	unsigned long number[SCALING_NUMBERS];
	struct spare spare;
	char request[64];
	uint64_t random = 1;
	uintptr_t function;
	unsigned done = 0;
	void *map;
	int ret;

	for (unsigned i = 0; i < SCALING_NUMBERS; i++)
		number[i] = strtoul(numbers[i], NULL, 10);
	if (number[0] < PATCHED)
		return -EINVAL;
	if (number[1])
		library_assume_waits(number[1], number[2], number[3]);
	ret = pc_init();
	if (ret < 0)
		return ret;
	/* Addresses that no other code gets. There is nothing behind them. */
	map = mmap(NULL, (size_t)number[0] * CELLS_MOST * CELL, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	function = (uintptr_t)map;
	for (unsigned long i = PATCHED; i < number[0]; i++) {
		if (!site_get(function + random_next(&random) % CELL))
			return -ENOMEM;
		function += CELL * (1 + random_next(&random) % CELLS_MOST);
	}
	ret = spare_open(&spare, PATCHED + 1, SPLIT);
	if (ret < 0)
		return ret;
	for (;;) {
		if (ret == 0)
			puts(".");
		fflush(stdout);
		if (!fgets(request, sizeof(request), stdin))
			break;
		ret = answer_spare(&spare, request, &done);
	}
	spare_close(&spare);
	return 0;
}

/* --- Its parent ------------------------------------------------------------------------------- */

/* One of the processes, started when it is first needed. */
struct knower {
	unsigned long sites;
	const struct bench_run *run;
	const struct bench_result *result; /* has the waits */
	struct process *process;
};

struct known_case {
	struct knower *knower;
	const struct kind *kind;
};

static int begin_known(struct bench_case *c, char *why)
{
	const struct known_case *kc = c->arg;
	struct knower *k = kc->knower;
	const struct waits *waits = &k->result->waits;
	const uint64_t number[SCALING_NUMBERS] = { k->sites, waits->first, waits->second,
						   waits->stretch };
	char text[SCALING_NUMBERS][24];
	const char *const argv[] = { "/proc/self/exe", "bench", SCALING_KNOW, text[0],
				     text[1],	       text[2], text[3],      NULL };
	struct process_reply none = { 0 };
	int ret = bench_set_policy(kc->kind->policy, why);

	pc_set_policy(PC_POLICY_AUTO);
	if (ret < 0 || k->process)
		return ret;
	for (unsigned i = 0; i < SCALING_NUMBERS; i++)
		snprintf(text[i], sizeof(text[i]), "%" PRIu64, number[i]);
	ret = process_start(&k->process, argv, k->run->stop, why);
	if (ret == 0)
		ret = process_ask(k->process, NULL, ANSWER_TIME, &none, why);
	process_reply_free(&none);
	return ret;
}

static int block_of_known(struct bench_case *c, struct samples *s, char *why)
{
	const struct known_case *kc = c->arg;
	struct process_reply reply = { 0 };
	char request[32];
	int ret;

	snprintf(request, sizeof(request), "%u %u", (unsigned)kc->kind->policy, kc->kind->changes);
	ret = process_ask(kc->knower->process, request, ANSWER_TIME, &reply, why);
	for (size_t i = 0; i < reply.count && ret == 0; i++)
		samples_add(&s[0], reply.value[i]);
	process_reply_free(&reply);
	return ret;
}

/* The first of each kind is the baseline of the others. */
int scaling_known(const struct bench_run *run, const unsigned long *known, unsigned count,
		  struct bench_result *result)
{
	struct bench_case cases[KINDS * SCALING_KNOWN_MOST], base[KINDS];
	struct known_case arg[KINDS * SCALING_KNOWN_MOST];
	struct knower knower[SCALING_KNOWN_MOST];
	int ret;

	if (count > SCALING_KNOWN_MOST)
		return -E2BIG;
	for (unsigned i = 0; i < count; i++)
		knower[i] = (struct knower){ .sites = known[i], .run = run, .result = result };
	for (unsigned i = 0; i < KINDS * count; i++) {
		struct bench_case *c = &cases[i], *first = &base[i / count];

		arg[i] = (struct known_case){ &knower[i % count], &kinds[i / count] };
		*c = (struct bench_case){
			.begin = begin_known,
			.block = block_of_known,
			.arg = &arg[i],
		};
		bench_row_name(&c->row, "straddler", "change", "ticks");
		bench_row_param(&c->row, "sites", (double)known[i % count]);
		bench_row_param_text(&c->row, "policy", bench_policy_name(arg[i].kind->policy));
		if (i % count == 0) {
			*first = *c;
			snprintf(first->row.name, BENCH_TEXT, "%lu-sites", known[0]);
		} else {
			c->base = first;
		}
	}
	ret = bench_measure(run, cases, KINDS * count, result);
	for (unsigned i = 0; i < count; i++)
		process_end(knower[i].process);
	return ret;
}
