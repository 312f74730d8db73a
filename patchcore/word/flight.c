/* SPDX-License-Identifier: MIT */
/* The asynchronous word protocol (paper, section 5.1, figures 6 and 7). */
#include "patchcore/word/flight.h"

#include <errno.h>

#include "patchcore/merge/merge.h"
#include "patchcore/syscall/sys.h"

#define CHUNK 256 /* sites that one pair of syncs serves when draining */

static _Atomic(uint64_t) undone; /* changes that were taken back */
static struct lock drain_lock;

uint64_t flight_undone(void)
{
	return load_relaxed(&undone);
}

/* --- One step ---------------------------------------------------------------------------- */

NOPATCH static bool is_over(const struct site *site)
{
	return site_state(site) == WORD_WRITTEN || site_state(site) == WORD_UNDONE;
}

NOPATCH static void take_back(struct site *site)
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

/* Let others own a site, which is in flight or has no change; one whose change is over is ended. */
static void leave_site(struct site *site)
{
	if (is_over(site)) {
		flight_end(site);
		return;
	}
	site_ask_help(site, true);
	site_disown(site);
}

/* To give pages back takes a lock: that is left to a drain, and so is the site. */
NOPATCH static void leave_in_handler(struct site *site)
{
	bool is_whole = is_over(site);

	if (is_whole)
		word_settle(&site->word);
	if (is_whole && !site->word.span.loan)
		word_release(&site->word);
	else
		site_disown(site);
}

/* May a thread that comes to own the site take a step that needs a membarrier before? */
NOPATCH static bool needs_barrier(const struct site *site)
{
	enum word_state state = site_state(site);

	return !load_relaxed(&site->owner) &&
	       (state == WORD_FIRST_WAIT || state == WORD_SECOND_WAIT) &&
	       load_relaxed(&site->by_barrier);
}

/*
 * One step, as the owner of that id; the table of states in site.h says what each does. True:
 * stepped and owned, false: not owned.
 *
 * Membarrier is asked while the site has no owner yet: a filter may end the thread that asks. What
 * it says counts if the site is as it was before.
 */
NOPATCH static bool own_and_step(struct site *site, uint64_t id)
{
	struct word *word = &site->word;
	uint64_t turn = site_turn(site);
	enum word_state state = site_state(site);
	bool asks = needs_barrier(site), due;
	int barrier = asks ? membarrier_sync() : 0;
	struct moment asked;

	if (!site_try_own(site, id))
		return false;
	if (site_turn(site) != turn || site_state(site) != state || !text_span_is_ours(&word->span))
		return true;
	if (state == WORD_FIRST_WAIT) {
		due = asks ? barrier == 0
			   : word_has_passed(word, word_stretch(word, word->sync->waits.first));
		if (due) {
			asked = moment_now();
			word_store_back(word);
			word_note_since(word, WORD_PART_BACK, asked);
		} else if (asks && word_has_failed(word, barrier)) {
			take_back(site);
		}
	} else if (state == WORD_SECOND_WAIT) {
		due = asks ? barrier == 0 || word_has_passed(word, SYNC_LAST_RESORT)
			   : word_has_passed(word, word_stretch(word, word->sync->waits.second));
		if (due)
			word_store_front(word);
	}
	return true;
}

enum word_state flight_step(struct site *site)
{
	enum word_state state = site_state(site);

	if (state != WORD_IDLE || load_relaxed(&site->owner)) {
		if (own_and_step(site, thread_id())) {
			state = site_state(site);
			leave_site(site);
			if (state == WORD_WRITTEN)
				return WORD_IDLE;
		} else {
			flight_rescue(site);
			state = site_state(site);
		}
	}
	if (state == WORD_IDLE && load_relaxed(&site->undone))
		return WORD_UNDONE;
	return state;
}

static void leave_in_flight(struct word *word)
{
	word_note_since(word, WORD_PART_INT3, word->asked);
	/* Unless a signal handler of this thread has met the INT3 and made the change. */
	site_move(word->site, WORD_HELD, WORD_FIRST_WAIT);
	leave_site(word->site);
}

