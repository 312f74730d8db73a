/* SPDX-License-Identifier: MIT */
#include "patchcore/word/flight_own.h"

#include "patchcore/kernel/clock.h"
#include "patchcore/machine/sync.h"
#include "patchcore/text/text.h"

static _Atomic(uint64_t) undone; /* changes that were taken back */

uint64_t flight_undone(void)
{
	return atomic_load_explicit(&undone, memory_order_relaxed);
}

/* --- The list of what is in flight ------------------------------------------------------ */

/*
 * Pushed by the patcher that starts a change, taken as a whole by the thread that drains: so no
 * ABA. Sites that others finish meanwhile are still in it and are passed over.
 */
static _Atomic(struct site *) flights;

/* Release: pairs with the acquire in flight_take_list(). */
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

void flight_unqueue(struct site *site)
{
	atomic_exchange_explicit(&site->queued, false, memory_order_acq_rel);
}

struct site *flight_take_list(void)
{
	return atomic_exchange_explicit(&flights, NULL, memory_order_acq_rel);
}

bool flight_any(void)
{
	return atomic_load_explicit(&flights, memory_order_seq_cst);
}

/* --- When a step is due ---------------------------------------------------------------- */

NOPATCH static uint64_t raw_ns(void)
{
	struct timespec now;

	sys_call(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

NOPATCH void flight_note(struct word *word, enum word_part which, struct moment asked)
{
	flight_set_since(word);
	word_note_visible(word, which, asked, word->since);
}

/*
 * Have so many ticks passed? Two TSC are compared only if they are the same
 * CPU's. On another one the time counts from when the step was first asked for
 * there, by a clock that the kernel keeps in step between CPUs. A nanosecond for
 * every tick is long enough with any TSC above 1 GHz; two are on the safe side.
 */
NOPATCH static bool has_passed(struct word *word, uint64_t ticks)
{
	struct moment now = moment_now();
	uint64_t ns;

	if (now.cpu == word->since.cpu) {
		/* It stepped back (a guest that was moved): how long that was cannot be told. */
		if (!moment_known(word->since, now))
			word->since = now;
		return now.ticks - word->since.ticks >= ticks;
	}
	ns = raw_ns();
	if (!word->seen)
		word->seen = ns;
	return ns - word->seen > 2 * ticks;
}

/* --- One step ---------------------------------------------------------------------------- */

NOPATCH void flight_take_back(struct site *site)
{
	if (word_undo(&site->word))
		atomic_fetch_add_explicit(&undone, 1, memory_order_relaxed);
}

/* Is the first sync done? `barrier` is what membarrier has said since the INT3 was there. */
NOPATCH static bool first_is_due(struct site *site, int barrier)
{
	struct word *word = &site->word;

	if (word->sync->policy != PC_POLICY_MEMBARRIER)
		return has_passed(word, word_stretch(word, word->sync->first_wait));
	if (barrier == 0)
		return true;
	if (word_has_failed(word, barrier))
		flight_take_back(site);
	return false;
}

NOPATCH static bool second_is_due(struct word *word, int barrier)
{
	if (word->sync->policy != PC_POLICY_MEMBARRIER)
		return has_passed(word, word_stretch(word, word->sync->second_wait));
	return barrier == 0 || has_passed(word, SYNC_LAST_RESORT);
}

/* The owner's. The table of states in site.h says what each step does. */
NOPATCH static void make_step(struct site *site, int barrier)
{
	struct word *word = &site->word;
	struct moment asked;

	switch (site_state(site)) {
	case WORD_FIRST_WAIT:
		if (!first_is_due(site, barrier))
			return;
		asked = moment_now();
		word_store_back(word);
		flight_note(word, WORD_PART_BACK, asked);
		return;
	case WORD_SECOND_WAIT:
		if (!second_is_due(word, barrier))
			return;
		word_store_front(word);
		return;
	default:
		return;
	}
}

void flight_end(struct site *site)
{
	struct text_span span = site->word.span;

	word_settle(&site->word);
	word_release(&site->word);
	text_return_kept(&span);
}

NOPATCH bool flight_leave(struct site *site, bool in_handler)
{
	if (flight_is_over(site)) {
		word_settle(&site->word);
		if (!in_handler)
			return true;
		if (!site->word.span.loan) {
			word_release(&site->word);
			return false;
		}
		flight_push(site);
	}
	site_disown(site);
	return false;
}

/*
 * Membarrier is asked while the site has no owner yet: a filter may end the thread that asks. What
 * it says counts if the site is as it was before.
 */
__attribute__((no_sanitize("thread"))) NOPATCH static int barrier_for(const struct site *site)
{
	enum word_state state = site_state(site);

	if (state != WORD_FIRST_WAIT && state != WORD_SECOND_WAIT)
		return 0;
	return site->word.sync->policy == PC_POLICY_MEMBARRIER ? membarrier_sync() : 0;
}

NOPATCH bool flight_own_and_step(struct site *site, uint64_t id)
{
	uint64_t turn = site_turn(site);
	enum word_state state = site_state(site);
	int barrier = barrier_for(site);

	if (!site_try_own(site, id))
		return false;
	if (site_turn(site) == turn && site_state(site) == state && flight_is_ours(site))
		make_step(site, barrier);
	return true;
}
