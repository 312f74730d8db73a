/* SPDX-License-Identifier: MIT */
/* No litmus test of instruction fetch shows what the vendor forbids. A cell tries one of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conform/child.h"
#include "conform/litmus.h"
#include "stress/placement/placement.h"

struct child_litmus {
	struct litmus litmus;
	struct litmus_bench *bench;
	struct litmus_result result;
};

/* Is it a test of the promise? With the fault one that is broken on purpose. */
static bool fits_cell(const struct litmus *l, const char *vendor, bool broken)
{
	char why[WORDS_WHY];
	struct litmus whole;

	if (l->threads > 2 || !l->breaks[0] == broken)
		return false;
	if (!broken)
		return litmus_said(l, vendor) == LITMUS_FORBIDDEN;
	return litmus_load(l->breaks, &whole, why) == 0 &&
	       litmus_said(&whole, vendor) == LITMUS_FORBIDDEN;
}

/* The first that fits, from one that the seed chooses. */
static int draw_test(const struct conform_cell *cell, struct litmus *l)
{
	bool broken = cell->fault == FAULT_EXCHANGED &&
		      (!cell->fault_on_one || cell->fault_on == cell->executor);
	struct cpu_name name;
	char why[WORDS_WHY];
	glob_t all;
	int ret = cpuid_name_here(&name), found = -ENOTSUP;

	if (ret == 0)
		ret = litmus_names(&all);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < all.gl_pathc && found < 0; i++) {
		size_t k = (random_at(cell->seed, 1) % all.gl_pathc + i) % all.gl_pathc;

		if (litmus_load(all.gl_pathv[k], l, why) == 0 && fits_cell(l, name.vendor, broken))
			found = 0;
	}
	globfree(&all);
	return found;
}

int prepare_litmus(struct conform_child *c)
{
	struct child_litmus *t = calloc(1, sizeof(*t));
	int ret = t ? draw_test(c->cell, &t->litmus) : -ENOMEM;

	if (ret < 0)
		return ret;
	c->litmus = t;
	memcpy(c->result->test, t->litmus.name, sizeof(c->result->test));
	return litmus_open(&t->bench, &t->litmus, 2, c->cell->writer == c->cell->executor,
			   c->cell->seed, &t->result);
}

static bool goes_on_after_batch(void *arg)
{
	struct conform_child *c = arg;
	const struct litmus_result *r = &c->litmus->result;
	uint64_t seen = litmus_seen(&c->litmus->litmus, r);

	while (c->result->failures < seen)
		child_fail(c, 0, seen);
	child_count(c, r->instances);
	atomic_store_explicit(&c->called[EXECUTOR].calls, r->instances, memory_order_relaxed);
	return child_goes_on(c);
}

void write_litmus(struct conform_child *c)
{
	litmus_play(c->litmus->bench, 0, goes_on_after_batch, c);
}

void execute_litmus(struct conform_child *c)
{
	litmus_play(c->litmus->bench, 1, NULL, NULL);
}
