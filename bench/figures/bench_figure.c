/* SPDX-License-Identifier: MIT */
/*
 * Which figure shows which benchmark, and its files.
 */
#include "bench/figures/bench_figure.h"

#include <errno.h>
#include <string.h>

#include "results/figures/gnuplot.h"

#define DOTS                                                                                       \
	"Dots: medians of the blocks, with their 95 % interval by bootstrap as a thick bar; thin " \
	"line: from the 5th to the 99th percentile of all samples; cross: the longest sample. "    \
	"Grey: the median of the baseline that was measured in turn."

static const struct bench_figure figures[] = {
	{ "toggle", "bench-rows.gp", "Cost of one change by operation, split, policy and mapping",
	  "Ticks per change, per site for batches. " DOTS
	  " What is waited for in other threads is not in here.",
	  bench_rows_print, bench_rows_args },
	{ "latency", "bench-latency.gp", "Histograms of the cost of one change over many sites",
	  "The paper's figure 10: share of the changes by what each took, eight bins to an octave, "
	  "both scales logarithmic, so that the rare long ones are seen. Activation and "
	  "deactivation apart. The second heap of patch is that of the straddlers.",
	  bench_latency_print, bench_latency_args },
	{ "throughput", "bench-throughput.gp",
	  "Calls through a hot site and their balance against toggles per second",
	  "The paper's figures 11 to 13: calls per second as a share of those through the same "
	  "site untouched, in turn, with 95 % intervals, against the toggles per second that were "
	  "got; on the far left none. Below, how often the more frequent of both states was "
	  "executed to the less frequent; 1 is balanced. Dashed: peers. Last, where there are "
	  "several, all calls per second by number of executors.",
	  bench_throughput_print, bench_throughput_args },
	{ "scaling", "bench-scaling.gp",
	  "Cost of a change by sites known, and changes per second by patchers",
	  "Medians with 95 % intervals. A change across a line against how many sites are known; "
	  "changes per second of all patchers together, each with a site of its own unless it says "
	  "otherwise.",
	  bench_scaling_print, bench_scaling_args },
	{ "latent", "bench-rows.gp", "Ticks per pass of a loop with a deactivated site",
	  "Ticks per pass of a loop. " DOTS, bench_rows_print, bench_rows_args },
	{ "stall", "bench-rows.gp", "Longest pass of an executor while its site is patched",
	  "The executor's longest pass per change. " DOTS
	  " The baseline has no change, so that interrupts are in both.",
	  bench_rows_print, bench_rows_args },
	{ "invoke", "bench-rows.gp", "Ticks per call of an empty function through an active site",
	  "Ticks per pass of a loop that calls an empty function. " DOTS, bench_rows_print,
	  bench_rows_args },
	{ "probes", "bench-rows.gp", "What a probe costs, off, on and being switched",
	  "Ticks per call of a function with a probe, or per change. " DOTS, bench_rows_print,
	  bench_rows_args },
	{ 0 },
};

const struct bench_figure *bench_figure_of(const char *benchmark)
{
	for (const struct bench_figure *f = figures; f->benchmark; f++)
		if (strcmp(f->benchmark, benchmark) == 0)
			return f;
	return NULL;
}

unsigned bench_figure_args(const struct bench_figure *f, const struct bench_result *result,
			   struct bench_words *words)
{
	unsigned count = f->args(result, words->text);

	for (unsigned i = 0; i < count; i++)
		words->args[i] = words->text[i];
	words->args[count] = NULL;
	return count;
}

int bench_figure_write(const struct bench_result *result, const char *prefix, char *error,
		       size_t size)
{
	const struct bench_figure *f = bench_figure_of(result->benchmark);
	struct bench_words words;

	if (!f)
		return picture_fail(-EINVAL, error, size, "no figure for the benchmark %s",
				    result->benchmark);
	if (!bench_figure_args(f, result, &words))
		return picture_fail(-ENODATA, error, size,
				    "nothing was measured that could be drawn");
	return picture_make(&(struct picture){ f->print, result, f->script, words.args }, prefix,
			    error, size);
}
