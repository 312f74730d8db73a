/* SPDX-License-Identifier: MIT */
/*
 * tmax stress and tmax gaps: one cell from the command line, run once, told once. Or a list of
 * them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "commands/tmax/calibrate_cmd.h"
#include "commands/tmax/commands.h"
#include "stress/cell/cell.h"
#include "stress/run/gap.h"
#include "stress/run/run.h"
#include "stress/witness/witness.h"

#define LARGEST 10 /* gaps printed */

/* What is asked for, of either command. */
struct one_cell {
	struct cell cell; /* first, since options of a cell are about it */
	const char *journal;
	bool json;
	const char *list; /* a file of cells to run instead, with these: */
	struct shard shard;
	uint64_t repetitions;
	bool resume, quiet;
	uint64_t given;	  /* a bit for each row of the first table that was */
	const char *plan; /* what the journal calls the run */
};

_Static_assert(offsetof(struct one_cell, cell) == 0, "options of a cell are about it");

/* Runs the cell and tells of it. 0 with an exit status, or a negative errno. */
typedef int run_fn(const struct one_cell *c, const struct run_options *how, int *status);

static int run_one(struct one_cell *c, run_fn *run,
		   int (*check)(const struct cell *cell, char *reason, size_t size))
{
	struct run_options how = { .stop = &interrupted };
	struct seating seating;
	char reason[160] = "";
	int status, ret;

	if (check(&c->cell, reason, sizeof(reason)) < 0)
		return refuse_usage("%s", reason);
	status = topology_here(&how.topology);
	if (status != EXIT_PASS)
		return status;
	ret = cell_seat(&c->cell, how.topology, &seating, reason, sizeof(reason));
	if (ret == 0)
		ret = provokers_possible(c->cell.provokers, how.topology, &seating, reason,
					 sizeof(reason));
	if (ret == 0)
		ret = run(c, &how, &status);
	hwloc_topology_destroy(how.topology);
	if (ret == 0)
		return interrupted ? EXIT_INTERRUPTED : status;
	return complain(EXIT_MISSING, 0, "cannot run %s with %u executor%s: %s",
			placement_name(c->cell.placement), c->cell.executors, S(c->cell.executors),
			reason[0] ? reason : strerror(-ret));
}

/*
 * Adds a run line and then this one to the journal that was asked for, if one was; with --json it
 * is told on stdout. The line is freed. EXIT_PASS, or another status after a complaint.
 */
static int tell_line(const struct one_cell *c, json_t *line)
{
	struct journal *journal;
	struct identity id;
	int ret = 0, status = EXIT_PASS;

	if (!line)
		return complain(EXIT_INTERNAL, 0, "the result cannot be told in JSON");
	if (c->journal)
		ret = journal_open(&journal, c->journal);
	if (ret < 0) {
		status = complain(EXIT_CANNOT_CREATE, ret, "cannot open journal %s", c->journal);
	} else if (c->journal) {
		ret = identity_read(&id);
		if (ret == 0)
			ret = journal_write_run(journal, c->plan, &id, NULL, JOURNAL_NO_SEED);
		if (ret == 0)
			ret = journal_put(journal, json_incref(line));
		journal_close(journal);
		if (ret < 0)
			status = complain(EXIT_CANNOT_WRITE, ret, "cannot write journal %s",
					  c->journal);
	}
	if (c->json)
		journal_tell(stdout, json_incref(line));
	json_decref(line);
	return status;
}

/* The exit status of a cell without tears. */
static int status_of(enum outcome outcome)
{
	return outcome == OUTCOME_DONE		? EXIT_PASS
	       : outcome == OUTCOME_INTERRUPTED ? EXIT_INTERRUPTED
	       : outcome == OUTCOME_ERROR	? EXIT_MISSING
						: EXIT_INCONCLUSIVE;
}

/* --- tmax stress ------------------------------------------------------------------------------ */

static const struct option_row stress_options[] = {
	{ "journal", "FILE", "append the record to FILE", OPTION_FILE(struct one_cell, journal) },
	{ "json", NULL, "print the record instead of text", OPTION_FLAG(struct one_cell, json) },
	{ .help = "Many cells:" },
	{ "list", "FILE", "run the cells of FILE, with what is given here in place of what it says",
	  OPTION_FILE(struct one_cell, list) },
	{ "shard", "PART", "only one part of them, such as 3/16",
	  OPTION_INTO(option_shard, struct one_cell, shard) },
	{ "repetitions", "N", "of the whole list (1)",
	  OPTION_NUMBER(struct one_cell, repetitions, 1, REPETITIONS_MAX) },
	{ "resume", NULL, "skip what the journal holds of them",
	  OPTION_FLAG(struct one_cell, resume) },
	{ "quiet", NULL, "no progress", OPTION_FLAG(struct one_cell, quiet) },
	{ 0 },
};

