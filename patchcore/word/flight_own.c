/* SPDX-License-Identifier: MIT */
#include "patchcore/word/flight.h"

#include "patchcore/kernel/clock.h"
#include "patchcore/machine/sync.h"
#include "patchcore/text/text.h"

static _Atomic(uint64_t) undone; /* changes that were taken back */

uint64_t flight_undone(void)
{
	return atomic_load_explicit(&undone, memory_order_relaxed);
}

/* --- One step ---------------------------------------------------------------------------- */

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
	struct timespec raw;
	uint64_t ns;

	if (now.cpu == word->since.cpu) {
		/* It stepped back (a guest that was moved): how long that was cannot be told. */
		if (!moment_known(word->since, now))
			word->since = now;
		return now.ticks - word->since.ticks >= ticks;
	}
	sys_call(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &raw);
	ns = (uint64_t)raw.tv_sec * UINT64_C(1000000000) + (uint64_t)raw.tv_nsec;
	if (!word->seen)
		word->seen = ns;
	return ns - word->seen > 2 * ticks;
}

NOPATCH void flight_take_back(struct site *site)
{
	if (word_undo(&site->word))
		atomic_fetch_add_explicit(&undone, 1, memory_order_relaxed);
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

/* The table of states in site.h says what each step does. */
NOPATCH bool flight_own_and_step(struct site *site, uint64_t id)
{
	struct word *word = &site->word;
	uint64_t turn = site_turn(site);
	enum word_state state = site_state(site);
	/* What membarrier has said since the last store, where it was asked. */
	int barrier = barrier_for(site);
	struct moment asked;
	bool waits, due;

	if (!site_try_own(site, id))
		return false;
	if (site_turn(site) != turn || site_state(site) != state || !flight_is_ours(site))
		return true;
	if (state == WORD_FIRST_WAIT) {
		waits = word->sync->policy != PC_POLICY_MEMBARRIER;
		due = waits ? has_passed(word, word_stretch(word, word->sync->waits.first))
			    : barrier == 0;
		if (due) {
			asked = moment_now();
			word_store_back(word);
			flight_note(word, WORD_PART_BACK, asked);
		} else if (!waits && word_has_failed(word, barrier)) {
			flight_take_back(site);
		}
	} else if (state == WORD_SECOND_WAIT) {
		waits = word->sync->policy != PC_POLICY_MEMBARRIER;
		due = waits ? has_passed(word, word_stretch(word, word->sync->waits.second))
			    : barrier == 0 || has_passed(word, SYNC_LAST_RESORT);
		if (due)
			word_store_front(word);
	}
	return true;
}
