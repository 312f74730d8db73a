/* SPDX-License-Identifier: MIT */
/*
 * Merging a run of 1-byte NOPs into one instruction.
 */
#include "patchcore/merge.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "patchcore/forklock.h"
#include "patchcore/frames.h"
#include "patchcore/library.h"
#include "patchcore/merge_check.h"
#include "patchcore/merge_steps.h"
#include "patchcore/patch.h"
#include "patchcore/sync.h"
#include "patchcore/threads.h"
#include "patchcore/word.h"

/*
 * Held while there is an INT3, so that fork() never copies a run in the
 * middle of it: nobody in the child would see it through.
 */
static struct forklock lock = FORKLOCK_INIT; /* nests outside all others but text's */

static void before_fork(void)
{
	forklock_before_fork(&lock);
}

static void after_fork(void)
{
	forklock_after_fork(&lock);
}

static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static int watching; /* 0 or what pthread_atfork() failed with */

static void watch_forks(void)
{
	/* Later than text's, and so before it when the process forks. */
	text_watch_fork();
	watching = pthread_atfork(before_fork, after_fork, after_fork);
}

/* Not with the first merge: a fork that is under way then would know nothing of it. */
__attribute__((constructor)) static void watch_early(void)
{
	pthread_once(&watch_once, watch_forks);
}

/* --- The steps ----------------------------------------------------------------------------- */

int merge_hold(struct merge *merge)
{
	struct site *site = site_get((uintptr_t)merge->span.addr);

	if (!site)
		return -ENOMEM;
	if (!site_try_hold(site))
		return -EAGAIN;
	/* Nothing that flight.c could go on with, should it ever have to. */
	site->word = (struct word){ .site = site,
				    .addr = merge->span.addr,
				    .front_at = merge->span.addr };
	site_set_resume(site, 0);
	atomic_store_explicit(&site->state, WORD_HELD, memory_order_relaxed);
	merge->site = site;
	return 0;
}

bool merge_is_run(const struct merge *merge)
{
	return merge_nops(merge->span.addr, merge->span.len) == merge->span.len;
}

/* One locked store of a byte; nobody else writes the run meanwhile. */
static void put(const struct merge *merge, size_t i, uint8_t byte)
{
	text_store_begin(&merge->span);
	__atomic_exchange_n(text_at(&merge->span, merge->span.addr + i), byte, __ATOMIC_SEQ_CST);
	text_store_end(&merge->span);
}

void merge_put_int3(const struct merge *merge)
{
	put(merge, 0, WORD_INT3);
}

void merge_undo(const struct merge *merge)
{
	put(merge, 0, MERGE_NOP);
}

void merge_put_rest(const struct merge *merge)
{
	for (size_t i = 1; i < merge->span.len; i++)
		put(merge, i, merge->bytes[i]);
}

void merge_put_first(const struct merge *merge)
{
	put(merge, 0, merge->bytes[0]);
}

/* What the look needs, in the handlers too. */
struct look {
	struct frames frames;
	uintptr_t start;
	uintptr_t end;
	_Atomic(int) error; /* of whom it could not be told */
};

static bool is_inside(const struct look *look, uintptr_t pc)
{
	return pc > look->start && pc < look->end;
}

static void move_out(ucontext_t *context, void *arg)
{
	greg_t *gregs = context->uc_mcontext.gregs;
	struct look *look = arg;

	if (is_inside(look, (uintptr_t)gregs[REG_RIP]))
		gregs[REG_RIP] = (greg_t)look->end;
	/* It may itself be in a handler that has interrupted the run. */
	if (frames_visit(&look->frames, (uintptr_t)gregs[REG_RSP], look->start, look->end, true) <
	    0)
		atomic_store(&look->error, -EACCES);
}

/* A handler that sleeps may wake and return while its frame is looked at: so none is moved. */
static bool sleeps_outside(uintptr_t pc, uintptr_t sp, void *arg)
{
	const struct look *look = arg;

	return !is_inside(look, pc) &&
	       frames_visit(&look->frames, sp, look->start, look->end, false) == 0;
}

int merge_look(struct merge *merge)
{
	uintptr_t start = (uintptr_t)merge->span.addr;
	struct look look = { .start = start, .end = start + merge->span.len };
	int ret;

	frames_learn(&look.frames);
	ret = threads_look(move_out, sleeps_outside, &look);
	return ret < 0 ? ret : atomic_load(&look.error);
}

/* --- The protocol -------------------------------------------------------------------------- */

