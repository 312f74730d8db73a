/* SPDX-License-Identifier: MIT */
/* tmax report: journals as a page. */
#include <errno.h>
#include <error.h>
#include <getopt.h>
#include <stdio.h>

#include "base/number.h"
#include "base/text.h"
#include "commands/report/report.h"
#include "commands/tmax/commands.h"

static const struct option_row options[] = {
	{ "output", "DIR", "where to (also -o); made if it is missing",
	  OPTION_FILE(struct report, folder), .letter = 'o' },
	{ 0 },
};

static const struct command_line line = {
	.operands = "JOURNAL...",
	.about = "Write what the journals of one machine hold as a page, index.html, with its\n"
		 "figures as SVG, PNG and data beside it. The page needs no network.\n",
	.options = { options },
	.end = "Without gnuplot the page says which figures are missing. Exit status: 0,\n"
	       "64 usage, or journals of different machines or of none, 69 a journal cannot be\n"
	       "read, 73 the folder cannot be made, or has a page that is not report's, 74 the\n"
	       "page cannot be written.\n",
};

int cmd_report(int argc, char **argv)
{
	struct journal_data data = { 0 };
	struct report r = { .data = &data };
	int rc, status = command_line_parse(&line, argc, argv, &r, NULL);
	char why[8192];

	if (status != EXIT_PASS)
		return status;
	r.journals = argv + optind;
	r.count = (size_t)(argc - optind);
	if (!r.count)
		return refuse_usage("name the journals");
	if (!r.folder)
		return refuse_usage("say where to with --output");
	for (size_t i = 0; i < r.count; i++) {
		size_t before = data.skipped;
		char shown[FILENAME_MAX]; /* other machines may have chosen the name */

		rc = journal_read(r.journals[i], &data);
		text_printable(shown, sizeof(shown), r.journals[i]);
		if (rc < 0) {
			status = complain(EXIT_MISSING, rc, "cannot read %s", shown);
			goto out;
		}
		if (data.skipped > before)
			error(0, 0, "%s: %zu line%s could not be read", shown,
			      data.skipped - before, S(data.skipped - before));
	}
	rc = report_write(&r, why, sizeof(why));
	if (rc == -EEXIST)
		status = EXIT_CANNOT_CREATE;
	else if (rc < 0)
		status = rc == -EINVAL ? EXIT_USAGE : EXIT_CANNOT_WRITE;
	if (rc < 0)
		error(0, 0, "%s", why);
	else if (r.undrawn)
		error(0, 0, "%u figure%s missing: %s", r.undrawn, r.undrawn == 1 ? " is" : "s are",
		      r.undrawn_why);
	if (rc >= 0)
		printf("%s/index.html\n", r.folder);
out:
	journal_free(&data);
	return status;
}
