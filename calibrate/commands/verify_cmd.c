/* SPDX-License-Identifier: MIT */
/*
 * tmax verify: does the config in force hold on this machine, today?
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"
#include "calibrate/program/here.h"
#include "calibrate/program/options.h"
#include "calibrate/statistics/evidence.h"
#include "calibrate/verify/verify_conf.h"
#include "calibrate/verify/verify_print.h"
#include "calibrate/verify/verify_run.h"
#include "patchcore/machine/conf_open.h"
#include "patchcore/machine/conf_path.h"
#include "patchcore/machine/conf_read.h"
#include "patchcore/machine/policy.h"
#include "stress/base/clock.h"

#define BUDGET	   30.0
#define BUDGET_MIN 2.0 /* seconds; less cannot pass through all cells */

enum {
	OPTION_BUDGET = 1,
	OPTION_CONFIG,
	OPTION_FORMAT,
	OPTION_OUTPUT,
	OPTION_JOURNAL,
	OPTION_SEED_OF_RUN,
	OPTION_HELP,
};

static const char help[] =
	"Usage: tmax verify [OPTION]...\n"
	"Run the worst cells of the machine.conf in force at its waits, with fresh seeds,\n"
	"and tell whether it holds.\n"
	"\n"
	"  --budget TIME      how long to take, at least 2s (30s)\n"
	"  --config FILE      another config than the one that the library would find\n"
	"  --format NAME      text, tap, junit or json (text)\n"
	"  --output FILE      write the report there instead of standard output\n"
	"  --journal FILE     append a line per cell\n"
	"  --seed N           of the run (drawn, and told in the report)\n"
	"  --help\n"
	"\n"
	"Exit status: 0 it holds, 1 broken, 2 inconclusive, 3 no config that applies,\n"
	"64 usage, 69 something is missing, 73 cannot create, 74 cannot write,\n"
	"130 interrupted.\n";

static const struct option options[] = {
	{ "budget", required_argument, NULL, OPTION_BUDGET },
	{ "config", required_argument, NULL, OPTION_CONFIG },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "output", required_argument, NULL, OPTION_OUTPUT },
	{ "journal", required_argument, NULL, OPTION_JOURNAL },
	{ "seed", required_argument, NULL, OPTION_SEED_OF_RUN },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ 0 },
};

struct request {
	double budget;
	const char *config;
	const char *output;
	const char *journal;
	int format;
	uint64_t seed;
	bool have_seed;
	bool help;
	FILE *report;
};

static bool take_option(int option, const char *text, struct request *r)
{
	switch (option) {
	case OPTION_BUDGET:
		return option_seconds("budget", text, &r->budget);
	case OPTION_CONFIG:
		r->config = text;
		return true;
	case OPTION_FORMAT:
		return option_name("format", text, verify_format_parse, &r->format);
	case OPTION_OUTPUT:
		r->output = text;
		return true;
	case OPTION_JOURNAL:
		r->journal = text;
		return true;
	case OPTION_SEED_OF_RUN:
		r->have_seed = true;
		return option_u64("seed", text, 0, INT64_MAX, &r->seed);
	case OPTION_HELP:
		r->help = true;
		return true;
	}
	return false;
}

static int parse(int argc, char **argv, struct request *r)
{
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(option, optarg, r))
			return EXIT_USAGE;
	if (optind < argc)
		return usage_error("verify", "unexpected argument '%s'", argv[optind]);
	if (r->budget < BUDGET_MIN)
		return usage_error("verify", "a budget below %g s shows nothing", BUDGET_MIN);
	if ((r->config && !r->config[0]) || (r->output && !r->output[0]) ||
	    (r->journal && !r->journal[0]))
		return usage_error("verify", "--config, --output and --journal need the name of "
					     "a file");
	return EXIT_PASS;
}

/* --- the config --- */

static bool find_conf(struct verify *v, const char *named, char *path, size_t size)
{
	int ret = 0;

	if (named)
		snprintf(path, size, "%s", named);
	else
		ret = machine_conf_find(path, size);
	if (ret == 0) {
		verify_printable(v->config, sizeof(v->config), path);
		return true;
	}
	verify_refuse(v, ret == -ENOENT ? "no machine.conf was found: run tmax calibrate"
					: "the path of machine.conf is too long");
	return false;
}

static bool read_conf(struct verify *v, const char *path)
{
	char why[256];

	if (machine_conf_read(&v->conf, path, why, sizeof(why)) == 0) {
		v->have_conf = true;
		return true;
	}
	verify_refuse(v, "%s: %s", v->config, why);
	return false;
}

/* The library would refuse it for the same reasons. */
static bool conf_applies(struct verify *v)
{
	char why[160];
	const char *problem = conf_problem(&v->conf, &v->here, why, sizeof(why));

	if (problem)
		verify_refuse(v, "the config does not apply: %s", problem);
	return !problem;
}

/* Returns how many cells the config names, or a negative errno after refusing it. */
static int read_cells(struct verify *v, const char *path, struct cell *worst)
{
	char why[400] = "";
	int fd = conf_open(path, why, sizeof(why)), ret = fd;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (f) {
		ret = verify_conf_cells(f, worst, VERIFY_WORST_MAX, why, sizeof(why));
		fclose(f);
	} else if (fd >= 0) {
		ret = -errno;
		close(fd);
	}
	if (ret < 0)
		verify_refuse(v, "%s: %s", v->config, why[0] ? why : strerror(-ret));
	return ret;
}

