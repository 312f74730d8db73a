/* SPDX-License-Identifier: MIT */
/*
 * Start-up, shut-down and settings.
 */
#include "patchcore/patchcore.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "patchcore/async.h"
#include "patchcore/finisher.h"
#include "patchcore/flight.h"
#include "patchcore/forget.h"
#include "patchcore/forklock.h"
#include "patchcore/library.h"
#include "patchcore/policy.h"
#include "patchcore/text.h"
#include "patchcore/trap.h"
#include "patchcore/trap_test.h"

/*
 * The syncs that this machine and the caller's choice allow, one per outcome.
 * A patcher uses one without a lock: they are written before `current` points
 * to them, and only rewritten when unused (pc_init after pc_fini) or equal.
 */
enum {
	USE_NONE,
	USE_WAIT,
	USE_MEMBARRIER,
	USE_EITHER, /* wait, or membarrier where that is cheaper */
	USE_EITHER_TOO,
	USES
};
enum {
	WINDOW_SMALL,
	WINDOW_LARGE,
	WINDOWS
};

static struct forklock setup_lock = FORKLOCK_INIT; /* protects all below */
static struct facts facts;
static enum pc_policy asked = PC_POLICY_AUTO;
static double accept_p = PC_ACCEPT_P_DEFAULT;
static struct sync syncs[USES][WINDOWS];
static char reason[256];
static struct {
	bool on;
	uint64_t first, second, stretch;
} assumed;

/* NULL before pc_init() and after pc_fini(). Release; patchers acquire. */
static _Atomic(const struct sync *) current;

static bool is_same(const struct sync *a, const struct sync *b)
{
	return a->policy == b->policy && a->first_wait == b->first_wait &&
	       a->second_wait == b->second_wait && a->stretch == b->stretch &&
	       a->window == b->window;
}

static struct sync *keep(unsigned use, const struct sync *chosen)
{
	struct sync *slot = &syncs[use][chosen->window > 8 ? WINDOW_LARGE : WINDOW_SMALL];

	/* The facts are fixed, so a slot that is in use already holds just this. */
	if (!is_same(slot, chosen))
		*slot = *chosen;
	return slot;
}

/* Both are safe enough for the caller: each patch takes the cheaper. */
static const struct sync *either(const struct sync *wait)
{
	struct sync membarrier = { .policy = PC_POLICY_MEMBARRIER, .window = wait->window };
	struct sync *one = keep(USE_EITHER, wait), *two = keep(USE_EITHER_TOO, &membarrier);

	if (!one->other) {
		one->other = two;
		two->other = one;
	}
	return one;
}

static void choose(void)
{
	static const int use[] = {
		[PC_POLICY_AUTO] = USE_NONE,
		[PC_POLICY_WAIT] = USE_WAIT,
		[PC_POLICY_MEMBARRIER] = USE_MEMBARRIER,
	};
	const struct sync *slot;
	struct sync chosen;

	policy_choose(&facts, asked, accept_p, &chosen, reason, sizeof(reason));
	if (asked == PC_POLICY_AUTO && chosen.policy == PC_POLICY_WAIT && facts.membarrier)
		slot = either(&chosen);
	else
		slot = keep(use[chosen.policy], &chosen);
	atomic_store_explicit(&current, slot, memory_order_release);
}

/*
 * The child has one thread, and what others were doing it finds as it stood: no
 * lock of this library may be held, and changes in flight are adopted later by
 * whoever meets them.
 */
static void before_fork(void)
{
	flight_fork_lock();
	forklock_before_fork(&setup_lock);
	forget_before_fork();
	sites_fork_lock();
}

static void after_fork(void)
{
	sites_fork_unlock();
	forget_after_fork();
	forklock_after_fork(&setup_lock);
	flight_fork_unlock();
}

static void in_child(void)
{
	thread_forked();
	finisher_forked();
	after_fork();
}

static void watch_forks(void)
{
	static bool watching;

	if (!watching)
		watching = pthread_atfork(before_fork, after_fork, in_child) == 0;
}

