/* SPDX-License-Identifier: MIT */
#include "commands/tmax/calibrate_options.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/command_line.h"
#include "base/exit_status.h"
#include "patchcore/machine/machine_conf.h"

#define BUDGET_MIN 5 /* seconds; less cannot pass through all stages */
#define NO_SEED	   UINT64_MAX

static int only_parse(const char *name)
{
	return strcmp(name, "window") == 0 ? ONLY_WINDOW
	       : strcmp(name, "gaps") == 0 ? ONLY_GAPS
					   : -1;
}

static int plan_known(const char *name)
{
	return plan_find(name) ? 0 : -1;
}

#define PLAN(name) OPTION_TEXT(struct request, plan_name), .fixed = (name)

static const struct option_row options[] = {
	{ "plan", "NAME", "quick, default or thorough", OPTION_TEXT(struct request, plan_name),
	  .parse = plan_known },
	{ "quick", NULL, "plan quick: a minute", PLAN("quick") },
	{ "thorough", NULL, "plan thorough: two hours; default: a quarter of an hour",
	  PLAN("thorough") },
	{ "budget", "TIME", "another time, such as 10m (at least 5s)",
	  OPTION_TIME(struct request, budget, BUDGET_MIN) },
	{ "require-p", "P", "tears per toggle that a pass stays below (1e-4)",
	  OPTION_INTO(option_probability, struct request, require_p) },
	{ "only", "WHAT", "all of it for window: stores inside a line; or gaps: of fetches",
	  OPTION_CHOICE(struct request, only, only_parse) },
	{ "output", "FILE", "the config (default: where the library looks for it)",
	  OPTION_FILE(struct request, output) },
	{ "journal", "FILE", "append a line per cell (default: the config's name + .jsonl)",
	  OPTION_FILE(struct request, journal) },
	{ "evidence", "FILE", "the store (default: the config's name + .evidence)",
	  OPTION_FILE(struct request, evidence) },
	{ "idle", NULL, "end early when other programs want the machine",
	  OPTION_FLAG(struct request, idle) },
	{ "verbose", NULL, "tell every rung and placement, too",
	  OPTION_FLAG(struct request, verbose) },
	{ "json", NULL, "print the estimate as one line of JSON instead of text",
	  OPTION_FLAG(struct request, json) },
	{ "resume", NULL, "skip what the journal holds of a run that was killed",
	  OPTION_FLAG(struct request, resume) },
	{ "seed", "N", "of the run (drawn anew)",
	  OPTION_NUMBER(struct request, seed, 0, INT64_MAX) },
	{ "quiet", NULL, "no progress", OPTION_FLAG(struct request, quiet) },
	{ 0 },
};

static const struct command_line command = {
	.about = "Find out how often executors tear on this machine after how long a wait, add it\n"
		 "to the store of evidence, and write what all of it says to machine.conf.\n",
	.options = { options },
	.end = "Exit status: 0 pass, 1 no wait is good enough, 2 inconclusive, 64 usage,\n"
	       "69 something is missing, 73 cannot create, 74 cannot write, 130 interrupted.\n",
};

int request_parse(int argc, char **argv, struct request *r)
{
	uint32_t seed;
	int status;

	*r = (struct request){ .seed = NO_SEED, .plan_name = "default" };
	status = command_line_parse(&command, argc, argv, r, NULL);
	if (status != EXIT_PASS)
		return status;
	r->plan = *plan_find(r->plan_name);
	r->have_seed = r->seed != NO_SEED;
	/* Other places and another order in each run: only so do runs tell more together. */
	if (!r->have_seed)
		r->seed = getrandom(&seed, sizeof(seed), 0) == sizeof(seed) ? seed
									    : (uint32_t)time(NULL);
	if (r->budget > 0)
		r->plan.budget = r->budget;
	r->plan.idle = r->idle;
	r->plan.only = r->only;
	if (r->plan.only) {
		r->plan.window = r->only == ONLY_WINDOW;
		r->plan.fetch_gaps = r->only == ONLY_GAPS;
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
