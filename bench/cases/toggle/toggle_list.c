/* SPDX-License-Identifier: MIT */
/*
 * Which cases there are. Of rows that differ in one thing only the usual one comes first.
 */
#include <assert.h>

#include "bench/cases/toggle/toggle_case.h"

static void add(struct toggle_list *list, const struct toggle_spec *spec)
{
	assert(list->count < TOGGLE_CASES_MAX);
	list->spec[list->count++] = *spec;
}

#define ADD(list, ...) add(list, &(struct toggle_spec){ __VA_ARGS__ })

/* --- One executor or none ------------------------------------------------------------- */

static void add_aligned(struct toggle_list *list)
{
	ADD(list, .op = &toggle_aligned, .executors = 1);
	ADD(list, .op = &toggle_aligned, .executors = 0);
	ADD(list, .op = &toggle_aligned, .executors = 0, .cold = true);
	ADD(list, .op = &toggle_aligned, .executors = 1, .mapping = TOGGLE_PROTECT);
	ADD(list, .op = &toggle_aligned, .executors = 1, .mapping = TOGGLE_ALIAS);
}

static void add_call(struct toggle_list *list, const struct toggle_op *op, unsigned executors)
{
	for (unsigned split = 0; split < LOOP_SITE_BYTES; split++)
		ADD(list, .op = op, .executors = executors, .has_split = true, .split = split);
}

static void add_calls(struct toggle_list *list)
{
	add_call(list, &toggle_call, 1);
	add_call(list, &toggle_call, 0);
	ADD(list, .op = &toggle_call, .has_split = true, .cold = true);
	ADD(list, .op = &toggle_call, .has_split = true, .split = TOGGLE_SPLIT, .cold = true);
	add_call(list, &toggle_retarget, 1);
}

/* A straddler, or one that is started. */
static struct toggle_spec straddler(const struct toggle_op *op, enum pc_policy policy,
				    unsigned executors)
{
	return (struct toggle_spec){
		.op = op,
		.has_split = true,
		.split = TOGGLE_SPLIT,
		.has_policy = true,
		.policy = policy,
		.executors = executors,
	};
}

static void add_cold(struct toggle_list *list, const struct toggle_op *op)
{
	struct toggle_spec spec = straddler(op, PC_POLICY_WAIT, 0);

	spec.cold = true;
	add(list, &spec);
}

static void add_straddlers(struct toggle_list *list, enum pc_policy policy)
{
	struct toggle_spec spec = straddler(&toggle_straddler, policy, 1);

	for (spec.split = 1; spec.split < LOOP_SITE_BYTES; spec.split++)
		add(list, &spec);
	spec = straddler(&toggle_straddler, policy, 0);
	add(list, &spec);
	spec = straddler(&toggle_straddler, policy, 1);
	spec.page = true;
	add(list, &spec);
}

static void add_mappings(struct toggle_list *list)
{
	struct toggle_spec spec = straddler(&toggle_straddler, PC_POLICY_WAIT, 1);

	spec.mapping = TOGGLE_PROTECT;
	add(list, &spec);
	spec.mapping = TOGGLE_ALIAS;
	add(list, &spec);
}

static void add_starts(struct toggle_list *list, enum pc_policy policy)
{
	for (unsigned executors = 2; executors-- > 0;) {
		struct toggle_spec spec = straddler(&toggle_start, policy, executors);

		add(list, &spec);
	}
}

static void add_other(struct toggle_list *list, const struct toggle_op *op, bool has_split,
		      unsigned least)
{
	for (unsigned executors = 2; executors-- > least;)
		ADD(list, .op = op, .executors = executors, .has_split = has_split,
		    .split = has_split ? TOGGLE_SPLIT : 0);
}

/* The world is stopped only where there is somebody in it. */
static void add_others(struct toggle_list *list)
{
	add_other(list, &toggle_flag, false, 0);
	add_other(list, &toggle_pointer, false, 0);
	add_other(list, &toggle_hand, true, 0);
	add_other(list, &toggle_stop, true, 1);
	add_other(list, &toggle_ptrace, true, 1);
}

static void add_processes(struct toggle_list *list)
{
	for (struct peer *peer = peers; peer->name; peer++) {
		if (!peer->toggle)
			continue;
		ADD(list, .op = &toggle_process, .peer = peer, .executors = 1);
		if (!peer->hot_only)
			ADD(list, .op = &toggle_process, .peer = peer, .executors = 0);
	}
}

void toggle_list_singles(struct toggle_list *list)
{
	add_aligned(list);
	add_calls(list);
	add_straddlers(list, PC_POLICY_WAIT);
	add_cold(list, &toggle_straddler);
	add_mappings(list);
	add_straddlers(list, PC_POLICY_MEMBARRIER);
	add_starts(list, PC_POLICY_WAIT);
	add_cold(list, &toggle_start);
	add_starts(list, PC_POLICY_MEMBARRIER);
	add_others(list);
	add_processes(list);
}

/* --- More executors, and batches ------------------------------------------------------ */

static void add_crowd(struct toggle_list *list, unsigned executors)
{
	static const enum pc_policy policies[] = { PC_POLICY_WAIT, PC_POLICY_MEMBARRIER };

	ADD(list, .op = &toggle_aligned, .executors = executors);
	ADD(list, .op = &toggle_call, .executors = executors, .has_split = true);
	ADD(list, .op = &toggle_call, .executors = executors, .has_split = true,
	    .split = TOGGLE_SPLIT);
	for (unsigned i = 0; i < 2; i++) {
		struct toggle_spec spec = straddler(&toggle_straddler, policies[i], executors);

		add(list, &spec);
		spec.op = &toggle_start;
		add(list, &spec);
	}
}

/* 2, 4, 8 and so on, and all. */
void toggle_list_crowds(struct toggle_list *list, unsigned most)
{
	for (unsigned executors = 2; executors < most; executors *= 2)
		add_crowd(list, executors);
	if (most > 1)
		add_crowd(list, most);
}

static void add_batches(struct toggle_list *list, enum pc_policy policy)
{
	static const unsigned sites[] = { 1, 10, 100, 1000, 1024, TOGGLE_BATCH_MAX };

	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++) {
		struct toggle_spec spec = straddler(&toggle_batch, policy, 1);

		spec.batch = sites[i];
		add(list, &spec);
	}
}

/* Auto takes the wait into account only where its bound is accepted; here it is. */
static void add_accepted(struct toggle_list *list, unsigned batch)
{
	struct toggle_spec spec = straddler(&toggle_batch, PC_POLICY_AUTO, 1);

	spec.batch = batch;
	spec.any_risk = true;
	add(list, &spec);
}

void toggle_list_batches(struct toggle_list *list)
{
	add_batches(list, PC_POLICY_WAIT);
	add_batches(list, PC_POLICY_MEMBARRIER);
	add_batches(list, PC_POLICY_AUTO);
	add_accepted(list, 1);
	add_accepted(list, 1024);
}
