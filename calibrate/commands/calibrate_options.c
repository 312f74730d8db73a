/* SPDX-License-Identifier: MIT */
#include "calibrate/commands/calibrate_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "calibrate/program/exit_status.h"
#include "calibrate/program/options.h"
#include "patchcore/machine/conf_path.h"

#define BUDGET_MIN 5.0 /* seconds; less cannot pass through all stages */

enum {
	OPTION_PLAN = 1,
	OPTION_PLAN_QUICK,
	OPTION_PLAN_THOROUGH,
	OPTION_PLAN_PAPER,
	OPTION_BUDGET,
	OPTION_REQUIRE_P,
	OPTION_ONLY,
	OPTION_EVIDENCE,
	OPTION_VERBOSE,
	OPTION_IDLE,
	OPTION_OUTPUT,
	OPTION_JOURNAL,
	OPTION_RESUME,
	OPTION_FIGURE,
	OPTION_SEED_OF_RUN,
	OPTION_QUIET,
	OPTION_GRID_TOGGLES,
	OPTION_GRID_REPETITIONS,
	OPTION_GRID_EXECUTORS,
	OPTION_GRID_REST,
	OPTION_SHARD,
	OPTION_MERGE,
	OPTION_FIFO,
	OPTION_HELP,
	OPTION_LAST,
};

static const char help[] =
	"Usage: tmax calibrate [OPTION]...\n"
	"Find out how often executors tear on this machine after how long a wait, add it\n"
	"to the store of evidence, and write what all of it says to machine.conf. Or run\n"
	"an experiment, which leaves both as they are.\n"
	"\n"
	"  --plan NAME        quick, default, thorough; or an experiment: paper, tail\n"
	"  --quick            plan quick: a minute\n"
	"  --thorough         plan thorough: two hours; default: a quarter of an hour\n"
	"  --paper            plan paper: the experiment behind the paper's figure 9\n"
	"  --budget TIME      another time, such as 10m (at least 5s)\n"
	"  --require-p P      tears per toggle that a pass stays below (1e-4)\n"
	"  --only WHAT        all of it for window: stores inside a line; or gaps: of fetches\n"
	"  --output FILE      the config (default: where the library looks for it)\n"
	"  --journal FILE     append a line per cell (default: the config's name + .jsonl)\n"
	"  --evidence FILE    the store (default: the config's name + .evidence)\n"
	"  --idle             end early when other programs want the machine\n"
	"  --verbose          tell every rung and placement, too\n"
	"  --resume           skip what the journal holds of a run that was killed\n"
	"  --figure PREFIX    draw tears against the wait as PREFIX.svg and PREFIX.png\n"
	"  --seed N           of the run (drawn anew; of an experiment 1)\n"
	"  --quiet            no progress\n"
	"  --help\n"
	"\n"
	"Of the paper's grid:\n"
	"  --shard PART       run one part of it only, such as 3/16\n"
	"  --merge            run nothing; tell what the journals named behind it hold\n"
	"  --toggles N        a run (50000000)\n"
	"  --repetitions N    runs of each cell (5)\n"
	"  --executors LIST   numbers of executors (2-6)\n"
	"  --rest T           mean ticks between two toggles (2000)\n"
	"Of the tail's experiment:\n"
	"  --fifo             all threads with real-time priority\n"
	"\n"
	"Exit status: 0 pass, 1 no wait is good enough, 2 inconclusive, 64 usage,\n"
	"69 something is missing, 73 cannot create, 74 cannot write, 130 interrupted.\n";

static const struct option options[] = {
	{ "plan", required_argument, NULL, OPTION_PLAN },
	{ "quick", no_argument, NULL, OPTION_PLAN_QUICK },
	{ "thorough", no_argument, NULL, OPTION_PLAN_THOROUGH },
	{ "paper", no_argument, NULL, OPTION_PLAN_PAPER },
	{ "budget", required_argument, NULL, OPTION_BUDGET },
	{ "require-p", required_argument, NULL, OPTION_REQUIRE_P },
	{ "only", required_argument, NULL, OPTION_ONLY },
	{ "evidence", required_argument, NULL, OPTION_EVIDENCE },
	{ "idle", no_argument, NULL, OPTION_IDLE },
	{ "verbose", no_argument, NULL, OPTION_VERBOSE },
	{ "output", required_argument, NULL, OPTION_OUTPUT },
	{ "journal", required_argument, NULL, OPTION_JOURNAL },
	{ "resume", no_argument, NULL, OPTION_RESUME },
	{ "figure", required_argument, NULL, OPTION_FIGURE },
	{ "seed", required_argument, NULL, OPTION_SEED_OF_RUN },
	{ "quiet", no_argument, NULL, OPTION_QUIET },
	{ "toggles", required_argument, NULL, OPTION_GRID_TOGGLES },
	{ "repetitions", required_argument, NULL, OPTION_GRID_REPETITIONS },
	{ "executors", required_argument, NULL, OPTION_GRID_EXECUTORS },
	{ "rest", required_argument, NULL, OPTION_GRID_REST },
	{ "shard", required_argument, NULL, OPTION_SHARD },
	{ "merge", no_argument, NULL, OPTION_MERGE },
	{ "fifo", no_argument, NULL, OPTION_FIFO },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ 0 },
};

