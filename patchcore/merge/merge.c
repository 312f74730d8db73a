/* SPDX-License-Identifier: MIT */
#include "patchcore/merge/merge.h"

#include <errno.h>

#include "patchcore/machine/rest.h"
#include "patchcore/machine/sync.h"
#include "patchcore/merge/merge_check.h"
#include "patchcore/merge/others.h"
#include "patchcore/syscall/kernel_signal.h"

/* How long to wait before looking again for threads that were inside. */
#define PAUSE_MIN (CLOCK_MS / 20)
#define PAUSE_MAX (10 * CLOCK_MS)

/* And how long for one of several, while executors of all of them wait. */
#define SHARED_PATIENCE (20 * CLOCK_MS)

/* --- The steps ------------------------------------------------------------------------------- */

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

NOPATCH static bool hold_first(const struct merge *merge)
{
	struct site *site = merge->sites[0];
	struct word *word = &site->word;

	if (!site_try_hold(site, (uintptr_t)merge->span.addr, merge->id))
		return false;
	/* Of the word protocol's business one byte, for what a rescue asks at the end. */
	word->site = site;
	word->front_at = word->back_at = text_at(&merge->span, merge->span.addr);
	word->front = 1;
	word->new_front = word->new_back = merge->bytes[0];
	word->old_front = merge->old[0];
	word->int3_mask = 0xff;
	word->sync = NULL;
	word->span = merge->span;
	word->span.loan = 0;
	word->failures = 0;
	word->holder = merge->id;
	word->also_count = 0;
	word->merge = NULL;
	site_set_state(site, WORD_HELD);
	return true;
}

NOPATCH void merge_read(struct merge *merge)
{
	for (size_t i = 0; i < merge->span.len; i++)
		merge->old[i] = __atomic_load_n(text_at(&merge->span, merge->span.addr + i),
						__ATOMIC_RELAXED);
}

NOPATCH int merge_hold(struct merge *merge)
{
	bool all = hold_first(merge);

	if (!all)
		return -EAGAIN;
	for (size_t i = 1; i < merge->span.len && all; i++)
		all = !is_door(merge, i) || word_hold_also(&merge->sites[0]->word, merge->sites[i],
							   (uintptr_t)merge->span.addr + i);
	if (all)
		merge_read(merge);
	for (size_t i = 0; i < merge->span.len && all; i++)
		all = !is_door(merge, i) || merge->old[i] != WORD_INT3;
	if (!all)
		merge_release(merge);
	return all ? 0 : -EAGAIN;
}

NOPATCH void merge_release(struct merge *merge)
{
	struct word *word = &merge->sites[0]->word;

	word->merge = NULL;
	word_release(word);
}

/* One locked store for each byte of the doors, or for each of the rest; NULL: of INT3. */
NOPATCH static void put_bytes(const struct merge *merge, bool doors, const uint8_t *bytes)
{
	for (size_t i = 0; i < merge->span.len; i++)
		if (is_door(merge, i) == doors)
			__atomic_exchange_n(text_at(&merge->span, merge->span.addr + i),
					    (uint8_t)(bytes ? bytes[i] : WORD_INT3),
					    __ATOMIC_SEQ_CST);
	rest_note(merge->span.addr, merge->span.len);
}

NOPATCH void merge_put_int3(const struct merge *merge)
{
	/* From here on there is something to undo. */
	merge->sites[0]->word.merge = merge;
	put_bytes(merge, true, NULL);
}

NOPATCH void merge_put_rest(struct merge *merge)
{
	store_release(&merge->committed, true);
	put_bytes(merge, false, merge->bytes);
}

NOPATCH void merge_put_doors(const struct merge *merge)
{
	put_bytes(merge, true, merge->bytes);
}

NOPATCH void merge_adopt(const struct merge *merge)
{
	bool committed = load_acquire(&merge->committed);

	if (committed)
		put_bytes(merge, false, merge->bytes);
	put_bytes(merge, true, committed ? merge->bytes : merge->old);
}

/* --- The look ------------------------------------------------------------------------------ */

static struct frames frames;

/* What the handlers need too. */
struct merge_look {
	const struct frames_places *places;
	bool move;
	_Atomic(int) error; /* of a thread that could not be looked at; 0: there was none */
};

_Static_assert(sizeof(struct frames_search) <= sizeof(struct others_room), "room for a search");

