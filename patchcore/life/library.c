/* SPDX-License-Identifier: MIT */
/*
 * Start-up, shut-down and settings.
 */
#include "patchcore/patchcore.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "patchcore/async.h"
#include "patchcore/life/library.h"
#include "patchcore/machine/choice.h"
#include "patchcore/merge/others.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/lock.h"
#include "patchcore/site/site.h"
#include "patchcore/text/text.h"
#include "patchcore/trap/probe.h"
#include "patchcore/trap/trap.h"
#include "patchcore/word/flight.h"

static struct lock setup_lock = LOCK_INIT; /* protects all below */
static struct facts facts;
static unsigned learned; /* pc_init() so far */
static enum pc_policy asked = PC_POLICY_AUTO;
static double accept_p = PC_ACCEPT_P_DEFAULT;
static struct {
	bool on;
	uint64_t first, second, stretch;
} assumed;

static struct pc_choice *get_choice(enum pc_policy policy, double p)
{
	return choice_get(&facts, learned, policy, p);
}

/* The process's own, from now on. */
static int choose_for_process(enum pc_policy policy, double p)
{
	struct pc_choice *choice = get_choice(policy, p);

	if (!choice)
		return -ENOMEM;
	asked = policy;
	accept_p = p;
	choice_use(choice);
	return 0;
}

/* Without a trap handler, or with one that INT3 does not reach, straddlers are off. */
static int take_traps(void)
{
	int ret = trap_install();

	if (ret < 0)
		snprintf(facts.trap_reason, sizeof(facts.trap_reason),
			 "SIGTRAP could not be taken");
	else
		facts.trap = probe_int3(facts.trap_reason, sizeof(facts.trap_reason)) == 0;
	return ret;
}

void library_assume_waits(uint64_t first, uint64_t second, uint64_t stretch)
{
	assumed.on = true;
	assumed.first = first;
	assumed.second = second;
	assumed.stretch = stretch;
}

/* A bound of 1 is none. */
static void learn_assumed(void)
{
	if (!assumed.on)
		return;
	facts.have_conf = true;
	facts.have_window = false;
	facts.conf = (struct machine_conf){
		.levels = 1,
		.level = { {
			.first_wait = assumed.first,
			.second_wait = assumed.second,
			.stretch = assumed.stretch,
			.line.upper_p = 1,
			.page.upper_p = 1,
		} },
		.window = 8,
		.window_p = 1,
	};
	sync_expect_level(1, 0);
}

static int init_locked(void)
{
	int ret, chosen;

	if (choice_in_use())
		return 0;
	facts_learn(&facts);
	learn_assumed();
	learned++;
	ret = take_traps();
	chosen = choose_for_process(asked, accept_p);
	return ret < 0 ? ret : chosen;
}

int pc_init(void)
{
	struct thread *self;
	int ret = fork_enter(&self);

	if (ret < 0)
		return ret;
	lock_take(&setup_lock);
	ret = init_locked();
	lock_drop(&setup_lock);
	fork_leave(self);
	return ret;
}

static int fini_locked(void)
{
	int ret;

	if (!choice_in_use())
		return 0;
	flight_rescue_all();
	if (flight_any() || site_any_held())
		return -EBUSY;
	ret = trap_remove();
	if (ret < 0)
		return ret;
	choice_use(NULL);
	others_give_back();
	return text_give_back();
}

int pc_fini(void)
{
	struct thread *self;
	int ret;

	pc_finisher_stop();
	ret = fork_enter(&self);
	if (ret < 0)
		return ret;
	/* The look at the sites puts on the list what threads that are gone have left in flight. */
	flight_rescue_all();
	flight_drain();
	lock_take(&setup_lock);
	ret = fini_locked();
	lock_drop(&setup_lock);
	fork_leave(self);
	return ret;
}

/* --- Choices ---------------------------------------------------------------------------------- */

static bool is_policy(enum pc_policy policy)
{
	return policy == PC_POLICY_AUTO || policy == PC_POLICY_WAIT ||
	       policy == PC_POLICY_MEMBARRIER;
}

static bool is_probability(double p)
{
	return p > 0 && p <= 1;
}

/* With the lock, between pc_init() and pc_fini(). */
typedef int settings_fn(void *arg);

static int with_settings(settings_fn *fn, void *arg)
{
	struct thread *self;
	int ret = fork_enter(&self);

	if (ret < 0)
		return ret;
	lock_take(&setup_lock);
	ret = choice_sync() ? fn(arg) : -ESHUTDOWN;
	lock_drop(&setup_lock);
	fork_leave(self);
	return ret;
}

