/* SPDX-License-Identifier: MIT */
/*
 * tmax evidence: what all runs together have counted on this machine.
 */
#include <errno.h>
#include <error.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/conf/summary.h"
#include "calibrate/program/command_line.h"
#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"
#include "calibrate/program/here.h"
#include "calibrate/statistics/evidence.h"
#include "patchcore/machine/conf_path.h"

#define S(count) ((count) == 1 ? "" : "s")

struct request {
	const char *store;
	char default_store[PATH_MAX + 16];
	const char *to;
	const char *from;
	bool drop;
	bool verbose;
};

static const struct option_row options[] = {
	{ "evidence", "FILE", "the store (default: beside the config that calibrate writes)",
	  OPTION_FILE(struct request, store) },
	{ "verbose", NULL, "every rung and placement, too", OPTION_FLAG(struct request, verbose) },
	{ "drop", NULL, "begin a new epoch: what was counted so far counts no more",
	  OPTION_FLAG(struct request, drop) },
	{ "export", "FILE", "write the runs of all epochs to FILE (- for standard output)",
	  OPTION_FILE(struct request, to) },
	{ "import", "FILE", "add the runs of a store's present epoch that are not in this one",
	  OPTION_FILE(struct request, from) },
	{ 0 },
};

static const struct command_line line = {
	.name = "evidence",
	.about = "Show what all calibrations together have counted on this machine: how much, "
		 "how\n"
		 "old, in how many runs and boots, and what it supports.\n",
	.options = { options },
	.end = "Exit status: 0, 3 nothing is known, 64 usage, 69 it cannot be read, 74 cannot\n"
	       "write.\n",
};

static int parse(int argc, char **argv, struct request *r)
{
	int status = command_line_parse(&line, argc, argv, r, NULL);
	char conf[PATH_MAX];

	if (status != EXIT_PASS)
		return status;
	if (r->drop + !!r->to + !!r->from > 1)
		return refuse_usage("one of --drop, --export and --import at a time");
	if (r->store)
		return EXIT_PASS;
	if (machine_conf_default_path(conf, sizeof(conf)) < 0)
		return refuse_usage("no home folder to look in: give --evidence");
	snprintf(r->default_store, sizeof(r->default_store), "%s.evidence", conf);
	r->store = r->default_store;
	return EXIT_PASS;
}

static int cannot(const char *what, const char *path, int ret, int status)
{
	error(0, -ret, "cannot %s %s", what, path);
	return status;
}

/* --- Showing ---------------------------------------------------------------------------------- */

static unsigned count_boots(const struct evidence *e)
{
	unsigned boots = 0;

	for (size_t i = 0; i < e->count; i++) {
		bool seen = e->run[i].epoch != e->epoch;

		for (size_t k = 0; k < i && !seen; k++)
			seen = e->run[k].epoch == e->epoch &&
			       strcmp(e->run[k].boot, e->run[i].boot) == 0;
		boots += !seen;
	}
	return boots;
}

static void print_runs(const struct evidence *e)
{
	for (size_t i = 0; i < e->count; i++) {
		const struct evidence_run *run = &e->run[i];
		uint64_t toggles = 0, tears = 0;

		for (size_t k = 0; k < run->sums.count; k++) {
			toggles += run->sums.sum[k].count.toggles;
			tears += run->sums.sum[k].count.tears;
		}
		printf("  epoch %u  %s  %-8s  %.3g toggles, %.3g %s\n", run->epoch, run->date,
		       run->source, (double)toggles, (double)tears, tears_word(tears));
	}
}

static void print_known(const struct request *r, const struct evidence *e,
			const struct knowledge *known, const struct provenance *from)
{
	unsigned boots = count_boots(e);
	struct estimate estimate;

	printf("Evidence: %s: %zu run%s in %zu hour%s and %u boot%s, the latest %s; epoch %u\n",
	       r->store, known->all, S(known->all), known->count, S(known->count), boots, S(boots),
	       known->latest->date, e->epoch);
	if (r->verbose)
		print_runs(e);
	estimate_make(&estimate, known->runs, known->count, from->plan);
	summary_print(stdout, &estimate, from);
	if (r->verbose)
		summary_details(stdout, &estimate, from);
}

static int show(const struct request *r, const struct evidence *e, const struct provenance *from)
{
	struct knowledge known;
	int ret = knowledge_of(&known, e, from->identity, from->cpus);
	int status = known.latest ? EXIT_PASS : EXIT_NO_CONF;

	if (ret < 0)
		return cannot("read", r->store, ret, EXIT_MISSING);
	if (known.latest)
		print_known(r, e, &known, from);
	else
		printf("Nothing is known of these CPUs as they are now (%s: %zu run%s of others or "
		       "of before).\n",
		       r->store, e->count, S(e->count));
	knowledge_free(&known);
	return status;
}

