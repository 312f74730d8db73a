/* SPDX-License-Identifier: MIT */
#include "calibrate/session/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "stress/base/clock.h"

#define LINE_EVERY 10.0 /* seconds between plain lines */

void progress_open(struct progress *p, bool quiet)
{
	*p = (struct progress){ .quiet = quiet, .terminal = isatty(STDERR_FILENO) };
}

static void print_line(struct progress *p, const struct cell_result *so_far)
{
	const struct cell *c = &p->cell;
	double left = p->left - (seconds_now() - p->cell_begin);
	uint64_t tears = p->tears + cell_result_tears(so_far);

	fprintf(stderr,
		"%s%-8s %s, %s, split %u, %s, %u executor%s, waits %" PRIu64 "/%" PRIu64
		": %" PRIu64 " %s in %.3g toggles; %.0f s left%s",
		p->terminal ? "\r\033[K" : "", p->stage, placement_name(c->placement),
		crossing_name(c->crossing), c->split, pair_name(c->pair), c->executors,
		c->executors == 1 ? "" : "s", c->first_wait, c->second_wait, tears,
		tears_word(tears), (double)(p->toggles + so_far->toggles), left > 0 ? left : 0,
		p->terminal ? "" : "\n");
	fflush(stderr);
	p->open = p->terminal;
	p->last_line = seconds_now();
}

void progress_stage(struct progress *p, const char *stage)
{
	p->stage = stage;
	p->tears = 0;
	p->toggles = 0;
	p->last_line = 0;
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

void progress_add(struct progress *p, const struct cell_result *result)
{
	p->toggles += result->toggles;
	p->tears += cell_result_tears(result);
}

void progress_end(struct progress *p)
{
	if (p->open)
		fputc('\n', stderr);
	p->open = false;
}
