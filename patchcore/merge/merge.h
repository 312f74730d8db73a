/* SPDX-License-Identifier: MIT */
/*
 * Replacing several instructions by others: the protocol, and its steps. Private.
 * Any number of such changes share the looks at all threads.
 *
 * The steps are apart so that a test can also put them together wrongly and show that
 * its oracle notices.
 */
#ifndef PATCHCORE_MERGE_MERGE_H
#define PATCHCORE_MERGE_MERGE_H

#include <errno.h>

#include "patchcore/merge/frames.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/site.h"

#define MERGE_PENDING (-EINPROGRESS) /* a result: neither made nor refused so far */

/*
 * Bit i of the starts: an instruction starts at byte i. Starts of both, old and new, are
 * doors: executors may come to them, and find an INT3 meanwhile.
 */
struct merge {
	struct text_span span; /* begun */
	const uint8_t *bytes;
	unsigned old_starts;
	unsigned new_starts;
	/* A thread inside goes on at the end, where its NOPs lead. Else it is waited for. */
	bool move;
	uint64_t id;			  /* of the patcher */
	uint8_t old[PC_PATCH_MAX];	  /* the code before; of the doors alone it is needed */
	struct site *sites[PC_PATCH_MAX]; /* of the doors: held */
	_Atomic(bool) committed;	  /* more than INT3 may have been stored */
	int looks; /* one after the other that must find none inside, still */
	int result;
};

/* merge_find - look up the sites and the patcher's id; takes locks and memory. 0, or -ENOMEM. */
int merge_find(struct merge *merge);

/* merge_read - read the old code. */
void merge_read(struct merge *merge);

/*
 * merge_hold - hold them, and read the old code. 0, or -EAGAIN: another patcher has one, or an
 * INT3 stands there. merge_release - let them go.
 */
int merge_hold(struct merge *merge);
void merge_release(struct merge *merge);

/*
 * merge_put_int3 - INT3 on the doors. merge_put_rest - the new bytes behind the doors.
 * merge_put_doors - the new bytes of the doors.
 */
void merge_put_int3(const struct merge *merge);
void merge_put_rest(struct merge *merge);
void merge_put_doors(const struct merge *merge);

/*
 * merge_adopt - the patcher is not in this process, which has copied its memory in the middle of
 * a fork that went past the handlers. No thread is inside but the one that has forked, if that.
 * Undone, or done if that has begun. Async-signal-safe.
 */
void merge_adopt(const struct merge *merge);

/* merge_check_old - is the old code, which was read, what it must be? 0, or -EILSEQ. */
int merge_check_old(const struct merge *merge);

/*
 * merge_undisturbed - the protocol, with all signals blocked; of merges that merge_find() has
 * looked up; all are moved over, or none. Of the places only `merge` is filled in.
 *
 * The result of each: 0, or an error of pc_patch_over(), and the code is as it was. MERGE_PENDING,
 * of one that is not alone: a thread was inside for long, while executors of all the others waited,
 * so that one is to be tried alone.
 */
void merge_undisturbed(struct frames_places *places);

#endif
