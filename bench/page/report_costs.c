/* SPDX-License-Identifier: MIT */
/*
 * What patching costs: the five rows that tell most as large numbers, the paper's table 2, and
 * peers against ours.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/page/report_bench.h"
#include "bench/record/bench_words.h"
#include "calibrate/page/html.h"

/* Hot, with one executor, inside an open page. */
#define USUAL "?mapping=open ?cache=hot ?executors=1 ?crossing=line"
/* As in the paper's table: one core. */
#define ALONE "?mapping=open ?cache=hot executors=0 ?crossing=line"

/* The median, or this extra. */
static double figure_of(const struct bench_row *row, const char *extra)
{
	return extra ? bench_row_extra_of(row, extra) : row->value.median;
}

/* The dearest of such rows, as of several splits: no reader shall find one that cost more. */
static const struct bench_row *dearest(const struct bench_result *result, const char *name,
				       const char *measure, const char *params, const char *extra)
{
	const struct bench_row *row, *most = NULL;
	unsigned i = 0;

	while ((row = bench_next(result, name, measure, params, &i)))
		if (!most || figure_of(row, extra) > figure_of(most, extra))
			most = row;
	return most;
}

static const struct {
	const char *what, *benchmark, *name, *measure, *params;
	const char
		*over; /* NULL: the median is told; else this extra, the cost of the site alone */
	const char *unit;
} telling[] = {
	{ "A call switched on", "toggle", "call", "on", USUAL " ?body=none", NULL, "a change" },
	{ "By waits", "toggle", "straddler", "on", "policy=wait " USUAL " ?body=none", NULL,
	  "a change of any bytes" },
	{ "By membarrier", "toggle", "straddler", "on", "policy=membarrier " USUAL " ?body=none",
	  NULL, "a change of any bytes" },
	{ "An executor loses", "stall", "straddler", "stall", "policy=wait " USUAL " ?body=none",
	  NULL, "by waits, in its longest pass" },
	{ "A site that is off", "latent", "call", "pass", USUAL " ?body=none", "over_empty",
	  "a pass more than without it" },
};

static void put_answer(FILE *out, const struct bench_results *all)
{
	fputs("<dl class=\"tiles\">\n", out);
	for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
		const struct bench_result *of =
			bench_of(all->result, all->count, telling[i].benchmark);
		const char *over = telling[i].over;
		const struct bench_row *most =
			dearest(of, telling[i].name, telling[i].measure, telling[i].params, over);

		if (!most)
			html_tile(out, telling[i].what, "?", "", "not measured");
		else if (over || !most->against[0] || isnan(most->ratio.median))
			html_tile(out, telling[i].what, FIGURE(figure_of(most, over)), most->unit,
				  "%s", telling[i].unit);
		else
			html_tile(out, telling[i].what, FIGURE(figure_of(most, over)), most->unit,
				  "%s, %s x %s", telling[i].unit, FIGURE(most->ratio.median),
				  most->against);
	}
	fputs("</dl>\n", out);
}

/* A line of the paper's table 2, and our rows for the same. */
struct method {
	const char *there;
	const char *on, *off, *invocation; /* the paper's */
	const char *here;
	const char *name, *policy;	/* of benchmark toggle */
	const char *call, *call_params; /* of benchmark invoke */
};

static const struct method methods[] = {
	{ "fastinst, no straddler", "300", "120", "35", "pc_patch inside the window", "aligned", "",
	  "aligned", "" },
	{ "fastinst, straddlers", "8850", "8435", "35", "pc_patch, policy wait", "straddler",
	  "policy=wait ", NULL, NULL },
	{ "fastinst, callpatch", "432", "315", "35", "pc_activate_call, pc_deactivate_call", "call",
	  "", "call", "?target=original" },
	{ "JVM VolatileCallSite", "995", "", "55", "the same, OpenJDK", "jvm-volatile", "",
	  "jvm-volatile", "" },
	{ "JVM MutableCallSite", "1432", "", "83", "the same, OpenJDK", "jvm-mutable", "",
	  "jvm-mutable", "" },
	{ "Dyninst", "1.93e6", "9.95e5", "320", "stopped by ptrace, as Dyninst does", "ptrace", "",
	  NULL, NULL },
	{ "DTrace", "~70771", "", "1176", "a Linux uprobe", "uprobe", "", "uprobe", "" },
};

/* What on or off costs: alone, or hot and then beside the floor. */
static void put_change(FILE *out, const struct bench_result *toggle, const struct method *m,
		       const char *measure, bool hot)
{
	const struct bench_row *row;
	char all[128];

	snprintf(all, sizeof(all), "%s%s", m->policy, hot ? USUAL : ALONE);
	row = dearest(toggle, m->name, measure, all, NULL);
	html_number(out, "%s", row ? INTERVAL(row->value) : "not measured");
	if (hot)
		html_number(out, "%s", row ? INTERVAL(row->ratio) : "");
}

