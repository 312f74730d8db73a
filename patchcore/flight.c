/* SPDX-License-Identifier: MIT */
/*
 * The asynchronous word protocol (paper, section 5.1, figures 6 and 7), and the
 * word protocol for many sites at once.
 */
#include "patchcore/flight.h"

#include <errno.h>
#include <time.h>

#include "patchcore/forklock.h"
#include "patchcore/trap.h"
#include "patchcore/wait.h"

#define CHUNK 256 /* sites that one pair of syncs serves when draining */

/* --- The list of what is in flight ------------------------------------------------------ */

/*
 * Pushed by whoever starts, taken as a whole by whoever drains: so no ABA. Sites
 * that were finished by others meanwhile are still in it and are passed over.
 */
static _Atomic(struct site *) flights;
static struct forklock drain_lock = FORKLOCK_INIT; /* nests outside all others */

/* Release: pairs with the acquire in flight_drain. Async-signal-safe. */
static void push(struct site *site)
{
	struct site *first = atomic_load_explicit(&flights, memory_order_relaxed);

	if (atomic_exchange_explicit(&site->queued, true, memory_order_acq_rel))
		return;
	do {
		site->next = first;
	} while (!atomic_compare_exchange_weak_explicit(
		&flights, &first, site, memory_order_seq_cst, memory_order_relaxed));
}

/*
 * Taken off a list. Either we see the state in which somebody left it who still
 * found it queued, or he finds it so no more.
 */
static void unqueue(struct site *site)
{
	atomic_exchange_explicit(&site->queued, false, memory_order_acq_rel);
}

bool flight_any(void)
{
	return atomic_load_explicit(&flights, memory_order_seq_cst);
}

/* --- When a step is due ---------------------------------------------------------------- */

static uint64_t raw_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* RDTSCP waits for what comes before it, so for the locked store. */
static void set_since(struct word *word)
{
	word->since = __rdtscp(&word->cpu);
	word->seen = 0;
}

/* Right after a store that was asked for then. */
static void note(struct word *word, enum word_part which, uint64_t asked)
{
	set_since(word);
	word_note_visible(word, which, asked, word->since);
}

/*
 * Have so many ticks passed? Two TSC are compared only if they are the same
 * CPU's. On another one the time counts from when the step was first asked for
 * there, by a clock that the kernel keeps in step between CPUs. A nanosecond for
 * every tick is long enough with any TSC above 1 GHz; two are on the safe side.
 */
static bool has_passed(struct word *word, uint64_t ticks)
{
	unsigned cpu;
	uint64_t now = __rdtscp(&cpu);

	if (cpu == word->cpu) {
		/* It stepped back (a guest that was moved): nobody knows how long that was. */
		if ((int64_t)(now - word->since) < 0)
			word->since = now;
		return now - word->since >= ticks;
	}
	now = raw_ns();
	if (!word->seen)
		word->seen = now;
	return now - word->seen > 2 * ticks;
}

/* May the next store be made? By membarrier it may, once that has worked. */
static bool is_due(struct word *word, uint64_t ticks)
{
	if (word->sync->policy == PC_POLICY_MEMBARRIER)
		return membarrier_sync() == 0;
	return has_passed(word, word_stretch(word, ticks));
}

/* --- One step ---------------------------------------------------------------------------- */

/* Acquire: pairs with site_release(). */
static enum word_state state_of(const struct site *site)
{
	return atomic_load_explicit(&site->state, memory_order_acquire);
}

/* Is there a change that others may go on with? For who does not own it, a guess. */
static bool is_in_flight(const struct site *site)
{
	enum word_state state = state_of(site);

	return state != WORD_IDLE && state != WORD_HELD;
}

static void set_state(struct site *site, enum word_state state)
{
	atomic_store_explicit(&site->state, state, memory_order_relaxed);
}

/*
 * The owner's. The states of the bytes are those of the word protocol:
 *
 *   FIRST_WAIT   3 B; when the first sync is done: b, and SECOND_WAIT
 *   SECOND_WAIT  3 b; when the second sync is done: f, and WRITTEN
 *   WRITTEN      f b
 */
static void step(struct site *site)
{
	struct word *word = &site->word;
	uint64_t asked;

	switch (state_of(site)) {
	case WORD_FIRST_WAIT:
		if (!is_due(word, word->sync->first_wait))
			return;
		asked = ticks_now();
		word_put_back(word);
		note(word, WORD_PART_BACK, asked);
		set_state(site, WORD_SECOND_WAIT);
		return;
	case WORD_SECOND_WAIT:
		if (!is_due(word, word->sync->second_wait))
			return;
		word_put_front(word);
		set_state(site, WORD_WRITTEN);
		return;
	default:
		return;
	}
}

void flight_end(struct site *site)
{
	struct text_span span = site->word.span;

	word_release(&site->word);
	text_end(&span);
}

