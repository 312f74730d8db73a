/* SPDX-License-Identifier: MIT */
/* One change: pc_patch() and its kin; and closing pages. */
#include "patchcore/patch/patch.h"

#include <errno.h>

#include "patchcore/async.h"
#include "patchcore/machine/policy.h"
#include "patchcore/mapping.h"
#include "patchcore/merge/merge_check.h"
#include "patchcore/pages/text.h"
#include "patchcore/pages/text_page.h"
#include "patchcore/sigtrap/trap.h"
#include "patchcore/site/fork.h"
#include "patchcore/word/flight.h"

#define LOOKS 1000
#define STEPS 2 /* of a change in flight: its back part, its front */

/* INT3 as new code could not be told from a held site. */
int change_check(const void *addr, const void *bytes, size_t len, unsigned starts)
{
	const uint8_t *code = bytes;

	if (len < 1 || len > PC_PATCH_MAX || !code || !(starts & 1) || starts >> len)
		return -EINVAL;
	if (own_overlaps(addr, len))
		return -EPERM;
	for (; starts; starts &= starts - 1)
		if (code[__builtin_ctz(starts)] == WORD_INT3)
			return -EINVAL;
	return 0;
}

int change_begin(struct change *change, void *addr, const void *bytes, size_t len, unsigned starts,
		 const struct sync *sync)
{
	int ret = change_check(addr, bytes, len, starts);
	struct site *site = NULL;
	bool straddles;

	if (ret < 0)
		return ret;
	if (!sync)
		return -ESHUTDOWN;
	straddles = word_straddles(addr, len, sync->window);
	sync = word_sync(sync, addr, len);
	if (straddles)
		site = word_expect(addr, sync);
	else
		line_for_writing(addr);
	change->bytes = bytes;
	change->starts = (uint8_t)starts;
	change->merges = false;
	change->expected = NULL;
	ret = text_begin(&change->span, addr, len);
	if (ret < 0)
		return ret;
	if (!straddles) {
		/* The old code of a straddler is looked at when it is held. */
		if (merge_loses_starts(text_at(&change->span, addr), bytes, len, starts))
			ret = -EILSEQ;
	} else if (sync->policy == PC_POLICY_AUTO) {
		ret = -ENOTSUP;
	} else if (!trap_was_ours_lately()) {
		ret = -EBUSY;
	} else if (!site) {
		forget_gone();
	}
	if (ret < 0)
		text_end(&change->span);
	return ret;
}

/* Has the patcher that began the change ended, and no thread is at it? */
static bool is_orphaned(const struct site *site)
{
	return flight_is_on(site) && !load_relaxed(&site->owner) &&
	       thread_is_gone(load_relaxed(&site->word.holder));
}