static const struct command_line stress_line = {
	.about = "Run one cell: toggle a site while executors run it, and count the tears.\n"
		 "Or a list of cells, one by one into a journal.\n",
	.options = { cell_options, stress_options },
	.end = "Exit status: 0 no tear, 1 at least one, 2 no answer (hang, kill), 64 usage,\n"
	       "69 the machine cannot seat it, 73/74 journal not writable, 130 interrupted.\n",
};

#define KNOWN(value, is_known) ((is_known) ? NUMBER(value) : "unknown")

static void print_stress(const struct cell_record *record)
{
	const struct cell_result *r = &record->result;
	const struct witness *w = &r->witness;
	char command[512];

	cell_command(&record->cell, command, sizeof(command));
	printf("outcome     %s%s%s\n", outcome_name(r->outcome), r->error ? ": " : "",
	       r->error ? strerror(-r->error) : "");
	if (r->signal)
		printf("signal      %d (%s)\n", r->signal, strsignal(r->signal));
	printf("toggles     %" PRIu64 " in %.2f s\n", r->toggles, r->seconds);
	if (r->exposed != CELL_UNKNOWN)
		printf("exposed     %" PRIu64 " toggle%s of code that had been run\n", r->exposed,
		       S(r->exposed));
	printf("executions  %" PRIu64 " (first code %" PRIu64 ", others %" PRIu64 ")\n",
	       r->executions, r->old_new[0], r->old_new[1]);
	printf("tears       %" PRIu64 " (old front + new back %" PRIu64
	       ", new front + old back %" PRIu64 ", other %" PRIu64 ")\n",
	       cell_result_tears(r), r->tears[TEAR_OLD_FRONT], r->tears[TEAR_NEW_FRONT],
	       r->tears[TEAR_OTHER]);
	printf("torn        %" PRIu64 " toggle%s\n", r->torn, S(r->torn));
	if (r->events)
		printf("  when        of the first %u: with --json\n", r->events);
	if (r->latency.median)
		printf("latency     median %" PRIu64 ", 99th percentile %" PRIu64
		       ", longest %" PRIu64 " ticks\n",
		       r->latency.median, r->latency.p99, r->latency.max);
	printf("traps       %" PRIu64 "\n", r->traps);
	printf("noise       %s involuntary switches, %s %% steal, %s runnable\n",
	       KNOWN(w->involuntary, w->involuntary != WITNESS_UNKNOWN),
	       KNOWN(100 * w->steal, w->steal >= 0), KNOWN(w->load, w->load >= 0));
	printf("again       %s\n", command);
}

static int run_stress(const struct one_cell *c, const struct run_options *how, int *status)
{
	struct cell_record record = { .stage = "stress", .key = "stress", .cell = c->cell };
	char reason[NOISE_REASON_MAX];
	int ret = cell_run(&c->cell, how, &record.result);

	if (ret < 0)
		return ret;
	date_text(time(NULL), false, record.date);
	record.noisy = record.result.outcome == OUTCOME_DONE &&
		       noise_of_cell(&record.cell, &record.result, reason, sizeof(reason));
	*status = tell_line(c, record_to_json(&record));
	if (!c->json)
		print_stress(&record);
	/* A tear is an answer, however the cell ended. */
	if (*status == EXIT_PASS)
		*status = cell_result_tears(&record.result) > 0 ? EXIT_TEARS
								: status_of(record.result.outcome);
	return 0;
}

/* The seed is the experiment's: a line that says its own keeps it. */
static int run_list(const struct one_cell *c)
{
	static struct request r;
	const struct option_row *seed = option_named(cell_options, "seed");

	if (c->json)
		return refuse_usage("a list has no --json");
	r = (struct request){
		.plan = *plan_find("default"),
		.experiment = {
			.list = c->list,
			.with = c->cell,
			.replaced = c->given & ~(UINT64_C(1) << (seed - cell_options)),
			.repetitions = c->repetitions,
			.seed = c->cell.seed,
			.shard = c->shard,
		},
		.journal = c->journal ? c->journal : r.default_journal,
		.seed = c->cell.seed,
		.have_seed = true,
		.resume = c->resume,
		.quiet = c->quiet,
	};
	/* It is to be carried elsewhere, so it lies where the user is. */
	experiment_name(&r.experiment);
	snprintf(r.default_journal, sizeof(r.default_journal), "%s.jsonl", r.experiment.name);
	r.experiment.journal = r.journal;
	return request_run(&r);
}

