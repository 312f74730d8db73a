/* SPDX-License-Identifier: MIT */
/*
 * Changes whose patcher does not go on: it was interrupted, has left them to the executors, or is
 * gone; or their code is.
 */
#include <errno.h>

#include "patchcore/merge/merge.h"
#include "patchcore/site/thread.h"
#include "patchcore/text/text.h"
#include "patchcore/word/flight.h"

/* --- As the owner that was interrupted -------------------------------------------------------- */

NOPATCH_INLINE bool int3_stands(const struct site *site)
{
	return *(const volatile uint8_t *)site->entry.addr == WORD_INT3;
}

/* The owner is this same thread, so it sees its own stores in order. */
NOPATCH static bool finish_as_owner(struct site *site)
{
	struct word *word = &site->word;
	int ret;

	if (site_state(site) == WORD_IDLE || !int3_stands(site))
		return false;
	if (flight_is_over(site)) {
		word_settle(word);
		return true;
	}
	ret = word_finish(word);
	if (ret == 0)
		return true;
	if (!word_has_failed(word, ret))
		return false;
	flight_take_back(site);
	return true;
}

NOPATCH static int finish_if_own(struct entry *entry, void *arg)
{
	struct site *site = (struct site *)entry;
	const uint64_t *id = arg;

	/* The first site of a change sees to the others that are held for it. */
	if (site_is_owned_by(site, *id) && site_lead(site) == site)
		finish_as_owner(site);
	return 0;
}

NOPATCH void flight_finish_own(void)
{
	uint64_t id =
		thread_here ? atomic_load_explicit(&thread_here->id, memory_order_relaxed) : 0;

	if (id && thread_is_interrupted(id))
		sites_each(finish_if_own, &id);
}

/* --- For the trap handler ---------------------------------------------------------------- */

NOPATCH bool flight_help(struct site *site)
{
	struct site *lead = site_lead(site);
	uint64_t owner = atomic_load_explicit(&lead->owner, memory_order_relaxed), guest;
	bool whole = false;

	if (owner)
		return thread_is_interrupted(owner) && finish_as_owner(lead);
	if (!flight_is_on(lead))
		return false;
	guest = thread_guest();
	if (!guest)
		return false;
	if (flight_own_and_step(lead, guest)) {
		whole = flight_is_over(lead);
		if (site_state(lead) == WORD_IDLE)
			site_disown(lead);
		else
			flight_leave(lead, true);
	}
	thread_guest_leave(guest);
	return whole;
}

/* --- In place of an owner that is gone -------------------------------------------------------- */

/*
 * The owner may have gone after any instruction. Each state tells which stores it may have made;
 * those are made again, and the rest is a change in flight like any other.
 */
NOPATCH static void take_over_site(struct site *site)
{
	switch (site_state(site)) {
	case WORD_HELD:
		if (site->word.merge) {
			merge_adopt(site->word.merge);
			site->word.merge = NULL;
			site_set_state(site, WORD_WRITTEN);
			return;
		}
		if (!int3_stands(site)) {
			site_set_state(site, WORD_WRITTEN);
			return;
		}
		site_set_state(site, WORD_FIRST_WAIT);
		break;
	case WORD_COMMITTED:
		word_store_back(&site->word);
		break;
	default:
		break;
	}
	if (flight_is_over(site))
		return;
	flight_set_since(&site->word);
	flight_push(site);
}

/* Is there anything to take over? Cheaper than to become a guest for nothing. */
NOPATCH static bool needs_rescue(const struct site *lead)
{
	uint64_t owner = atomic_load_explicit(&lead->owner, memory_order_relaxed);

	return owner ? thread_is_gone(owner) : flight_is_over(lead);
}

/*
 * Own a site whose owner is gone, or one without an owner that is only to be given back; then let
 * its change go on as one in flight. True: the caller is to end it, and look again.
 */
NOPATCH static bool rescue(struct site *lead, uint64_t id, bool in_handler, bool *done)
{
	uint64_t owner = atomic_load_explicit(&lead->owner, memory_order_relaxed);
	bool was_left = owner != 0;

	*done = (owner ? thread_is_gone(owner) : flight_is_over(lead)) &&
		atomic_compare_exchange_strong_explicit(&lead->owner, &owner, id,
							memory_order_acquire, memory_order_relaxed);
	if (!*done)
		return false;
	/* With a change that was never begun, the turn may still be odd. */
	if (site_state(lead) == WORD_IDLE) {
		if (was_left)
			site_release(lead);
		else
			site_disown(lead);
		return false;
	}
	/* The parent's own threads see to what is its parent's. */
	if (!flight_is_ours(lead)) {
		word_release(&lead->word);
		return false;
	}
	if (was_left)
		take_over_site(lead);
	return flight_leave(lead, in_handler);
}

bool flight_rescue(struct site *site)
{
	struct site *lead = site_lead(site);
	bool done;

	if (!needs_rescue(lead))
		return false;
	if (rescue(lead, thread_id(), false, &done))
		flight_end(lead);
	return done;
}

NOPATCH bool flight_rescue_as_guest(struct site *site)
{
	struct site *lead = site_lead(site);
	uint64_t guest;
	bool done;

	if (!needs_rescue(lead))
		return false;
	guest = thread_guest();
	if (!guest)
		return false;
	rescue(lead, guest, true, &done);
	thread_guest_leave(guest);
	return done;
}

static int rescue_entry(struct entry *entry, void *unused)
{
	(void)unused;
	flight_rescue((struct site *)entry);
	return 0;
}

void flight_rescue_all(void)
{
	sites_each(rescue_entry, NULL);
}

/* --- Code that is no more --------------------------------------------------------------------- */

struct range {
	uintptr_t start;
	uintptr_t end;
	int ret;
};

/*
 * Its span is ended only on pages that stay: the others are forgotten, see text_forget(). A site
 * that is held for the change of another is free when that one is.
 */
static int forget_site(struct site *site, const struct range *range)
{
	struct text_span span;

	if (!site_try_own(site, thread_id()) &&
	    !(flight_rescue(site) && site_try_own(site, thread_id())))
		return -EBUSY;
	site_set_resume(site, 0);
	if (!flight_is_on(site)) {
		site_disown(site);
		return 0;
	}
	span = site->word.span;
	word_release(&site->word);
	text_end_outside(&span, range->start, range->end);
	return 0;
}

/* All of them, also where one is busy. */
static int forget_entry(struct entry *entry, void *arg)
{
	struct site *site = (struct site *)entry;
	struct range *range = arg;
	int ret;

	if (entry->addr < range->start || entry->addr >= range->end)
		return 0;
	ret = forget_site(site, range);
	if (ret == -EBUSY && site_lead(site) != site) {
		ret = forget_site(site_lead(site), range);
		if (ret == 0)
			ret = forget_site(site, range);
	}
	if (range->ret == 0)
		range->ret = ret;
	return 0;
}

int flight_forget(uintptr_t start, uintptr_t end)
{
	struct range range = { start, end, 0 };

	sites_each(forget_entry, &range);
	return range.ret;
}
