/* SPDX-License-Identifier: MIT */
#include "calibrate/commands/calibrate_options.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "calibrate/program/cell_options.h"
#include "patchcore/machine/machine_conf.h"
#include "results/figures/figure.h"
#include "stress/base/command_line.h"
#include "stress/base/exit_status.h"

#define BUDGET_MIN 5 /* seconds; less cannot pass through all stages */
#define NO_SEED	   UINT64_MAX

static bool take_only(const struct option_row *row, const char *text, void *request, char *why)
{
	struct request *r = request;

	(void)row;
	r->only_window = strcmp(text, "window") == 0;
	r->only_gaps = strcmp(text, "gaps") == 0;
	return r->only_window || r->only_gaps || option_refuse(why, "must be window or gaps");
}

/* For completion: the plans that are here, not those that a file describes. */
static int plan_known(const char *name)
{
	enum experiment_kind kind = experiment_find(name);

	return plan_find(name) || kind == EXPERIMENT_PAPER || kind == EXPERIMENT_TAIL ? 0 : -1;
}

/* In place of what each line of the list says. */
static bool take_for_all(const struct option_row *row, const char *text, void *request, char *why)
{
	struct experiment *e = &((struct request *)request)->experiment;
	const struct option_row *real = option_named(cell_options, row->name);

	experiment_replace(e, row->name);
	return real->take(real, text, &e->with, why);
}

#define FOR(kind)  (1u << EXPERIMENT_##kind)
#define PLAN(name) OPTION_TEXT(struct request, plan_name), .fixed = (name)

static const struct option_row options[] = {
	{ "plan", "NAME", "quick, default, thorough; or an experiment: paper, tail",
	  OPTION_TEXT(struct request, plan_name), .parse = plan_known },
	{ "quick", NULL, "plan quick: a minute", PLAN("quick") },
	{ "thorough", NULL, "plan thorough: two hours; default: a quarter of an hour",
	  PLAN("thorough") },
	{ "paper", NULL, "plan paper: the experiment behind the paper's figure 9", PLAN("paper") },
	{ "budget", "TIME", "another time, such as 10m (at least 5s)",
	  OPTION_TIME(struct request, budget, BUDGET_MIN), .plans = FOR(NONE) | FOR(TAIL) },
	{ "require-p", "P", "tears per toggle that a pass stays below (1e-4)",
	  OPTION_INTO(option_probability, struct request, require_p), .plans = FOR(NONE) },
	{ "only", "WHAT", "all of it for window: stores inside a line; or gaps: of fetches",
	  take_only, .plans = FOR(NONE) },
	{ "output", "FILE", "the config (default: where the library looks for it)",
	  OPTION_FILE(struct request, output), .plans = FOR(NONE) },
	{ "journal", "FILE", "append a line per cell (default: the config's name + .jsonl)",
	  OPTION_FILE(struct request, journal) },
	{ "evidence", "FILE", "the store (default: the config's name + .evidence)",
	  OPTION_FILE(struct request, evidence), .plans = FOR(NONE) },
	{ "idle", NULL, "end early when other programs want the machine",
	  OPTION_FLAG(struct request, idle), .plans = FOR(NONE) },
	{ "verbose", NULL, "tell every rung and placement, too",
	  OPTION_FLAG(struct request, verbose), .plans = FOR(NONE) },
	{ "json", NULL, "print the estimate as one line of JSON instead of text",
	  OPTION_FLAG(struct request, json), .plans = FOR(NONE) },
	{ "resume", NULL, "skip what the journal holds of a run that was killed",
	  OPTION_FLAG(struct request, resume) },
	{ "figure", "PREFIX", "draw tears against the wait as PREFIX.svg and PREFIX.png",
	  OPTION_FILE(struct request, figure), .plans = FOR(NONE) | FOR(PAPER) },
	{ "seed", "N", "of the run (drawn anew; of an experiment 1)",
	  OPTION_NUMBER(struct request, seed, 0, INT64_MAX) },
	{ "quiet", NULL, "no progress", OPTION_FLAG(struct request, quiet) },
	{ .help = "Of the paper's grid:" },
	{ "shard", "PART", "run one part of it only, such as 3/16",
	  OPTION_INTO(option_shard, struct request, experiment.shard), .plans = FOR(PAPER) },
	{ "merge", NULL, "run nothing; tell what the journals named behind it hold",
	  OPTION_FLAG(struct request, merge), .plans = FOR(PAPER) },
	{ "toggles", "N", "a run (50000000)", take_for_all, .plans = FOR(PAPER) },
	{ "repetitions", "N", "runs of each cell (5)",
	  OPTION_NUMBER(struct request, experiment.repetitions, 1, REPETITIONS_MAX),
	  .plans = FOR(PAPER) },
	{ "executors", "LIST", "numbers of executors (2-6)",
	  OPTION_INTO(option_executors, struct request, experiment.executors),
	  .plans = FOR(PAPER) },
	{ "rest", "T", "mean ticks between two toggles (2000)", take_for_all, .plans = FOR(PAPER) },
	{ .help = "Of the tail's experiment:" },
	{ "fifo", NULL, "all threads with real-time priority",
	  OPTION_FLAG(struct request, experiment.fifo), .plans = FOR(TAIL) },
	{ 0 },
};

