/* SPDX-License-Identifier: MIT */
/*
 * tmax verify: does the config in force hold on this machine, today?
 */
#include <errno.h>
#include <error.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "calibrate/program/command_line.h"
#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"
#include "calibrate/program/here.h"
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
#define BUDGET_MIN 2 /* seconds; less cannot pass through all cells */
#define NO_SEED	   UINT64_MAX

struct request {
	double budget;
	const char *config;
	const char *output;
	const char *journal;
	enum verify_format format;
	uint64_t seed;
	FILE *report;
};

static const struct option_row options[] = {
	{ "budget", "TIME", "how long to take, at least 2s (30s)",
	  OPTION_TIME(struct request, budget, BUDGET_MIN) },
	{ "config", "FILE", "another config than the one that the library would find",
	  OPTION_FILE(struct request, config) },
	{ "format", "NAME", "text, tap, junit or json (text)",
	  OPTION_CHOICE(struct request, format, verify_format_parse) },
	{ "output", "FILE", "write the report there instead of standard output",
	  OPTION_FILE(struct request, output) },
	{ "journal", "FILE", "append a line per cell", OPTION_FILE(struct request, journal) },
	{ "seed", "N", "of the run (drawn, and told in the report)",
	  OPTION_NUMBER(struct request, seed, 0, INT64_MAX) },
	{ 0 },
};

static const struct command_line line = {
	.name = "verify",
	.about = "Run the worst cells of the machine.conf in force at its waits, with fresh "
		 "seeds,\n"
		 "and tell whether it holds.\n",
	.options = { options },
	.end = "Exit status: 0 it holds, 1 broken, 2 inconclusive, 3 no config that applies,\n"
	       "64 usage, 69 something is missing, 73 cannot create, 74 cannot write,\n"
	       "130 interrupted.\n",
};

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
		error(0, -ret, "cannot open journal %s", path ? path : "/dev/null");
		return EXIT_CANNOT_CREATE;
	}
	ret = journal_write_run(s->journal, "verify", id, NULL);
	if (ret == 0)
		return EXIT_PASS;
	error(0, -ret, "cannot write journal %s", path ? path : "/dev/null");
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
	if (r->seed == NO_SEED && getrandom(&v->seed, sizeof(v->seed), 0) != sizeof(v->seed)) {
		error(0, 0, "cannot draw a seed: give --seed");
		return EXIT_MISSING;
	}
	v->seed &= INT64_MAX;
	return EXIT_PASS;
}

static int verify(struct verify *v, const struct request *r)
{
	static struct cell worst[VERIFY_WORST_MAX];
	char path[PATH_MAX];
	int count, status = machine_here(&v->here);

	v->have_here = status == EXIT_PASS;
	if (status == EXIT_PASS)
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
	error(0, errno, "cannot create %s", r->output);
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
	error(0, errno ? errno : EIO, "cannot write %s", r->output);
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
	verify_print(r->report, v, r->format);
	status = close_report(r);
	if (v->verdict == VERIFY_NO_CONF)
		error(0, 0, "%s", v->reason);
	return status != EXIT_PASS ? status : v->status;
}

int cmd_verify(int argc, char **argv)
{
	struct request r = { .budget = BUDGET, .format = VERIFY_TEXT, .seed = NO_SEED };
	struct verify *v;
	int status = command_line_parse(&line, argc, argv, &r, NULL);

	if (status == EXIT_PASS)
		status = open_report(&r);
	if (status != EXIT_PASS)
		return status;
	v = calloc(1, sizeof(*v));
	if (!v) {
		error(0, 0, "out of memory");
		return EXIT_MISSING;
	}
	v->budget = r.budget;
	status = report(&r, v);
	free(v);
	return status;
}