/*
 * The word protocol, of which each further step is made by the thread that comes to own the site
 * when it is due: the table in site.h says which. The site is marked before the INT3 stands, so a
 * drain that begins after the caller was told of success finds it.
 */
int flight_start(const struct change *change, const struct sync *sync)
{
	struct word *word;
	int ret = word_begin(&word, change, sync);

	if (ret == 0)
		leave_in_flight(word);
	return ret;
}

bool flight_start_again(struct site *site, void *addr, const void *bytes, size_t len,
			const struct sync *sync)
{
	struct word *word = word_hold_again(site, addr, bytes, len, sync);

	if (word)
		leave_in_flight(word);
	return word;
}

/* --- Many at once ------------------------------------------------------------------------ */

/* Does a site have no change, and no thread that may begin one? */
static bool is_at_rest(const struct site *site)
{
	/* Acquire: a thread that leaves a change in flight disowns the site last. */
	return !load_acquire(&site->owner) && site_state(site) == WORD_IDLE;
}

/*
 * Unmark a site that is at rest. It is not owned for that, or its next patcher would be refused. A
 * patcher owns it before it looks at the mark, and the mark goes before the owner is looked at once
 * more: so one of the two sees the other.
 */
static bool unmark_at_rest(const struct site *site)
{
	if (!is_at_rest(site))
		return false;
	site_unmark(site);
	if (is_at_rest(site))
		return true;
	site_mark(site);
	return false;
}

/*
 * Own a marked site whose change is in flight. A thread that owns it may leave it to others, so it
 * is waited for; what this thread owns itself, being interrupted, it finishes itself. False: it has
 * no such change, or a new one by now.
 */
static bool take_site(struct site *site)
{
	uint64_t id = thread_id(), turn = site_turn(site);

	if (unmark_at_rest(site))
		return false;
	while (!site_try_own(site, id)) {
		if (flight_rescue(site))
			continue;
		if (!flight_is_on(site) || site_is_owned_by(site, id) || site_turn(site) != turn)
			return false;
		nap();
	}
	/* A child leaves the changes of its parent alone. */
	if (site_state(site) != WORD_IDLE && text_span_is_ours(&site->word.span)) {
		site_ask_help(site, false);
		return true;
	}
	site_disown(site);
	return false;
}

/*
 * Own up to CHUNK of the sites that are in flight, from the number *next on. Returns how many; 0:
 * there are no more.
 */
