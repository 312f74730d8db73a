/* SPDX-License-Identifier: MIT */
#include "calibrate/session/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "stress/base/clock.h"
#include "stress/base/number.h"

#define LINE_EVERY     10.0 /* seconds between plain lines */
#define LINE_MAX_BYTES 512

void progress_open(struct progress *p, bool quiet)
{
	*p = (struct progress){ .quiet = quiet, .terminal = isatty(STDERR_FILENO) };
}

/* Columns of the terminal: a line that wrapped would not renew itself. */
static int width_of(const struct progress *p)
{
	struct winsize size;

	if (!p->terminal)
		return LINE_MAX_BYTES;
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col - 1 : 79;
}

static void print_line(struct progress *p, const struct cell_result *so_far)
{
	const struct cell *c = &p->cell;
	bool counts = !protocol_is_broken(c->protocol);
	double left = p->left - (seconds_now() - p->cell_begin);
	uint64_t tears = p->tears + (counts ? cell_result_tears(so_far) : 0);
	char line[LINE_MAX_BYTES], provokers[PROVOKERS_MAX];

	left = left > 0 ? left : 0;
	snprintf(line, sizeof(line),
		 "%.0f %s left, %" PRIu64 " %s in %s toggles; %s: %s, %s, %u executor%s, %s %s%s%s",
		 left < 100    ? left
		 : left < 6000 ? left / 60
			       : left / 3600,
		 left < 100    ? "s"
		 : left < 6000 ? "min"
			       : "h",
		 tears, tears_word(tears), NUMBER(p->toggles + (counts ? so_far->toggles : 0)),
		 p->stage, placement_name(c->placement), crossing_name(c->crossing), c->executors,
		 c->executors == 1 ? "" : "s", protocol_name(c->protocol), WAITS(&c->waits),
		 c->provokers ? ", " : "",
		 c->provokers ? provokers_name(c->provokers, provokers) : "");
	fprintf(stderr, "%s%.*s%s", p->terminal ? "\r\033[K" : "", width_of(p), line,
		p->terminal ? "" : "\n");
	fflush(stderr);
	p->open = p->terminal;
	p->last_line = seconds_now();
}

void progress_stage(struct progress *p, const char *stage)
{
	p->stage = stage;
}

void progress_begin_cell(struct progress *p, const struct cell *cell, double left)
{
	const struct cell_result nothing = { 0 };

	p->cell = *cell;
	p->left = left;
	p->cell_begin = seconds_now();
	/* A short cell ends before the first report of how far it is. */
	progress_cell(p, &nothing);
}

void progress_cell(void *arg, const struct cell_result *so_far)
{
	struct progress *p = arg;

	if (p->quiet || (!p->terminal && seconds_now() - p->last_line < LINE_EVERY))
		return;
	print_line(p, so_far);
}

void progress_add(struct progress *p, const struct cell *cell, const struct cell_result *result)
{
	if (protocol_is_broken(cell->protocol))
		return;
	p->toggles += result->toggles;
	p->tears += cell_result_tears(result);
}

void progress_end(struct progress *p)
{
	if (p->open)
		fputc('\n', stderr);
	p->open = false;
}
