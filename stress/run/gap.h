/* SPDX-License-Identifier: MIT */
/*
 * The gap oracle: how long after one part of an instruction is the other part read? Generations on
 * both sides of the boundary, no INT3, no waits: every pair that never stood in memory gives a
 * lower bound in ticks (gap_judge.c).
 *
 * A gap is seen if the end of one value and the begin of another fall into it. So half of the
 * stores follow the one before at once, and the others after up to four times the cell's rest,
 * which is the mean. Of a gap much longer than the rest nearly its size is told, of a short one
 * maybe far less.
 *
 * It cannot see a part that is behind by a whole number of wraps. Compared are 8 bits at splits 2
 * and 4, 16 at split 3: of gaps over hundreds of generations 2 in 256 (65536) look whole there.
 */
#ifndef STRESS_RUN_GAP_H
#define STRESS_RUN_GAP_H

#include "stress/cell/cell.h"
#include "stress/run/run.h"
#include "stress/witness/witness.h"

/* --- gap_judge.c: pure functions over logs -------------------------------------------------- */

/* How far a fetch may run ahead of the stamp before it: more than a core has room for, ticks. */
#define GAP_LEAD 20000

/* What the clocks may drift apart by during a run, ticks. */
#define GAP_DRIFT 2000

/* An iteration of the executor that took longer lost its CPU, ticks. */
#define GAP_LONG 100000

enum gap_part {
	GAP_FRONT,
	GAP_BACK,
	GAP_PARTS
};

enum gap_kind {
	GAP_OLD_FRONT, /* old front + new back: the front was read first */
	GAP_NEW_FRONT, /* new front + old back: the back was */
	GAP_KINDS
};

/* Why a pair gives no gap. */
enum gap_reason {
	GAP_WRAP,      /* fits several generations, or one older than the history */
	GAP_LATE,      /* the stamps' own width swallows it */
	GAP_PREEMPTED, /* as wrap, because the executor lost its CPU */
	GAP_STALE,     /* was in no memory at any time that the executor names */
	GAP_LOST,      /* the executor's log was full */
	GAP_REASONS
};

/* One store: it became visible everywhere between the two. Patcher's TSC. */
struct gap_store {
	uint64_t before;
	uint64_t after;
};

/* The latest stores: 2g + p put generation g into part p. Known: first (even) to next - 1. */
struct gap_history {
	struct gap_store *ring;
	uint64_t size; /* a power of two */
	uint64_t first;
	uint64_t next;
};

/* One execution, as the executor logged it. Executor's TSC. */
struct gap_fetch {
	uint32_t value;	 /* of eax: front bytes lowest */
	uint64_t before; /* end of the execution before */
	uint64_t after;	 /* end of this one */
};

/* How the 32 bits are shared out. */
struct gap_layout {
	unsigned bits[GAP_PARTS];
};

struct gap_verdict {
	bool is_gap;
	enum gap_reason reason; /* if not */
	enum gap_kind kind;
	uint64_t ticks; /* lower bound */
};

/* gap_layout_of - for a split of 2 to 4. */
static inline struct gap_layout gap_layout_of(unsigned split)
{
	return (struct gap_layout){ { 8 * (split - 1), 8 * (5 - split) } };
}

/* gap_is_torn - can the pair not have stood in memory? One over a whole wrap can look whole. */
static inline bool gap_is_torn(struct gap_layout layout, uint32_t value)
{
	unsigned bits = layout.bits[GAP_FRONT] < layout.bits[GAP_BACK] ? layout.bits[GAP_FRONT]
								       : layout.bits[GAP_BACK];
	uint32_t front = value, back = value >> layout.bits[GAP_FRONT];

	return ((front - back) & ((1u << bits) - 1)) > 1;
}

/* gap_history_add - room for the next store; its stamps are the caller's to fill in. */
static inline struct gap_store *gap_history_add(struct gap_history *h)
{
	struct gap_store *store = &h->ring[h->next++ & (h->size - 1)];

	if (h->next - h->first > h->size)
		h->first += 2;
	return store;
}

/* gap_history_restart - from here on it knows of nothing but what stands in memory now. */
void gap_history_restart(struct gap_history *h, uint64_t now);

/* gap_judge - offset: of the executor's TSC. The history has every store that it could fetch. */
struct gap_verdict gap_judge(const struct gap_history *h, struct gap_layout layout,
			     const struct tsc_offset *offset, const struct gap_fetch *fetch);

/* "old-front", "new-front"; "wrap", "late", "preempted", "stale", "lost". */
const char *gap_kind_name(enum gap_kind kind);
const char *gap_reason_name(enum gap_reason reason);

/* --- Gaps counted by size, and the largest kept as they are --------------------------------- */

/* Up to 15 ticks exactly, then 16 buckets per octave: all of 64 bits. */
#define GAP_BUCKETS 976
#define GAP_TAIL    1000

struct gap_tally {
	uint64_t count;
	uint64_t bucket[GAP_BUCKETS];
	unsigned tails;
	uint64_t tail[GAP_TAIL];      /* ticks, descending; equal ones in order of time */
	uint64_t tail_time[GAP_TAIL]; /* ticks since the run began */
};

/* gap_bucket - the bucket of a size; its lowest size and the lowest beyond it. */
unsigned gap_bucket(uint64_t ticks);
uint64_t gap_bucket_low(unsigned bucket);

void gap_tally_add(struct gap_tally *tally, uint64_t ticks, uint64_t time);

/* --- gap.c ---------------------------------------------------------------------------------- */

struct gap_result {
	enum outcome outcome;
	int signal; /* that ended the child, 0 if none */
	int error;  /* negative errno, 0 if none */
	uint64_t stores;
	uint64_t executions;		 /* over all executors, while these were made */
	double seconds;			 /* that they took */
	struct tsc_offset offset;	 /* of the executor whose is known least well */
	uint64_t discarded[GAP_REASONS]; /* torn pairs that gave no gap */
	struct gap_tally kind[GAP_KINDS];
	struct witness witness;
	struct seating seating;
};

/* gap_defaults - cell_defaults for a gap run: pair word, no waits, five seconds. */
void gap_defaults(struct cell *cell);

/*
 * gap_check - can this cell be run as a gap run? 0, or -EINVAL with the reason in words: pair
 * word, oracle count, split 2 to 4, any crossing; protocol wait (the rest is the only distance
 * between stores) or membarrier (one after each store: then no gap can be). A toggle is two
 * stores.
 */
int gap_check(const struct cell *cell, char *reason, size_t size);

/* gap_run - as cell_run(). Outcome "error" with -ERANGE: the TSCs moved apart too much. */
int gap_run(const struct cell *cell, const struct run_options *options, struct gap_result *result);

/* Runs a site, and gives what it found there. */
typedef uint32_t gap_fetch_fn(const uint8_t *site, unsigned split);

/* For the tests: what executors do in place of running the site; NULL. */
extern gap_fetch_fn *gap_fetch_instead;

/* gap_command - the command line that runs this cell again. Length as snprintf. */
int gap_command(const struct cell *cell, char *buf, size_t size);

static inline double gap_rate(uint64_t stores, double seconds)
{
	return seconds > 0 ? (double)stores / seconds : 0;
}

#endif