/*
 * Let others own a site that is in flight. What is written is given back, unless
 * that takes a lock and this is a signal handler: then whoever drains does it.
 */
static void leave(struct site *site, bool in_handler)
{
	if (state_of(site) == WORD_WRITTEN) {
		if (!in_handler || !site->word.span.borrowed) {
			flight_end(site);
			return;
		}
		push(site);
	}
	site_disown(site);
}

enum word_state flight_step(struct site *site)
{
	enum word_state state;

	if (!site_try_own(site)) {
		flight_rescue(site, false);
		return state_of(site);
	}
	if (state_of(site) == WORD_IDLE) {
		site_disown(site);
		return WORD_IDLE;
	}
	step(site);
	state = state_of(site);
	leave(site, false);
	return state == WORD_WRITTEN ? WORD_IDLE : state;
}

/*
 * The protocol for a straddler that is started here and finished elsewhere:
 *
 *   1. hold the site, F B -> 3 B, note when (FIRST_WAIT), disown the site.
 *      Executors that trap from now on wait, or do 2 and 3 when they are due.
 *   2. whoever owns the site when the first sync is done: 3 B -> 3 b
 *      (SECOND_WAIT)
 *   3. whoever owns it when the second is done: 3 b -> f b (WRITTEN), give the
 *      pages back, release.
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
	note(word, WORD_PART_INT3, word->asked);
	set_state(site, WORD_FIRST_WAIT);
	push(site);
	site_disown(site);
	return 0;
}

/* --- Many at once ------------------------------------------------------------------------ */

/*
 * The syncs of a set: as long a wait as any of them calls for, and a membarrier
 * if any is under that policy. From now on, not from a store of each: the last
 * store is just behind us.
 */
static int sync_all(struct site *const *sites, size_t n, bool first)
{
	uint64_t ticks = 0, start = ticks_now();
	bool barrier = false;

	for (size_t i = 0; i < n; i++) {
		const struct word *word = &sites[i]->word;
		const struct sync *sync = word->sync;
		uint64_t wait = word_stretch(word, first ? sync->first_wait : sync->second_wait);

		if (sync->policy == PC_POLICY_MEMBARRIER)
			barrier = true;
		else if (wait > ticks)
			ticks = wait;
	}
	if (barrier) {
		int ret = membarrier_sync();

		if (ret < 0)
			return ret;
	}
	ticks_wait_since(start, ticks);
	return 0;
}

static void put_backs(struct site *const *sites, size_t n)
{
	uint64_t asked = ticks_now();

	for (size_t i = 0; i < n; i++) {
		word_put_back(&sites[i]->word);
		asked = word_note_store(&sites[i]->word, WORD_PART_BACK, asked);
	}
}

/*
 * Steps 2 to 5 of the word protocol, each for all sites before the next for any:
 * so one sync does for all. Sites whose back part is there already get it once
 * more, which changes nothing.
 */
int flight_complete(struct site *const *sites, size_t n)
{
	const struct sync *sync = n ? sites[0]->word.sync : NULL;
	uint64_t start = __rdtsc(), between;
	int ret = sync_all(sites, n, true);

	if (ret < 0)
		return ret;
	between = __rdtsc();
	put_backs(sites, n);
	start += __rdtsc() - between;
	while (sync_all(sites, n, false) < 0)
		;
	if (sync && sync->other)
		sync_note_cost(sync->policy, __rdtsc() - start);
	for (size_t i = 0; i < n; i++)
		word_put_front(&sites[i]->word);
	return 0;
}

/* Somebody else has it. True: he will leave it to others, or may do so. */
static bool is_left(struct site *site)
{
	flight_rescue(site, true);
	return is_in_flight(site);
}

/*
 * Own up to CHUNK of the sites of a list and return how many; *rest is what is
 * left. Sites that somebody is just busy with go back to the list, and count.
 */
static size_t take(struct site **rest, struct site **mine, size_t *busy)
{
	size_t n = 0;

	while (*rest && n < CHUNK) {
		struct site *site = *rest;

		*rest = site->next;
		unqueue(site);
		if (!site_try_own(site)) {
			if (is_left(site)) {
				push(site);
				++*busy;
			}
			continue;
		}
		/* One that is written is ended with the rest: that takes a lock. */
		if (state_of(site) == WORD_IDLE)
			site_disown(site);
		else
			mine[n++] = site;
	}
	return n;
}

static void put_aside(struct site *const *sites, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		push(sites[i]);
		site_disown(sites[i]);
	}
}

/* Those that are left of a list after an error. */
static void push_all(struct site *rest)
{
	while (rest) {
		struct site *site = rest;

		rest = site->next;
		unqueue(site);
		push(site);
	}
}

