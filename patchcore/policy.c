/* SPDX-License-Identifier: MIT */
/*
 * Safe first: a number measured elsewhere, or not well enough, is no number.
 */
#include "patchcore/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "patchcore/wait.h"

#define WINDOW_DEFAULT 8u /* AMD APM vol. 2, 7.6.1 */

/* Returns what is wrong with the config, NULL if it may be used. */
static const char *conf_problem(const struct facts *facts, const struct identity *here, char *text,
				size_t size)
{
	const struct machine_conf *conf = &facts->conf;
	const char *field = identity_differs(&conf->identity, here);

	if (field) {
		snprintf(text, size, "it is of another machine: %s differs", field);
		return text;
	}
	if (!here->tsc_invariant)
		return "this machine has no invariant TSC to wait by";
	if (!conf->usable)
		return "its calibration found no wait that is safe here";
	return NULL;
}

static void learn_conf(struct facts *facts)
{
	struct identity here;
	char why[160];
	const char *problem = why;
	int ret = machine_conf_find(facts->conf_path, sizeof(facts->conf_path));

	if (ret < 0) {
		facts->conf_path[0] = '\0';
		snprintf(facts->conf_reason, sizeof(facts->conf_reason), "no machine.conf %s",
			 ret == -ENOENT ? "found" : "path fits");
		return;
	}
	ret = machine_conf_read(&facts->conf, facts->conf_path, why, sizeof(why));
	if (ret == 0) {
		ret = identity_read(&here);
		problem = ret < 0 ? "this machine cannot be identified"
				  : conf_problem(facts, &here, why, sizeof(why));
	}
	facts->have_conf = !problem;
	if (problem)
		snprintf(facts->conf_reason, sizeof(facts->conf_reason), "machine.conf refused: %s",
			 problem);
}

/* So that the first patch knows what it would cost: two in a row, for a pair of syncs. */
static void learn_cost(void)
{
	uint64_t start = ticks_now();

	if (membarrier_sync() == 0 && membarrier_sync() == 0)
		sync_note_cost(PC_POLICY_MEMBARRIER, ticks_now() - start);
}

void facts_learn(struct facts *facts)
{
	*facts = (struct facts){ 0 };
	learn_conf(facts);
	facts->membarrier = membarrier_register() == 0;
	if (facts->membarrier)
		learn_cost();
}

static bool wait_is_accepted(const struct facts *facts, double accept_p)
{
	return facts->have_conf && facts->conf.upper_p <= accept_p;
}

static bool window_is_accepted(const struct facts *facts, enum pc_policy asked, double accept_p)
{
	return facts->have_conf && (asked == PC_POLICY_WAIT || facts->conf.window_p <= accept_p);
}

static void use_wait(const struct facts *facts, struct sync *sync)
{
	sync->policy = PC_POLICY_WAIT;
	sync->first_wait = facts->conf.first_wait;
	sync->second_wait = facts->conf.second_wait;
	sync->stretch = facts->conf.stretch;
}

/* Why AUTO passes the wait over. */
static void explain_no_wait(const struct facts *facts, double accept_p, char *text, size_t size)
{
	if (!facts->have_conf)
		snprintf(text, size, "%s", facts->conf_reason);
	else
		snprintf(text, size,
			 "machine.conf bounds tears only by %.2g per toggle, above %.2g",
			 facts->conf.upper_p, accept_p);
}

static void choose_auto(const struct facts *facts, double accept_p, struct sync *sync, char *reason,
			size_t size)
{
	char no_wait[200];

	if (wait_is_accepted(facts, accept_p)) {
		use_wait(facts, sync);
		snprintf(reason, size, "auto: machine.conf bounds tears by %.2g per toggle",
			 facts->conf.upper_p);
		return;
	}
	explain_no_wait(facts, accept_p, no_wait, sizeof(no_wait));
	if (facts->membarrier)
		sync->policy = PC_POLICY_MEMBARRIER;
	snprintf(reason, size, "auto: %s%s", no_wait,
		 facts->membarrier ? "; so membarrier"
				   : ", and the kernel has no membarrier SYNC_CORE");
}

void policy_choose(const struct facts *facts, enum pc_policy asked, double accept_p,
		   struct sync *sync, char *reason, size_t size)
{
	*sync = (struct sync){
		.policy = PC_POLICY_AUTO,
		.window = window_is_accepted(facts, asked, accept_p) ? facts->conf.window
								     : WINDOW_DEFAULT,
	};
	if (!facts->trap) {
		snprintf(reason, size, "%s",
			 facts->trap_reason[0] ? facts->trap_reason : "SIGTRAP could not be taken");
		return;
	}
	switch (asked) {
	case PC_POLICY_AUTO:
		choose_auto(facts, accept_p, sync, reason, size);
		return;
	case PC_POLICY_WAIT:
		if (facts->have_conf)
			use_wait(facts, sync);
		snprintf(reason, size, "%s",
			 facts->have_conf ? "wait: asked for by name" : facts->conf_reason);
		return;
	case PC_POLICY_MEMBARRIER:
		if (facts->membarrier)
			sync->policy = PC_POLICY_MEMBARRIER;
		snprintf(reason, size, "%s",
			 facts->membarrier ? "membarrier: asked for by name"
					   : "the kernel has no membarrier SYNC_CORE");
		return;
	}
}
