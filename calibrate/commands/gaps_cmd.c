/* SPDX-License-Identifier: MIT */
/*
 * tmax gaps: one run of the gap oracle.
 */
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/commands/one_cell.h"
#include "calibrate/program/command_line.h"
#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"
#include "results/journal/journal.h"
#include "stress/run/gap.h"

#define LARGEST 10 /* printed */
#define BAR	40 /* characters for the fullest row of the histogram */
#define PER_ROW 8  /* buckets of half an octave */
#define ROWS	(GAP_BUCKETS / PER_ROW)

static const struct option_row options[] = {
	{ "placement", "NAME", "where the executors sit (spread); see tmax info",
	  .take = option_of_cell },
	{ "crossing", "NAME", "line, page, 8, 16, 32 or none (line)", .take = option_of_cell },
	{ "split", "S", "bytes of the instruction before the boundary, 2 to 4 (3)",
	  .take = option_of_cell },
	{ "executors", "N", "how many (1)", .take = option_of_cell },
	{ "protocol", "NAME",
	  "wait: nothing but the rest between two stores; membarrier: one after each store, so "
	  "that no gap can be (wait)",
	  .take = option_of_cell },
	{ "rest", "T", "mean ticks between two stores (500)", .take = option_of_cell },
	{ "provoker", "NAMES", "as for tmax stress, but not sites (none)", .take = option_of_cell },
	{ "loop", "N", "filler instructions in the executors' loop (0)", .take = option_of_cell },
	{ "toggles", "N", "stop after N stores to each part (1000000000000)",
	  .take = option_of_cell },
	{ "seconds", "T", "or after this time, such as 10s; 0 is no limit (5)",
	  .take = option_of_cell },
	{ "seed", "N", "of the rests and of the place of the site (1)", .take = option_of_cell },
	{ "journal", "FILE", "append the record to FILE",
	  OPTION_FILE(struct one_cell_command, journal) },
	{ "json", NULL, "print the record instead of text",
	  OPTION_FLAG(struct one_cell_command, json) },
	{ 0 },
};

static const struct command_line line = {
	.name = "gaps",
	.about = "Measure the gaps between the two fetches of one instruction directly:\n"
		 "generations on both sides of the boundary, no INT3, and every pair that never\n"
		 "stood in memory gives a lower bound in ticks.\n",
	.options = { options },
	.end = "Exit status: 0 measured, with gaps or without, 2 no answer (crash, hang, kill),\n"
	       "64 usage, 69 the machine cannot seat it, 73/74 journal not writable,\n"
	       "130 interrupted.\n",
};

static void print_text(const struct cell *cell, const struct gap_result *r)
{
	double rate = gap_rate(r->stores, r->seconds);
	double bare = gap_rate(r->bare_stores, r->bare_seconds);
	char command[512];

	gap_command(cell, command, sizeof(command));
	printf("outcome     %s%s%s\n", outcome_name(r->outcome), r->error ? ": " : "",
	       r->error ? strerror(-r->error) : "");
	printf("stores      %" PRIu64 " in %.2f s, %.0f per second; %.0f without stamps\n",
	       r->stores, r->seconds, rate, bare);
	printf("executions  %" PRIu64 "\n", r->executions);
	for (unsigned k = 0; k < GAP_KINDS; k++) {
		const struct gap_tally *t = &r->kind[k];
		uint64_t row[ROWS] = { 0 }, most = 1;
		unsigned first = ROWS, last = 0;

		printf("%-11s %" PRIu64 " gaps (%s)\n", gap_kind_name((enum gap_kind)k), t->count,
		       k == GAP_OLD_FRONT ? "old front with new back" : "new front with old back");
		/* Rows of half an octave; those below and above all gaps are left out. */
		for (unsigned i = 0; i < GAP_BUCKETS; i++)
			row[i / PER_ROW] += t->bucket[i];
		for (unsigned i = 0; i < ROWS; i++) {
			if (!row[i])
				continue;
			first = i < first ? i : first;
			last = i;
			most = row[i] > most ? row[i] : most;
		}
		for (unsigned i = first; i <= last && i < ROWS; i++) {
			printf("  %10" PRIu64 " to %10" PRIu64 " %9" PRIu64 " ",
			       gap_bucket_low(i * PER_ROW), gap_bucket_low((i + 1) * PER_ROW) - 1,
			       row[i]);
			for (uint64_t n = (row[i] * BAR + most - 1) / most; n; n--)
				putchar('#');
			putchar('\n');
		}
		if (t->tails)
			printf("  largest   ");
		for (unsigned i = 0; i < t->tails && i < LARGEST; i++)
			printf(" %" PRIu64, t->tail[i]);
		if (t->tails)
			putchar('\n');
	}
	printf("discarded  ");
	for (unsigned i = 0; i < GAP_REASONS; i++)
		printf(" %s %" PRIu64 "%s", gap_reason_name((enum gap_reason)i), r->discarded[i],
		       i + 1 < GAP_REASONS ? "," : "\n");
	printf("clocks      %" PRId64 " ticks apart, within %" PRIu64 "\n", r->offset.offset,
	       r->offset.error);
	printf("again       %s\n", command);
}

static int run_gaps(const struct one_cell_command *c, const struct run_options *how, int *status)
{
	struct gap_result result;
	json_t *body;
	int ret = gap_run(&c->cell, how, &result);

	if (ret < 0)
		return ret;
	body = gap_to_json(&c->cell, &result);
	*status = one_cell_tell(c, body ? journal_line("gaps", body) : NULL);
	if (body && !c->json)
		print_text(&c->cell, &result);
	json_decref(body);
	if (*status == EXIT_PASS)
		*status = one_cell_status(result.outcome);
	return 0;
}

int cmd_gaps(int argc, char **argv)
{
	struct one_cell_command command = {
		.line = &line,
		.defaults = gap_defaults,
		.check = gap_check,
		.run = run_gaps,
		.shard = { 1, 1 },
	};

	return one_cell_main(&command, argc, argv);
}
