/* SPDX-License-Identifier: MIT */
/*
 * tmax calibrate: the main job.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/commands.h"
#include "calibrate/conf_write.h"
#include "calibrate/exit_status.h"
#include "calibrate/here.h"
#include "calibrate/options.h"
#include "calibrate/search.h"
#include "calibrate/summary.h"
#include "patchcore/machine_conf.h"
#include "results/figure.h"
#include "stress/clock.h"

#define BUDGET_MIN 5.0 /* seconds; less cannot pass through all stages */

enum {
	OPTION_PLAN_QUICK = 1,
	OPTION_PLAN_THOROUGH,
	OPTION_BUDGET,
	OPTION_CEILING,
	OPTION_OUTPUT,
	OPTION_JOURNAL,
	OPTION_RESUME,
	OPTION_FIGURE,
	OPTION_SEED_OF_RUN,
	OPTION_QUIET,
	OPTION_HELP,
};

static const char help[] =
	"Usage: tmax calibrate [OPTION]...\n"
	"Find the waits after which no executor tears on this machine, and write them\n"
	"to machine.conf.\n"
	"\n"
	"  --quick            within a minute, with a weaker bound\n"
	"  --thorough         two hours; neither: a quarter of an hour\n"
	"  --budget TIME      another time, such as 10m (at least 5s)\n"
	"  --ceiling TICKS    the longest wait to try (100000)\n"
	"  --output FILE      the config (default: where the library looks for it)\n"
	"  --journal FILE     append a line per cell (default: the config's name + .jsonl)\n"
	"  --resume           skip what the journal already holds\n"
	"  --figure PREFIX    draw tears against the wait as PREFIX.svg and PREFIX.png\n"
	"  --seed N           of the run (1)\n"
	"  --quiet            no progress\n"
	"  --help\n"
	"\n"
	"Exit status: 0 pass, 1 no wait is free of tears, 2 inconclusive, 64 usage,\n"
	"69 something is missing, 73 cannot create, 74 cannot write, 130 interrupted.\n";

static const struct option options[] = {
	{ "quick", no_argument, NULL, OPTION_PLAN_QUICK },
	{ "thorough", no_argument, NULL, OPTION_PLAN_THOROUGH },
	{ "budget", required_argument, NULL, OPTION_BUDGET },
	{ "ceiling", required_argument, NULL, OPTION_CEILING },
	{ "output", required_argument, NULL, OPTION_OUTPUT },
	{ "journal", required_argument, NULL, OPTION_JOURNAL },
	{ "resume", no_argument, NULL, OPTION_RESUME },
	{ "figure", required_argument, NULL, OPTION_FIGURE },
	{ "seed", required_argument, NULL, OPTION_SEED_OF_RUN },
	{ "quiet", no_argument, NULL, OPTION_QUIET },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ 0 },
};

struct request {
	struct plan plan;
	const char *output;
	char default_output[PATH_MAX];
	const char *journal;
	char default_journal[4096 + 8];
	const char *figure;
	uint64_t seed;
	bool resume;
	bool quiet;
	bool help;
};

static bool take_option(int option, const char *text, struct request *r, const char **plan,
			double *budget, uint64_t *ceiling)
{
	switch (option) {
	case OPTION_PLAN_QUICK:
		*plan = "quick";
		return true;
	case OPTION_PLAN_THOROUGH:
		*plan = "thorough";
		return true;
	case OPTION_BUDGET:
		return option_seconds("budget", text, budget);
	case OPTION_CEILING:
		return option_u64("ceiling", text, 1, CELL_WAIT_MAX, ceiling);
	case OPTION_OUTPUT:
		r->output = text;
		return true;
	case OPTION_JOURNAL:
		r->journal = text;
		return true;
	case OPTION_FIGURE:
		r->figure = text;
		return true;
	case OPTION_SEED_OF_RUN:
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
	return false;
}

static int take_output(struct request *r)
{
	if (r->output && !r->output[0])
		return usage_error("calibrate", "--output needs the name of a file");
	if (r->journal && !r->journal[0])
		return usage_error("calibrate", "--journal needs the name of a file");
	if (!r->output) {
		r->output = r->default_output;
		if (machine_conf_default_path(r->default_output, sizeof(r->default_output)) < 0)
			return usage_error("calibrate",
					   "no home folder to write to: give --output");
	}
	if (r->journal)
		return EXIT_PASS;
	r->journal = r->default_journal;
	snprintf(r->default_journal, sizeof(r->default_journal), "%.4096s.jsonl", r->output);
	return EXIT_PASS;
}

static int parse(int argc, char **argv, struct request *r)
{
	const char *plan = "default";
	uint64_t ceiling = 0;
	double budget = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(option, optarg, r, &plan, &budget, &ceiling))
			return EXIT_USAGE;
	if (optind < argc)
		return usage_error("calibrate", "unexpected argument '%s'", argv[optind]);
	if (budget > 0 && budget < BUDGET_MIN)
		return usage_error("calibrate", "a budget below %g s proves nothing", BUDGET_MIN);
	r->plan = *plan_find(plan);
	if (budget > 0)
		r->plan.budget = budget;
	if (ceiling)
		r->plan.ceiling = ceiling;
	return take_output(r);
}