static size_t take_sites(size_t *next, struct site **mine)
{
	struct site *site;
	size_t n = 0;

	while (n < CHUNK && (site = sites_next_marked(*next))) {
		/* Not with other sites in hand, whose executors would wait as well. */
		if (n && load_relaxed(&site->owner))
			break;
		*next = site->number + 1;
		if (take_site(site))
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

	for (size_t i = 0; i < n; i++)
		if (site_state(sites[i]) == WORD_FIRST_WAIT &&
		    word_has_failed(&sites[i]->word, error))
			take_back(sites[i]);
	for (size_t i = 0; i < n; i++) {
		struct site *site = sites[i];

		if (site_state(site) == WORD_SECOND_WAIT && error != -ENOMEM) {
			membarrier_sync_surely();
			word_store_front(&site->word);
		}
		if (!is_over(site))
			ret = error;
		leave_site(site);
	}
	return ret;
}

int flight_drain(void)
{
	struct site *mine[CHUNK];
	size_t n, next = 0;
	int ret = 0;

	/* The lock: what another drain owns is still in flight. */
	lock_take(&drain_lock);
	while (ret == 0 && (n = take_sites(&next, mine)) != 0) {
		ret = word_finish_all(mine, n);
		if (ret < 0)
			ret = put_aside(mine, n, ret);
		else
			for (size_t i = 0; i < n; i++)
				flight_end(mine[i]);
	}
	lock_drop(&drain_lock);
	return ret;
}

/* --- As the owner that was interrupted -------------------------------------------------------- */

/* Read where it is written: of the code it may be that it can only be run. */
NOPATCH_INLINE bool int3_stands(const struct site *site)
{
	const uint8_t *at =
		text_span_is_ours(&site->word.span) ? site->word.front_at : site->word.span.addr;

	return *(const volatile uint8_t *)at == WORD_INT3;
}

/* The owner is this same thread, so it sees its own stores in order. */
NOPATCH static bool finish_as_owner(struct site *site)
{
	struct word *word = &site->word;
	int ret;

	if (site_state(site) == WORD_IDLE || !int3_stands(site))
		return false;
	if (is_over(site)) {
		word_settle(word);
		return true;
	}
	ret = word_finish(word);
	if (ret == 0)
		return true;
	if (!word_has_failed(word, ret))
		return false;
	take_back(site);
	return true;
}

NOPATCH void flight_finish_own(void)
{
	uint64_t id = thread_here ? load_relaxed(&thread_here->id) : 0;
	struct site *site;

	if (!id || !thread_is_interrupted(id))
		return;
	for (size_t next = 0; (site = sites_next_marked(next)); next = site->number + 1)
		/* The first site of a change sees to the others that are held for it. */
		if (site_is_owned_by(site, id) && site_lead(site) == site)
			finish_as_owner(site);
}

/* --- For the trap handler ---------------------------------------------------------------- */

NOPATCH bool flight_help(struct site *site)
{
	struct site *lead = site_lead(site);
	uint64_t owner = load_relaxed(&lead->owner), guest;
	bool whole = false;

	if (owner)
		return thread_is_interrupted(owner) && finish_as_owner(lead);
	if (!flight_is_on(lead))
		return false;
	guest = thread_guest();
	if (!guest)
		return false;
	if (own_and_step(lead, guest)) {
		whole = is_over(lead);
		leave_in_handler(lead);
	}
	thread_guest_leave(guest);
	return whole;
}

/* --- In place of an owner that is gone -------------------------------------------------------- */

/* Is there anything to take over? Cheaper than to become a guest for nothing. */
NOPATCH static bool needs_rescue(const struct site *lead, uint64_t *owner)
{
	*owner = load_relaxed(&lead->owner);
	return *owner ? thread_is_gone(*owner) : is_over(lead);
}

/*
 * Let the change of a site that is owned now go on as one in flight. True: the caller is to leave
 * it, false: that is done.
 *
 * The owner may have gone after any instruction. Each state tells which stores it may have made;
 * those are made again, and the rest is a change in flight like any other.
 */
NOPATCH static bool rescue_change(struct site *lead, bool was_left)
{
	/* With a change that was never begun, the turn may still be odd. */
	if (site_state(lead) == WORD_IDLE) {
		if (was_left)
			site_release(lead);
		return !was_left;
	}
	/* In a child: the parent's own threads finish the parent's change. */
	if (!text_span_is_ours(&lead->word.span)) {
		word_release(&lead->word);
		return false;
	}
	if (was_left && site_state(lead) == WORD_HELD && lead->word.merge) {
		merge_adopt(lead->word.merge);
		lead->word.merge = NULL;
		site_set_state(lead, WORD_WRITTEN);
	} else if (was_left && site_state(lead) == WORD_HELD) {
		site_set_state(lead, int3_stands(lead) ? WORD_FIRST_WAIT : WORD_WRITTEN);
	} else if (was_left && site_state(lead) == WORD_COMMITTED) {
		word_store_back(&lead->word);
	}
	if (was_left && !is_over(lead))
		word_set_since(&lead->word);
	return true;
}

bool flight_rescue(struct site *site)
{
	struct site *lead = site_lead(site);
	uint64_t owner;

	if (!needs_rescue(lead, &owner) && !(owner && thread_ask_end(owner)))
		return false;
	if (!site_replace_owner(lead, owner, thread_id()))
		return false;
	if (rescue_change(lead, owner))
		leave_site(lead);
	return true;
}

NOPATCH bool flight_rescue_as_guest(struct site *site)
{
	struct site *lead = site_lead(site);
	uint64_t owner, guest;
	bool done;

	if (!needs_rescue(lead, &owner))
		return false;
	guest = thread_guest();
	if (!guest)
		return false;
	done = site_replace_owner(lead, owner, guest);
	if (done && rescue_change(lead, owner))
		leave_in_handler(lead);
	thread_guest_leave(guest);
	return done;
}
