/* SPDX-License-Identifier: MIT */
/* Start-up, shut-down and settings. */
#include "patchcore/patchcore.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
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
static struct {
	enum pc_policy policy;
	double p, window_p, rate;
} asked = { PC_POLICY_AUTO, PC_ACCEPT_P_DEFAULT, PC_ACCEPT_WINDOW_P_DEFAULT, INFINITY };
static char reason[sizeof(((struct pc_status *)0)->reason)];

#define HOUR_MS	     3600000.0
#define BUCKET_SHARE 0.1 /* of an hour's tears may come at once */

static void facts_heed_wishes(void)
{
	facts_accept_window(&facts, asked.window_p);
	facts.limited = asked.rate < INFINITY;
}

/* The process's own, from now on. */
static int choose_policy(bool is_to_be_possible)
{
	double hour = HOUR_MS * (double)facts.conf.identity.tsc_khz; /* ticks */
	const struct syncs *syncs;
	char why[sizeof(reason)];

	facts_heed_wishes();
	syncs = choice_get(&facts, asked.policy, asked.p, why, sizeof(why));
	if (!syncs)
		return -ENOMEM;
	if (is_to_be_possible && !syncs->page.quiet && syncs->page.policy == PC_POLICY_AUTO &&
	    syncs->line.policy == PC_POLICY_AUTO)
		return -ENOTSUP;
	/* Before any change by the new choice. */
	sync_limit_tears(facts.limited ? (hour + 1) / asked.rate : 0,
			 (uint64_t)(BUCKET_SHARE * hour));
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
		facts.trap = probe_int3(facts.trap_reason, sizeof(facts.trap_reason)) == 0;
		ret = choose_policy(false);
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

/* policy NULL: as it is, and the other wish becomes that value. */
static int choose_again(const enum pc_policy *policy, double *wish, double value)
{
	struct thread *self;
	int ret = setup_enter(&self, true);
	typeof(asked) before;

	if (ret < 0)
		return ret;
	before = asked;
	if (policy)
		asked.policy = *policy;
	else
		*wish = value;
	ret = choose_policy(policy);
	if (ret < 0) {
		asked = before;
		facts_heed_wishes();
	}
	setup_leave(self);
	return ret;
}

/* Changes that were begun before the policy was set may interrupt until they are over. */
static int end_older_changes(void)
{
	bool all_left = thread_await_all();
	struct thread *self;
	int ret = fork_enter(&self);

	if (ret < 0)
		return ret;
	ret = flight_drain();
	fork_leave(self);
	return ret == 0 && !all_left ? -ETIMEDOUT : ret;
}

int pc_set_policy(enum pc_policy policy)
{
	int ret = (unsigned)policy <= PC_POLICY_QUIET ? choose_again(&policy, NULL, 0) : -EINVAL;

	return ret == 0 && policy == PC_POLICY_QUIET ? end_older_changes() : ret;
}

int pc_set_accept_p(double p)
{
	return p > 0 && p <= 1 ? choose_again(NULL, &asked.p, p) : -EINVAL;
}

int pc_set_accept_window_p(double p)
{
	return p > 0 && p <= 1 ? choose_again(NULL, &asked.window_p, p) : -EINVAL;
}

int pc_set_accept_rate(double tears)
{
	return tears > 0 ? choose_again(NULL, &asked.rate, tears) : -EINVAL;
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
	line_p = syncs->line.upper_p;
	page_p = page->upper_p;
	/* The worse bound of what is waited by; else the lowest that the config has. */
	if (facts.have_conf && page->policy == PC_POLICY_WAIT)
		upper_p = line_p > page_p ? line_p : page_p;
	else if (facts.have_conf)
		upper_p = machine_conf_p(machine_conf_surest(&facts.conf, SITES_ALL), SITES_ALL);
	*status = (struct pc_status){
		.asked = asked.policy,
		.in_use = page->policy,
		.first_wait = page->waits.first,
		.second_wait = page->waits.second,
		.stretch = page->waits.stretch,
		.atomic_window = page->window,
		.conf_valid = facts.have_conf,
		.upper_p = upper_p,
		.accept_p = asked.p,
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
		.later_p = syncs->page_later.upper_p,
		.line_later_wait = syncs->line_later.waits.first,
		.line_later_p = syncs->line_later.upper_p,
		.fleet = facts.have_conf && facts.conf.fleet,
		.accept_window_p = asked.window_p,
		.window_p = page->window > 8 ? facts.window_p : 0,
		.accept_rate = asked.rate,
		.rest = page->rest,
		.line_rest = syncs->line.rest,
	};
	snprintf(status->conf_path, sizeof(status->conf_path), "%s", facts.conf_path);
	snprintf(status->reason, sizeof(status->reason), "%s", reason);
	setup_leave(self);
	return 0;
}
