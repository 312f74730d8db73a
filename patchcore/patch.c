/* SPDX-License-Identifier: MIT */
/*
 * One change: pc_patch() and its kin.
 */
#include "patchcore/patch.h"

#include <errno.h>

#include "patchcore/async.h"
#include "patchcore/finisher.h"
#include "patchcore/flight.h"
#include "patchcore/forget.h"
#include "patchcore/library.h"
#include "patchcore/merge_check.h"
#include "patchcore/wait.h"

#define LOOKS 1000

/* INT3 as new code could not be told from a held site. */
int change_check(const void *bytes, size_t len, uint8_t starts)
{
	const uint8_t *code = bytes;

	if (len < 1 || len > PC_PATCH_MAX || !code || !(starts & 1) || starts >> len)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (starts & 1u << i && code[i] == WORD_INT3)
			return -EINVAL;
	return 0;
}

static int check_straddler(const void *addr, const struct sync *sync)
{
	if (sync->policy == PC_POLICY_AUTO)
		return -ENOTSUP;
	if (!library_takes_traps())
		return -EBUSY;
	if (!site_find((uintptr_t)addr))
		forget_gone();
	return 0;
}

static int check_code(const struct change *change, const struct sync *sync)
{
	const struct text_span *span = &change->span;

	/* The code of a straddler is looked at when it is held. */
	if (word_straddles(span->addr, span->len, sync->window))
		return check_straddler(span->addr, sync);
	return merge_loses_starts(text_at(span, span->addr), change->bytes, span->len,
				  change->starts)
		       ? -EILSEQ
		       : 0;
}

int change_begin(struct change *change, void *addr, const void *bytes, size_t len, uint8_t starts,
		 const struct sync *sync)
{
	int ret = change_check(bytes, len, starts);

	if (ret < 0)
		return ret;
	if (!sync)
		return -ESHUTDOWN;
	/* Not of a straddler: how long that takes has to be measured, see word_hold(). */
	if (!word_straddles(addr, len, sync->window))
		line_for_writing(addr);
	change->bytes = bytes;
	change->starts = starts;
	change->merges = false;
	ret = text_begin(&change->span, addr, len);
	if (ret < 0)
		return ret;
	ret = check_code(change, sync);
	if (ret < 0)
		text_end(&change->span);
	return ret;
}

bool change_try_again(const struct change *change)
{
	struct site *site = site_find((uintptr_t)change->span.addr);

	if (!site || flight_rescue(site, false))
		return site;
	for (int i = 0; i < LOOKS; i++) {
		if (site_turn(site) % 2)
			return false;
		if (!atomic_load_explicit(&site->owner, memory_order_relaxed))
			return true;
		_mm_pause();
	}
	return false;
}

int pc_patch_starts(void *addr, const void *bytes, size_t len, unsigned starts)
{
	const struct sync *sync = library_sync();
	struct change change;
	int ret = starts > 0xff ? -EINVAL
				: change_begin(&change, addr, bytes, len, (uint8_t)starts, sync);

	if (ret < 0)
		return ret;
	ret = word_patch(&change, sync);
	if (ret == -EAGAIN && change_try_again(&change))
		ret = word_patch(&change, sync);
	text_end(&change.span);
	return ret;
}

int pc_patch(void *addr, const void *bytes, size_t len)
{
	return pc_patch_starts(addr, bytes, len, 1);
}

static int start(const struct change *change, const struct sync *sync)
{
	int ret = flight_start(change, sync_pick(sync));

	if (ret == -EAGAIN && change_try_again(change))
		ret = flight_start(change, sync_pick(sync));
	if (ret == 0)
		finisher_wake();
	return ret;
}

int pc_start_patch(void *addr, const void *bytes, size_t len)
{
	const struct sync *sync = library_sync();
	struct change change;
	int ret = change_begin(&change, addr, bytes, len, 1, sync);

	if (ret < 0)
		return ret;
	if (word_straddles(addr, len, sync->window)) {
		ret = start(&change, sync);
		/* With the change in flight its span is the flight's. */
		if (ret == 0)
			return 0;
	} else {
		ret = word_patch(&change, sync);
	}
	text_end(&change.span);
	return ret;
}

int pc_finish_patch(void *addr)
{
	static const enum pc_progress progress[] = {
		[WORD_IDLE] = PC_FINISHED,	   [WORD_HELD] = PC_FIRST_WAIT,
		[WORD_FIRST_WAIT] = PC_FIRST_WAIT, [WORD_SECOND_WAIT] = PC_SECOND_WAIT,
		[WORD_WRITTEN] = PC_SECOND_WAIT,
	};
	struct site *site;

	if (!library_sync())
		return -ESHUTDOWN;
	site = site_find((uintptr_t)addr);
	return site ? (int)progress[flight_step(site)] : PC_FINISHED;
}

int pc_drain(void)
{
	return library_sync() ? flight_drain() : -ESHUTDOWN;
}
