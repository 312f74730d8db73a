/* SPDX-License-Identifier: MIT */
/*
 * What a site that is off costs those who pass it ("Living on the Edge", section 8.5), beside
 * the empty loop, and what a guard costs that is compiled in.
 *
 * "nop" is a site that pc_patch() has turned off. "call" was turned off by pc_deactivate_call():
 * a call of a ret at splits 0 and 1|4, a short jump at the others. A "pointer" is off when it
 * leads to an empty function. "direct" is never off; it tells the scale. "empty" against itself
 * is a second empty loop at another address: what is found there is what this method cannot
 * tell from nothing.
 *
 * Peers in processes of their own are measured against the empty loop of that process.
 */
#include "bench/cases/pass/pass.h"

static const struct pass_spec sites[] = {
	{ .name = "nop", .state = PASS_NOP },
	{ .name = "call", .state = PASS_CALL_OFF },
};

static const struct pass_spec others[] = {
	{ .name = "flag", .state = PASS_FLAG_DOWN, .loop.kind = LOOP_FLAG, .peer = true },
	{ .name = "flag-pointer",
	  .state = PASS_FLAG_DOWN,
	  .loop.kind = LOOP_FLAG_POINTER,
	  .peer = true },
	{ .name = "pointer", .loop.kind = LOOP_POINTER, .peer = true },
	{ .name = "direct", .loop.kind = LOOP_DIRECT, .peer = true },
	{ .name = "empty", .loop.kind = LOOP_EMPTY },
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static size_t add_body(struct pass_spec *spec, bool work)
{
	size_t count = 0;

	for (size_t i = 0; i < COUNT(sites); i++)
		count += pass_add_splits(spec + count, &sites[i], work);
	return count + pass_add_others(spec + count, others, COUNT(others), work);
}

size_t latent_specs(struct pass_spec *spec)
{
	size_t count = add_body(spec, false);

	return count + add_body(spec + count, true);
}

int bench_latent(const struct bench_run *run, struct bench_result *result)
{
	static const struct pass_bench bench = {
		.measure = "pass",
		.specs = latent_specs,
		.base = { .name = "empty", .loop.kind = LOOP_EMPTY },
		.base_empty = true,
		.body = true,
	};

	return pass_measure(&bench, run, result);
}
