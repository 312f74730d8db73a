/* SPDX-License-Identifier: MIT */
/*
 * tmax report: journals as a page.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"
#include "calibrate/program/options.h"
#include "calibrate/report/report.h"

enum {
	OPTION_OUTPUT = 'o',
	OPTION_HELP = 1
};

static const char help[] =
	"Usage: tmax report [OPTION]... JOURNAL...\n"
	"Write what the journals of one machine hold as a page, index.html, with its\n"
	"figures as SVG, PNG and data beside it. The page needs no network.\n"
	"\n"
	"  --output DIR  where to (also -o); made if it is missing\n"
	"  --help\n"
	"\n"
	"Without gnuplot the page says which figures are missing. Exit status: 0,\n"
	"64 usage, or journals of different machines or of none, 69 a journal cannot be\n"
	"read, 73 the folder cannot be made, 74 the page cannot be written.\n";

static const struct option options[] = {
	{ "output", required_argument, NULL, OPTION_OUTPUT },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ 0 },
};

struct request {
	struct report report;
	bool help;
};

static int parse(int argc, char **argv, struct request *r)
{
	int option;

	while ((option = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (option == OPTION_OUTPUT)
			r->report.folder = optarg;
		else if (option == OPTION_HELP)
			r->help = true;
		else
			return EXIT_USAGE;
	}
	if (r->help)
		return EXIT_PASS;
	r->report.journals = argv + optind;
	r->report.count = (size_t)(argc - optind);
	if (!r->report.count)
		return usage_error("report", "name the journals");
	if (!r->report.folder || !*r->report.folder)
		return usage_error("report", "say where to with --output");
	return EXIT_PASS;
}

static int read_journals(const struct report *r, struct journal_data *data)
{
	for (size_t i = 0; i < r->count; i++) {
		size_t before = data->skipped;
		int rc = journal_read(r->journals[i], data);

		if (rc < 0) {
			fprintf(stderr, "tmax report: cannot read %s: %s\n", r->journals[i],
				strerror(-rc));
			return EXIT_MISSING;
		}
		if (data->skipped > before)
			fprintf(stderr, "tmax report: %s: %zu lines could not be read\n",
				r->journals[i], data->skipped - before);
	}
	return EXIT_PASS;
}

static int make_folder(const char *folder)
{
	struct stat st;

	if (mkdir(folder, 0777) == 0)
		return EXIT_PASS;
	if (errno == EEXIST && stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
		return EXIT_PASS;
	fprintf(stderr, "tmax report: cannot make %s: %s\n", folder,
		errno == EEXIST ? "there is a file of that name" : strerror(errno));
	return EXIT_CANNOT_CREATE;
}

static int write_page(struct report *r)
{
	char error[8192];
	int rc = report_write(r, error, sizeof(error));

	if (rc < 0) {
		fprintf(stderr, "tmax report: %s\n", error);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_CANNOT_WRITE;
	}
	if (r->undrawn)
		fprintf(stderr, "tmax report: %u figure%s missing: %s\n", r->undrawn,
			r->undrawn == 1 ? " is" : "s are", r->undrawn_why);
	printf("%s/index.html\n", r->folder);
	return EXIT_PASS;
}

/* Refused before a folder is made. */
static int run(struct report *r, const struct journal_data *data)
{
	const char *refusal = report_refusal(data);
	int status;

	r->data = data;
	if (refusal) {
		fprintf(stderr, "tmax report: %s\n", refusal);
		return EXIT_USAGE;
	}
	status = make_folder(r->folder);
	return status == EXIT_PASS ? write_page(r) : status;
}

int cmd_report(int argc, char **argv)
{
	struct request r = { .help = false };
	struct journal_data data = { 0 };
	int status = parse(argc, argv, &r);

	if (status != EXIT_PASS)
		return status;
	if (r.help) {
		fputs(help, stdout);
		return EXIT_PASS;
	}
	status = read_journals(&r.report, &data);
	if (status == EXIT_PASS)
		status = run(&r.report, &data);
	journal_free(&data);
	return status;
}
