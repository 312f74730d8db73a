/* SPDX-License-Identifier: MIT */
/*
 * tmax calibrate: the main job.
 */
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrate/climb/climb.h"
#include "calibrate/commands/calibrate_options.h"
#include "calibrate/conf/conf_write.h"
#include "calibrate/conf/summary.h"
#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"
#include "calibrate/program/here.h"
#include "calibrate/statistics/evidence.h"
#include "patchcore/machine/machine_conf.h"
#include "patchcore/machine/tsc.h"
#include "results/figures/figure.h"
#include "stress/base/clock.h"

#define LOCKED_BYTE (INT64_MAX - 1) /* of a journal: no line comes as far */

/* For people: with --json there is nothing but that on standard output. */
static void say(const struct request *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void say(const struct request *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!r->json)
		vprintf(format, args);
	va_end(args);
}

/* Better to fail before a quarter of an hour of work than after it. */
static int check_output(const char *path)
{
	char why[200];
	int ret = conf_check(path, why, sizeof(why));

	if (ret == 0 && why[0])
		error(0, 0, "the library will refuse %s: %s", path, why);
	if (ret == 0)
		return EXIT_PASS;
	error(0, -ret, "cannot write %s", path);
	return EXIT_CANNOT_CREATE;
}

static json_t *untested_json(const struct plan *plan)
{
	json_t *untested = json_array();

	for (unsigned i = 0; i < plan->unseateds; i++)
		json_array_append_new(untested,
				      json_pack("{s:s, s:s}", "placement",
						placement_name(plan->unseated[i].placement),
						"reason", plan->unseated[i].reason));
	for (unsigned i = 0; i < plan->unprovokeds; i++)
		json_array_append_new(untested,
				      json_pack("{s:s, s:s}", "provoker",
						provoker_name(plan->unprovoked[i].provoker),
						"reason", plan->unprovoked[i].reason));
	return untested;
}

/*
 * Cells before the journal's last estimate have been added to the store when it was made:
 * to count them again would be to invent evidence. A date is the second when a line was
 * written, so a cell of the same second as the estimate is measured again, which does no harm.
 */
static void forget_what_was_added(struct journal_data *known)
{
	const char *until = "";
	const json_t *line;
	size_t i, kept = 0;

	json_array_foreach(known->others, i, line)
	{
		const char *type = json_string_value(json_object_get(line, "type"));
		const char *date = json_string_value(json_object_get(line, "date"));

		if (type && date && strcmp(type, "estimate") == 0 && strcmp(date, until) > 0)
			until = date;
	}
	for (i = 0; i < known->count; i++)
		if (strcmp(known->records[i].date, until) > 0)
			known->records[kept++] = known->records[i];
	known->count = kept;
}

/* The same draws again, unless other ones are asked for. */
static void take_seed(struct session *s, const struct request *r)
{
	const json_t *line, *seed = NULL;
	size_t i;

	json_array_foreach(s->known.others, i, line)
	{
		const char *type = json_string_value(json_object_get(line, "type"));

		if (type && strcmp(type, "run") == 0 && json_object_get(line, "seed"))
			seed = json_object_get(line, "seed");
	}
	if (!r->have_seed && json_is_integer(seed) && json_integer_value(seed) >= 0)
		s->seed = (uint64_t)json_integer_value(seed);
}

/* What is there already, if we are to go on with it. */
static int resume(struct session *s, const struct request *r, const struct identity *id)
{
	const char *field;
	int ret = journal_read(r->journal, &s->known);

	if (ret == -ENOENT)
		return EXIT_PASS;
	if (ret < 0) {
		error(0, -ret, "cannot read journal %s", r->journal);
		return EXIT_MISSING;
	}
	if (s->known.skipped)
		error(0, 0, "%s: %zu unreadable line%s skipped, the first is line %zu", r->journal,
		      s->known.skipped, s->known.skipped == 1 ? "" : "s", s->known.first_bad);
	field = s->known.have_identity ? identity_differs(&s->known.identity, id) : NULL;
	if (!r->experiment.kind) {
		take_seed(s, r);
		forget_what_was_added(&s->known);
	}
	if (!field && !s->known.mixed)
		return EXIT_PASS;
	error(0, 0, "%s is of another machine (%s differs): not resumed; give another --journal",
	      r->journal, field ? field : "it is mixed, something");
	return EXIT_USAGE;
}

/*
 * One run at a time writes to a journal: two that resume would both take what a third has left
 * there, and count it twice. The lock goes with the process. What cannot be locked is not.
 */
static int lock_journal(const char *path)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = LOCKED_BYTE, .l_len = 1 };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	struct stat st;

	/* That it cannot be opened is told where it is opened to be written. */
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return EXIT_PASS;
	if (errno != EAGAIN && errno != EACCES)
		return EXIT_PASS;
	error(0, 0, "another run writes to %s: waiting until it has ended", path);
	return fcntl(fd, F_OFD_SETLKW, &lock) && interrupted ? EXIT_INTERRUPTED : EXIT_PASS;
}

