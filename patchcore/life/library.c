/* SPDX-License-Identifier: MIT */
/* Start-up, shut-down and settings. */
#include "patchcore/patchcore.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "patchcore/machine/policy.h"
#include "patchcore/merge/others.h"
#include "patchcore/pages/text.h"
#include "patchcore/sigtrap/trap.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/lock.h"
#include "patchcore/site/site.h"
#include "patchcore/word/flight.h"

static struct lock setup_lock; /* protects all below */
static struct facts facts;
static enum pc_policy asked = PC_POLICY_AUTO;
static double accept_p = PC_ACCEPT_P_DEFAULT;
static double accept_window_p = PC_ACCEPT_WINDOW_P_DEFAULT;
static char reason[sizeof(((struct pc_status *)0)->reason)];

/* The process's own, from now on. */
static int choose_policy(enum pc_policy policy, double p, bool is_to_be_possible)
{
	char why[sizeof(reason)];
	const struct syncs *syncs = choice_get(&facts, policy, p, why, sizeof(why));

	if (!syncs)
		return -ENOMEM;
	if (is_to_be_possible && syncs->page.policy == PC_POLICY_AUTO &&
	    syncs->line.policy == PC_POLICY_AUTO)
		return -ENOTSUP;
	asked = policy;
	accept_p = p;
	strcpy(reason, why);
	choice_current = syncs;
	return 0;
}

static void setup_leave(struct thread *self)
{
	lock_drop(&setup_lock);
	fork_leave(self);
}

/* With the lock; where that is asked for, only between pc_init() and pc_fini(). */
static int setup_enter(struct thread **self, bool between)
{
	int ret = fork_enter(self);

	if (ret < 0)
		return ret;
	lock_take(&setup_lock);
	if (!between || choice_sync())
		return 0;
	setup_leave(*self);
	return -ESHUTDOWN;
}

/*
 * Code that is patched may lead here: it is not unloaded before one more dlclose(). A static
 * program has no loader, and need not have dlmopen().
 */
#pragma weak dlmopen
static void hold_code(void)
{
	static _Atomic(bool) held;
	Dl_info here;

	if (!dlmopen || !getauxval(AT_BASE))
		return;
	if (!atomic_exchange_explicit(&held, true, memory_order_relaxed) &&
	    dladdr((void *)pc_init, &here))
		dlmopen(LM_ID_BASE, here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

int pc_init(void)
{
	struct thread *self;
	int ret;

	hold_code();
	ret = setup_enter(&self, false);
	if (ret < 0)
		return ret;
	/* Without SIGTRAP nothing has begun. */
	if (!choice_current && (ret = trap_install()) == 0) {
		facts_learn(&facts);
		facts_accept_window(&facts, accept_window_p);
		facts.trap = probe_int3(facts.trap_reason, sizeof(facts.trap_reason)) == 0;
		ret = choose_policy(asked, accept_p, false);
	}
	setup_leave(self);
	return ret;
}

int pc_fini(void)
{
	struct thread *self;
	int ret = fork_enter(&self);

	if (ret < 0)
		return ret;
	flight_drain();
	lock_take(&setup_lock);
	if (choice_current) {
		ret = sites_count().held ? -EBUSY : trap_remove();
		if (ret == 0) {
			choice_current = NULL;
			others_give_back();
			ret = text_give_back();
		}
	}
	setup_leave(self);
	return ret;
}

/* --- Choices ---------------------------------------------------------------------------------- */

/* NULL: as it is. */
static int choose_again(const enum pc_policy *policy, const double *p)
{
	struct thread *self;
	int ret = setup_enter(&self, true);

	if (ret < 0)
		return ret;
	ret = choose_policy(policy ? *policy : asked, p ? *p : accept_p, policy);
	setup_leave(self);
	return ret;
}

int pc_set_policy(enum pc_policy policy)
{
	return (unsigned)policy <= PC_POLICY_MEMBARRIER ? choose_again(&policy, NULL) : -EINVAL;
}

int pc_set_accept_p(double p)
{
	return p > 0 && p <= 1 ? choose_again(NULL, &p) : -EINVAL;
}

int pc_set_accept_window_p(double p)
{
	struct thread *self;
	int ret = p > 0 && p <= 1 ? setup_enter(&self, true) : -EINVAL;

	if (ret < 0)
		return ret;
	facts_accept_window(&facts, p);
	ret = choose_policy(asked, accept_p, false);
	if (ret == 0)
		accept_window_p = p;
	else
		facts_accept_window(&facts, accept_window_p);
	setup_leave(self);
	return ret;
}

int pc_get_status(struct pc_status *status)
{
	const struct syncs *syncs;
	const struct sync *page;
	double line_p, page_p, upper_p = 1;
	struct site_counts counts;
	struct thread *self;
	int ret = status ? setup_enter(&self, true) : -EINVAL;

	if (ret < 0)
		return ret;
	syncs = choice_current;
	page = &syncs->page;
	counts = sites_count();
	line_p = policy_bound(&facts, &syncs->line, false);
	page_p = policy_bound(&facts, page, true);
	/* The worse bound of what is waited by; else the lowest that the config has. */
	if (facts.have_conf && page->policy == PC_POLICY_WAIT)
		upper_p = line_p > page_p ? line_p : page_p;
	else if (facts.have_conf)
		upper_p = machine_conf_p(machine_conf_surest(&facts.conf, SITES_ALL), SITES_ALL);
	*status = (struct pc_status){
		.asked = asked,
		.in_use = page->policy,
		.first_wait = page->waits.first,
		.second_wait = page->waits.second,
		.stretch = page->waits.stretch,
		.atomic_window = page->window,
		.conf_valid = facts.have_conf,
		.upper_p = upper_p,
		.accept_p = accept_p,
		.traps = counts.traps,
		.changes = counts.changes,
		.undone = flight_undone(),
		.level = page->level,
		.line_level = syncs->line.level,
		.page_p = page_p,
		.line_p = line_p,
		.long_run = facts.have_conf && facts.conf.long_run,
		.runs = facts.have_conf ? facts.conf.runs : 0,
		.measured = facts.have_conf ? facts.conf.measured : 0,
		.later_wait = syncs->page_later.waits.first,
		.later_p = policy_bound(&facts, &syncs->page_later, true),
		.line_later_wait = syncs->line_later.waits.first,
		.line_later_p = policy_bound(&facts, &syncs->line_later, false),
		.fleet = facts.have_conf && facts.conf.fleet,
		.accept_window_p = accept_window_p,
		.window_p = page->window > 8 ? facts.window_p : 0,
	};
	snprintf(status->conf_path, sizeof(status->conf_path), "%s", facts.conf_path);
	snprintf(status->reason, sizeof(status->reason), "%s", reason);
	setup_leave(self);
	return 0;
}