static void put_table2(FILE *out, const struct bench_results *all)
{
	const struct bench_result *toggle = bench_of(all->result, all->count, "toggle");
	const struct bench_result *invoke = bench_of(all->result, all->count, "invoke");

	html_fold(out, "The paper's table 2, and the same here");
	html_table(
		out,
		"The paper's table 2, in its ticks, and the same here, in this machine's: "
		"medians with 95 % intervals, of several splits the dearest. Alone: no executor "
		"runs "
		"the site, as in the paper, which had one core. Hot: an executor does. Ticks of "
		"two machines do not compare. The floor is one locked 8-byte exchange on the "
		"same line in turn, which any protocol must pay. Invocation is what the call "
		"adds to its loop: the more of a loop of nothing else and of one with work to do "
		"beside it, so not what a program loses that waits for the call.",
		"the paper\t#on\t#off\t#invocation\there\t#on, alone\t#off, alone\t#on, hot\t#x "
		"floor\t#off, hot\t#x floor\t#invocation");
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		const struct method *m = &methods[i];
		const struct bench_row *call = NULL;
		double over;

		html_row(out, NULL);
		html_cell(out, "%s", m->there);
		html_number(out, "%s", m->on);
		html_number(out, "%s", m->off);
		html_number(out, "%s", m->invocation);
		html_cell(out, "%s", m->here);
		put_change(out, toggle, m, "on", false);
		put_change(out, toggle, m, "off", false);
		put_change(out, toggle, m, "on", true);
		put_change(out, toggle, m, "off", true);
		/*
		 * A call alone, without the loop around it: of the row that adds most to its loop,
		 * since a loop of nothing else hides a call that runs beside it.
		 */
		if (m->call)
			call = dearest(invoke, m->call, "call on", m->call_params, "over_empty");
		over = call ? bench_row_extra_of(call, "over_empty") : NAN;
		if (!call)
			html_number(out, "%s", "not measured");
		else if (isfinite(over))
			html_number(out, "%s", FIGURE(over));
		else
			html_number(out, "%s with its loop", FIGURE(call->value.median));
	}
	html_table_end(out);
	html_fold_end(out);
}

/* What a peer's row is held against: the dearest of ours that does the same job. */
struct job {
	const char *benchmark;
	const char *what;
	const char *name, *params;
	const char *peers; /* that do it; NULL: all */
};

static const struct job jobs[] = {
	{ "toggle", "a change", "call", USUAL,
	  "flag pointer jvm-volatile jvm-mutable jvm-volatile-compiled jvm-mutable-compiled xray "
	  "uprobe" },
	{ "toggle", "a change of any bytes", "straddler", "policy=wait " USUAL,
	  "hand-membarrier stop-the-world ptrace" },
	{ "latent", "a pass, switched off", "call", "?body=none", NULL },
	{ "invoke", "a pass with the call", "call", "?body=none ?target=original", NULL },
	{ "invoke", "the same, to another target", "call", "?body=none target=other",
	  "pointer flag-pointer" },
	{ "stall", "an executor's worst pass", "call", USUAL, NULL },
};

static void put_peers(FILE *out, const struct bench_results *all)
{
	char theirs[WORDS_ROOM], mine[WORDS_ROOM];
	bool any = false;

	html_fold(out, "Peers beside ours");
	html_table(
		out,
		"Peers, measured in turn with ours. Both ratios to the same baseline where there "
		"is one; the interval is made of both intervals and no narrower than 95 %.",
		"job\ta peer\t#its cost\tours\t#ours\t#its cost / ours");
	for (const struct job *job = jobs; job < jobs + sizeof(jobs) / sizeof(jobs[0]); job++) {
		const struct bench_result *of = bench_of(all->result, all->count, job->benchmark);
		const struct bench_row *peer, *ours;
		unsigned i = 0;

		while ((peer = bench_next(of, job->peers, NULL, USUAL " ?body=none", &i))) {
			struct bench_value times;

			ours = peer->peer ? dearest(of, job->name, peer->measure, job->params, NULL)
					  : NULL;
			if (!ours)
				continue;
			any = true;
			times = row_over(peer, ours);
			html_row(out, NULL);
			html_cell(out, "%s", job->what);
			html_cell(out, "%s, %s", words_of_row(peer, NULL, theirs, sizeof(theirs)),
				  peer->measure);
			html_number(out, "%s %s", FIGURE(peer->value.median), peer->unit);
			html_cell(out, "%s", words_of_row(ours, NULL, mine, sizeof(mine)));
			html_number(out, "%s %s", FIGURE(ours->value.median), ours->unit);
			html_number(out, "%s%s", INTERVAL(times),
				    times.low <= 1 && times.high >= 1 ? ": no difference" : "");
		}
	}
	html_table_end(out);
	html_fold_end(out);
	if (!any)
		html_missing(out, "No peer was measured beside ours.");
}

int section_costs(struct page *page)
{
	struct bench_results all;
	int rc = bench_results_read(page->data, &all);

	if (rc)
		return rc;
	put_answer(page->out, &all);
	if (all.unread)
		html_paragraph(
			page->out, "%zu line%s of benchmarks could not be read and %s not in here.",
			all.unread, all.unread == 1 ? "" : "s", all.unread == 1 ? "is" : "are");
	put_table2(page->out, &all);
	put_peers(page->out, &all);
	html_paragraph(
		page->out,
		"What is missing is not in the page because it was not measured, not because "
		"it costs nothing. Runs on a virtual machine are true of it on its host.");
	bench_results_free(&all);
	return 0;
}
