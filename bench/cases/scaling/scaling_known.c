/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases/scaling/known.h"
#include "bench/cases/scaling/scaling.h"
#include "patchcore/patchcore.h"

/*
 * Patches and traps are compared between the first number of sites and the largest that is not
 * beyond this: if that makes no difference, nothing in between does.
 */
#define PATCHED_AT_MOST 100000

static const struct kind {
	enum known_what what;
	const char *name, *measure;
	const char *key, *text; /* a param of its own */
	unsigned samples;	/* in a block */
	bool patches;
} kinds[] = {
	{ KNOWN_FIND, "find", "find", "cache", "cold", 100, false },
	{ KNOWN_FIND_HOT, "find", "find", "cache", "hot", 100, false },
	{ KNOWN_FIND_MISS, "miss", "find", "cache", "cold", 100, false },
	{ KNOWN_WAIT, "straddler", "change", "policy", "wait", 20, true },
	{ KNOWN_MEMBARRIER, "straddler", "change", "policy", "membarrier", 100, true },
	{ KNOWN_TRAP, "trap", "trap", NULL, NULL, 100, true },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* One of the processes, started when it is first needed. */
struct knower {
	unsigned long sites;
	struct known_waits waits;
	struct known known;
	bool patches; /* are patches and traps measured there, too? */
	int ret;      /* why there is none */
	char why[BENCH_WHY];
	bool tried;
};

struct known_case {
	struct knower *knower;
	const struct kind *kind;
};

static int begin(struct bench_case *c, char *why)
{
	const struct known_case *kc = c->arg;
	struct knower *k = kc->knower;

	if (!k->tried)
		k->ret = known_open(&k->known, k->sites, &k->waits, k->why);
	k->tried = true;
	if (k->ret < 0)
		snprintf(why, BENCH_WHY, "%s", k->why);
	return k->ret;
}

static int block(struct bench_case *c, struct samples *s, char *why)
{
	const struct known_case *kc = c->arg;

	return known_measure(&kc->knower->known, kc->kind->what, kc->kind->samples, &s[0], why);
}

static struct bench_case a_case(struct known_case *kc)
{
	return (struct bench_case){ .begin = begin, .block = block, .arg = kc };
}

static struct bench_case row_case(struct known_case *kc)
{
	const struct kind *kind = kc->kind;
	struct bench_case c = a_case(kc);

	bench_row_name(&c.row, kind->name, kind->measure, "ticks");
	bench_row_param(&c.row, "sites", (double)kc->knower->sites);
	if (kind->key)
		bench_row_param_text(&c.row, kind->key, kind->text);
	return c;
}

static struct bench_case base_case(struct known_case *kc)
{
	struct bench_case c = a_case(kc);
	char name[BENCH_TEXT];

	snprintf(name, sizeof(name), "%lu-sites", kc->knower->sites);
	bench_row_name(&c.row, name, kc->kind->measure, "ticks");
	return c;
}

/* Cases of all kinds for one process; returns how many. */
static unsigned add_cases(struct knower *k, struct bench_case *base, struct known_case *arg,
			  struct bench_case *cases)
{
	unsigned n = 0;

	for (size_t i = 0; i < KINDS; i++) {
		if (kinds[i].patches && !k->patches)
			continue;
		arg[n] = (struct known_case){ k, &kinds[i] };
		cases[n] = row_case(&arg[n]);
		cases[n].base = base ? &base[i] : NULL;
		n++;
	}
	return n;
}

static struct known_waits waits_here(void)
{
	struct pc_status status;
	struct known_waits waits = { 0, 0, 0 };

	if (pc_set_policy(PC_POLICY_WAIT) == 0 && pc_get_status(&status) == 0)
		waits = (struct known_waits){ status.first_wait, status.second_wait,
					      status.stretch };
	pc_set_policy(PC_POLICY_AUTO);
	return waits;
}

static int measure(const struct bench_run *run, struct knower *knower, unsigned count,
		   struct bench_result *result)
{
	struct bench_case *cases = calloc(count * KINDS, sizeof(*cases));
	struct known_case *arg = calloc(count * KINDS, sizeof(*arg)), base_arg[KINDS];
	struct bench_case *base = calloc(KINDS, sizeof(*base));
	unsigned n = 0;
	int ret = -ENOMEM;

	if (cases && arg && base) {
		for (size_t i = 0; i < KINDS; i++) {
			base_arg[i] = (struct known_case){ &knower[0], &kinds[i] };
			base[i] = base_case(&base_arg[i]);
		}
		for (unsigned i = 0; i < count; i++)
			n += add_cases(&knower[i], i ? base : NULL, &arg[n], &cases[n]);
		ret = bench_measure(run, cases, n, result);
	}
	free(cases);
	free(arg);
	free(base);
	return ret;
}

static void choose_patched(struct knower *knower, unsigned count)
{
	unsigned last = 0;

	for (unsigned i = 1; i < count; i++)
		if (knower[i].sites <= PATCHED_AT_MOST)
			last = i;
	knower[0].patches = knower[last].patches = true;
}

int scaling_known(const struct bench_run *run, const unsigned long *known, unsigned count,
		  struct bench_result *result)
{
	struct knower *knower = calloc(count, sizeof(*knower));
	struct known_waits waits = waits_here();
	int ret;

	if (!knower)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		knower[i] = (struct knower){ .sites = known[i], .waits = waits };
	choose_patched(knower, count);
	ret = measure(run, knower, count, result);
	for (unsigned i = 0; i < count; i++)
		known_close(&knower[i].known);
	free(knower);
	return ret;
}
