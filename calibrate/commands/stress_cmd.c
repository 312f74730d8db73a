/* SPDX-License-Identifier: MIT */
/*
 * tmax stress: one cell, or a list of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/commands/calibrate_options.h"
#include "calibrate/commands/one_cell.h"
#include "calibrate/program/command_line.h"
#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"
#include "calibrate/program/here.h"
#include "calibrate/statistics/evidence.h"
#include "stress/witness/noise.h"

#define EVENTS_SHOWN 4

static const struct option_row options[] = {
	{ "journal", "FILE", "append the record to FILE",
	  OPTION_FILE(struct one_cell_command, journal) },
	{ "evidence", "FILE", "add what it counted to a store of evidence",
	  OPTION_FILE(struct one_cell_command, evidence) },
	{ "json", NULL, "print the record instead of text",
	  OPTION_FLAG(struct one_cell_command, json) },
	{ .help = "Many cells:" },
	{ "list", "FILE", "run the cells of FILE, with what is given here in place of what it says",
	  OPTION_FILE(struct one_cell_command, list) },
	{ "shard", "PART", "only one part of them, such as 3/16",
	  OPTION_INTO(option_shard, struct one_cell_command, shard) },
	{ "resume", NULL, "skip what the journal holds of them",
	  OPTION_FLAG(struct one_cell_command, resume) },
	{ "quiet", NULL, "no progress", OPTION_FLAG(struct one_cell_command, quiet) },
	{ 0 },
};

static const struct command_line line = {
	.name = "stress",
	.about = "Run one cell: toggle a site while executors run it, and count the tears.\n"
		 "Or a list of cells, one by one into a journal.\n",
	.options = { cell_options, options },
	.end = "Exit status: 0 no tear, 1 at least one, 2 no answer (hang, kill), 64 usage,\n"
	       "69 the machine cannot seat it, 73/74 journal not writable, 130 interrupted.\n",
};

static void print_text(const struct cell_record *record)
{
	const struct cell_result *r = &record->result;
	char command[512], provokers[PROVOKERS_MAX];

	cell_command(&record->cell, command, sizeof(command));
	printf("outcome     %s%s%s\n", outcome_name(r->outcome), r->error ? ": " : "",
	       r->error ? strerror(-r->error) : "");
	if (r->signal)
		printf("signal      %d (%s)\n", r->signal, strsignal(r->signal));
	printf("toggles     %" PRIu64 " in %.2f s\n", r->toggles, r->seconds);
	if (r->exposed != CELL_UNKNOWN)
		printf("exposed     %" PRIu64 " toggles of code that had been run\n", r->exposed);
	printf("executions  %" PRIu64 " (first code %" PRIu64 ", others %" PRIu64 ")\n",
	       r->executions, r->old_new[0], r->old_new[1]);
	printf("tears       %" PRIu64 " (old front + new back %" PRIu64
	       ", new front + old back %" PRIu64 ", other %" PRIu64 ")\n",
	       cell_result_tears(r), r->tears[TEAR_OLD_FRONT], r->tears[TEAR_NEW_FRONT],
	       r->tears[TEAR_OTHER]);
	printf("torn        %" PRIu64 " toggles\n", r->torn);
	for (const struct tear_event *e = r->event;
	     e < r->event + r->events && e < r->event + EVENTS_SHOWN; e++)
		printf("  toggle %" PRIu64 ", executor %u, %s: %" PRId64
		       " ticks after INT3, %" PRId64 " after the patch, latency %" PRIu64
		       " %" PRIu64 " %" PRIu64 ", waited %" PRIu64 " %" PRIu64
		       ", longest step %" PRIu64 " %" PRIu64 "\n",
		       e->toggle, e->executor, tear_kind_name(e->kind), e->after_int3,
		       e->after_front, e->latency[0], e->latency[1], e->latency[2], e->waited[0],
		       e->waited[1], e->step[0], e->step[1]);
	if (r->events > EVENTS_SHOWN)
		printf("  and %u more in the record\n", r->events - EVENTS_SHOWN);
	if (r->frame[0])
		printf("frames      %#" PRIx64 " %#" PRIx64 "\n", r->frame[0], r->frame[1]);
	printf("provokers   %s\n", provokers_name(record->cell.provokers, provokers));
	if (r->latency.median)
		printf("latency     median %" PRIu64 ", 99th percentile %" PRIu64
		       ", longest %" PRIu64 " ticks\n",
		       r->latency.median, r->latency.p99, r->latency.max);
	printf("traps       %" PRIu64 "\n", r->traps);
	printf("noise       %" PRIu64 " involuntary switches, %.2f %% steal, %.0f runnable\n",
	       r->witness.involuntary, 100 * r->witness.steal, r->witness.load);
	printf("again       %s\n", command);
}

static int run_stress(const struct one_cell_command *c, const struct run_options *how, int *status)
{
	struct cell_record record = { .stage = "stress", .key = "stress", .cell = c->cell };
	char reason[NOISE_REASON_MAX];
	struct identity id;
	struct cpus cpus;
	int ret;

	if (c->evidence && c->cell.stop_tears) {
		*status = refuse_usage("a cell that ends with a tear is no evidence");
		return 0;
	}
	ret = cell_run(&c->cell, how, &record.result);
	if (ret < 0)
		return ret;
	journal_date(record.date, sizeof(record.date));
	record.noisy = record.result.outcome == OUTCOME_DONE &&
		       noise_of_cell(&record.cell, &record.result, reason, sizeof(reason));
	*status = one_cell_tell(c, record_to_json(&record));
	if (!c->json)
		print_text(&record);
	/* Only when asked: a user who runs a cell again because it tore has chosen what is counted.
	 */
	if (*status == EXIT_PASS && c->evidence) {
		cpus_here(how->topology, &cpus);
		if (identity_read(&id) < 0)
			*status = EXIT_MISSING;
		else if (evidence_add(c->evidence, "stress", &id, &cpus, &record, 1) < 0)
			*status = EXIT_CANNOT_WRITE;
	}
	/* A tear is an answer, however the cell ended. */
	if (*status == EXIT_PASS)
		*status = cell_result_tears(&record.result) > 0
				  ? EXIT_TEARS
				  : one_cell_status(record.result.outcome);
	return 0;
}

/* The seed is the experiment's: a line that says its own keeps it. */
static int run_list(const struct one_cell_command *c)
{
	static struct request r;
	const struct option_row *seed = option_named(cell_options, "seed");

	if (c->json || c->evidence)
		return refuse_usage("a list has no --json and no --evidence");
	r = (struct request){
		.plan = *plan_find("default"),
		.experiment = {
			.kind = EXPERIMENT_LIST,
			.list = c->list,
			.with = c->cell,
			.replaced = c->given & ~(UINT64_C(1) << (seed - cell_options)),
			.repetitions = 1,
			.shard = c->shard,
		},
		.journal = c->journal,
		.seed = c->cell.seed,
		.have_seed = true,
		.resume = c->resume,
		.quiet = c->quiet,
	};
	request_experiment(&r);
	return request_run(&r);
}

int cmd_stress(int argc, char **argv)
{
	struct one_cell_command command = {
		.line = &line,
		.defaults = cell_defaults,
		.check = cell_check,
		.run = run_stress,
		.run_list = run_list,
		.shard = { 1, 1 },
	};

	return one_cell_main(&command, argc, argv);
}
