/* SPDX-License-Identifier: MIT */
/*
 * Merging a run of NOPs: the steps of the protocol. Private.
 *
 * They are apart so that a test can also put them together wrongly and show that
 * its oracle notices.
 */
#ifndef PATCHCORE_MERGE_STEPS_H
#define PATCHCORE_MERGE_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "patchcore/patchcore.h"
#include "patchcore/site.h"
#include "patchcore/text.h"

struct merge {
	struct text_span span; /* begun */
	const uint8_t *bytes;
	struct site *site; /* of the first byte, held */
};

/* merge_hold - hold the site. -EAGAIN, -ENOMEM. */
int merge_hold(struct merge *merge);

/* merge_is_run - does the code consist of 1-byte NOPs? */
bool merge_is_run(const struct merge *merge);

/* merge_put_int3 - on the first byte. merge_undo - a NOP again. */
void merge_put_int3(const struct merge *merge);
void merge_undo(const struct merge *merge);

/* merge_look - move every thread that is inside to the end. Errors of threads_look(). */
int merge_look(struct merge *merge);

/* merge_put_rest - all new bytes but the first. merge_put_first - that. */
void merge_put_rest(const struct merge *merge);
void merge_put_first(const struct merge *merge);

#endif
