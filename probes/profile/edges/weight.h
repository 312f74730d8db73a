/* SPDX-License-Identifier: MIT */
/*
 * How much a phase counts for.
 *
 * Phases begin at times that are spread evenly, and are of one length. Each is to stand for as much
 *of the program's own time as any other. But with all blocks on most of a phase is the price of
 *probes: where blocks are short, as in an interpreter's loop, a phase shows less of the program's
 *time than elsewhere. So what was counted in it counts by how many times slower the program was:
 *
 *	time of a block in the phase / (time of a block in the phase - price of a probe)
 *
 * The price is taken to be three quarters of what a block took where the program was at its
 *quickest of late: the fourth least of 64 phases. A higher one would tell phases apart by what is
 *noise.
 */
#ifndef PROBES_PROFILE_EDGES_WEIGHT_H
#define PROBES_PROFILE_EDGES_WEIGHT_H

#include <stddef.h>
#include <stdint.h>

#define WEIGHT_RECENT 64u

struct weights {
	double recent[WEIGHT_RECENT]; /* seconds for a block */
	size_t n;
};

/*
 * weight_of_phase - per second of the phase. @seconds: its length; @cpu: of all threads in it;
 * @runs: blocks that were run. 0: none were.
 */
double weight_of_phase(struct weights *weights, double seconds, double cpu, uint64_t runs);

#endif