/* --- the run --- */

static int open_journal(struct session *s, const char *path, const struct identity *id)
{
	/* The session keeps all in one; without a name it is kept nowhere. */
	int ret = journal_open(&s->journal, path ? path : "/dev/null");

	if (ret < 0) {
		fprintf(stderr, "tmax: cannot open journal %s: %s\n", path ? path : "/dev/null",
			strerror(-ret));
		return EXIT_CANNOT_CREATE;
	}
	ret = journal_write_run(s->journal, "verify", id, NULL);
	if (ret == 0)
		return EXIT_PASS;
	fprintf(stderr, "tmax: cannot write journal %s: %s\n", path ? path : "/dev/null",
		strerror(-ret));
	return EXIT_CANNOT_WRITE;
}

/* What it counted adds to what is known. That the store cannot be written takes nothing away. */
static void add_evidence(const struct verify *v, const struct session *s, const char *config)
{
	char path[PATH_MAX + 16];
	struct cpus cpus;

	snprintf(path, sizeof(path), "%s.evidence", config);
	cpus_here(s->topology, &cpus);
	evidence_add(path, "verify", &v->here, &cpus, s->done, s->count);
}

static int run(struct verify *v, const struct request *r, const char *config,
	       const struct cell *worst, unsigned count)
{
	struct session s = {
		.stop = &interrupted,
		.budget = v->budget,
		.begin = seconds_now(),
		.seed = v->seed,
	};
	int status = topology_here(&s.topology);

	if (status != EXIT_PASS)
		return status;
	status = open_journal(&s, r->journal, &v->here);
	if (status == EXIT_PASS) {
		progress_open(&s.progress, !isatty(STDERR_FILENO));
		verify_plan(v, s.topology, worst, count);
		verify_run(v, &s);
		v->seconds = seconds_now() - s.begin;
		verify_judge(v);
		add_evidence(v, &s, config);
	}
	session_free(&s);
	hwloc_topology_destroy(s.topology);
	return status;
}

static int draw_seed(const struct request *r, struct verify *v)
{
	v->seed = r->seed;
	if (!r->have_seed && getrandom(&v->seed, sizeof(v->seed), 0) != sizeof(v->seed)) {
		fprintf(stderr, "tmax: cannot draw a seed: give --seed\n");
		return EXIT_MISSING;
	}
	v->seed &= INT64_MAX;
	return EXIT_PASS;
}

static int verify(struct verify *v, const struct request *r)
{
	static struct cell worst[VERIFY_WORST_MAX];
	char path[PATH_MAX];
	int status, count;

	if (identity_read(&v->here) < 0) {
		fprintf(stderr, "tmax: cannot tell what machine this is\n");
		return EXIT_MISSING;
	}
	v->have_here = true;
	status = draw_seed(r, v);
	if (status != EXIT_PASS)
		return status;
	if (!find_conf(v, r->config, path, sizeof(path)) || !read_conf(v, path) || !conf_applies(v))
		return EXIT_PASS;
	count = read_cells(v, path, worst);
	return count < 0 ? EXIT_PASS : run(v, r, path, worst, (unsigned)count);
}

/* --- the report --- */

static int open_report(struct request *r)
{
	r->report = r->output ? fopen(r->output, "we") : stdout;
	if (r->report)
		return EXIT_PASS;
	fprintf(stderr, "tmax: cannot create %s: %s\n", r->output, strerror(errno));
	return EXIT_CANNOT_CREATE;
}

static int close_report(struct request *r)
{
	bool failed;

	if (!r->output)
		return EXIT_PASS; /* main() looks after standard output */
	failed = ferror(r->report);
	errno = 0;
	if (fclose(r->report) == 0 && !failed)
		return EXIT_PASS;
	fprintf(stderr, "tmax: cannot write %s: %s\n", r->output, strerror(errno ? errno : EIO));
	return EXIT_CANNOT_WRITE;
}

static int report(struct request *r, struct verify *v)
{
	int status = verify(v, r);

	if (status != EXIT_PASS) {
		close_report(r);
		return status;
	}
	journal_date(v->date, sizeof(v->date));
	verify_print(r->report, v, (enum verify_format)r->format);
	status = close_report(r);
	if (v->verdict == VERIFY_NO_CONF)
		fprintf(stderr, "tmax: %s\n", v->reason);
	return status != EXIT_PASS ? status : v->status;
}

int cmd_verify(int argc, char **argv)
{
	struct request r = { .budget = BUDGET, .format = VERIFY_TEXT };
	struct verify *v;
	int status = parse(argc, argv, &r);

	if (status != EXIT_PASS)
		return status;
	if (r.help) {
		fputs(help, stdout);
		return EXIT_PASS;
	}
	status = open_report(&r);
	if (status != EXIT_PASS)
		return status;
	v = calloc(1, sizeof(*v));
	if (!v) {
		fprintf(stderr, "tmax: out of memory\n");
		return EXIT_MISSING;
	}
	v->budget = r.budget;
	status = report(&r, v);
	free(v);
	return status;
}