bool change_try_again(const struct change *change)
{
	struct site *site = site_find((uintptr_t)change->span.addr);

	if (!site)
		return false;
	flight_rescue(site);
	for (int i = 0; i < STEPS && is_orphaned(site); i++)
		flight_step(site);
	for (int i = 0; i < LOOKS; i++) {
		if (site_turn(site) % 2)
			return false;
		if (!load_relaxed(&site->owner))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

/* --- Now, later, and unseen ------------------------------------------------------------------- */

int change_make(struct change *change, const struct sync *sync)
{
	int ret = word_patch(change, sync);

	if (ret == -EAGAIN && change_try_again(change))
		ret = word_patch(change, sync);
	text_end(&change->span);
	return ret;
}

/* No patcher stands waiting, and a membarrier interrupts every executor. */
static const struct sync *later_sync(const struct sync *sync, const void *addr, size_t len)
{
	sync = word_sync(sync, addr, len);
	return sync_within_rate(sync->later ? sync->later : sync);
}

int pc_patch_how(void *addr, const void *bytes, size_t len, const struct pc_how *how)
{
	const struct sync *sync = choice_sync();
	struct change change;
	int ret;

	if (!how || how->flags & ~(unsigned)(PC_LATER | PC_UNSEEN) ||
	    how->flags == (PC_LATER | PC_UNSEEN))
		return -EINVAL;
	ret = change_begin(&change, addr, bytes, len, how->starts ? how->starts : 1, sync);
	if (ret < 0)
		return ret;
	change.expected = how->expected;
	if (how->flags & PC_UNSEEN) {
		ret = word_publish(&change, sync);
		text_end(&change.span);
		return ret;
	}
	/* A thread between the handlers of its own fork leaves nothing in flight for the child. */
	if (!(how->flags & PC_LATER) || !word_straddles(addr, len, sync->window) ||
	    fork_is_mine(thread_here))
		return change_make(&change, sync);
	sync = later_sync(sync, addr, len);
	ret = flight_start(&change, sync);
	if (ret == -EAGAIN && change_try_again(&change))
		ret = flight_start(&change, sync);
	if (ret < 0) {
		text_end(&change.span);
		return ret;
	}
	/* The span is the flight's from here on. */
	fork_leave(thread_here);
	return 0;
}

int pc_patch_starts(void *addr, const void *bytes, size_t len, unsigned starts)
{
	return starts ? pc_patch_how(addr, bytes, len, &(struct pc_how){ .starts = starts })
		      : -EINVAL;
}

/* As a rule one instruction inside a word of an open page without an alias; else all is checked. */
int pc_patch(void *addr, const void *bytes, size_t len)
{
	struct thread *self;
	bool done;
	int ret;

	line_for_writing(addr);
	if (len - 1 < 8 - (uintptr_t)addr % 8 && bytes && *(const uint8_t *)bytes != WORD_INT3 &&
	    !own_overlaps(addr, len) && choice_sync()) {
		ret = fork_enter_in_handler(&self);
		if (ret < 0)
			return ret;
		done = page_find_plain(self, (uintptr_t)addr) && word_put(addr, bytes, len);
		fork_leave(self);
		if (done)
			return 0;
	}
	return pc_patch_starts(addr, bytes, len, 1);
}

/* The same way as the change before at this place, of one instruction inside an open page. */
static bool start_again(void *addr, const void *bytes, size_t len)
{
	const struct sync *sync = choice_sync();
	struct thread *self;
	struct site *site;
	bool done;

	if (len - 1 >= PC_PATCH_MAX || !bytes || *(const uint8_t *)bytes == WORD_INT3 ||
	    own_overlaps(addr, len) || !sync || !word_straddles(addr, len, sync->window) ||
	    word_straddles(addr, len, TEXT_PAGE))
		return false;
	sync = later_sync(sync, addr, len);
	site = word_expect(addr, sync);
	if (!site || !trap_was_ours_lately() || fork_enter_in_handler(&self) < 0)
		return false;
	done = page_find_plain(self, (uintptr_t)addr) && !fork_is_mine(self) &&
	       flight_start_again(site, addr, bytes, len, sync);
	fork_leave(self);
	return done;
}

int pc_start_patch(void *addr, const void *bytes, size_t len)
{
	if (start_again(addr, bytes, len))
		return 0;
	return pc_patch_how(addr, bytes, len, &(struct pc_how){ .flags = PC_LATER });
}

/* --- Going on --------------------------------------------------------------------------------- */

int pc_finish_patch(void *addr)
{
	static const int progress[] = {
		[WORD_IDLE] = PC_FINISHED,	     [WORD_HELD] = PC_FIRST_WAIT,
		[WORD_FIRST_WAIT] = PC_FIRST_WAIT,   [WORD_COMMITTED] = PC_SECOND_WAIT,
		[WORD_SECOND_WAIT] = PC_SECOND_WAIT, [WORD_WRITTEN] = PC_SECOND_WAIT,
		[WORD_UNDONE] = -ECANCELED,
	};
	struct thread *self;
	struct site *site;
	int ret;

	if (!choice_sync())
		return -ESHUTDOWN;
	site = site_find((uintptr_t)addr);
	if (!site)
		return PC_FINISHED;
	ret = fork_enter_in_handler(&self);
	if (ret < 0)
		return ret;
	ret = progress[flight_step(site)];
	fork_leave(self);
	return ret;
}

int pc_drain(void)
{
	static _Atomic(uint64_t) known_undone; /* what a drain has told of */
	struct thread *self;
	uint64_t now;
	int ret = choice_sync() ? fork_enter(&self) : -ESHUTDOWN;

	if (ret < 0)
		return ret;
	/* This closes the pipes of children that have become ready. */
	text_child_is_late();
	ret = flight_drain();
	now = flight_undone();
	if (ret == 0 && atomic_exchange(&known_undone, now) != now)
		ret = -ECANCELED;
	fork_leave(self);
	return ret;
}

/* --- Closing ---------------------------------------------------------------------------------- */

/*
 * Closing takes pages away from patches that have found them open. So it is done in three steps:
 *
 *   1. from now on the pages are not open any more: a patch that comes borrows them
 *   2. wait until every thread inside has left, and drain what is in flight there
 *   3. give the protection back
 *
 * The caller stays a user of the pages until step 3.
 */
int pc_text_close(void *addr, size_t len)
{
	uintptr_t start, end;
	struct thread *self;
	uint64_t loan;
	bool all_left;
	int ret = text_enter(addr, len, &start, &end, &self);

	if (ret < 0)
		return ret;
	ret = text_stop_using(&start, &end, &loan);
	if (ret == 0 && !text_is_open(start, end)) {
		/* Outside meanwhile: others that close wait for this thread as well. */
		fork_leave(self);
		all_left = thread_await_all();
		ret = fork_enter(&self);
		if (ret < 0) {
			text_use_again(start, end, loan);
			return ret;
		}
		ret = flight_drain();
		if (ret == 0 && !all_left)
			ret = -ETIMEDOUT;
		if (ret < 0)
			text_use_again(start, end, loan);
	}
	if (ret == 0)
		ret = text_return(start, end, loan);
	fork_leave(self);
	return ret;
}
