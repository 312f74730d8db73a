/* SPDX-License-Identifier: MIT */
/*
 * Each change of a large program timed (paper, sec. 8.3 and figure 10): a pass that turns all
 * sites off, in order, then one that turns them on again. An executor runs the program
 * meanwhile, or none.
 *
 *	patch	pc_patch() of the whole instruction, by policy wait and membarrier
 *	start	pc_start_patch(); after every LATENCY_DRAIN of them pc_drain(), untimed. The
 *		paper has another thread for that; here the executor has its CPU to itself
 *	call	pc_activate_call(), pc_deactivate_call()
 *
 * A pass leaves caches and predictors as a large program has them: between two changes of
 * one site lie those of all others. The baseline "floor" is one locked exchange on the word
 * of each site, in the same passes; it puts back what stands there.
 *
 * Extras of a row:
 *	straddlers	share of sites across 8 bytes, and
 *	straddlers_line	across 64
 *	window		bytes: a site that crosses a multiple of it is patched as a straddler. Calls
 * are turned on and off by words of 8 bytes, also where the machine could do more p50_straddlers
 * median of those that cross the window, and p50_others	of those that do not expensive
 *share of samples above the geometric mean of these two; only where the first is more than twice
 *the second, so where there are two modes
 */
#ifndef BENCH_CASES_LATENCY_LATENCY_H
#define BENCH_CASES_LATENCY_LATENCY_H

#include "bench/method/method.h"
#include "bench/method/sites.h"

#define LATENCY_SITES  20000
#define LATENCY_DRAIN  256
#define LATENCY_ROUNDS 8 /* at most: each makes four passes of every case */

/*
 * latency_measure - bench_latency() with this program, which is on before and after. -EILSEQ: its
 * calls are not as many as the functions say; an executor ran what the patcher did not write.
 */
int latency_measure(const struct bench_run *run, const struct sites *sites,
		    struct bench_result *result);

#endif