static int set_policy(void *arg)
{
	enum pc_policy policy = *(enum pc_policy *)arg;
	struct pc_choice *choice = get_choice(policy, accept_p);

	if (!choice)
		return -ENOMEM;
	return policy_is_possible(&choice->syncs) ? choose_for_process(policy, accept_p) : -ENOTSUP;
}

int pc_set_policy(enum pc_policy policy)
{
	return is_policy(policy) ? with_settings(set_policy, &policy) : -EINVAL;
}

static int set_accept_p(void *p)
{
	return choose_for_process(asked, *(double *)p);
}

int pc_set_accept_p(double p)
{
	return is_probability(p) ? with_settings(set_accept_p, &p) : -EINVAL;
}

int pc_set_accept_rate(double tears_per_hour, double changes_per_second)
{
	double p;

	if (!(tears_per_hour > 0) || !(changes_per_second > 0))
		return -EINVAL;
	/* Divided twice, so that nothing in between is beyond the range of a double. */
	p = tears_per_hour / changes_per_second / 3600;
	/* Infinite over infinite says nothing; nor can p be so low that it is no number above 0. */
	if (!(p > 0))
		return -EINVAL;
	return pc_set_accept_p(p < 1 ? p : 1);
}

struct wish {
	enum pc_policy policy;
	double accept_p;
	const struct pc_choice *choice;
};

static int fulfil(void *arg)
{
	struct wish *wish = arg;

	wish->choice = get_choice(wish->policy, wish->accept_p);
	if (!wish->choice)
		return -ENOMEM;
	return policy_is_possible(&wish->choice->syncs) ? 0 : -ENOTSUP;
}

int pc_choose(const struct pc_choice **choice, enum pc_policy policy, double p)
{
	struct wish wish = { .policy = policy, .accept_p = p };
	int ret;

	if (!choice || !is_policy(policy) || !is_probability(p))
		return -EINVAL;
	ret = with_settings(fulfil, &wish);
	if (ret == 0)
		*choice = wish.choice;
	return ret;
}

static uint64_t count_changes(void)
{
	uint64_t changes = 0;

	sites_each(site_add_changes, &changes);
	return changes;
}

/* The worse bound of what is waited by; else the lowest that the config has. */
static double status_bound(const struct syncs *syncs)
{
	double line = policy_bound(&facts, &syncs->line, false);
	double page = policy_bound(&facts, &syncs->page, true);

	if (!facts.have_conf)
		return 1;
	if (syncs->page.policy == PC_POLICY_WAIT)
		return line > page ? line : page;
	return machine_conf_p(machine_conf_surest(&facts.conf));
}

static int fill_in_status(void *arg)
{
	const struct pc_choice *choice = choice_in_use();
	const struct syncs *syncs = &choice->syncs;
	const struct sync *page = &syncs->page;
	struct pc_status *status = arg;

	*status = (struct pc_status){
		.asked = choice->asked,
		.in_use = page->policy,
		.first_wait = page->first_wait,
		.second_wait = page->second_wait,
		.stretch = page->stretch,
		.atomic_window = page->window,
		.conf_valid = facts.have_conf,
		.upper_p = status_bound(syncs),
		.accept_p = choice->accept_p,
		.traps = trap_count(),
		.changes = count_changes(),
		.undone = flight_undone(),
		.level = page->level,
		.line_level = syncs->line.level,
		.page_p = policy_bound(&facts, page, true),
		.line_p = policy_bound(&facts, &syncs->line, false),
		.long_run = facts.have_conf && facts.conf.long_run,
		.runs = facts.have_conf ? facts.conf.runs : 0,
		.measured = facts.have_conf ? facts.conf.measured : 0,
		.later_wait = syncs->page_later.first_wait,
		.later_p = policy_bound(&facts, &syncs->page_later, true),
		.line_later_wait = syncs->line_later.first_wait,
		.line_later_p = policy_bound(&facts, &syncs->line_later, false),
	};
	snprintf(status->conf_path, sizeof(status->conf_path), "%s", facts.conf_path);
	snprintf(status->reason, sizeof(status->reason), "%s", choice->reason);
	return 0;
}

int pc_get_status(struct pc_status *status)
{
	return status ? with_settings(fill_in_status, status) : -EINVAL;
}
