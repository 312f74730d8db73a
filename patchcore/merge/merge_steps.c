/* SPDX-License-Identifier: MIT */
#include "patchcore/merge/merge_steps.h"

#include <errno.h>
#include <stdatomic.h>
#include <ucontext.h>

#include "patchcore/merge/frames.h"
#include "patchcore/merge/others.h"

NOPATCH static bool is_door(const struct merge *merge, size_t i)
{
	return merge->old_starts & merge->new_starts & 1u << i;
}

int merge_find(struct merge *merge)
{
	merge->id = thread_id();
	if (!merge->id)
		return -ENOMEM;
	for (size_t i = 0; i < merge->span.len; i++) {
		if (!is_door(merge, i))
			continue;
		merge->sites[i] = site_get((uintptr_t)merge->span.addr + i);
		if (!merge->sites[i])
			return -ENOMEM;
	}
	return 0;
}

/* Of the word protocol's business there is one byte, for what flight_rescue.c asks at the end. */
NOPATCH static void fill_in_sites(const struct merge *merge)
{
	struct word *word = &merge->sites[0]->word;

	word->site = merge->sites[0];
	word->addr = merge->span.addr;
	word->front_at = word->back_at = text_at(&merge->span, merge->span.addr);
	word->len = word->front = 1;
	word->new_front = word->new_back = merge->bytes[0];
	word->old_front = merge->old[0];
	word->int3_mask = 0xff;
	word->sync = NULL;
	word->span.addr = merge->span.addr;
	word->span.len = merge->span.len;
	word->span.shift[0] = merge->span.shift[0];
	word->span.shift[1] = merge->span.shift[1];
	word->span.loan = 0;
	word->failures = 0;
	word->holder = merge->id;
	word->also_count = 0;
	word->merge = NULL;
}

/* Each is noted with the first one before it is held, so that both are let go together. */
NOPATCH static bool hold_door(const struct merge *merge, size_t i)
{
	struct site *first = merge->sites[0], *site = merge->sites[i];

	if (i > 0)
		first->word.also[first->word.also_count++] = site;
	if (!site_try_hold(site, merge->id)) {
		if (i > 0)
			first->word.also_count--;
		return false;
	}
	if (i > 0)
		site_set_lead(site, first);
	else
		fill_in_sites(merge);
	site_set_resume(site, 0);
	site_set_state(site, WORD_HELD);
	return true;
}

NOPATCH void merge_read(struct merge *merge)
{
	for (size_t i = 0; i < merge->span.len; i++)
		merge->old[i] = __atomic_load_n(text_at(&merge->span, merge->span.addr + i),
						__ATOMIC_RELAXED);
}

NOPATCH static bool any_int3(const struct merge *merge)
{
	for (size_t i = 0; i < merge->span.len; i++)
		if (is_door(merge, i) && merge->old[i] == WORD_INT3)
			return true;
	return false;
}

NOPATCH int merge_hold(struct merge *merge)
{
	if (!hold_door(merge, 0))
		return -EAGAIN;
	for (size_t i = 1; i < merge->span.len; i++) {
		if (is_door(merge, i) && !hold_door(merge, i)) {
			merge_release(merge);
			return -EAGAIN;
		}
	}
	merge_read(merge);
	if (!any_int3(merge))
		return 0;
	merge_release(merge);
	return -EAGAIN;
}

NOPATCH void merge_release(struct merge *merge)
{
	struct word *word = &merge->sites[0]->word;

	word->merge = NULL;
	word_release(word);
}

/* One locked store of a byte; no other thread writes there meanwhile. */
NOPATCH static void put_byte(const struct merge *merge, size_t i, uint8_t byte)
{
	__atomic_exchange_n(text_at(&merge->span, merge->span.addr + i), byte, __ATOMIC_SEQ_CST);
}

NOPATCH void merge_put_int3(const struct merge *merge)
{
	/* From here on there is something to undo. */
	merge->sites[0]->word.merge = merge;
	for (size_t i = 0; i < merge->span.len; i++)
		if (is_door(merge, i))
			put_byte(merge, i, WORD_INT3);
}

NOPATCH void merge_undo(const struct merge *merge)
{
	for (size_t i = 0; i < merge->span.len; i++)
		if (is_door(merge, i))
			put_byte(merge, i, merge->old[i]);
}

NOPATCH static void put_rest(const struct merge *merge)
{
	for (size_t i = 0; i < merge->span.len; i++)
		if (!is_door(merge, i))
			put_byte(merge, i, merge->bytes[i]);
}

NOPATCH void merge_put_rest(struct merge *merge)
{
	atomic_store_explicit(&merge->committed, true, memory_order_release);
	put_rest(merge);
}

NOPATCH void merge_put_doors(const struct merge *merge)
{
	for (size_t i = 0; i < merge->span.len; i++)
		if (is_door(merge, i))
			put_byte(merge, i, merge->bytes[i]);
}

NOPATCH void merge_adopt(const struct merge *merge)
{
	if (!atomic_load_explicit(&merge->committed, memory_order_acquire)) {
		merge_undo(merge);
		return;
	}
	put_rest(merge);
	merge_put_doors(merge);
}

/* --- The look ------------------------------------------------------------------------------ */

/* What the handlers need too. */
struct look {
	struct frames frames;
	struct frames_inside inside;
	bool move;
	_Atomic(int) found; /* inside */
	_Atomic(int) error; /* of those of which it could not be told */
};

_Static_assert(sizeof(struct frames_search) <= sizeof(struct others_room), "room for a search");

NOPATCH static void look_inside(ucontext_t *context, struct others_room *room, void *arg)
{
	greg_t *gregs = context->uc_mcontext.gregs;
	struct look *look = arg;
	bool is_inside = frames_is_inside(&look->inside, (uintptr_t)gregs[REG_RIP]);
	/* The calling thread may itself be in a handler that has interrupted the code. */
	int found = frames_visit(&look->frames, (struct frames_search *)room,
				 (uintptr_t)gregs[REG_RSP], &look->inside, look->move);

	if (found < 0)
		atomic_store(&look->error, found);
	else if (look->move && is_inside)
		gregs[REG_RIP] = (greg_t)look->inside.end;
	else if (!look->move)
		atomic_fetch_add(&look->found, found + is_inside);
}

/*
 * A handler that sleeps may wake and return while its frame is looked at: so none is moved,
 * and where that is to be done, it must answer.
 */
NOPATCH static bool look_asleep(uintptr_t pc, uintptr_t sp, struct others_room *room, void *arg)
{
	struct look *look = arg;
	int found =
		frames_visit(&look->frames, (struct frames_search *)room, sp, &look->inside, false);

	if (found < 0)
		return false;
	found += frames_is_inside(&look->inside, pc);
	if (look->move)
		return found == 0;
	atomic_fetch_add(&look->found, found);
	return true;
}

NOPATCH int merge_look(const struct merge *merge)
{
	struct look look;
	int ret;

	look.inside.start = (uintptr_t)merge->span.addr;
	look.inside.end = look.inside.start + merge->span.len;
	look.inside.doors = merge->old_starts & merge->new_starts;
	look.move = merge->move;
	look.found = 0;
	look.error = 0;
	frames_learn(&look.frames);
	ret = others_look(look_inside, look_asleep, &look);
	if (ret == 0)
		ret = look.error;
	return ret < 0 ? ret : look.found;
}