static const struct command_line command = {
	.name = "calibrate",
	.operands = "",
	.about = "Find out how often executors tear on this machine after how long a wait, add it\n"
		 "to the store of evidence, and write what all of it says to machine.conf. Or run\n"
		 "an experiment, which leaves both as they are.\n",
	.options = { options },
	.end = "Exit status: 0 pass, 1 no wait is good enough, 2 inconclusive, 64 usage,\n"
	       "69 something is missing, 73 cannot create, 74 cannot write, 130 interrupted.\n",
};

/* An experiment's journal is to be carried elsewhere, so it lies where the user is. */
void request_experiment(struct request *r)
{
	struct experiment *e = &r->experiment;

	experiment_name(e);
	r->plan.budget = r->budget > 0 ? r->budget : TAIL_BUDGET;
	if (!r->journal) {
		r->journal = r->default_journal;
		snprintf(r->default_journal, sizeof(r->default_journal), "%s.jsonl", e->name);
	}
	/* Its cells are a fixed list: shards and resumed runs must agree on it. */
	if (!r->have_seed)
		r->seed = 1;
	/* Round after round until the budget is spent; a grid comes to its end. */
	if (e->kind == EXPERIMENT_TAIL)
		e->repetitions = 0;
	e->seed = r->seed;
	e->journal = r->journal;
	e->figure = r->figure;
}

int request_parse(int argc, char **argv, struct request *r)
{
	const struct plan *plan;
	uint64_t given = 0;
	uint32_t seed;
	int status;

	*r = (struct request){ .seed = NO_SEED, .plan_name = "default" };
	r->experiment.shard = (struct shard){ 1, 1 };
	r->experiment.repetitions = PAPER_REPETITIONS;
	status = command_line_parse(&command, argc, argv, r, &given);
	if (status != EXIT_PASS)
		return status;
	r->journals = argv + optind;
	r->journal_count = argc - optind;
	r->experiment.kind = experiment_find(r->plan_name);
	/* What an experiment has in common with a calibration is where threads can sit. */
	plan = plan_find(r->experiment.kind ? "default" : r->plan_name);
	if (!plan)
		return refuse_usage("no plan is called '%s'", r->plan_name);
	/* Options that only some plans have a use for. Better refused than ignored. */
	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (given >> i & 1 && options[i].plans &&
		    !(options[i].plans & 1u << r->experiment.kind))
			return refuse_usage("plan %s has no --%s", r->plan_name, options[i].name);
	if (r->merge && r->experiment.shard.of > 1)
		return refuse_usage("--merge looks at the whole grid, not at a shard");
	if (r->merge && !r->journal_count)
		return refuse_usage("--merge needs the names of journals");
	if (!r->merge && r->journal_count)
		return refuse_usage("unexpected argument '%s'", r->journals[0]);

	r->plan = *plan;
	r->have_seed = r->seed != NO_SEED;
	/* Other places and another order in each run: only so do runs tell more together. */
	if (!r->have_seed)
		r->seed = getrandom(&seed, sizeof(seed), 0) == sizeof(seed) ? seed
									    : (uint32_t)time(NULL);
	if (r->experiment.kind) {
		request_experiment(r);
		return EXIT_PASS;
	}
	if (r->budget > 0)
		r->plan.budget = r->budget;
	r->plan.idle = r->idle;
	r->plan.only = r->only_window || r->only_gaps;
	if (r->plan.only) {
		r->plan.window = r->only_window;
		r->plan.fetch_gaps = r->only_gaps;
	}
	if (r->require_p > 0)
		r->plan.require_p = r->require_p;
	if (!r->output) {
		r->output = r->default_output;
		if (machine_conf_default_path(r->default_output, sizeof(r->default_output)) < 0)
			return refuse_usage("no home folder to write to: give --output");
	}
	if (!r->evidence)
		r->evidence = r->default_evidence;
	snprintf(r->default_evidence, sizeof(r->default_evidence), "%.4096s.evidence", r->output);
	if (!r->journal)
		r->journal = r->default_journal;
	snprintf(r->default_journal, sizeof(r->default_journal), "%.4096s.jsonl", r->output);
	return EXIT_PASS;
}
