/* SPDX-License-Identifier: MIT */
/* How the last toggles went, to tell of a tear what the patcher was doing; and store latencies. */
#ifndef STRESS_RUN_TRACE_LOG_H
#define STRESS_RUN_TRACE_LOG_H

#include "patchcore/word/word.h"
#include "stress/cell/cell.h"
#include "stress/cell/code.h"
#include "stress/run/gap.h"

#define TRACE_TOGGLES 256 /* looked through at least four times in so many */

struct trace_entry {
	uint64_t begun; /* TSC */
	struct word_trace trace;
};

struct trace_log {
	struct trace_entry entry[TRACE_TOGGLES];
	uint64_t toggles;	       /* begun so far */
	uint64_t latencies;	       /* measured so far */
	uint64_t latency[GAP_BUCKETS]; /* of INT3, by size */
	uint64_t latency_max;
	uint64_t torn[TRACE_TOGGLES]; /* number of a torn toggle, plus 1 */
	/* Of each executor at each site. */
	struct trace_seen {
		uint64_t marks;
		uint64_t torn_last; /* as torn */
	} seen[PLACEMENT_EXECUTORS_MAX][CELL_INSIDE];
};

/* trace_begin - about to try this toggle, or again: returns what is to be filled in. */
struct word_trace *trace_begin(struct trace_log *log, uint64_t toggle);

/* trace_end - it is done: take down latency and steps. */
void trace_end(struct trace_log *log, uint64_t toggle, struct witness *witness);

/*
 * trace_tears - add the new tears of one executor at one site to the result's events. Returns how
 * many toggles, torn for the first time by it there, others had torn already.
 *
 * A tear is taken to belong to the last toggle whose INT3 was visible when it was counted: right
 * within the rest between toggles. Its stamp is off by the offset of the two TSCs. Marks that the
 * ring has lost are left out.
 */
uint64_t trace_tears(struct trace_log *log, const struct code *code, unsigned executor,
		     unsigned site, const struct code_slots *slots, struct cell_result *result);

/* trace_latency - what came of the latencies. */
void trace_latency(const struct trace_log *log, struct latency *latency);

#endif
