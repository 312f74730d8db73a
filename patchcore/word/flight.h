/* SPDX-License-Identifier: MIT */
/*
 * Changes of straddlers that do not end where they began: left for later, or left behind by a
 * thread that was interrupted or is gone. Private.
 *
 * The owner of a site (site_try_own) takes the next step of its one change, if that is due; in the
 * trap handler too. So an executor never waits for a patcher that has left, and what a change does
 * never depends on which thread goes on with it: site.h has the table of its states.
 */
#ifndef PATCHCORE_WORD_FLIGHT_H
#define PATCHCORE_WORD_FLIGHT_H

#include "patchcore/pages/text.h"
#include "patchcore/word/word.h"

/* Is there a change that any owner goes on with? For a thread that does not own it, a guess. */
NOPATCH_INLINE bool flight_is_on(const struct site *site)
{
	enum word_state state = site_state(site);

	return state != WORD_IDLE && state != WORD_HELD;
}

/*
 * flight_start - put the INT3 and leave the rest for later: to flight_step(), to
 * flight_drain(), or to an executor that traps there. The change's span is
 * kept, and ended with it. Errors as pc_patch(); then the span is the caller's.
 */
int flight_start(const struct change *change, const struct sync *sync);

/* flight_start_again - the same where word_hold_again() does. False: nothing is done. */
bool flight_start_again(struct site *site, void *addr, const void *bytes, size_t len,
			const struct sync *sync);

/*
 * flight_step - take the next step at a site if it is due. Returns how far it
 * is now; WORD_IDLE: there is no change in flight (any more). Not a negative
 * errno but the state as it was, where another thread is at it or the sync failed.
 * WORD_UNDONE: the last change was taken back, since no sync could be had.
 */
enum word_state flight_step(struct site *site);

/*
 * flight_drain - finish all that was started before, and what threads have left behind that are
 * gone. One pair of syncs for all of them. 0, or what the first sync failed with for want of
 * memory: then they are still in flight.
 */
int flight_drain(void);

/*
 * flight_help - for the trap handler: go on with the change of a held site if it has no owner, or
 * if the owner is the thread that this signal has interrupted. True: the site is whole.
 * Async-signal-safe.
 */
bool flight_help(struct site *site);

/*
 * flight_finish_own - finish what the calling thread was changing when a signal interrupted it.
 * For the trap handler, which may wait for a thread that waits for one of these changes, and before
 * a fork. Async-signal-safe.
 */
void flight_finish_own(void);

/*
 * flight_rescue - if the owner of a site is a thread that has ended, or was left
 * behind by fork(), let its change go on as one in flight. Also gives back what
 * flight_help() had to leave. True: something was done, so look again.
 * flight_rescue_as_guest - the same in the trap handler. Async-signal-safe.
 */
bool flight_rescue(struct site *site);
bool flight_rescue_as_guest(struct site *site);

/* flight_undone - how many changes have been taken back since the start of the process. */
uint64_t flight_undone(void);

/* flight_end - release a site, held by the caller, and end its span. */
void flight_end(struct site *site);

#endif
