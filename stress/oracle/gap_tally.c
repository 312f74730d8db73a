/* SPDX-License-Identifier: MIT */
#include "stress/oracle/gap_tally.h"

#include <string.h>

#define SUB_BITS 4
#define SUBS	 (1u << SUB_BITS)

unsigned gap_bucket(uint64_t ticks)
{
	unsigned octave;

	if (ticks < SUBS)
		return (unsigned)ticks;
	octave = 63 - (unsigned)__builtin_clzll(ticks);
	return SUBS * (octave - SUB_BITS + 1) +
	       (unsigned)(ticks >> (octave - SUB_BITS) & (SUBS - 1));
}

uint64_t gap_bucket_low(unsigned bucket)
{
	if (bucket < SUBS)
		return bucket;
	if (bucket >= GAP_BUCKETS)
		return UINT64_MAX;
	return (uint64_t)(SUBS + bucket % SUBS) << (bucket / SUBS - 1);
}

void gap_tally_add(struct gap_tally *tally, uint64_t ticks, uint64_t time)
{
	unsigned at = tally->tails, moved;

	tally->count++;
	tally->bucket[gap_bucket(ticks)]++;
	while (at > 0 && tally->tail[at - 1] < ticks)
		at--;
	if (at == GAP_TAIL)
		return;
	if (tally->tails < GAP_TAIL)
		tally->tails++;
	moved = tally->tails - at - 1;
	memmove(&tally->tail[at + 1], &tally->tail[at], moved * sizeof(tally->tail[0]));
	memmove(&tally->tail_time[at + 1], &tally->tail_time[at],
		moved * sizeof(tally->tail_time[0]));
	tally->tail[at] = ticks;
	tally->tail_time[at] = time;
}