/* Without a trap handler, or with one that INT3 does not reach, straddlers are off. */
static int take_traps(void)
{
	int ret = trap_install();

	if (ret < 0)
		snprintf(facts.trap_reason, sizeof(facts.trap_reason),
			 "SIGTRAP could not be taken");
	else
		facts.trap = trap_self_test(facts.trap_reason, sizeof(facts.trap_reason)) == 0;
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
	facts.conf.first_wait = assumed.first;
	facts.conf.second_wait = assumed.second;
	facts.conf.stretch = assumed.stretch;
	facts.conf.upper_p = 1;
	facts.conf.window = 8;
	facts.conf.window_p = 1;
}

static int init_locked(void)
{
	int ret;

	if (atomic_load_explicit(&current, memory_order_relaxed))
		return 0;
	watch_forks();
	facts_learn(&facts);
	learn_assumed();
	ret = take_traps();
	choose();
	return ret;
}

int pc_init(void)
{
	int ret;

	forklock_take(&setup_lock);
	ret = init_locked();
	forklock_drop(&setup_lock);
	return ret;
}

static int fini_locked(void)
{
	int ret;

	if (!atomic_load_explicit(&current, memory_order_relaxed))
		return 0;
	if (flight_any() || site_any_held())
		return -EBUSY;
	ret = trap_remove();
	if (ret < 0)
		return ret;
	atomic_store_explicit(&current, NULL, memory_order_release);
	return text_give_back();
}

int pc_fini(void)
{
	int ret;

	/* Without the lock: draining takes its own, which comes first in before_fork(). */
	pc_finisher_stop();
	forklock_take(&setup_lock);
	ret = fini_locked();
	forklock_drop(&setup_lock);
	return ret;
}

/* Called with setup_lock held and the library initialised. */
static int set_policy_locked(enum pc_policy policy)
{
	struct sync trial;
	char ignored[256];

	policy_choose(&facts, policy, accept_p, &trial, ignored, sizeof(ignored));
	if (trial.policy == PC_POLICY_AUTO)
		return -ENOTSUP;
	asked = policy;
	choose();
	return 0;
}

int pc_set_policy(enum pc_policy policy)
{
	int ret;

	if (policy != PC_POLICY_AUTO && policy != PC_POLICY_WAIT && policy != PC_POLICY_MEMBARRIER)
		return -EINVAL;
	forklock_take(&setup_lock);
	ret = library_sync() ? set_policy_locked(policy) : -ESHUTDOWN;
	forklock_drop(&setup_lock);
	return ret;
}

int pc_set_accept_p(double p)
{
	if (!(p > 0 && p <= 1))
		return -EINVAL;
	forklock_take(&setup_lock);
	accept_p = p;
	if (atomic_load_explicit(&current, memory_order_relaxed))
		choose();
	forklock_drop(&setup_lock);
	return 0;
}

static void status_locked(struct pc_status *status)
{
	const struct sync *sync = atomic_load_explicit(&current, memory_order_relaxed);

	*status = (struct pc_status){
		.asked = asked,
		.in_use = sync->policy,
		.first_wait = sync->first_wait,
		.second_wait = sync->second_wait,
		.stretch = sync->stretch,
		.atomic_window = sync->window,
		.conf_valid = facts.have_conf,
		.upper_p = facts.have_conf ? facts.conf.upper_p : 1,
		.accept_p = accept_p,
	};
	snprintf(status->conf_path, sizeof(status->conf_path), "%s", facts.conf_path);
	snprintf(status->reason, sizeof(status->reason), "%s", reason);
}

int pc_get_status(struct pc_status *status)
{
	int ret = 0;

	if (!status)
		return -EINVAL;
	forklock_take(&setup_lock);
	if (library_sync())
		status_locked(status);
	else
		ret = -ESHUTDOWN;
	forklock_drop(&setup_lock);
	return ret;
}

const struct sync *library_sync(void)
{
	return atomic_load_explicit(&current, memory_order_acquire);
}

bool library_takes_traps(void)
{
	return trap_was_ours_lately();
}