/*
 * For a run N N N N N that is held, to be one instruction a b c d e. 3 is INT3.
 *
 *   1. 3 N N N N   Who comes to the run from now on traps and waits in the
 *                  handler. Who is in it already runs the NOPs to its end.
 *   2. membarrier  Nobody has the first NOP fetched any more, so nobody gets in:
 *                  the only way is over the first byte.
 *   3. look        Those inside leave by themselves, but there is no telling when:
 *                  one may be pre-empted or stopped. So every thread is
 *                  interrupted, and who is inside is moved to the end, where the
 *                  NOPs would have led. Each is looked at after step 2, so from
 *                  here on nobody is inside. Threads that begin meanwhile begin
 *                  elsewhere.
 *   4. 3 b c d e   The rest, byte by byte. Nobody is there, and who comes traps.
 *   5. membarrier  Nobody has NOPs of the rest fetched any more, ahead of an INT3
 *                  that he has not yet seen.
 *   6. a b c d e   The first byte: from here on it is one instruction.
 *
 * No INT3 is needed on the other NOPs: it would catch only those inside who run,
 * and these leave anyway; the look is for those who do not.
 *
 * If step 2 or 3 fails, the first byte becomes a NOP again: nothing else was
 * changed. (Who was moved has missed some NOPs.) Step 5 is repeated: membarrier
 * has just worked and can then only fail for want of memory.
 */
static int protocol(struct merge *merge)
{
	int ret;

	merge_put_int3(merge);
	ret = membarrier_sync();
	if (ret == 0)
		ret = merge_look(merge);
	if (ret < 0) {
		merge_undo(merge);
		return ret;
	}
	merge_put_rest(merge);
	while (membarrier_sync() < 0)
		;
	merge_put_first(merge);
	return 0;
}

/* Looked at again now that it is held: somebody may have been faster. */
static int merge_held(struct merge *merge)
{
	int ret = merge_hold(merge);

	if (ret < 0)
		return ret;
	ret = merge_is_run(merge) ? protocol(merge) : -EILSEQ;
	site_release(merge->site);
	return ret;
}

/*
 * Without signals, as one of this thread's handlers might run into the run and
 * wait for the very thread that it has interrupted, and not to be cancelled.
 */
static int merge_undisturbed(struct merge *merge)
{
	sigset_t all, before;
	int state, ret;

	sigfillset(&all);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	forklock_take(&lock);
	ret = merge_held(merge);
	forklock_drop(&lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(state, NULL);
	return ret;
}

static int merge_checked(struct merge *merge)
{
	if (membarrier_register() < 0)
		return -ENOTSUP;
	if (!library_takes_traps())
		return -EBUSY;
	pthread_once(&watch_once, watch_forks);
	if (watching)
		return -ENOMEM;
	return merge_undisturbed(merge);
}

/* Nobody is inside, so it is an instruction like any other. */
static int merge_promised(const struct merge *merge, const struct sync *sync)
{
	struct change change = {
		.span = merge->span, .bytes = merge->bytes, .starts = 1, .merges = true
	};
	int ret;

	if (word_straddles(merge->span.addr, merge->span.len, sync->window)) {
		if (sync->policy == PC_POLICY_AUTO)
			return -ENOTSUP;
		if (!library_takes_traps())
			return -EBUSY;
	}
	ret = word_patch(&change, sync);
	if (ret == -EAGAIN && change_try_again(&change))
		ret = word_patch(&change, sync);
	return ret;
}

static int merge_begun(struct merge *merge, enum pc_inside who, const struct sync *sync)
{
	if (*(const volatile uint8_t *)merge->span.addr == WORD_INT3)
		return -EAGAIN;
	if (!merge_is_run(merge))
		return -EILSEQ;
	return who == PC_CHECK_THREADS ? merge_checked(merge) : merge_promised(merge, sync);
}

int pc_patch_merge(void *addr, const void *bytes, size_t len, enum pc_inside who)
{
	const struct sync *sync = library_sync();
	struct merge merge = { .bytes = bytes };
	int ret;

	if (len < 2 || change_check(bytes, len, 1) < 0 ||
	    (who != PC_NOBODY_INSIDE && who != PC_CHECK_THREADS))
		return -EINVAL;
	if (!sync)
		return -ESHUTDOWN;
	ret = text_begin(&merge.span, addr, len);
	if (ret < 0)
		return ret;
	ret = merge_begun(&merge, who, sync);
	text_end(&merge.span);
	return ret;
}
