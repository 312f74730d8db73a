/* SPDX-License-Identifier: MIT */
/*
 * Which block is run behind which, in phases. A thread's first block of a phase has none before it.
 */
#ifndef PROBES_PROFILE_EDGES_EDGES_H
#define PROBES_PROFILE_EDGES_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/include/fastinst.h"

struct edge {
	uint32_t from, to;
	uint64_t count[2]; /* in odd and in even phases */
	double weighed[2]; /* the same, each as often as its phase counts */
};

/* edges_start - memory for what is counted. -ENOMEM. */
int edges_start(void);

/* edges_phase - from now on blocks are counted, in a phase of that number; 0: they are not. */
void edges_phase(uint64_t number);

/* edges_weigh - what was counted since the last call counts so much. Between phases. */
void edges_weigh(double weight);

/* edges_block - the probe function of all blocks. Keeps the vectors. */
fi_function edges_block;

/* edges_next - the edge at or behind *place, which moves on; 0: there is no more. As they were
 * found. */
int edges_next(uint32_t *place, struct edge *edge);

/*
 * edges_ran - whether the block was ever run when it was on. Where that was outside of a phase for
 * the first time, the bell rings (bell.h).
 */
bool edges_ran(uint32_t id);

/* edges_runs - blocks that were run in phases. */
uint64_t edges_runs(void);

/* edges_late - blocks outside of a phase. edges_lost - what there was no room for. */
uint64_t edges_late(void);
uint64_t edges_lost(void);

#endif