NOPATCH static void look_inside(ucontext_t *context, struct others_room *room, void *arg)
{
	greg_t *gregs = context->uc_mcontext.gregs;
	struct merge_look *look = arg;
	struct frames_inside *inside = frames_find(look->places, (uintptr_t)gregs[REG_RIP]);
	struct frames_stack stack = {
		.sp = (uintptr_t)gregs[REG_RSP],
		.alternate = (uintptr_t)context->uc_stack.ss_sp,
		.alternate_end = (uintptr_t)context->uc_stack.ss_sp + context->uc_stack.ss_size,
	};
	int found = 0;

	/* The calling thread may itself be in a handler that has interrupted the code. */
	if (frames_may_be(&frames, *(const uint64_t *)(const void *)&context->uc_sigmask)) {
		stack.top = frames_top(0);
		found = frames_visit(&frames, (struct frames_search *)room, &stack, look->places,
				     look->move ? FRAMES_MOVE : FRAMES_COUNT);
	}
	if (found < 0)
		atomic_store(&look->error, found);
	else if (inside && look->move)
		gregs[REG_RIP] = (greg_t)inside->end;
	else if (inside)
		atomic_fetch_add(&inside->found, 1);
	/* One that is inside is waited for, and should not begin again to wait itself. */
	else if (!found)
		others_restart_call(gregs);
}

/*
 * One that sleeps outside, and in no handler that will go back inside, does not get there any more.
 * It may wake while its frames are looked at: so none is moved, and where that is to be done, it
 * must answer. So must any that can, since it knows its alternate stack.
 */
NOPATCH static bool look_asleep(pid_t tid, const struct task_call *call, uint64_t blocked,
				bool takes, struct others_room *room, void *arg)
{
	struct merge_look *look = arg;
	struct frames_inside *inside = frames_find(look->places, call->pc);
	struct frames_stack stack = { .sp = call->sp, .looks_end = call->sp + OTHERS_STACK };
	int found = 0;

	takes |= look->move;
	/* The call may be restarted: at the SYSCALL, of two bytes. */
	if (!inside)
		inside = frames_find(look->places, call->pc - 2);
	if (frames_may_be(&frames, blocked)) {
		stack.top = frames_top(tid);
		found = frames_visit(&frames, (struct frames_search *)room, &stack, look->places,
				     takes ? FRAMES_FIND : FRAMES_COUNT);
	}
	if (found < 0 || (takes && (found || inside)))
		return false;
	if (inside)
		atomic_fetch_add(&inside->found, 1);
	return true;
}

/* --- The protocol ---------------------------------------------------------------------------- */

/* Merges that are neither made nor given up stay in the list. */
NOPATCH static void keep_pending(struct frames_places *places)
{
	size_t kept = 0;

	for (size_t i = 0; i < places->n; i++)
		if (places->inside[i].merge->result == MERGE_PENDING)
			places->inside[kept++] = places->inside[i];
	places->n = kept;
}

NOPATCH static int hold_and_check(struct merge *merge)
{
	int ret = merge_hold(merge);

	if (ret < 0)
		return ret;
	/* Looked at again now that it is held: another patcher may have been faster. */
	ret = merge_check_old(merge);
	/* May a thread come back from a call to the middle of it? */
	if (ret == 0 &&
	    merge_returns_inside(merge->old, merge->span.len, merge->old_starts, merge->new_starts))
		ret = -EINVAL;
	if (ret < 0)
		merge_release(merge);
	return ret < 0 ? ret : MERGE_PENDING;
}

NOPATCH static void hold_all(struct frames_places *places)
{
	struct merge *merge;

	for (size_t i = 0; i < places->n; i++) {
		merge = places->inside[i].merge;
		merge->result = hold_and_check(merge);
		places->inside[i].start = (uintptr_t)merge->span.addr;
		places->inside[i].end = (uintptr_t)merge->span.addr + merge->span.len;
		places->inside[i].doors = merge->old_starts & merge->new_starts;
	}
	keep_pending(places);
}

/*
 * A thread that is made meanwhile is not looked at, since it begins elsewhere. If a system call
 * inside has made it, the next look finds it.
 */
NOPATCH static void expect_looks(struct merge *merge)
{
	merge->looks = 1 + merge_makes_threads(merge->old, merge->span.len, merge->old_starts);
}

NOPATCH static int look_once(struct frames_places *places)
{
	struct merge_look look = { .places = places, .move = places->inside[0].merge->move };
	int ret, known, seen;

	do {
		known = frames_known(&frames);
		for (size_t i = 0; i < places->n; i++)
			places->inside[i].found = 0;
		ret = others_look(look_inside, look_asleep, &look);
		/* After the look: a handler that was installed meanwhile is learnt, too. */
		seen = frames_learn(&frames);
		if (seen < 0)
			return seen;
	} while (ret == 0 && seen != known);
	return ret == 0 ? look.error : ret;
}

