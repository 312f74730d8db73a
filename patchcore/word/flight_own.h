/* SPDX-License-Identifier: MIT */
/*
 * What the owner of a change in flight does with it: the list of them, when a step is due, the
 * step, and how it leaves the site to the next owner. Private; what others ask for is in flight.h.
 */
#ifndef PATCHCORE_WORD_FLIGHT_OWN_H
#define PATCHCORE_WORD_FLIGHT_OWN_H

#include <stdbool.h>
#include <stdint.h>

#include "patchcore/machine/wait.h"
#include "patchcore/site/site.h"
#include "patchcore/text/text.h"
#include "patchcore/word/word.h"

/* Is there a change that any owner goes on with? For a thread that does not own it, a guess. */
NOPATCH_INLINE bool flight_is_on(const struct site *site)
{
	enum word_state state = site_state(site);

	return state != WORD_IDLE && state != WORD_HELD;
}

NOPATCH_INLINE bool flight_is_over(const struct site *site)
{
	return site_state(site) == WORD_WRITTEN || site_state(site) == WORD_UNDONE;
}

NOPATCH_INLINE bool flight_int3_stands(const struct site *site)
{
	return *(const volatile uint8_t *)site->entry.addr == WORD_INT3;
}

/* May this process write there? Not to an alias that is its parent's. */
NOPATCH_INLINE bool flight_is_ours(const struct site *site)
{
	return text_span_is_ours(&site->word.span);
}

/* --- The list of what is in flight ------------------------------------------------------ */

/* flight_push - put it there, unless it is. Async-signal-safe. */
void flight_push(struct site *site);

/* flight_take_list - all of it, for a drain. */
struct site *flight_take_list(void);

/* flight_any - has something been started that flight_drain() would find? */
bool flight_any(void);

/*
 * flight_unqueue - the drain takes the site off its list. A thread that leaves a change behind at
 * this moment finds the site queued or not. If queued, the drain sees that thread's last state,
 * because this exchange comes after its own. If not, the thread pushes the site again.
 */
void flight_unqueue(struct site *site);

/* --- One step ---------------------------------------------------------------------------- */

/* RDTSCP waits for what comes before it, so for the locked store. */
NOPATCH_INLINE void flight_set_since(struct word *word)
{
	word->since = moment_now();
	word->seen = 0;
}

/* flight_note - right after a store that was asked for then. */
void flight_note(struct word *word, enum word_part which, struct moment asked);

/* flight_take_back - undo the change, and count that. */
void flight_take_back(struct site *site);

/* flight_undone - how many changes have been taken back since the start of the process. */
uint64_t flight_undone(void);

/* flight_own_and_step - as the owner of that id. True: stepped and owned, false: not owned. */
bool flight_own_and_step(struct site *site, uint64_t id);

/*
 * flight_leave - let others own a site that is in flight. One whose change is over is released,
 * unless its pages are to be given back, which takes a lock: in the trap handler that is left to a
 * drain. True: it is to be ended by the caller, with flight_end().
 */
bool flight_leave(struct site *site, bool in_handler);

/* flight_end - release a site, held by the caller, and end its span. */
void flight_end(struct site *site);

#endif
