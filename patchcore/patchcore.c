/* SPDX-License-Identifier: MIT */
/*
 * The public entry points: start-up, settings, and pc_patch().
 */
#include "patchcore/patchcore.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "patchcore/library.h"
#include "patchcore/policy.h"
#include "patchcore/text.h"
#include "patchcore/trap.h"
#include "patchcore/word.h"

/*
 * The syncs that this machine and the caller's choice allow, one per outcome.
 * A patcher uses one without a lock: they are written before `current` points
 * to them, and only rewritten when unused (pc_init after pc_fini) or equal.
 */
enum {
	USE_NONE,
	USE_WAIT,
	USE_MEMBARRIER,
	USES
};
enum {
	WINDOW_SMALL,
	WINDOW_LARGE,
	WINDOWS
};

static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static struct facts facts;
static enum pc_policy asked = PC_POLICY_AUTO;
static double accept_p = PC_ACCEPT_P_DEFAULT;
static struct sync syncs[USES][WINDOWS];
static char reason[256];

/* NULL before pc_init() and after pc_fini(). Release; patchers acquire. */
static _Atomic(const struct sync *) current;

static bool is_same(const struct sync *a, const struct sync *b)
{
	return a->policy == b->policy && a->first_wait == b->first_wait &&
	       a->second_wait == b->second_wait && a->stretch == b->stretch &&
	       a->window == b->window;
}

static void choose(void)
{
	static const int use[] = {
		[PC_POLICY_AUTO] = USE_NONE,
		[PC_POLICY_WAIT] = USE_WAIT,
		[PC_POLICY_MEMBARRIER] = USE_MEMBARRIER,
	};
	struct sync chosen, *slot;

	policy_choose(&facts, asked, accept_p, &chosen, reason, sizeof(reason));
	slot = &syncs[use[chosen.policy]][chosen.window > 8 ? WINDOW_LARGE : WINDOW_SMALL];
	/* The facts are fixed, so a slot that is in use already holds just this. */
	if (!is_same(slot, &chosen))
		*slot = chosen;
	atomic_store_explicit(&current, slot, memory_order_release);
}

static int init_locked(void)
{
	int ret;

	if (atomic_load_explicit(&current, memory_order_relaxed))
		return 0;
	facts_learn(&facts);
	ret = trap_install();
	facts.trap = ret == 0;
	choose();
	return ret;
}

int pc_init(void)
{
	int ret;

	pthread_mutex_lock(&setup_lock);
	ret = init_locked();
	pthread_mutex_unlock(&setup_lock);
	return ret;
}

static int fini_locked(void)
{
	int ret;

	if (!atomic_load_explicit(&current, memory_order_relaxed))
		return 0;
	if (site_any_held())
		return -EBUSY;
	ret = trap_remove();
	if (ret < 0)
		return ret;
	atomic_store_explicit(&current, NULL, memory_order_release);
	return 0;
}

int pc_fini(void)
{
	int ret;

	pthread_mutex_lock(&setup_lock);
	ret = fini_locked();
	pthread_mutex_unlock(&setup_lock);
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
	pthread_mutex_lock(&setup_lock);
	ret = init_locked();
	if (ret == 0)
		ret = set_policy_locked(policy);
	pthread_mutex_unlock(&setup_lock);
	return ret;
}

int pc_set_accept_p(double p)
{
	if (!(p > 0 && p <= 1))
		return -EINVAL;
	pthread_mutex_lock(&setup_lock);
	accept_p = p;
	if (atomic_load_explicit(&current, memory_order_relaxed))
		choose();
	pthread_mutex_unlock(&setup_lock);
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
	int ret;

	if (!status)
		return -EINVAL;
	pthread_mutex_lock(&setup_lock);
	ret = init_locked();
	status_locked(status);
	pthread_mutex_unlock(&setup_lock);
	return ret;
}

const struct sync *library_sync(void)
{
	const struct sync *sync = atomic_load_explicit(&current, memory_order_acquire);

	if (sync)
		return sync;
	/* A failure shows as a sync that allows no straddlers. */
	pc_init();
	return atomic_load_explicit(&current, memory_order_acquire);
}

static int patch_writable(uint8_t *addr, const uint8_t *bytes, size_t len, const struct sync *sync)
{
	if (word_straddles(addr, len, sync->window) && !trap_was_ours_lately())
		return -EBUSY;
	return word_patch(addr, bytes, len, sync);
}

int pc_patch(void *addr, const void *bytes, size_t len)
{
	const uint8_t *code = bytes;
	const struct sync *sync;
	struct text_span span;
	int ret;

	if (len < 1 || len > PC_PATCH_MAX || !code || code[0] == WORD_INT3)
		return -EINVAL;
	sync = library_sync();
	ret = text_begin(&span, addr, len);
	if (ret < 0)
		return ret;
	ret = patch_writable(addr, bytes, len, sync);
	text_end(&span);
	return ret;
}