/* After a look: those that are empty get their new code. Is a thread inside one of the others? */
NOPATCH static bool put_empty(struct frames_places *places)
{
	bool found = false, any = false;
	struct merge *merge;

	for (size_t i = 0; i < places->n; i++) {
		merge = places->inside[i].merge;
		if (!merge->move && places->inside[i].found) {
			expect_looks(merge);
			found = true;
		} else if (--merge->looks == 0) {
			merge_put_rest(merge);
			any = true;
		}
	}
	if (any)
		membarrier_sync_surely();
	for (size_t i = 0; i < places->n; i++) {
		merge = places->inside[i].merge;
		if (merge->looks)
			continue;
		merge_put_doors(merge);
		site_count_change(merge->sites[0]);
		merge_release(merge);
		merge->result = 0;
	}
	keep_pending(places);
	return found;
}

/* Until none is inside. Those that are not moved out go on, and are looked at again. */
NOPATCH static int wait_until_empty(struct frames_places *places)
{
	int64_t patience = places->n > 1 ? SHARED_PATIENCE : OTHERS_MS * CLOCK_MS;
	int64_t deadline = clock_ns() + patience, pause = PAUSE_MIN;
	int late = places->n > 1 ? MERGE_PENDING : -ETIMEDOUT, ret = 0;

	while (places->n && ret == 0) {
		ret = look_once(places);
		/* One thread cannot be told of now: as if it were inside of all. */
		if (ret == -ELOOP)
			ret = clock_ns() > deadline ? -ETIMEDOUT : 0;
		else if (ret == 0 && !put_empty(places))
			continue;
		if (ret < 0)
			return ret;
		if (clock_ns() > deadline)
			return late;
		clock_sleep(pause);
		pause = 2 * pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX;
	}
	return ret;
}

/*
 * For code that is held: O P Q are its old instructions, n is the new one, 3 is INT3.
 *
 *   1. 3o PP QQ    An executor that comes from now on traps and waits in the handler. One
 *                  that is inside already runs to the end.
 *   2. membarrier  None has the first byte fetched any more, so none gets in:
 *                  the only way is over the first byte.
 *   3. look        Those inside leave by themselves, but there is no telling when:
 *                  one may be pre-empted or stopped. So every thread is interrupted. If
 *                  the old code is NOPs, one that is inside is moved to the end, where they
 *                  would have led. Else it goes on, and all are looked at again, until
 *                  none is inside. Each is looked at after step 2, so it does not get in
 *                  again. Threads that begin meanwhile begin elsewhere.
 *   4. 3n nn nn    The rest, byte by byte. No thread is there, and one that comes traps.
 *   5. membarrier  None has old bytes of the rest fetched any more, ahead of an INT3 that
 *                  it has not yet seen.
 *   6. nn nn nn    The first byte: from here on it is the new code.
 *
 * No INT3 is needed on P and Q: it would catch only those inside that run,
 * and these leave anyway; the look is for those that do not. If P starts a new instruction
 * too, it is a door like the first byte: executors may come there by a jump, or have come
 * from O. It gets its INT3 in step 1 and its byte in step 6.
 *
 * If step 2 or 3 fails, the doors get their old bytes again: nothing else was changed. (A thread
 * that was moved has missed some NOPs.) After step 4 there is no way back; but membarrier has just
 * worked, and can then only fail for want of memory, or because it was forbidden since.
 *
 * Several merges take each step together. Merges that a look finds empty are made at once; for the
 * others there is another look. Two threads may each be inside one merge, in a handler that waits
 * at the INT3 of the other: neither leaves. So the wait for several is short. Merges that are left
 * then are taken back, and their caller tries them alone.
 */
NOPATCH static void run_protocol(struct frames_places *places)
{
	struct merge *merge;
	int ret = 0;

	hold_all(places);
	for (size_t i = 0; i < places->n; i++) {
		merge = places->inside[i].merge;
		expect_looks(merge);
		merge_put_int3(merge);
	}
	if (places->n)
		ret = membarrier_sync();
	if (ret == 0)
		ret = wait_until_empty(places);
	for (size_t i = 0; i < places->n; i++) {
		/* Undone. */
		merge = places->inside[i].merge;
		put_bytes(merge, true, merge->old);
		merge_release(merge);
		merge->result = ret;
	}
}

NOPATCH int merge_check_old(const struct merge *merge)
{
	size_t len = merge->span.len;

	/* Where a thread is moved over NOPs, there must be NOPs. */
	if (merge->move)
		return merge_nops(merge->old, len) == len ? 0 : -EILSEQ;
	return merge_denies_nops(merge->old, len, merge->old_starts) ? -EILSEQ : 0;
}

/*
 * Without signals, as one of this thread's handlers might run into the code and
 * wait for the very thread that it has interrupted.
 */
NOPATCH_ENTRY void merge_undisturbed(struct frames_places *places)
{
	uint64_t before = kernel_mask(SIG_SETMASK, ~UINT64_C(0));

	others_keep_off(before);
	run_protocol(places);
	kernel_mask(SIG_SETMASK, before);
}
