/* SPDX-License-Identifier: MIT */
/* Before the first store of a change: sites that are to rest between changes have rested. */
#include "patchcore/machine/rest.h"
#include "patchcore/word/word.h"

#define RESTS_MAX 2 /* waits: the second only if another patcher has changed a line meanwhile */

NOPATCH static uint64_t missing_rest(struct site *const *sites, size_t n, uint64_t stamp, bool take)
{
	uint64_t most = 0, missing;

	for (size_t i = 0; i < n; i++) {
		const struct word *word = &sites[i]->word;

		missing = rest_missing(word->span.addr, word->span.len, word->sync->rest, stamp,
				       take);
		if (missing > most)
			most = missing;
	}
	return most;
}

/* Of a sync at rest the other one is a membarrier, if there is one. */
NOPATCH static void use_other(struct word *word)
{
	if (!word->sync->rest || !word->sync->other)
		return;
	word->sync = word->sync->other;
	store_relaxed(&word->site->by_barrier, true);
}

NOPATCH void word_await_rest(struct site *const *sites, size_t n)
{
	const struct sync *sync = NULL;
	uint64_t stamp, missing;

	for (size_t i = 0; i < n; i++)
		if (sites[i]->word.sync->rest)
			sync = sites[i]->word.sync;
	if (!sync)
		return;
	for (unsigned waits = 0;; waits++) {
		stamp = rest_stamp();
		missing = missing_rest(sites, n, stamp, false);
		if (!missing)
			missing = missing_rest(sites, n, stamp, true);
		if (!missing || waits == RESTS_MAX ||
		    (sync->other && sync_cost(sync->other) < missing + sync_cost(sync)))
			break;
		ticks_wait(missing);
	}
	for (size_t i = 0; i < n; i++) {
		if (missing)
			use_other(&sites[i]->word);
		/* The lines may be gone again; the wait was none of the store's latency. */
		line_for_writing(sites[i]->word.front_at);
		sites[i]->word.asked = moment_now();
	}
}
