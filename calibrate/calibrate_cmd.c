/* SPDX-License-Identifier: MIT */
/*
 * tmax calibrate: the main job.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/bound.h"
#include "calibrate/calibrate_options.h"
#include "calibrate/commands.h"
#include "calibrate/conf_write.h"
#include "calibrate/exit_status.h"
#include "calibrate/here.h"
#include "calibrate/search.h"
#include "calibrate/summary.h"
#include "patchcore/machine_conf.h"
#include "results/figure.h"
#include "stress/clock.h"

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
	for (unsigned i = 0; i < plan->unprovokeds; i++)
		json_array_append_new(gaps, json_pack("{s:s, s:s}", "provoker",
						      provoker_name(plan->unprovoked[i].provoker),
						      "reason", plan->unprovoked[i].reason));
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
	ret = journal_write_run(s->journal,
				r->experiment.kind ? experiment_name(&r->experiment) : r->plan.name,
				id, gaps);
	json_decref(gaps);
	if (ret == 0)
		return EXIT_PASS;
	fprintf(stderr, "tmax: cannot write journal %s: %s\n", r->journal, strerror(-ret));
	return EXIT_CANNOT_WRITE;
}

/* Does what ran here at waits no shorter than the earlier ones tear more than they promise? */
static bool speaks_against(const struct session *s, const struct machine_conf *earlier)
{
	uint64_t tears = 0, toggles = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct cell *c = &s->done[i].cell;

		if (c->protocol != PROTOCOL_WAIT || c->first_wait < earlier->first_wait ||
		    c->second_wait < earlier->second_wait || c->stretch < earlier->stretch)
			continue;
		tears += cell_result_tears(&s->done[i].result);
		toggles += s->done[i].result.toggles;
	}
	return bound_lower(tears, toggles, CONFIDENCE) > earlier->upper_p;
}

/*
 * Does an earlier run's pass stand? A run that could not decide takes nothing
 * back, unless it saw more tears than the earlier one's bound allows.
 */
static bool earlier_stands(const struct session *s, const struct request *r,
			   const struct identity *id, const struct estimate *e)
{
	struct machine_conf earlier;
	char why[160];

	return e->verdict == VERDICT_INCONCLUSIVE &&
	       machine_conf_read(&earlier, r->output, why, sizeof(why)) == 0 && earlier.usable &&
	       !identity_differs(&earlier.identity, id) && !speaks_against(s, &earlier);
}

static int write_conf(const struct session *s, const struct request *r, const struct estimate *e,
		      const struct provenance *from)
{
	int ret;

	if (earlier_stands(s, r, from->identity, e)) {
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
	int ret = body ? journal_write_line(s->journal, "estimate", body) : -ENOMEM;
	int status = EXIT_PASS;

	json_decref(body);
	if (ret < 0)
		fprintf(stderr, "tmax: cannot write the journal: %s\n", strerror(-ret));
	summary_print(stdout, e, &from);
	/* What was cut short does not replace what an earlier run has proved. */
	if (!cut_short)
		status = write_conf(s, r, e, &from);
	printf("Journal: %s\n", r->journal);
	draw(s, r, id);
	if (cut_short)
		return EXIT_INTERRUPTED;
	if (status != EXIT_PASS)
		return status;
	return ret < 0 ? EXIT_CANNOT_WRITE : exit_of(e);
}

static int run_session(struct session *s, struct request *r, const struct identity *id)
{
	struct estimate estimate;
	int ret, status = open_journal(s, r, id);

	if (status != EXIT_PASS)
		return status;
	if (r->experiment.kind)
		return experiment_run(&r->experiment, s, &r->plan);
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
	if (r.help) {
		fputs(request_help(), stdout);
		return EXIT_PASS;
	}
	if (r.merge)
		return experiment_merge(&r.experiment, r.journals, r.journal_count);
	if (r.experiment.kind)
		return run(&r);
	status = check_output(r.output);
	return status != EXIT_PASS ? status : run(&r);
}
