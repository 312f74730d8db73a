/* SPDX-License-Identifier: MIT */
/*
 * The asynchronous word protocol (paper, section 5.1, figures 6 and 7), and the
 * word protocol for many sites at once.
 */
#include "patchcore/word/flight.h"

#include <errno.h>

#include "patchcore/kernel/clock.h"
#include "patchcore/machine/wait.h"
#include "patchcore/site/lock.h"
#include "patchcore/site/site.h"
#include "patchcore/site/thread.h"
#include "patchcore/text/text.h"

#define CHUNK 256 /* sites that one pair of syncs serves when draining */

static _Atomic(uint64_t) undone_known; /* changes taken back that a drain has told of */
static struct lock drain_lock = LOCK_INIT;

/*
 * The list of what is in flight. Pushed by the patcher that starts a change, taken as a whole by
 * the thread that drains: so no ABA. Sites that others finish meanwhile are still in it and are
 * passed over.
 */
static _Atomic(struct site *) flights;

/* Release: pairs with the acquire in flight_drain(). */
NOPATCH void flight_push(struct site *site)
{
	struct site *first = atomic_load_explicit(&flights, memory_order_relaxed);

	if (atomic_exchange_explicit(&site->queued, true, memory_order_acq_rel))
		return;
	do {
		site->next = first;
	} while (!atomic_compare_exchange_weak_explicit(
		&flights, &first, site, memory_order_seq_cst, memory_order_relaxed));
}

bool flight_any(void)
{
	return atomic_load_explicit(&flights, memory_order_seq_cst);
}

/*
 * Take the first site off a list. A thread that leaves a change behind at this moment finds the
 * site queued or not. If queued, the drain sees that thread's last state, because this exchange
 * comes after its own. If not, the thread pushes the site again.
 */
static struct site *unqueue_first(struct site **rest)
{
	struct site *site = *rest;

	*rest = site->next;
	atomic_exchange_explicit(&site->queued, false, memory_order_acq_rel);
	return site;
}

static enum word_state idle_or_undone(const struct site *site)
{
	return atomic_load_explicit(&site->undone, memory_order_relaxed) ? WORD_UNDONE : WORD_IDLE;
}

enum word_state flight_step(struct site *site)
{
	enum word_state state = site_state(site);

	if (state == WORD_IDLE && !atomic_load_explicit(&site->owner, memory_order_relaxed))
		return idle_or_undone(site);
	if (!flight_own_and_step(site, thread_id())) {
		flight_rescue(site);
		state = site_state(site);
		return state == WORD_IDLE ? idle_or_undone(site) : state;
	}
	state = site_state(site);
	if (state == WORD_IDLE) {
		site_disown(site);
		return idle_or_undone(site);
	}
	if (flight_leave(site, false))
		flight_end(site);
	return state == WORD_WRITTEN ? WORD_IDLE : state;
}

/*
 * The protocol for a straddler that is started here and finished elsewhere:
 *
 *   1. hold the site, F B -> 3 B, note when (FIRST_WAIT), disown the site.
 *      Executors that trap from now on wait, or do 2 and 3 when they are due.
 *   2. the owner when the first sync is done: 3 B -> 3 b (SECOND_WAIT)
 *   3. the owner when the second is done: 3 b -> f b (WRITTEN), give the
 *      pages back, release.
 *
 * If no sync can be had for 2 (a filter that was installed since), the owner takes the INT3 back,
 * which needs none (UNDONE). For 3 it waits SYNC_LAST_RESORT instead.
 *
 * It is in the list before it is disowned, so that a drain that begins after the
 * caller was told of success finds it.
 */
int flight_start(const struct change *change, const struct sync *sync)
{
	struct word *word;
	int ret = word_begin(&word, change, sync);
	struct site *site;

	if (ret < 0)
		return ret;
	site = word->site;
	flight_note(word, WORD_PART_INT3, word->asked);
	/* Unless a signal handler of this thread has met the INT3 and made the change. */
	site_move(site, WORD_HELD, WORD_FIRST_WAIT);
	/* Only now: a drain passes over HELD sites, whose owner sees the change through. */
	flight_push(site);
	if (flight_leave(site, false))
		flight_end(site);
	return 0;
}

/* --- Many at once ------------------------------------------------------------------------ */

/*
 * The syncs of a set: as long a wait as any of them calls for, and a membarrier
 * if any is under that policy. From now on, not from a store of each: the last
 * store is just behind us.
 */
NOPATCH static int sync_all(struct site *const *sites, size_t n, bool first)
{
	struct moment start = moment_now();
	uint64_t ticks = 0;
	bool barrier = false;
	int ret = 0;

	for (size_t i = 0; i < n; i++) {
		const struct word *word = &sites[i]->word;
		const struct sync *sync = word->sync;
		uint64_t wait = word_stretch(word, first ? sync->waits.first : sync->waits.second);

		if (sync->policy == PC_POLICY_MEMBARRIER)
			barrier = true;
		else if (wait > ticks)
			ticks = wait;
	}
	if (barrier && first)
		ret = membarrier_sync();
	else if (barrier)
		membarrier_sync_surely();
	if (ret == 0)
		ticks_wait_since(start, ticks);
	return ret;
}