int cmd_stress(int argc, char **argv)
{
	struct one_cell c = { .shard = { 1, 1 }, .repetitions = 1, .plan = "stress" };
	int status;

	cell_defaults(&c.cell);
	status = command_line_parse(&stress_line, argc, argv, &c, &c.given);
	if (status != EXIT_PASS)
		return status;
	if (c.list)
		return run_list(&c);
	if (c.shard.of > 1 || c.repetitions > 1 || c.resume || c.quiet)
		return refuse_usage(
			"--shard, --repetitions, --resume and --quiet go with a --list");
	return run_one(&c, run_stress, cell_check);
}

/* --- tmax gaps -------------------------------------------------------------------------------- */

static const struct option_row gap_options[] = {
	{ "placement", "NAME", PLACEMENT_HELP, OPTION_OF_CELL },
	{ "crossing", "NAME", "line, page, 8, 16, 32 or none (line)", OPTION_OF_CELL },
	{ "split", "S", "bytes of the instruction before the boundary, 2 to 4 (3)",
	  OPTION_OF_CELL },
	{ "executors", "N", "how many (1)", OPTION_OF_CELL },
	{ "protocol", "NAME",
	  "wait: nothing but the rest between two stores; membarrier: one after each store, so "
	  "that no gap can be (wait)",
	  OPTION_OF_CELL },
	{ "rest", "T", "mean ticks between two stores (500)", OPTION_OF_CELL },
	{ "provoker", "NAMES", "any but sites; " PROVOKER_HELP, OPTION_OF_CELL },
	{ "loop", "N", "filler instructions in the executors' loop (0)", OPTION_OF_CELL },
	{ "toggles", "N", "stop after N stores to each part (1000000000000)", OPTION_OF_CELL },
	{ "seconds", "T", "or after this time, such as 10s; 0 is no limit (5)", OPTION_OF_CELL },
	{ "seed", "N", "of the rests and of the place of the site (1)", OPTION_OF_CELL },
	{ "journal", "FILE", "append the record to FILE", OPTION_FILE(struct one_cell, journal) },
	{ "json", NULL, "print the record instead of text", OPTION_FLAG(struct one_cell, json) },
	{ 0 },
};

static const struct command_line gap_line = {
	.about = "Measure the gaps between the two fetches of one instruction directly:\n"
		 "generations on both sides of the boundary, no INT3, and every pair that never\n"
		 "stood in memory gives a lower bound in ticks.\n",
	.options = { gap_options },
	.end = "Exit status: 0 measured, with gaps or without, 2 no answer (crash, hang, kill),\n"
	       "64 usage, 69 the machine cannot seat it, 73/74 journal not writable,\n"
	       "130 interrupted.\n",
};

static void print_gaps(const struct cell *cell, const struct gap_result *r)
{
	char command[512];

	gap_command(cell, command, sizeof(command));
	printf("outcome     %s%s%s\n", outcome_name(r->outcome), r->error ? ": " : "",
	       r->error ? strerror(-r->error) : "");
	printf("stores      %" PRIu64 " in %.2f s, %.0f per second\n", r->stores, r->seconds,
	       gap_rate(r->stores, r->seconds));
	printf("executions  %" PRIu64 "\n", r->executions);
	for (unsigned k = 0; k < GAP_KINDS; k++) {
		const struct gap_tally *t = &r->kind[k];

		printf("%-11s %" PRIu64 " gaps (%s)\n", gap_kind_name((enum gap_kind)k), t->count,
		       k == GAP_OLD_FRONT ? "old front with new back" : "new front with old back");
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

static int run_gaps(const struct one_cell *c, const struct run_options *how, int *status)
{
	struct gap_result result;
	json_t *body;
	int ret = gap_run(&c->cell, how, &result);

	if (ret < 0)
		return ret;
	body = gap_to_json(&c->cell, &result);
	*status = tell_line(c, body ? journal_line("gaps", body) : NULL);
	if (body && !c->json)
		print_gaps(&c->cell, &result);
	json_decref(body);
	if (*status == EXIT_PASS)
		*status = status_of(result.outcome);
	return 0;
}

int cmd_gaps(int argc, char **argv)
{
	struct one_cell c = { .plan = "gaps" };
	int status;

	gap_defaults(&c.cell);
	status = command_line_parse(&gap_line, argc, argv, &c, NULL);
	return status == EXIT_PASS ? run_one(&c, run_gaps, gap_check) : status;
}