static int drain_list(struct site *rest, size_t *busy)
{
	struct site *mine[CHUNK];

	while (rest) {
		size_t n = take(&rest, mine, busy);
		int ret = flight_complete(mine, n);

		if (ret < 0) {
			put_aside(mine, n);
			push_all(rest);
			return ret;
		}
		for (size_t i = 0; i < n; i++)
			flight_end(mine[i]);
	}
	return 0;
}

/* The lock: what another drain has taken off the list is still in flight. */
static int drain_once(size_t *busy)
{
	int ret;

	*busy = 0;
	forklock_take(&drain_lock);
	ret = drain_list(atomic_exchange_explicit(&flights, NULL, memory_order_acq_rel), busy);
	forklock_drop(&drain_lock);
	return ret;
}

/*
 * What starts meanwhile is not waited for, or this might never end. Whoever is
 * busy with a site may himself wait for the lock, to fork in a signal handler.
 */
int flight_drain(void)
{
	size_t busy;
	int ret = drain_once(&busy);

	while (ret == 0 && busy) {
		trap_back_off();
		ret = drain_once(&busy);
	}
	return ret;
}

/* --- Code that is no more ------------------------------------------------------------------ */

struct range {
	uintptr_t start;
	uintptr_t end;
};

/* Its span is not ended: the pages are forgotten as well, see text_forget(). */
static int forget(struct entry *entry, void *arg)
{
	struct site *site = (struct site *)entry;
	const struct range *range = arg;

	if (entry->addr < range->start || entry->addr >= range->end)
		return 0;
	if (!site_try_own(site) && !(flight_rescue(site, false) && site_try_own(site)))
		return -EBUSY;
	site_set_resume(site, 0);
	if (is_in_flight(site))
		word_release(&site->word);
	else
		site_disown(site);
	return 0;
}

int flight_forget(uintptr_t start, uintptr_t end)
{
	struct range range = { start, end };

	return sites_each(forget, &range);
}

void flight_fork_lock(void)
{
	forklock_before_fork(&drain_lock);
}

void flight_fork_unlock(void)
{
	forklock_after_fork(&drain_lock);
}

/* --- For the trap handler ---------------------------------------------------------------- */

static bool int3_stands(const struct word *word)
{
	return *(const volatile uint8_t *)word->addr == WORD_INT3;
}

bool flight_help(struct site *site)
{
	struct site *lead = site_lead(site);
	uint64_t owner = atomic_load_explicit(&lead->owner, memory_order_relaxed);
	bool whole;

	/* Whatever this thread wrote itself, its signal handlers see in order. */
	if (owner && thread_is_self(owner))
		return state_of(lead) != WORD_IDLE && int3_stands(&lead->word) &&
		       word_finish(&lead->word) == 0;
	if (owner || !is_in_flight(lead) || !site_try_own(lead))
		return false;
	step(lead);
	whole = state_of(lead) == WORD_WRITTEN;
	leave(lead, true);
	return whole;
}

static int finish_own(struct entry *entry, void *unused)
{
	struct site *site = (struct site *)entry;
	uint64_t owner = atomic_load_explicit(&site->owner, memory_order_relaxed);

	(void)unused;
	if (owner && thread_is_self(owner))
		flight_help(site);
	return 0;
}

void flight_finish_own(void)
{
	sites_each(finish_own, NULL);
}

/* Own a site that nobody owns, or a thread that is no more. */
static bool take_over(struct site *site, bool *was_left)
{
	uint64_t owner = atomic_load_explicit(&site->owner, memory_order_relaxed);

	*was_left = owner != 0;
	if (!owner)
		return state_of(site) == WORD_WRITTEN && site_try_own(site);
	return !thread_is_self(owner) && thread_is_gone(owner) &&
	       atomic_compare_exchange_strong_explicit(&site->owner, &owner, thread_id(),
						       memory_order_acquire, memory_order_relaxed);
}

/*
 * He may have gone after any instruction. Without his INT3 the code is whole,
 * changed or not. With it, all steps behind it are to be made again: it becomes a
 * change in flight like any other.
 */
static void adopt(struct site *site)
{
	if (!int3_stands(&site->word)) {
		set_state(site, WORD_WRITTEN);
		return;
	}
	set_since(&site->word);
	set_state(site, WORD_FIRST_WAIT);
	push(site);
}

bool flight_rescue(struct site *site, bool in_handler)
{
	struct site *lead = site_lead(site);
	bool was_left, is_written;

	if (!take_over(lead, &was_left))
		return false;
	/* With a change that was never begun, the turn may still be odd. */
	if (state_of(lead) == WORD_IDLE) {
		if (was_left)
			site_release(lead);
		else
			site_disown(lead);
		return was_left;
	}
	if (was_left)
		adopt(lead);
	is_written = state_of(lead) == WORD_WRITTEN;
	leave(lead, in_handler);
	return was_left || is_written;
}