/* Better to fail before a quarter of an hour of work than after it. */
static int check_output(const char *path)
{
	int ret = conf_check(path);

	if (ret == 0)
		return EXIT_PASS;
	fprintf(stderr, "tmax: cannot write %s: %s\n", path, strerror(-ret));
	return EXIT_CANNOT_CREATE;
}

static json_t *gaps_json(const struct plan *plan)
{
	json_t *gaps = json_array();

	for (unsigned i = 0; i < plan->gaps; i++)
		json_array_append_new(gaps, json_pack("{s:s, s:s}", "placement",
						      placement_name(plan->gap[i].placement),
						      "reason", plan->gap[i].reason));
	return gaps;
}

/* What is there already, if we are to go on with it. */
static int resume(struct session *s, const struct request *r, const struct identity *id)
{
	const char *field;
	int ret = journal_read(r->journal, &s->known);

	if (ret == -ENOENT)
		return EXIT_PASS;
	if (ret < 0) {
		fprintf(stderr, "tmax: cannot read journal %s: %s\n", r->journal, strerror(-ret));
		return EXIT_MISSING;
	}
	if (s->known.skipped)
		fprintf(stderr, "tmax: %s: %zu unreadable lines skipped, the first is line %zu\n",
			r->journal, s->known.skipped, s->known.first_bad);
	field = s->known.have_identity ? identity_differs(&s->known.identity, id) : NULL;
	if (!field && !s->known.mixed)
		return EXIT_PASS;
	fprintf(stderr, "tmax: %s is of another machine (%s differs): not resumed\n", r->journal,
		field ? field : "it is mixed, something");
	return EXIT_USAGE;
}

static int open_journal(struct session *s, const struct request *r, const struct identity *id)
{
	json_t *gaps;
	int ret, status = r->resume ? resume(s, r, id) : EXIT_PASS;

	if (status != EXIT_PASS)
		return status;
	ret = journal_open(&s->journal, r->journal);
	if (ret < 0) {
		fprintf(stderr, "tmax: cannot open journal %s: %s\n", r->journal, strerror(-ret));
		return EXIT_CANNOT_CREATE;
	}
	gaps = gaps_json(&r->plan);
	ret = journal_write_run(s->journal, r->plan.name, id, gaps);
	json_decref(gaps);
	if (ret == 0)
		return EXIT_PASS;
	fprintf(stderr, "tmax: cannot write journal %s: %s\n", r->journal, strerror(-ret));
	return EXIT_CANNOT_WRITE;
}

/*
 * Does an earlier run's pass stand? A run that could not decide takes nothing
 * back, unless it saw tears at the waits that the earlier one proved.
 */
static bool earlier_stands(const struct request *r, const struct identity *id,
			   const struct estimate *e)
{
	struct machine_conf earlier;
	char why[160];

	return e->verdict == VERDICT_INCONCLUSIVE &&
	       machine_conf_read(&earlier, r->output, why, sizeof(why)) == 0 && earlier.usable &&
	       !identity_differs(&earlier.identity, id) &&
	       !(e->torn.seen[0] && e->torn.wait[0] >= earlier.first_wait) &&
	       !(e->torn.seen[1] && e->torn.wait[1] >= earlier.second_wait);
}

static int write_conf(const struct request *r, const struct estimate *e,
		      const struct provenance *from)
{
	int ret;

	if (earlier_stands(r, from->identity, e)) {
		printf("Config:  %s, kept: an earlier run passed, and this one does not speak "
		       "against it\n",
		       r->output);
		return EXIT_PASS;
	}
	ret = conf_write(r->output, e, from);

	if (ret == 0) {
		printf("Config:  %s\n", r->output);
		return EXIT_PASS;
	}
	fprintf(stderr, "tmax: cannot write %s: %s\n", r->output, strerror(-ret));
	return EXIT_CANNOT_WRITE;
}

