/* SPDX-License-Identifier: MIT */
/*
 * What the call costs that a site makes while it is on (table 2's invocation): of an empty
 * function, beside a call that the compiler would have emitted and nobody ever changes.
 *
 * "aligned" was patched off and on by pc_patch(). "call" was by pc_deactivate_call() and
 * pc_activate_call(), with the target that it had, with an other one next to that, which splits
 * 2|3 to 4|1 reach through a stub, or with a far one, which all reach through a stub. "direct"
 * against itself is a second one at another address.
 *
 * A row's figure is the pass of the loop with the call; "over_empty" is the call alone, the
 * empty loop being timed beside it. Peers in processes of their own have an empty loop of
 * their own for that.
 */
#include "bench/cases/pass/pass.h"

static const struct pass_spec calls[] = {
	{ .name = "call", .state = PASS_CALL_ON, .target = "original" },
	{ .name = "call", .state = PASS_CALL_OTHER, .target = "other" },
	{ .name = "call", .state = PASS_CALL_FAR, .target = "far" },
};

static const struct pass_spec others[] = {
	{ .name = "flag", .loop.kind = LOOP_FLAG, .peer = true },
	{ .name = "pointer", .loop.kind = LOOP_POINTER, .peer = true },
	{ .name = "flag-pointer", .loop.kind = LOOP_FLAG_POINTER, .peer = true },
	{ .name = "direct", .loop.kind = LOOP_DIRECT, .peer = true },
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static size_t add_body(struct pass_spec *spec, bool work)
{
	size_t count = 0;

	spec[count++] = (struct pass_spec){
		.name = "aligned",
		.state = PASS_PATCHED,
		.loop = { .kind = LOOP_SITE, .work = work },
		.split = true,
	};
	for (size_t i = 0; i < COUNT(calls); i++)
		count += pass_add_splits(spec + count, &calls[i], work);
	return count + pass_add_others(spec + count, others, COUNT(others), work);
}

size_t invoke_specs(struct pass_spec *spec)
{
	size_t count = add_body(spec, false);

	return count + add_body(spec + count, true);
}

int bench_invoke(const struct bench_run *run, struct bench_result *result)
{
	static const struct pass_bench bench = {
		.measure = "call",
		.specs = invoke_specs,
		.base = { .name = "direct", .loop.kind = LOOP_DIRECT, .peer = true },
		.body = true,
		.peers_on = true,
	};

	return pass_measure(&bench, run, result);
}
