/* SPDX-License-Identifier: MIT */
/* tmax fleet: what the database says of each kind of machine, to people and to programs. */
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/exit_status.h"
#include "base/number.h"
#include "base/text_file.h"
#include "calibrate/verify/conf_write.h"
#include "commands/report/report.h"
#include "commands/tmax/commands.h"
#include "fleet/export/export.h"
#include "fleet/export/prior.h"
#include "patchcore/machine/machine_conf.h"
#include "stress/placement/placement.h"

enum action {
	REPORT,
	EXPORT,
	PRIOR,
	ACTIONS
};

static const char *const actions[ACTIONS] = { "report", "export", "prior" };

struct fleet_request {
	const char *page;
	bool csv;
	const char *textfile;
	const char *output;
	double require_p;
};

#define FOR(action) .plans = 1u << (action)

static const struct option_row options[] = {
	{ "page", "FOLDER", "of report: fleet.html with figures there, instead of text",
	  OPTION_FILE(struct fleet_request, page), FOR(REPORT) },
	{ "csv", NULL, "of export: each level of each kind as comma-separated values",
	  OPTION_FLAG(struct fleet_request, csv), FOR(EXPORT) },
	{ "textfile", "FOLDER", "of export: metrics of each machine, for node_exporter",
	  OPTION_FILE(struct fleet_request, textfile), FOR(EXPORT) },
	{ "output", "FILE", "of export: the table; of prior: the config (also -o)",
	  OPTION_FILE(struct fleet_request, output), .letter = 'o',
	  .plans = 1u << EXPORT | 1u << PRIOR },
	{ "require-p", "P", "of prior: tears per toggle that a pass stays below (1e-4)",
	  OPTION_INTO(option_probability, struct fleet_request, require_p), FOR(PRIOR) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "report|export DB | prior FILE",
	.has_actions = true,
	.words = "report export prior ",
	.about = "report: tell what the machines of a database (tmax merge) say of each kind: the\n"
		 "ladder and what stands behind it, machines that are worse than their kind, what\n"
		 "moved it, and what was never tested.\n"
		 "export: write the levels that a machine of each kind may go by which has not\n"
		 "been calibrated; or the same as CSV; or metrics of each machine.\n"
		 "prior: write machine.conf for this machine from such a table.\n",
	.options = { options },
	.end = "Exit status: 0, 1 a machine is worse than its kind (report), 3 the table says\n"
	       "nothing of this machine, 64 usage, 69 the database or the table cannot be read,\n"
	       "73 a measured config is there, 74 cannot write.\n",
};

/* --- Report ----------------------------------------------------------------------------------- */

static int report_fleet(struct fleet *fleet, const struct fleet_request *r, const char *path)
{
	char undrawn[256] = "";
	int ret = r->page ? fleet_page(r->page, fleet, undrawn, sizeof(undrawn))
			  : fleet_text(stdout, fleet);

	if (undrawn[0])
		error(0, 0, "figures are missing: %s", undrawn);
	if (ret == -EEXIST)
		return complain(EXIT_CANNOT_WRITE, 0,
				"%s/fleet.html was not written by tmax fleet: give another folder, "
				"or remove it",
				r->page);
	if (ret < 0 && r->page)
		return complain(EXIT_CANNOT_WRITE, ret, "cannot write a page to %s", r->page);
	if (ret < 0)
		return complain(EXIT_MISSING, ret, "cannot read %s", path);
	if (r->page)
		printf("%s/fleet.html, %d machine%s worse than %s kind\n", r->page, ret, S(ret),
		       ret == 1 ? "its" : "their");
	return ret ? EXIT_TEARS : EXIT_PASS;
}

/* --- Export ----------------------------------------------------------------------------------- */

/* A reader of the file sees the old table or the new one. */
static int write_table(struct fleet *fleet, const struct fleet_request *r)
{
	int (*put)(FILE *, struct fleet *) = r->csv ? export_csv : export_prior;
	char fresh[PATH_MAX];
	FILE *out;

	if (!r->output)
		return put(stdout, fleet);
	if (snprintf(fresh, sizeof(fresh), "%s.tmp", r->output) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	out = fopen(fresh, "we");
	if (!out)
		return -errno;
	return text_file_end(out, fresh, r->output, put(out, fleet));
}

static int export(struct fleet *fleet, const struct fleet_request *r)
{
	const char *to = r->textfile ? r->textfile : r->output ? r->output : "standard output";
	int ret;

	if (r->textfile && (r->csv || r->output))
		return refuse_usage("--textfile goes with neither --csv nor --output");
	ret = r->textfile ? export_textfile(r->textfile, fleet) : write_table(fleet, r);
	if (ret < 0)
		return complain(EXIT_CANNOT_WRITE, ret, "cannot export to %s", to);
	if (r->textfile)
		printf("%d machine%s in %s\n", ret, S(ret), to);
	return EXIT_PASS;
}

/* --- Prior ------------------------------------------------------------------------------------ */

/* What was measured here is better than any prior, also if it is out of date or damaged. */
static int keep_measured(const char *path)
{
	struct machine_conf conf;
	char why[200];

	if (access(path, F_OK) < 0 && errno == ENOENT)
		return EXIT_PASS;
	if (machine_conf_read(&conf, path, why, sizeof(why)) == 0 && conf.fleet)
		return EXIT_PASS;
	return complain(EXIT_CANNOT_CREATE, 0, "%s is no prior: it stays as it is", path);
}

static int write_conf(const char *output, const char *table, const struct prior *prior,
		      const struct identity *id, const struct plan *plan, const struct cpus *cpus)
{
	const char *slash = strrchr(table, '/');
	const struct provenance from = {
		.identity = id,
		.plan = plan,
		.cpus = cpus,
		.measured = prior->kind.to,
		.prior = slash ? slash + 1 : table,
		.confidence = prior->confidence,
	};
	int ret = conf_write(output, &prior->estimate, &from);

	if (ret < 0)
		return complain(EXIT_CANNOT_WRITE, ret, "cannot write %s", output);
	printf("Verdict: %s: %s\nSure:    %.0f %%, from %" PRIu64
	       " machine%s of this kind and none of this one\n"
	       "Next:    tmax calibrate on this machine, which knows better; or a table of more "
	       "machines\nConfig:  %s\n",
	       verdict_name(prior->estimate.verdict), prior->estimate.reason,
	       100 * prior->confidence, prior->kind.machines, S(prior->kind.machines), output);
	return EXIT_PASS;
}

/*
 * Write machine.conf for this machine by a table of tmax fleet export. output: NULL: where
 * calibrate would. require_p: 0: as calibrate has it.
 */
static int prior_apply(const char *table, const char *output, double require_p)
{
	static struct prior prior;
	hwloc_topology_t topology;
	char room[PATH_MAX], force[PATH_MAX], why[300];
	struct plan plan = *plan_find("default");
	struct identity id;
	struct cpus cpus;
	int ret, status;

	/* The config in force may be another file, which the new one would hide. */
	if (!output && machine_conf_default_path(room, sizeof(room)) < 0)
		return refuse_usage("no home folder to write to: give --output");
	status = keep_measured(output ? output : room);
	if (!output && status == EXIT_PASS && machine_conf_find(force, sizeof(force)) == 0)
		status = keep_measured(force);
	if (!output)
		output = room;
	if (status == EXIT_PASS)
		status = machine_here(&id);
	if (status != EXIT_PASS)
		return status;
	ret = prior_read(table, &id, &prior, why, sizeof(why));
	if (ret < 0)
		return complain(ret == -ENODATA ? EXIT_NO_CONF : EXIT_MISSING, 0, "%s: %s", table,
				why);
	status = topology_here(&topology);
	if (status != EXIT_PASS)
		return status;
	plan.name = "none";
	plan_seat(&plan, topology);
	cpus_here(topology, &cpus);
	hwloc_topology_destroy(topology);
	estimate_decide(&prior.estimate, require_p > 0 ? require_p : plan.require_p);
	/* The fleet says nothing of a placement that it never tried. */
	for (unsigned i = 0; i < plan.seats; i++)
		if (!prior.placed[plan.seat[i].placement])
			return complain(
				EXIT_NO_CONF, 0,
				"no machine of the fleet was tested at placement %s: calibrate",
				placement_name(plan.seat[i].placement));
	return write_conf(output, table, &prior, &id, &plan, &cpus);
}

/* --- The command ------------------------------------------------------------------------------ */

int cmd_fleet(int argc, char **argv)
{
	struct fleet_request r = { 0 };
	uint64_t given = 0;
	int status = command_line_parse(&line, argc, argv, &r, &given);
	unsigned action = 0;
	struct fleet *fleet;
	const char *path;
	int ret;

	if (status != EXIT_PASS)
		return status;
	if (argc - optind != 2)
		return refuse_usage("say report or export and a database, or prior and a table");
	while (action < ACTIONS && strcmp(argv[optind], actions[action]) != 0)
		action++;
	if (action == ACTIONS)
		return refuse_name("such action", argv[optind], line.words);
	for (unsigned i = 0; options[i].name; i++)
		if (given >> i & 1 && !(options[i].plans >> action & 1))
			return refuse_usage("%s has no --%s", actions[action], options[i].name);
	path = argv[optind + 1];
	if (action == PRIOR)
		return prior_apply(path, r.output, r.require_p);
	ret = fleet_open(&fleet, path, false);
	if (ret < 0)
		return complain(EXIT_MISSING, ret == -EPROTO ? 0 : ret, "cannot read %s%s", path,
				ret == -EPROTO ? ": no fleet's database, or of another tmax" : "");
	status = action == REPORT ? report_fleet(fleet, &r, path) : export(fleet, &r);
	fleet_close(fleet, false);
	return status;
}
