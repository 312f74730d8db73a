/* SPDX-License-Identifier: MIT */
/*
 * The five rows that tell most of what patching costs, as large numbers.
 */
#include <math.h>

#include "bench/page/report_bench.h"
#include "bench/record/bench_words.h"

/* Hot, with one executor, inside an open page. */
#define USUAL "?mapping=open ?cache=hot ?executors=1 ?crossing=line ?body=none"

static const struct {
	const char *what, *benchmark, *name, *measure, *params;
	const char
		*over; /* NULL: the median is told; else this extra, the cost of the site alone */
	const char *unit;
} telling[] = {
	{ "A call switched on", "toggle", "call", "on", USUAL, NULL, "a change" },
	{ "By waits", "toggle", "straddler", "on", "policy=wait " USUAL, NULL,
	  "a change of any bytes" },
	{ "By membarrier", "toggle", "straddler", "on", "policy=membarrier " USUAL, NULL,
	  "a change of any bytes" },
	{ "An executor loses", "stall", "straddler", "stall", "policy=wait " USUAL, NULL,
	  "by waits, in its longest pass" },
	{ "A site that is off", "latent", "call", "pass", USUAL, "over_empty",
	  "a pass more than without it" },
};

static double told_ratio(const struct bench_row *row, const char *over)
{
	return over ? bench_row_extra_of(row, over) : row->value.median;
}

void bench_answer(FILE *out, const struct bench_results *all)
{
	fputs("<dl class=\"tiles\">\n", out);
	for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
		const struct bench_result *of =
			bench_of(all->result, all->count, telling[i].benchmark);
		const struct bench_row *row, *most = NULL;
		const char *over = telling[i].over;
		unsigned at = 0;

		/* Of several splits the dearest: no reader shall find one that cost more. */
		while (of && (row = bench_next(of, telling[i].name, telling[i].measure,
					       telling[i].params, &at)))
			if (!most || told_ratio(row, over) > told_ratio(most, over))
				most = row;
		if (!most)
			html_tile(out, telling[i].what, "?", "", "not measured");
		else if (over || !most->against[0] || isnan(most->ratio.median))
			html_tile(out, telling[i].what, FIGURE(told_ratio(most, over)), most->unit,
				  "%s", telling[i].unit);
		else
			html_tile(out, telling[i].what, FIGURE(told_ratio(most, over)), most->unit,
				  "%s, %s x %s", telling[i].unit, FIGURE(most->ratio.median),
				  most->against);
	}
	fputs("</dl>\n", out);
}