static bool take_probability(const char *text, double *p)
{
	char *end;

	*p = strtod(text, &end);
	/* strtod() would take signs, blanks, nan and hexadecimal numbers, too. */
	if (strspn(text, "0123456789.eE-") == strlen(text) && *text != '-' && end != text &&
	    *end == '\0' && *p > 0 && *p < 1)
		return true;
	fprintf(stderr, "tmax: --require-p '%s': must be a probability such as 1e-4\n", text);
	return false;
}

static bool take_only(const char *text, struct request *r)
{
	r->only_window = strcmp(text, "window") == 0;
	r->only_gaps = strcmp(text, "gaps") == 0;
	if (r->only_window || r->only_gaps)
		return true;
	fprintf(stderr, "tmax: --only '%s': must be window or gaps\n", text);
	return false;
}

static bool take_shard(const char *text, struct shard *shard)
{
	if (shard_parse(text, shard) == 0)
		return true;
	fprintf(stderr, "tmax: --shard '%s': must be such as 3/16, of 1000 at most\n", text);
	return false;
}

static bool take_executors(const char *text, struct paper *paper)
{
	if (paper_executors(paper, text) == 0)
		return true;
	fprintf(stderr,
		"tmax: --executors '%s': must be a list such as 2-6 or 1,2,4, each once, from 1 to "
		"%d, %d numbers at most\n",
		text, PAPER_EXECUTORS_MAX, PAPER_SEATS_MAX);
	return false;
}

static bool take_grid_option(int option, const char *text, struct experiment *e)
{
	struct paper *paper = &e->paper;
	uint64_t number;

	switch (option) {
	case OPTION_GRID_TOGGLES:
		return option_u64("toggles", text, 1, CELL_TOGGLES_MAX, &paper->toggles);
	case OPTION_GRID_REPETITIONS:
		if (!option_u64("repetitions", text, 1, PAPER_REPEAT_MAX, &number))
			return false;
		paper->repetitions = (unsigned)number;
		return true;
	case OPTION_GRID_EXECUTORS:
		return take_executors(text, paper);
	case OPTION_GRID_REST:
		return option_u64("rest", text, 0, CELL_WAIT_MAX, &paper->rest);
	case OPTION_SHARD:
		return take_shard(text, &e->shard);
	case OPTION_FIFO:
		e->fifo = true;
		return true;
	}
	return option == OPTION_MERGE;
}

static bool take_file(int option, const char *text, struct request *r)
{
	switch (option) {
	case OPTION_OUTPUT:
		r->output = text;
		return true;
	case OPTION_JOURNAL:
		r->journal = text;
		return true;
	case OPTION_EVIDENCE:
		r->evidence = text;
		return true;
	case OPTION_FIGURE:
		r->figure = text;
		return true;
	}
	return take_grid_option(option, text, &r->experiment);
}

static bool take_option(int option, const char *text, struct request *r)
{
	switch (option) {
	case OPTION_PLAN:
		r->plan_name = text;
		return true;
	case OPTION_PLAN_QUICK:
		r->plan_name = "quick";
		return true;
	case OPTION_PLAN_THOROUGH:
		r->plan_name = "thorough";
		return true;
	case OPTION_PLAN_PAPER:
		r->plan_name = "paper";
		return true;
	case OPTION_BUDGET:
		return option_seconds("budget", text, &r->budget);
	case OPTION_REQUIRE_P:
		return take_probability(text, &r->require_p);
	case OPTION_ONLY:
		return take_only(text, r);
	case OPTION_VERBOSE:
		r->verbose = true;
		return true;
	case OPTION_IDLE:
		r->idle = true;
		return true;
	case OPTION_SEED_OF_RUN:
		r->have_seed = true;
		return option_u64("seed", text, 0, INT64_MAX, &r->seed);
	case OPTION_RESUME:
		r->resume = true;
		return true;
	case OPTION_QUIET:
		r->quiet = true;
		return true;
	case OPTION_HELP:
		r->help = true;
		return true;
	}
	return take_file(option, text, r);
}

#define FOR(kind) (1u << EXPERIMENT_##kind)

