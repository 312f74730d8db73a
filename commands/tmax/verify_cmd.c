/* SPDX-License-Identifier: MIT */
/* tmax verify: does the config in force hold on this machine, today? */
#include <errno.h>
#include <error.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "calibrate/statistics/evidence.h"
#include "calibrate/verify/verify.h"
#include "commands/tmax/commands.h"
#include "conform/rounds.h"
#include "patchcore/machine/machine_conf.h"
#include "patchcore/machine/policy.h"

#define BUDGET	   30.0
#define BUDGET_MIN 2 /* seconds; less cannot pass through all cells */
#define NO_SEED	   UINT64_MAX

#define CONFORM_SHARE 0.1  /* of the budget */
#define SAME_CLOCK    0.01 /* TSCs of one machine differ between boots */

struct verify_request {
	double budget;
	const char *config, *baseline, *output, *journal;
	double accept_p; /* 0: what the calibration was to keep */
	enum verify_format format;
	uint64_t seed;
	double conform; /* seconds; below 0: a share of the budget */
};

static const struct option_row options[] = {
	{ "budget", "TIME", "how long to take, at least 2s (30s)",
	  OPTION_TIME(struct verify_request, budget, BUDGET_MIN) },
	{ "config", "FILE", "another config than the one that the library would find",
	  OPTION_FILE(struct verify_request, config) },
	{ "accept-p", "P", "try the waits that the library uses for it (the config's require_p)",
	  OPTION_INTO(option_probability, struct verify_request, accept_p) },
	{ "baseline", "FILE", "an older config: has its ladder risen since?",
	  OPTION_FILE(struct verify_request, baseline) },
	{ "conform", "TIME", "for what processor and kernel promise, 0: none (a tenth)",
	  OPTION_LIMIT(struct verify_request, conform) },
	{ "format", "NAME", "text, junit or json (text)",
	  OPTION_CHOICE(struct verify_request, format, verify_format_parse) },
	{ "output", "FILE", "write the report there instead of standard output",
	  OPTION_FILE(struct verify_request, output) },
	{ "journal", "FILE", "append a line per cell",
	  OPTION_FILE(struct verify_request, journal) },
	{ "seed", "N", "of the run (drawn, and told in the report)",
	  OPTION_NUMBER(struct verify_request, seed, 0, INT64_MAX) },
	{ 0 },
};

static const struct command_line line = {
	.about = "Run all placements at the waits of the machine.conf in force, with fresh seeds,\n"
		 "and tell whether it holds. Some of the time goes into what processor and kernel\n"
		 "promise, as in tmax conform.\n",
	.options = { options },
	.end = "Exit status: 0 it holds, 1 broken, 2 inconclusive, 3 no config\n"
	       "that applies, 64 usage, 69 something is missing, 73 cannot create, 74 cannot\n"
	       "write, 130 interrupted.\n",
};

/* The config that is to hold. False after refusing it, for the same reasons as the library. */
static bool load_conf(struct verify *v, const char *named, char *path, size_t size)
{
	char why[400] = "";
	const char *problem;
	int ret = 0;

	if (named)
		snprintf(path, size, "%s", named);
	else
		ret = machine_conf_find(path, size);
	if (ret < 0)
		return verify_conclude(v, VERIFY_NO_CONF,
				       ret == -ENOENT ? "no machine.conf was found"
						      : "the path of machine.conf is too long");
	text_printable(v->config, sizeof(v->config), path);
	if (machine_conf_read(&v->conf, path, why, sizeof(why)) < 0)
		return verify_conclude(v, VERIFY_NO_CONF, "%s: %s", v->config, why);
	v->have_conf = true;
	problem = conf_problem(&v->conf, &v->here, why, sizeof(why));
	if (problem)
		return verify_conclude(v, VERIFY_NO_CONF, "the config does not apply: %s", problem);
	return true;
}

/* The older one. Its waits are ticks of the same clock, on the same kind of processor. */
static bool load_baseline(struct verify *v, const char *path, struct machine_conf *before)
{
	const struct identity *one = &before->identity, *here = &v->here;
	char why[400] = "", name[sizeof(v->config)];

	text_printable(name, sizeof(name), path);
	if (machine_conf_read(before, path, why, sizeof(why)) < 0)
		return verify_conclude(v, VERIFY_NO_CONF, "baseline %s: %s", name, why);
	if (strcmp(one->vendor, here->vendor) == 0 && one->family == here->family &&
	    one->model == here->model &&
	    fabs((double)one->tsc_khz / (double)here->tsc_khz - 1) < SAME_CLOCK)
		return true;
	return verify_conclude(
		v, VERIFY_NO_CONF,
		"baseline %s: it is of another processor, or its TSC had another rate", name);
}