static int open_journal(struct session *s, const struct request *r, const struct identity *id)
{
	json_t *untested;
	int ret, status = lock_journal(r->journal);

	if (status == EXIT_PASS && r->resume)
		status = resume(s, r, id);
	if (status != EXIT_PASS)
		return status;
	s->begin = seconds_now();
	ret = journal_open(&s->journal, r->journal);
	if (ret < 0) {
		error(0, -ret, "cannot open journal %s", r->journal);
		return EXIT_CANNOT_CREATE;
	}
	untested = untested_json(&r->plan);
	ret = journal_write_run_of(
		s->journal, r->experiment.kind ? experiment_name(&r->experiment) : r->plan.name, id,
		untested, s->seed);
	json_decref(untested);
	if (ret == 0)
		return EXIT_PASS;
	error(0, -ret, "cannot write journal %s", r->journal);
	return EXIT_CANNOT_WRITE;
}

static int write_conf(const struct request *r, const struct estimate *e,
		      const struct provenance *from)
{
	int ret = conf_write(r->output, e, from);

	if (ret == 0) {
		say(r, "Config:  %s\n", r->output);
		return EXIT_PASS;
	}
	error(0, -ret, "cannot write %s", r->output);
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
	char why[256] = "";

	if (!r->figure)
		return;
	if (figure9_write(&data, r->figure, why, sizeof(why)) == 0)
		say(r, "Figure:  %s.svg, %s.png (data: %s.dat)\n", r->figure, r->figure, r->figure);
	else
		error(0, 0, "no figure: %s", why);
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

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static struct provenance provenance_of(const struct session *s, const struct request *r,
				       const struct identity *id, struct cpus *cpus)
{
	cpus_here(s->topology, cpus);
	return (struct provenance){
		.identity = id,
		.cpus = cpus,
		.plan = &r->plan,
		.journal = base_name(r->journal),
		.evidence = base_name(r->evidence),
	};
}

/* --- Evidence --------------------------------------------------------------------------------- */

static int evidence_failed(const char *path, int ret)
{
	error(0, -ret, "cannot add to the evidence %s, or read it", path);
	return EXIT_CANNOT_WRITE;
}

/* A run unlike all before it says that the machine is another one. */
static int compare_with_before(const char *path, const struct evidence *before,
			       const struct evidence_run *run)
{
	struct knowledge known;
	char reason[80];
	double chance;
	int ret = knowledge_of(&known, before, &run->identity, &run->cpus);

	if (ret < 0)
		return ret;
	chance = evidence_strangeness(known.runs, known.count, &run->sums);
	knowledge_free(&known);
	if (chance >= EVIDENCE_CHANGED)
		return 0;
	snprintf(reason, sizeof(reason), "the machine changed: p = %.1g", chance);
	error(0, 0, "%s. What was known of it counts no more.", reason);
	return evidence_begin_epoch(path, reason);
}

static int add_evidence(const struct request *r, const struct provenance *from,
			const struct sums *sums)
{
	struct evidence_run run = { .sums = *sums };
	struct evidence before;
	int ret = evidence_read(r->evidence, &before);

	if (ret < 0)
		return ret;
	evidence_stamp(&run, r->plan.name, from->identity, from->cpus);
	ret = compare_with_before(r->evidence, &before, &run);
	evidence_free(&before);
	return ret < 0 ? ret : evidence_append(r->evidence, &run);
}

/* All that is known of this machine, this run included. */
static int estimate_all(const struct request *r, struct provenance *from, struct estimate *all)
{
	struct knowledge known;
	struct evidence evidence;
	int ret = evidence_read(r->evidence, &evidence);

	if (ret < 0)
		return ret;
	if (evidence.broken)
		error(0, 0, "%s: %zu unreadable line%s passed over", r->evidence, evidence.broken,
		      evidence.broken == 1 ? "" : "s");
	ret = knowledge_of(&known, &evidence, from->identity, from->cpus);
	if (ret == 0 && !known.latest)
		ret = -ENOENT;
	if (ret == 0) {
		estimate_make(all, known.runs, known.count, &r->plan);
		from->measured = known.latest->time;
	}
	knowledge_free(&known);
	evidence_free(&evidence);
	return ret;
}

/* --- The end ---------------------------------------------------------------------------------- */

static void print(const struct session *s, const struct request *r, const struct estimate *e,
		  const struct provenance *from, const json_t *line)
{
	if (r->json) {
		if (line && json_dumpf(line, stdout, JSON_COMPACT) == 0)
			putchar('\n');
		return;
	}
	summary_print(stdout, e, from);
	if (!r->verbose)
		return;
	summary_details(stdout, e, from);
	summary_factors(stdout, s->done, s->count);
}

/* To the journal, where that has all that was measured, and to the user. */
static int tell(struct session *s, const struct request *r, const struct estimate *e,
		const struct provenance *from, bool written)
{
	json_t *body = estimate_to_json(e), *line = body ? journal_line("estimate", body) : NULL;
	int ret = written ? journal_put(s->journal, json_incref(line)) : -EIO;

	if (written && ret < 0)
		error(0, -ret, "cannot write the journal");
	print(s, r, e, from, line);
	json_decref(line);
	json_decref(body);
	return ret < 0 ? EXIT_CANNOT_WRITE : EXIT_PASS;
}

/* A run that saw nothing adds nothing, and takes nothing away. */
static int conclude_blind(struct session *s, const struct request *r, const struct identity *id,
			  const struct estimate *e, bool written)
{
	struct cpus cpus;
	struct provenance from = provenance_of(s, r, id, &cpus);
	int status = tell(s, r, e, &from, written);

	if (access(r->output, F_OK) < 0 && status == EXIT_PASS)
		status = write_conf(r, e, &from);
	else if (access(r->output, F_OK) == 0)
		say(r, "Config:  %s, as it was\n", r->output);
	say(r, "Journal: %s\n", r->journal);
	draw(s, r, id);
	return status != EXIT_PASS ? status : EXIT_INCONCLUSIVE;
}

/* written: the journal has all that was measured. one: of this run alone. */
static int conclude(struct session *s, const struct request *r, const struct identity *id,
		    const struct sums *sums, const struct estimate *one, bool written)
{
	struct cpus cpus;
	struct provenance from = provenance_of(s, r, id, &cpus);
	struct estimate all;
	int status, ret = add_evidence(r, &from, sums);

	if (ret == 0)
		ret = estimate_all(r, &from, &all);
	if (ret < 0) {
		tell(s, r, one, &from, false);
		return evidence_failed(r->evidence, ret);
	}
	status = tell(s, r, &all, &from, written);
	/* Without a wait it would only take away what another had said. */
	if (status == EXIT_PASS && (all.wait_runs || access(r->output, F_OK) < 0))
		status = write_conf(r, &all, &from);
	else if (status == EXIT_PASS)
		say(r, "Config:  %s, as it was: no wait was ever tried\n", r->output);
	say(r, "Journal: %s, evidence: %s\n", r->journal, r->evidence);
	draw(s, r, id);
	return status != EXIT_PASS ? status : exit_of(&all);
}

static int run_session(struct session *s, struct request *r, const struct identity *id)
{
	struct sums sums = { 0 };
	struct estimate estimate;
	int ret, status = open_journal(s, r, id);
	bool broke_off;

	if (status != EXIT_PASS)
		return status;
	if (r->experiment.kind)
		return experiment_run(&r->experiment, s, &r->plan);
	ret = climb(s, &r->plan, &sums, &estimate);
	broke_off = ret < 0 && ret != -EINTR && ret != -EIO;
	/* -EIO has been told where it came up. What was counted is evidence, whatever came then. */
	if (broke_off)
		error(0, -ret, "the calibration broke off");
	if (!estimate.blind)
		status = conclude(s, r, id, &sums, &estimate, ret != -EIO);
	else if (!broke_off)
		status = conclude_blind(s, r, id, &estimate, ret != -EIO);
	if (broke_off)
		status = EXIT_MISSING;
	if (ret == -EINTR && status != EXIT_CANNOT_WRITE)
		say(r, "Interrupted: %s\n",
		    estimate.blind ? "nothing was added; the same command begins anew"
				   : "what was counted until then is kept; the same command adds "
				     "more");
	if (ret == -EINTR && (status == EXIT_PASS || status == EXIT_INCONCLUSIVE))
		status = EXIT_INTERRUPTED;
	sums_free(&sums);
	return status;
}

/* It may be mended before the config is used, and an experiment needs none. */
static void warn_of_clock(const struct identity *id)
{
	char text[160];
	const char *problem = tsc_problem(text, sizeof(text));

	if (!id->tsc_invariant)
		problem = "the TSC is not invariant";
	if (problem)
		error(0, 0, "%s: the library will refuse to wait by it", problem);
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

	status = machine_here(&id);
	if (status != EXIT_PASS)
		return status;
	warn_of_clock(&id);
	status = topology_here(&s.topology);
	if (status != EXIT_PASS)
		return status;
	plan_seat(&r->plan, s.topology);
	progress_open(&s.progress, r->quiet);
	if (r->experiment.kind)
		status = experiment_prepare(&r->experiment, s.topology, r->plan.budget);
	if (status == EXIT_PASS)
		status = run_session(&s, r, &id);
	session_free(&s);
	hwloc_topology_destroy(s.topology);
	return status;
}

int cmd_calibrate(int argc, char **argv)
{
	struct request r;
	int status = request_parse(argc, argv, &r);

	if (status != EXIT_PASS)
		return status;
	if (r.merge)
		return experiment_merge(&r.experiment, r.journals, r.journal_count);
	if (r.experiment.kind)
		return run(&r);
	status = check_output(r.output);
	return status != EXIT_PASS ? status : run(&r);
}
