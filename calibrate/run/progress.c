/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "calibrate/run/session.h"

#define LINE_EVERY     10.0 /* seconds between plain lines */
#define LINE_MAX_BYTES 512

void progress_open(struct progress *p, bool quiet)
{
	*p = (struct progress){ .quiet = quiet, .terminal = isatty(STDERR_FILENO) };
}

void progress_begin_cell(struct progress *p, const struct cell *cell, double left)
{
	p->cell = *cell;
	p->left = left;
	p->cell_begin = seconds_now();
	/* A short cell ends before the first report of how far it is. */
	progress_cell(p, &(struct cell_result){ 0 });
}

void progress_cell(void *arg, const struct cell_result *so_far)
{
	struct progress *p = arg;
	const struct cell *c = &p->cell;
	bool counts = !protocol_is_broken(c->protocol);
	double left = fmax(0, p->left - (seconds_now() - p->cell_begin));
	uint64_t tears = p->tears + (counts ? cell_result_tears(so_far) : 0);
	char line[LINE_MAX_BYTES], provokers[PROVOKERS_MAX], time[32] = "";
	int width = LINE_MAX_BYTES;
	struct winsize size;

	if (p->quiet || (!p->terminal && seconds_now() - p->last_line < LINE_EVERY))
		return;
	if (left > 0)
		snprintf(time, sizeof(time), "%d:%02d left, ", (int)left / 60, (int)left % 60);
	snprintf(line, sizeof(line),
		 "%s%" PRIu64 " %s in %s toggles; %s: %s, %s, %u executor%s, %s %s%s%s", time,
		 tears, tears_word(tears), NUMBER(p->toggles + (counts ? so_far->toggles : 0)),
		 p->stage, placement_name(c->placement), crossing_name(c->crossing), c->executors,
		 S(c->executors), protocol_name(c->protocol), WAITS(&c->waits),
		 c->provokers ? ", " : "",
		 c->provokers ? provokers_name(c->provokers, provokers) : "");
	/* Cut to the columns of the terminal: a line that wrapped would not renew itself. */
	if (p->terminal)
		width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col
				? size.ws_col - 1
				: 79;
	fprintf(stderr, "%s%.*s%s", p->terminal ? "\r\033[K" : "", width, line,
		p->terminal ? "" : "\n");
	fflush(stderr);
	p->open = p->terminal;
	p->last_line = seconds_now();
}

void progress_end(struct progress *p)
{
	if (p->open)
		fputc('\n', stderr);
	p->open = false;
}
