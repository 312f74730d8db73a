/* SPDX-License-Identifier: MIT */
/* fastinst top: counts and rates of running programs, as many as the terminal has lines for. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "commands/fastinst/command.h"

#define HEAD 3 /* lines of the terminal that show no probe */

struct top {
	long pid;
	uint64_t lines; /* 0: as many as there is room for */
	double delay;
	bool once, json;
};

/* Prints what fits into so many columns of each line; no character is cut in two. */
static void print_cut(const char *text, size_t columns)
{
	for (size_t column = 0; *text; text++) {
		bool begins = ((unsigned char)*text & 0xc0) != 0x80;

		column = *text == '\n' ? 0 : column + begins;
		if (column <= columns)
			putchar(*text);
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
	fprintf(out, "%zu process%s\n", counts->processes, counts->processes == 1 ? "" : "es");
	counts_print(counts, out, false, most);
	fclose(out);
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	print_cut(text, terminal ? size.ws_col : SIZE_MAX);
	free(text);
	return STATUS_OK;
}

/* Rates are those since the last look. */
static int show_counts(const struct top *top)
{
	static struct counts last;
	static double looked;
	struct counts counts = { 0 };
	int status = control_ask(top->pid, &counts, "counts");
	double now = seconds_now();

	if (status == STATUS_OK) {
		counts_join(&counts);
		if (looked > 0)
			counts_rates(&counts, &last, now - looked);
		if (top->once)
			counts_print(&counts, stdout, top->json,
				     top->lines ? (size_t)top->lines : 20);
		else
			status = show_screen(top, &counts);
		fflush(stdout);
	}
	counts_free(&last);
	last = counts;
	looked = now;
	return status;
}

static const struct option_row options[] = {
	{ "pid", "PID", "of that process only", OPTION_NUMBER(struct top, pid, 1, PID_MOST),
	  .letter = 'p' },
	{ "once", NULL, "once, and no longer", OPTION_FLAG(struct top, once) },
	{ "json", NULL, "as JSON, implies --once", OPTION_FLAG(struct top, json) },
	{ "lines", "N", "so many probes (20, or what the terminal has room for)",
	  OPTION_NUMBER(struct top, lines, 1, UINT32_MAX) },
	{ "delay", "TIME", "between two looks (1s)", OPTION_TIME(struct top, delay, 0) },
	{ 0 },
};

static const struct command_line line = {
	.about = "Show how often the probes that are on were run, in running programs.\n",
	.options = { options },
	.end = "Exit status: 0, 64 usage, 69 no such program listens.\n",
};

int top_command(int argc, char **argv)
{
	struct top top = { .delay = 1 };
	int status = command_line_parse(&line, argc, argv, &top, NULL);

	if (status != STATUS_OK)
		return status;
	top.once |= top.json;
	while ((status = show_counts(&top)) == STATUS_OK && !top.once)
		usleep((useconds_t)(top.delay * 1e6));
	return status;
}