static int show_here(const struct request *r, const struct evidence *e)
{
	struct plan plan = *plan_find("default");
	hwloc_topology_t topology;
	struct identity id;
	struct cpus cpus;
	struct provenance from = { .identity = &id, .plan = &plan, .cpus = &cpus };
	int status = machine_here(&id);

	if (status == EXIT_PASS)
		status = topology_here(&topology);
	if (status != EXIT_PASS)
		return status;
	plan_seat(&plan, topology);
	cpus_here(topology, &cpus);
	hwloc_topology_destroy(topology);
	return show(r, e, &from);
}

/* --- Moving ----------------------------------------------------------------------------------- */

/* Two runs may end in the same second. */
static bool is_same_run(const struct evidence_run *a, const struct evidence_run *b)
{
	if (a->time != b->time || strcmp(a->boot, b->boot) != 0 ||
	    strcmp(a->source, b->source) != 0 || a->sums.count != b->sums.count)
		return false;
	for (size_t i = 0; i < a->sums.count; i++) {
		const struct sum *sum = sums_find(&b->sums, &a->sums.sum[i]);

		if (!sum || sum->count.toggles != a->sums.sum[i].count.toggles ||
		    sum->count.tears != a->sums.sum[i].count.tears)
			return false;
	}
	return true;
}

static int append_all(const char *path, const struct evidence *what, const struct evidence *has,
		      size_t *added)
{
	unsigned epoch = 0;
	int ret = 0;

	*added = 0;
	for (size_t i = 0; i < what->count && ret == 0; i++) {
		const struct evidence_run *run = &what->run[i];
		bool known = false;

		for (size_t k = 0; has && k < has->count && !known; k++)
			known = is_same_run(&has->run[k], run);
		/* What is of before here cannot be put before what is there. */
		if (known || (has && has->count && run->epoch != what->epoch))
			continue;
		if (epoch && run->epoch != epoch)
			ret = evidence_begin_epoch(path, "as in the store that was exported");
		epoch = run->epoch;
		if (ret == 0)
			ret = evidence_append(path, run);
		*added += ret == 0;
	}
	return ret;
}

static int export_to(const struct request *r, const struct evidence *e)
{
	const char *path = strcmp(r->to, "-") == 0 ? "/dev/stdout" : r->to;
	size_t added;
	int ret;

	if (access(r->to, F_OK) == 0)
		return cannot("write", r->to, -EEXIST, EXIT_CANNOT_WRITE);
	ret = append_all(path, e, NULL, &added);
	return ret < 0 ? cannot("write", r->to, ret, EXIT_CANNOT_WRITE) : EXIT_PASS;
}

static int import_from(const struct request *r, const struct evidence *e)
{
	struct evidence other;
	size_t added;
	int ret = access(r->from, R_OK) < 0 ? -errno : evidence_read(r->from, &other);

	if (ret < 0)
		return cannot("read", r->from, ret, EXIT_MISSING);
	ret = append_all(r->store, &other, e, &added);
	evidence_free(&other);
	if (ret < 0)
		return cannot("write", r->store, ret, EXIT_CANNOT_WRITE);
	printf("%zu run%s added to %s\n", added, S(added), r->store);
	return EXIT_PASS;
}

static int drop(const struct request *r)
{
	int ret = evidence_begin_epoch(r->store, "dropped by the user");

	if (ret < 0)
		return cannot("write", r->store, ret, EXIT_CANNOT_WRITE);
	printf("What was counted so far counts no more. The next calibration begins anew; the "
	       "config\n"
	       "stays as it is until then.\n");
	return EXIT_PASS;
}

int cmd_evidence(int argc, char **argv)
{
	struct request r = { 0 };
	struct evidence e;
	int ret, status = parse(argc, argv, &r);

	if (status != EXIT_PASS)
		return status;
	ret = evidence_read(r.store, &e);
	if (ret < 0)
		return cannot("read", r.store, ret, EXIT_MISSING);
	if (e.broken)
		error(0, 0, "%s: %zu unreadable line%s passed over", r.store, e.broken,
		      S(e.broken));
	if (r.drop)
		status = drop(&r);
	else if (r.from)
		status = import_from(&r, &e);
	else
		status = r.to ? export_to(&r, &e) : show_here(&r, &e);
	evidence_free(&e);
	return status;
}