/* A share of them, from a CPU that is drawn: other runs begin with others. */
static void try_promises(struct verify *v, const struct cpus *cpus, double seconds)
{
	struct conform_request r = {
		.budget = seconds,
		.strict = true,
		.seed = v->seed,
		.load = LOAD_IN_TURN,
		.broadcast = has_broadcast_flush(),
		.try_one = conform_run,
		.stop = &interrupted,
	};
	static const enum verify_status statuses[] = {
		[PROMISE_HOLDS] = STATUS_HELD,	    [PROMISE_BROKEN] = STATUS_BROKEN,
		[PROMISE_UNCLEAR] = STATUS_UNCLEAR, [PROMISE_TOO_LITTLE] = STATUS_UNCLEAR,
		[PROMISE_ERROR] = STATUS_UNCLEAR,   [PROMISE_UNTRIED] = STATUS_SKIPPED,
	};
	struct conformance tried = { 0 };

	if (conform_request_all(&r, cpus) == 0 && conformance_try(&tried, &r) == 0)
		for (const struct tried *t = tried.tried; t < tried.tried + tried.count; t++) {
			struct verify_promise *p = &v->promise[v->promises++];

			*p = (struct verify_promise){
				.name = t->guarantee->name,
				.status = statuses[tried_status(t)],
				.trials = t->trials,
				.failures = t->failures,
				.seconds = t->seconds,
			};
			tried_reason(t, p->reason, sizeof(p->reason));
			for (unsigned i = tried.faileds; i-- > 0;)
				if (tried.failed[i].cell.guarantee == t->guarantee)
					conform_command(&tried.failed[i].cell, p->command,
							sizeof(p->command));
		}
	conformance_free(&tried);
	free(r.cpu);
}

static int run_cells(struct verify *v, const struct verify_request *r, const char *config,
		     const struct machine_conf *before)
{
	/* The session keeps all in a journal; without a name it is kept nowhere. */
	const char *journal = r->journal ? r->journal : "/dev/null";
	struct session s = {
		.stop = &interrupted,
		.budget = v->budget,
		.begin = seconds_now(),
		.seed = v->seed,
	};
	double conform = r->conform < 0 ? CONFORM_SHARE * v->budget : r->conform;
	char store[PATH_MAX + 16];
	struct cpus cpus;
	int ret, status = topology_here(&s.topology);

	if (status != EXIT_PASS)
		return status;
	ret = journal_open(&s.journal, journal);
	if (ret < 0)
		status = complain(EXIT_CANNOT_CREATE, ret, "cannot open journal %s", journal);
	else
		ret = journal_write_run(s.journal, "verify", &v->here, NULL, JOURNAL_NO_SEED);
	if (ret < 0 && status == EXIT_PASS)
		status = complain(EXIT_CANNOT_WRITE, ret, "cannot write journal %s", journal);
	if (status != EXIT_PASS)
		goto out;
	progress_open(&s.progress, !isatty(STDERR_FILENO), v->here.tsc_khz);
	v->accept_p = r->accept_p > 0	      ? r->accept_p
		      : v->conf.require_p > 0 ? v->conf.require_p
					      : REQUIRE_P;
	verify_plan(v, s.topology);
	verify_run(v, &s, conform);
	cpus_here(s.topology, &cpus);
	if (conform > 0 && !v->cut_short)
		try_promises(v, &cpus, conform);
	if (interrupted)
		v->cut_short = EXIT_INTERRUPTED;
	v->seconds = seconds_now() - s.begin;
	if (r->baseline)
		verify_since(v, before);
	verify_judge(v);
	/*
	 * The runs are evidence, too, unless the oracle saw nothing. The verdict stands, even if
	 * the store cannot be written.
	 */
	snprintf(store, sizeof(store), "%s.evidence", config);
	if (verify_has_seen(v))
		evidence_add(store, "verify", &v->here, &cpus, s.done, s.count);
out:
	session_free(&s);
	hwloc_topology_destroy(s.topology);
	return status;
}

int cmd_verify(int argc, char **argv)
{
	struct verify_request r = {
		.budget = BUDGET,
		.format = VERIFY_TEXT,
		.seed = NO_SEED,
		.conform = -1,
	};
	int status = command_line_parse(&line, argc, argv, &r, NULL);
	char path[PATH_MAX];
	FILE *report = stdout;
	static struct verify room, *v = &room;
	static struct machine_conf before;
	bool failed;

	if (status == EXIT_PASS && fmax(r.conform, 0) > r.budget)
		status = refuse_usage("--conform is more than --budget");
	if (status != EXIT_PASS)
		return status;
	if (r.output)
		report = fopen(r.output, "we");
	if (!report)
		return complain(EXIT_CANNOT_CREATE, -errno, "cannot create %s", r.output);
	v->budget = r.budget;
	v->seed = r.seed;
	status = machine_here(&v->here);
	v->have_here = status == EXIT_PASS;
	if (status == EXIT_PASS && r.seed == NO_SEED &&
	    getrandom(&v->seed, sizeof(v->seed), 0) != sizeof(v->seed))
		status = complain(EXIT_MISSING, 0, "cannot draw a seed: give --seed");
	v->seed &= INT64_MAX;
	if (status == EXIT_PASS && load_conf(v, r.config, path, sizeof(path)) &&
	    (!r.baseline || load_baseline(v, r.baseline, &before)))
		status = run_cells(v, &r, path, &before);
	if (status == EXIT_PASS) {
		date_text(time(NULL), false, v->date);
		verify_print(report, v, r.format);
		if (v->verdict == VERIFY_NO_CONF)
			error(0, 0, "%s", v->reason);
		status = v->status;
	}
	/* main() looks after standard output. */
	failed = ferror(report);
	errno = 0;
	if (r.output && (fclose(report) != 0 || failed))
		return complain(EXIT_CANNOT_WRITE, errno ? -errno : -EIO, "cannot write %s",
				r.output);
	return status;
}