/*
 * Steps 2 to 5 of the word protocol, each for all sites before the next for any: so one sync does
 * for all. A site that is further on already misses only the rest.
 */
NOPATCH int flight_complete(struct site *const *sites, size_t n)
{
	/* The cost of different syncs together says nothing of each. */
	const struct sync *alike = n ? sites[0]->word.sync : NULL;
	uint64_t start = __rdtsc(), between;
	struct moment now;
	int ret;

	for (size_t i = 1; alike && i < n; i++)
		if (sites[i]->word.sync->policy != alike->policy ||
		    sites[i]->word.sync->level != alike->level)
			alike = NULL;
	ret = sync_all(sites, n, true);
	if (ret < 0)
		return ret;
	between = __rdtsc();
	now = moment_now();
	for (size_t i = 0; i < n; i++) {
		struct moment asked = now;

		if (flight_is_over(sites[i]))
			continue;
		word_store_back(&sites[i]->word);
		now = moment_now();
		word_note_visible(&sites[i]->word, WORD_PART_BACK, asked, now);
	}
	start += __rdtsc() - between;
	sync_all(sites, n, false);
	if (alike && alike->other)
		sync_note_cost(alike, __rdtsc() - start);
	for (size_t i = 0; i < n; i++)
		if (!flight_is_over(sites[i]))
			word_store_front(&sites[i]->word);
	return 0;
}

/*
 * Own up to CHUNK of the sites of a list and return how many; *rest is what is
 * left. Sites that another thread is just busy with go back to the list, and count.
 */
static size_t take_sites(struct site **rest, struct site **mine, size_t *busy)
{
	size_t n = 0;

	while (*rest && n < CHUNK) {
		struct site *site = unqueue_first(rest);

		if (!site_try_own(site, thread_id())) {
			flight_rescue(site);
			/* Its owner leaves it to others, or may do so. */
			if (flight_is_on(site)) {
				flight_push(site);
				/* An interrupted thread finishes its own change. */
				*busy += !site_is_owned_by(site, thread_id());
			}
			continue;
		}
		/* A child leaves the changes of its parent alone. */
		if (site_state(site) == WORD_IDLE || !flight_is_ours(site))
			site_disown(site);
		else
			mine[n++] = site;
	}
	return n;
}

/*
 * The first sync failed. If it fails for good, what has only its INT3 is taken back, and what has
 * its back part gets the front after the last resort. Else all of them wait for another try.
 */
static int put_aside(struct site *const *sites, size_t n, int error)
{
	int ret = 0;

	for (size_t i = 0; i < n; i++) {
		struct site *site = sites[i];

		if (site_state(site) == WORD_FIRST_WAIT && word_has_failed(&site->word, error))
			flight_take_back(site);
	}
	for (size_t i = 0; i < n; i++) {
		struct site *site = sites[i];

		if (site_state(site) == WORD_SECOND_WAIT && error != -ENOMEM) {
			membarrier_sync_surely();
			word_store_front(&site->word);
		}
		if (flight_is_over(site)) {
			flight_end(site);
			continue;
		}
		flight_push(site);
		site_disown(site);
		ret = error;
	}
	return ret;
}

/* 0, or an error: then what is left goes back to the list. */
static int drain_list(struct site *rest, size_t *busy)
{
	struct site *mine[CHUNK];
	int ret = 0;

	while (rest && ret == 0) {
		size_t n = take_sites(&rest, mine, busy);

		ret = flight_complete(mine, n);
		if (ret < 0)
			ret = put_aside(mine, n, ret);
		else
			for (size_t i = 0; i < n; i++)
				flight_end(mine[i]);
	}
	while (rest)
		flight_push(unqueue_first(&rest));
	return ret;
}

/* What starts meanwhile is not waited for, or this might never end. */
int flight_drain(void)
{
	size_t busy;
	int ret;

	for (;;) {
		busy = 0;
		/* The lock: what another drain has taken off the list is still in flight. */
		lock_take(&drain_lock);
		ret = drain_list(atomic_exchange_explicit(&flights, NULL, memory_order_acq_rel),
				 &busy);
		lock_drop(&drain_lock);
		if (ret < 0 || !busy)
			return ret;
		nap();
	}
}

int flight_drain_told(void)
{
	int ret = flight_drain();
	uint64_t now = flight_undone();

	if (ret < 0)
		return ret;
	return atomic_exchange_explicit(&undone_known, now, memory_order_relaxed) != now
		       ? -ECANCELED
		       : 0;
}
