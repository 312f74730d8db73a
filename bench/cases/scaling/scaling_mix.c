/* SPDX-License-Identifier: MIT */
#include "bench/cases/scaling/scaling.h"

/* 0, 1, 2, 4, and then in steps of four: more would take too long on a large machine. */
static unsigned next_number(unsigned n)
{
	return n < 2 ? n + 1 : n < 4 ? 2 * n : 4 * n;
}

static void add(struct scaling_mix *mixes, unsigned *count, struct scaling_mix mix)
{
	if (*count < SCALING_MIXES)
		mixes[(*count)++] = mix;
}

/* On two CPUs patchers and executors can only grow together where they share. */
unsigned scaling_mixes(unsigned cpus, struct scaling_mix *mixes)
{
	unsigned count = 0;

	for (unsigned p = 1; p <= cpus; p = next_number(p))
		for (unsigned e = 0; p + e <= cpus; e = next_number(e))
			add(mixes, &count, (struct scaling_mix){ p, e, false, false });
	if (cpus == 2) {
		add(mixes, &count, (struct scaling_mix){ 2, 1, false, true });
		add(mixes, &count, (struct scaling_mix){ 2, 2, false, true });
	}
	add(mixes, &count, (struct scaling_mix){ 2, 0, true, false });
	add(mixes, &count, (struct scaling_mix){ 2, 1, true, cpus < 3 });
	return count;
}

const char *scaling_base(struct scaling_mix mix, struct scaling_mix *base)
{
	*base = mix;
	base->one_site = false;
	if (mix.one_site)
		return "own-sites";
	base->shared = false;
	if (mix.patchers > 1) {
		base->patchers = 1;
		/* A second executor shares the CPU of the patcher, on two CPUs. */
		base->shared = mix.shared && mix.executors > 1;
		return "one-patcher";
	}
	base->executors = 0;
	return mix.executors ? "no-executor" : NULL;
}
