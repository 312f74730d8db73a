/* SPDX-License-Identifier: MIT */
/*
 * Gaps counted by size, and the largest kept as they are.
 */
#ifndef STRESS_ORACLE_GAP_TALLY_H
#define STRESS_ORACLE_GAP_TALLY_H

#include <stdint.h>

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

#endif