/* A figure is a service: without gnuplot the calibration stands all the same. */
static void draw(const struct session *s, const struct request *r, const struct identity *id)
{
	struct journal_data data = {
		.have_identity = 1,
		.identity = *id,
		.records = s->done,
		.count = s->count,
	};
	char error[256] = "";

	if (!r->figure)
		return;
	if (figure9_write(&data, r->figure, error, sizeof(error)) == 0)
		printf("Figure:  %s.svg, %s.png (data: %s.dat)\n", r->figure, r->figure, r->figure);
	else
		fprintf(stderr, "tmax: no figure: %s\n", error);
}

static int exit_of(const struct estimate *e)
{
	static const int status[] = {
		[VERDICT_PASS] = EXIT_PASS,
		[VERDICT_FAIL] = EXIT_TEARS,
		[VERDICT_INCONCLUSIVE] = EXIT_INCONCLUSIVE,
	};

	return status[e->verdict];
}

static struct provenance provenance_of(const struct request *r, const struct identity *id)
{
	const char *slash = strrchr(r->journal, '/');

	return (struct provenance){
		.identity = id,
		.plan = &r->plan,
		.journal = slash ? slash + 1 : r->journal,
	};
}

/* What is known is told all the same, but there is nowhere to keep it. */
static int conclude_unkept(const struct request *r, const struct identity *id, struct estimate *e)
{
	struct provenance from = provenance_of(r, id);

	e->verdict = VERDICT_INCONCLUSIVE;
	snprintf(e->reason, sizeof(e->reason), "broken off: the journal cannot be written");
	summary_print(stdout, e, &from);
	return EXIT_CANNOT_WRITE;
}

static int conclude(struct session *s, const struct request *r, const struct identity *id,
		    const struct estimate *e, bool cut_short)
{
	struct provenance from = provenance_of(r, id);
	json_t *body = estimate_to_json(e);
	int ret = body ? journal_write_estimate(s->journal, body) : -ENOMEM;
	int status = EXIT_PASS;

	json_decref(body);
	if (ret < 0)
		fprintf(stderr, "tmax: cannot write the journal: %s\n", strerror(-ret));
	summary_print(stdout, e, &from);
	/* What was cut short does not replace what an earlier run has proved. */
	if (!cut_short)
		status = write_conf(r, e, &from);
	printf("Journal: %s\n", r->journal);
	draw(s, r, id);
	if (cut_short)
		return EXIT_INTERRUPTED;
	if (status != EXIT_PASS)
		return status;
	return ret < 0 ? EXIT_CANNOT_WRITE : exit_of(e);
}

static int run_session(struct session *s, const struct request *r, const struct identity *id)
{
	struct estimate estimate;
	int ret, status = open_journal(s, r, id);

	if (status != EXIT_PASS)
		return status;
	ret = search_run(s, &r->plan, &estimate);
	if (ret == 0 || ret == -EINTR)
		return conclude(s, r, id, &estimate, ret == -EINTR);
	if (ret == -EIO)
		return conclude_unkept(r, id, &estimate);
	fprintf(stderr, "tmax: the calibration broke off: %s\n", strerror(-ret));
	return EXIT_MISSING;
}

static int run(struct request *r)
{
	struct session s = {
		.stop = &interrupted,
		.budget = r->plan.budget,
		.begin = seconds_now(),
		.seed = r->seed,
	};
	struct identity id;
	int status;

	if (identity_read(&id) < 0) {
		fprintf(stderr, "tmax: cannot tell what machine this is\n");
		return EXIT_MISSING;
	}
	if (!id.tsc_invariant)
		fprintf(stderr,
			"tmax: the TSC is not invariant: the library will refuse to wait by it\n");
	status = topology_here(&s.topology);
	if (status != EXIT_PASS)
		return status;
	plan_seat(&r->plan, s.topology);
	progress_open(&s.progress, r->quiet);
	status = run_session(&s, r, &id);
	session_free(&s);
	hwloc_topology_destroy(s.topology);
	return status;
}

int cmd_calibrate(int argc, char **argv)
{
	struct request r = { .seed = 1 };
	int status = parse(argc, argv, &r);

	if (status != EXIT_PASS)
		return status;
	if (r.help) {
		fputs(help, stdout);
		return EXIT_PASS;
	}
	status = check_output(r.output);
	return status != EXIT_PASS ? status : run(&r);
}
