/* SPDX-License-Identifier: MIT */
/*
 * tmax fleet: what the database says of each kind of machine, to people and to programs.
 */
#include <errno.h>
#include <error.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/exit_status.h"
#include "base/number.h"
#include "commands/report/fleet_report.h"
#include "commands/tmax/commands.h"
#include "commands/tmax/prior_cmd.h"
#include "fleet/export/export.h"

enum action {
	REPORT,
	EXPORT,
	PRIOR,
	ACTIONS
};

static const char *const actions[ACTIONS] = { "report", "export", "prior" };

struct request {
	const char *page;
	bool csv;
	const char *textfile;
	const char *output;
	double require_p;
};

#define FOR(action) .plans = 1u << (action)

static const struct option_row options[] = {
	{ "page", "FOLDER", "of report: fleet.html with figures there, instead of text",
	  OPTION_FILE(struct request, page), FOR(REPORT) },
	{ "csv", NULL, "of export: each level of each kind as comma-separated values",
	  OPTION_FLAG(struct request, csv), FOR(EXPORT) },
	{ "textfile", "FOLDER", "of export: metrics of each machine, for node_exporter",
	  OPTION_FILE(struct request, textfile), FOR(EXPORT) },
	{ "output", "FILE", "of export: the table; of prior: the config (also -o)",
	  OPTION_FILE(struct request, output), .letter = 'o', .plans = 1u << EXPORT | 1u << PRIOR },
	{ "require-p", "P", "of prior: tears per toggle that a pass stays below (1e-4)",
	  OPTION_INTO(option_probability, struct request, require_p), FOR(PRIOR) },
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

static int cannot(const char *what, const char *path, int ret, int status)
{
	error(0, -ret, "cannot %s %s", what, path);
	return status;
}

/* --- Report ----------------------------------------------------------------------------------- */

static int report_fleet(struct fleet *fleet, const struct request *r, const char *path)
{
	char undrawn[256] = "";
	int ret = r->page ? fleet_page(r->page, fleet, undrawn, sizeof(undrawn))
			  : fleet_text(stdout, fleet);

	if (undrawn[0])
		error(0, 0, "figures are missing: %s", undrawn);
	if (ret == -EEXIST) {
		error(0, 0,
		      "%s/fleet.html was not written by tmax fleet: give another folder, or "
		      "remove it",
		      r->page);
		return EXIT_CANNOT_WRITE;
	}
	if (ret < 0 && r->page)
		return cannot("write a page to", r->page, ret, EXIT_CANNOT_WRITE);
	if (ret < 0)
		return cannot("read", path, ret, EXIT_MISSING);
	if (r->page)
		printf("%s/fleet.html, %d machine%s worse than %s kind\n", r->page, ret, S(ret),
		       ret == 1 ? "its" : "their");
	return ret ? EXIT_TEARS : EXIT_PASS;
}

/* --- Export ----------------------------------------------------------------------------------- */

/* A reader of the file sees the old table or the new one. */
static int write_table(struct fleet *fleet, const struct request *r)
{
	int (*put)(FILE *, struct fleet *) = r->csv ? export_csv : export_prior;
	char fresh[PATH_MAX];
	FILE *out;
	int ret;

	if (!r->output)
		return put(stdout, fleet);
	if (snprintf(fresh, sizeof(fresh), "%s.tmp", r->output) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	out = fopen(fresh, "we");
	if (!out)
		return -errno;
	ret = put(out, fleet);
	if ((ferror(out) | fclose(out)) && ret == 0)
		ret = -EIO;
	if (ret == 0 && rename(fresh, r->output) < 0)
		ret = -errno;
	if (ret < 0)
		unlink(fresh);
	return ret;
}

static int export(struct fleet *fleet, const struct request *r)
{
	const char *to = r->textfile ? r->textfile : r->output ? r->output : "standard output";
	int ret;

	if (r->textfile && (r->csv || r->output))
		return refuse_usage("--textfile goes with neither --csv nor --output");
	ret = r->textfile ? export_textfile(r->textfile, fleet) : write_table(fleet, r);
	if (ret < 0)
		return cannot("export to", to, ret, EXIT_CANNOT_WRITE);
	if (r->textfile)
		printf("%d machine%s in %s\n", ret, S(ret), to);
	return EXIT_PASS;
}

/* --- The command ------------------------------------------------------------------------------ */

int cmd_fleet(int argc, char **argv)
{
	struct request r = { 0 };
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
	if (ret == -EPROTO)
		error(0, 0, "cannot read %s: no fleet's database, or of another tmax", path);
	else if (ret < 0)
		error(0, -ret, "cannot read %s", path);
	if (ret < 0)
		return EXIT_MISSING;
	status = action == REPORT ? report_fleet(fleet, &r, path) : export(fleet, &r);
	fleet_close(fleet, false);
	return status;
}
