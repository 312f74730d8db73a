/* SPDX-License-Identifier: MIT */
/*
 * fastinst top: counts as they grow. On a terminal as many as it has room for, each on one line.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "probes/command/command.h"
#include "probes/command/counts.h"

static const char help[] =
	"Usage: fastinst top [OPTION]...\n"
	"Shows how often the probes that are on were run, in running programs.\n"
	"\n"
	"  --pid PID      of that process only\n"
	"  --once         once, and no longer\n"
	"  --json         as JSON, implies --once\n"
	"  --lines N      so many probes; unless said 20, or what the terminal has "
	"room for\n"
	"  --delay S      seconds between two looks, 1 unless said\n"
	"  --help         this text\n";

#define HEAD 3 /* lines of the terminal that are none of a probe's */

struct top {
	long pid, lines;
	double delay;
	bool once, json;
};

/* What of a line fits; no character is cut in two. */
static size_t fitting(const char *line, size_t len, size_t columns)
{
	size_t seen = 0, at = 0;

	for (; at < len; at++) {
		bool begins = ((unsigned char)line[at] & 0xc0) != 0x80;

		if (begins && seen++ == columns)
			break;
	}
	return at;
}

static void print_cut(const char *text, size_t columns)
{
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		printf("%.*s\n", (int)fitting(text, len, columns), text);
	}
}

static int show_screen(const struct top *top, const struct counts *counts)
{
	struct winsize size;
	bool terminal = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col;
	size_t most = top->lines ? (size_t)top->lines : 20;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return STATUS_FAILED;
	if (terminal && (!top->lines || most + HEAD > size.ws_row))
		most = size.ws_row > HEAD ? size.ws_row - HEAD : 1;
	fprintf(out, "%zu processes\n", counts->processes);
	counts_print(counts, out, false, most);
	fclose(out);
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	print_cut(text, terminal ? size.ws_col : SIZE_MAX);
	free(text);
	return STATUS_OK;
}

static int show(const struct top *top)
{
	struct counts counts = { 0 };
	int status = control_ask(top->pid, "counts", &counts);

	if (status == STATUS_OK) {
		counts_join(&counts);
		if (top->once)
			counts_print(&counts, stdout, top->json,
				     top->lines ? (size_t)top->lines : 20);
		else
			status = show_screen(top, &counts);
		fflush(stdout);
	}
	counts_free(&counts);
	return status;
}

int top_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "pid", required_argument, NULL, 'p' },
		{ "once", no_argument, NULL, '1' },
		{ "json", no_argument, NULL, 'j' },
		{ "lines", required_argument, NULL, 'n' },
		{ "delay", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct top top = { .delay = 1 };
	int option, status;

	while ((option = getopt_long(argc, argv, "p:h", options, NULL)) >= 0) {
		if (option == 'h')
			return fputs(help, stdout) < 0;
		if (option == '?')
			return usage_error("top");
		if (option == 'p')
			top.pid = atol(optarg);
		else if (option == 'n' && (top.lines = atol(optarg)) < 1)
			return usage_error("top");
		else if (option == 'd')
			top.delay = atof(optarg);
		else if (option == '1' || option == 'j')
			top.once = true;
		if (option == 'j')
			top.json = true;
	}
	if (optind != argc || !(top.delay > 0))
		return usage_error("top");
	while ((status = show(&top)) == STATUS_OK && !top.once)
		usleep((useconds_t)(top.delay * 1e6));
	return status;
}
