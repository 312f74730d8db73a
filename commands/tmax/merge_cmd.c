/* SPDX-License-Identifier: MIT */
/* tmax merge: the evidence of many machines into one database. */
#include <errno.h>
#include <error.h>
#include <stdio.h>
#include <string.h>

#include "base/command_line.h"
#include "base/exit_status.h"
#include "base/number.h"
#include "base/text.h"
#include "commands/tmax/commands.h"
#include "fleet/store/intake.h"
#include "stress/placement/placement.h"

struct merge_request {
	const char *database;
	const char *machine;
	bool from_list;
};

static const struct option_row options[] = {
	{ "output", "DB", "the database (also -o); made if it is missing",
	  OPTION_FILE(struct merge_request, database), .letter = 'o' },
	{ "machine", "NAME", "whose they are (default: by each file's name)",
	  OPTION_TEXT(struct merge_request, machine) },
	{ "files-from", NULL, "read the names of files from standard input, one to a line",
	  OPTION_FLAG(struct merge_request, from_list) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "[EVIDENCE|JOURNAL]...",
	.about =
		"Add what stores of evidence and journals of many machines hold to a database.\n"
		"What is in it already is passed over, so that files may be merged again when\n"
		"they have grown. HOST.evidence and HOST/machine.conf.evidence are machine HOST.\n",
	.options = { options },
	.end = "Lines that are no evidence are set aside in the database and told.\n"
	       "Exit status: 0, 64 usage, 69 a file cannot be read or is no evidence, or the\n"
	       "database is none of ours, 74 it cannot be written.\n",
};

/* A file that cannot be read costs no other. */
static int take_file(struct fleet *fleet, const struct merge_request *r, const char *path,
		     struct intake *intake, int *status)
{
	struct intake before = *intake;
	int ret = fleet_take_file(fleet, path, r->machine, intake);
	char shown[FILENAME_MAX]; /* other machines may have chosen the name */

	text_printable(shown, sizeof(shown), path);
	if (ret == -ENOENT || ret == -EACCES || ret == -EISDIR || ret == -EIO || ret == -ENOMSG) {
		*status = ret == -ENOMSG
				  ? complain(EXIT_MISSING, 0,
					     "%s is no evidence: no line is of a store or of a "
					     "journal",
					     shown)
				  : complain(EXIT_MISSING, ret, "cannot read %s", shown);
		return 0;
	}
	if (intake->aside > before.aside)
		error(0, 0, "%s: %zu line%s set aside", shown, intake->aside - before.aside,
		      S(intake->aside - before.aside));
	return ret;
}

int cmd_merge(int argc, char **argv)
{
	struct merge_request r = { 0 };
	struct intake intake = { 0 };
	char path[FILENAME_MAX];
	struct fleet *fleet;
	int ret, kept, status = command_line_parse(&line, argc, argv, &r, NULL);

	if (status != EXIT_PASS)
		return status;
	if (!r.database)
		return refuse_usage("say where to with --output");
	if (optind == argc && !r.from_list)
		return refuse_usage("name stores of evidence or journals");
	ret = fleet_open(&fleet, r.database, true);
	if (ret < 0) {
		error(0, ret == -EPROTO ? 0 : -ret, "cannot open %s%s", r.database,
		      ret == -EPROTO ? ": no fleet's database, or of another tmax" : "");
		return EXIT_MISSING;
	}
	for (int i = optind; i < argc && ret == 0 && !interrupted; i++)
		ret = take_file(fleet, &r, argv[i], &intake, &status);
	while (ret == 0 && r.from_list && !interrupted && fgets(path, sizeof(path), stdin)) {
		path[strcspn(path, "\n")] = '\0';
		if (path[0])
			ret = take_file(fleet, &r, path, &intake, &status);
	}
	kept = fleet_close(fleet, ret == 0 && !interrupted);
	if (interrupted) {
		error(0, 0, "interrupted: nothing was added to %s", r.database);
		return EXIT_INTERRUPTED;
	}
	if (ret < 0 || kept < 0) {
		error(0, ret < 0 ? -ret : -kept, "nothing was added to %s", r.database);
		return EXIT_CANNOT_WRITE;
	}
	printf("%zu run%s added to %s, %zu known before, %zu line%s set aside\n"
	       "Next: tmax fleet report %s\n",
	       intake.runs, S(intake.runs), r.database, intake.known, intake.aside, S(intake.aside),
	       r.database);
	return status;
}
