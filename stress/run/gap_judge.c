/* SPDX-License-Identifier: MIT */
/*
 * What a fetched pair of generations tells: whether its two parts ever stood in memory together,
 *and if not, how far apart they were read.
 *
 * Front and back part of a site carry generation numbers and are stored in turn: front 1, back 1,
 * front 2, ... An executor that fetches front f and back b read the front before f was replaced and
 * the back after b was stored. With b > f, that much time lies between the reads at least:
 *
 *	before the store of b  -  after the store of f + 1
 *
 * and likewise with f > b + 1, the other way round. Both stamps are the patcher's, so no clock is
 * compared with another: a late stamp makes the result smaller, never larger.
 *
 * The clocks of others matter only for telling which f and which b it was, since a part has room
 * for few bits. A pair that would fit more than one generation within the time in which its
 * executor fetched is thrown away, and counted.
 */
#include "stress/run/gap.h"

#include <string.h>

#define SUB_BITS 4
#define SUBS	 (1u << SUB_BITS)

/* When the executor may have read, in the patcher's TSC. */
struct read_window {
	uint64_t from;
	uint64_t to;
};

/* Which generation of a part was read, as far as can be told. */
enum match {
	MATCH_ONE,
	MATCH_SEVERAL,
	MATCH_NONE
};

const char *gap_kind_name(enum gap_kind kind)
{
	return kind == GAP_OLD_FRONT ? "old-front" : "new-front";
}

const char *gap_reason_name(enum gap_reason reason)
{
	static const char *const names[GAP_REASONS] = {
		[GAP_WRAP] = "wrap",   [GAP_LATE] = "late", [GAP_PREEMPTED] = "preempted",
		[GAP_STALE] = "stale", [GAP_LOST] = "lost",
	};

	return names[reason];
}

static struct gap_store *store_of(const struct gap_history *h, uint64_t number)
{
	return &h->ring[number & (h->size - 1)];
}

void gap_history_restart(struct gap_history *h, uint64_t now)
{
	if (h->next < GAP_PARTS)
		h->next = GAP_PARTS;
	h->first = h->next - GAP_PARTS;
	for (uint64_t n = h->first; n < h->next; n++)
		*store_of(h, n) = (struct gap_store){ now, now };
}

/* May generation g of a part still have been there at that time? */
static bool may_have_stood(const struct gap_history *h, enum gap_part part, uint64_t g,
			   uint64_t time)
{
	uint64_t death = 2 * (g + 1) + part;

	if (death >= h->next)
		return true;
	/* Forgotten stores were visible before the first one that is known. */
	if (death < h->first)
		return store_of(h, h->first)->before >= time;
	return store_of(h, death)->after >= time;
}

static enum match find_generation(const struct gap_history *h, struct read_window window,
				  enum gap_part part, unsigned bits, uint64_t value,
				  uint64_t *generation)
{
	uint64_t newest = h->first, beyond = h->next, count = UINT64_C(1) << bits, g;

	if (store_of(h, h->first)->before > window.to)
		return h->first ? MATCH_SEVERAL : MATCH_NONE;
	/* The newest store that may have been visible by then. */
	while (beyond - newest > 1) {
		uint64_t middle = newest + (beyond - newest) / 2;

		*(store_of(h, middle)->before <= window.to ? &newest : &beyond) = middle;
	}
	/* Stores 0 and 1 have the same time, so newest is at least 1 and does not wrap. */
	if (newest % 2 != part)
		newest--;
	g = newest / 2;
	/* Before the first wrap there are values that were never stored. */
	if (((g - value) & (count - 1)) > g)
		return MATCH_NONE;
	g -= (g - value) & (count - 1);
	if (!may_have_stood(h, part, g, window.from))
		return MATCH_NONE;
	if (2 * g + part < h->first)
		return MATCH_SEVERAL;
	if (g >= count && may_have_stood(h, part, g - count, window.from))
		return MATCH_SEVERAL;
	*generation = g;
	return MATCH_ONE;
}

struct gap_verdict gap_judge(const struct gap_history *h, struct gap_layout layout,
			     const struct tsc_offset *offset, const struct gap_fetch *fetch)
{
	uint64_t unsure = offset->error + GAP_DRIFT, lead = GAP_LEAD + unsure;
	uint64_t begun = fetch->before - (uint64_t)offset->offset, end, begin;
	struct read_window window = {
		.from = begun > lead ? begun - lead : 0,
		.to = fetch->after - (uint64_t)offset->offset + unsure,
	};
	struct gap_verdict v = { .is_gap = false, .reason = GAP_STALE };
	uint64_t front, back;
	unsigned shift = layout.bits[GAP_FRONT];
	enum match f = find_generation(h, window, GAP_FRONT, shift,
				       fetch->value & ((1u << shift) - 1), &front);
	enum match b = find_generation(h, window, GAP_BACK, layout.bits[GAP_BACK],
				       fetch->value >> shift, &back);

	if (f == MATCH_NONE || b == MATCH_NONE)
		return v;
	v.reason = fetch->after - fetch->before > GAP_LONG ? GAP_PREEMPTED : GAP_WRAP;
	if (f == MATCH_SEVERAL || b == MATCH_SEVERAL)
		return v;
	/* The time between the end of one store, and the begin of a later one. */
	v.kind = back > front ? GAP_OLD_FRONT : GAP_NEW_FRONT;
	end = store_of(h, back > front ? 2 * (front + 1) : 2 * (back + 1) + 1)->after;
	begin = store_of(h, back > front ? 2 * back + 1 : 2 * front)->before;
	v.is_gap = begin > end;
	v.reason = v.is_gap ? 0 : GAP_LATE;
	v.ticks = v.is_gap ? begin - end : 0;
	return v;
}

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