/* Options that only some plans have a use for. Better refused than ignored. */
static const struct {
	int option;
	unsigned plans;
} uses[] = {
	{ OPTION_BUDGET, FOR(NONE) | FOR(TAIL) },
	{ OPTION_REQUIRE_P, FOR(NONE) },
	{ OPTION_ONLY, FOR(NONE) },
	{ OPTION_EVIDENCE, FOR(NONE) },
	{ OPTION_VERBOSE, FOR(NONE) },
	{ OPTION_IDLE, FOR(NONE) },
	{ OPTION_OUTPUT, FOR(NONE) },
	{ OPTION_FIGURE, FOR(NONE) | FOR(PAPER) },
	{ OPTION_GRID_TOGGLES, FOR(PAPER) },
	{ OPTION_GRID_REPETITIONS, FOR(PAPER) },
	{ OPTION_GRID_EXECUTORS, FOR(PAPER) },
	{ OPTION_GRID_REST, FOR(PAPER) },
	{ OPTION_SHARD, FOR(PAPER) },
	{ OPTION_MERGE, FOR(PAPER) },
	{ OPTION_FIFO, FOR(TAIL) },
};

static const char *option_text(int option)
{
	const struct option *o = options;

	while (o->name && o->val != option)
		o++;
	return o->name ? o->name : "";
}

static int check_uses(const struct request *r, const bool *given)
{
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		if (given[uses[i].option] && !(uses[i].plans & 1u << r->experiment.kind))
			return usage_error("calibrate", "plan %s has no --%s", r->plan_name,
					   option_text(uses[i].option));
	if (r->merge && given[OPTION_SHARD])
		return usage_error("calibrate", "--merge looks at the whole grid, not at a shard");
	if (r->merge && !r->journal_count)
		return usage_error("calibrate", "--merge needs the names of journals");
	if (!r->merge && r->journal_count)
		return usage_error("calibrate", "unexpected argument '%s'", r->journals[0]);
	return EXIT_PASS;
}

static int take_output(struct request *r)
{
	if (r->output && !r->output[0])
		return usage_error("calibrate", "--output needs the name of a file");
	if (r->journal && !r->journal[0])
		return usage_error("calibrate", "--journal needs the name of a file");
	if (r->evidence && !r->evidence[0])
		return usage_error("calibrate", "--evidence needs the name of a file");
	if (!r->output) {
		r->output = r->default_output;
		if (machine_conf_default_path(r->default_output, sizeof(r->default_output)) < 0)
			return usage_error("calibrate",
					   "no home folder to write to: give --output");
	}
	if (!r->evidence) {
		r->evidence = r->default_evidence;
		snprintf(r->default_evidence, sizeof(r->default_evidence), "%.4096s.evidence",
			 r->output);
	}
	if (r->journal)
		return EXIT_PASS;
	r->journal = r->default_journal;
	snprintf(r->default_journal, sizeof(r->default_journal), "%.4096s.jsonl", r->output);
	return EXIT_PASS;
}

/* An experiment's journal is to be carried elsewhere, so it lies where the user is. */
static int take_experiment(struct request *r)
{
	struct experiment *e = &r->experiment;

	if (r->journal && !r->journal[0])
		return usage_error("calibrate", "--journal needs the name of a file");
	r->plan.budget = r->budget > 0 ? r->budget : TAIL_BUDGET;
	if (!r->journal)
		r->journal = e->kind == EXPERIMENT_PAPER ? "paper.jsonl"
			     : e->fifo			 ? "tail-fifo.jsonl"
							 : "tail.jsonl";
	/* Its cells are a fixed list: shards and resumed runs must agree on it. */
	if (!r->have_seed)
		r->seed = 1;
	e->paper.seed = r->seed;
	e->journal = r->journal;
	e->figure = r->figure;
	return EXIT_PASS;
}

/* Other places and another order in each run: only so do runs tell more together. */
static uint64_t draw_seed(void)
{
	uint32_t seed = 1;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint32_t)time(NULL);
	return seed;
}

static int take_plan(struct request *r, const bool *given)
{
	const struct plan *plan;
	int status;

	r->experiment.kind = experiment_find(r->plan_name);
	/* What an experiment has in common with a calibration is where threads can sit. */
	plan = plan_find(r->experiment.kind ? "default" : r->plan_name);
	if (!plan)
		return usage_error("calibrate", "no plan is called '%s'", r->plan_name);
	status = check_uses(r, given);
	if (status != EXIT_PASS)
		return status;
	if (r->budget > 0 && r->budget < BUDGET_MIN)
		return usage_error("calibrate", "a budget below %g s proves nothing", BUDGET_MIN);
	r->plan = *plan;
	if (!r->have_seed)
		r->seed = draw_seed();
	if (r->experiment.kind)
		return take_experiment(r);
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
	return take_output(r);
}

int request_parse(int argc, char **argv, struct request *r)
{
	bool given[OPTION_LAST] = { false };
	int option;

	*r = (struct request){ .seed = 1 };
	r->plan_name = "default";
	r->experiment.shard = (struct shard){ 1, 1 };
	paper_defaults(&r->experiment.paper);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (!take_option(option, optarg, r))
			return EXIT_USAGE;
		given[option] = true;
	}
	r->journals = argv + optind;
	r->journal_count = argc - optind;
	r->merge = given[OPTION_MERGE];
	return take_plan(r, given);
}

const char *request_help(void)
{
	return help;
}
