/* SPDX-License-Identifier: MIT */
/* Cells, and runs of the gap oracle, within a budget into a journal. */
#include "calibrate/session/session.h"

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/number.h"

#define LINE_EVERY     10.0 /* seconds between plain lines */
#define LINE_MAX_BYTES 512

/* --- How far it is ---------------------------------------------------------------------------- */

void progress_open(struct progress *p, bool quiet, uint64_t tsc_khz)
{
	*p = (struct progress){
		.quiet = quiet,
		.terminal = isatty(STDERR_FILENO),
		.tsc_khz = tsc_khz,
	};
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
	bool counts = protocol_is_compiled(c->protocol);
	double left = fmax(0, p->left - (seconds_now() - p->cell_begin));
	uint64_t tears = p->tears + (counts ? cell_result_tears(so_far) : 0);
	char line[LINE_MAX_BYTES], provokers[PROVOKERS_MAX], time[32] = "";
	char wait[TICKS_TEXT + 1] = "";
	int width = LINE_MAX_BYTES;
	struct winsize size;

	if (p->quiet || (!p->terminal && seconds_now() - p->last_line < LINE_EVERY))
		return;
	if (left > 0)
		snprintf(time, sizeof(time), "%d:%02d left, ", (int)left / 60, (int)left % 60);
	if (c->waits.first || c->waits.stretch)
		snprintf(wait, sizeof(wait), " %s", TICKS(c->waits.first, p->tsc_khz));
	snprintf(line, sizeof(line),
		 "%s%" PRIu64 " %s in %s toggles; %s: %s, %s, %u executor%s, %s%s%s%s", time, tears,
		 tears_word(tears), NUMBER(p->toggles + (counts ? so_far->toggles : 0)), p->stage,
		 placement_name(c->placement), crossing_name(c->crossing), c->executors,
		 S(c->executors), protocol_name(c->protocol), wait, c->provokers ? ", " : "",
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

/* --- Cells ------------------------------------------------------------------------------------ */

double session_left(const struct session *s)
{
	return s->budget - s->used - (seconds_now() - s->begin);
}

static const struct cell_record *find_known(const struct session *s, const char *key)
{
	for (size_t i = 0; i < s->known.count; i++) {
		const struct cell_record *r = &s->known.records[i];
		struct seating here;
		char reason[160];

		if (strcmp(r->key, key) != 0 || r->result.outcome == OUTCOME_INTERRUPTED ||
		    r->result.outcome == OUTCOME_ERROR)
			continue;
		/* A run on other CPUs has measured another cell under the same key. */
		if (!s->topology ||
		    (cell_seat(&r->cell, s->topology, &here, reason, sizeof(reason)) == 0 &&
		     seating_is_same(&here, &r->result.seating)))
			return r;
	}
	return NULL;
}

int session_written(struct session *s, int ret)
{
	if (ret == 0)
		return 0;
	progress_end(&s->progress);
	error(0, -ret, "cannot write the journal");
	return -EIO;
}

static int measure_cell(struct session *s, struct cell_record *record)
{
	struct run_options how = {
		.topology = s->topology,
		.stop = s->stop,
		.progress = progress_cell,
		.arg = &s->progress,
	};
	char reason[NOISE_REASON_MAX];
	int ret = session_written(s, journal_write_begin(s->journal, record->key));

	if (ret == 0)
		ret = cell_run(&record->cell, &how, &record->result);
	if (ret < 0)
		return ret;
	date_text(time(NULL), false, record->date);
	record->noisy = record->result.outcome == OUTCOME_DONE &&
			noise_of_cell(&record->cell, &record->result, reason, sizeof(reason));
	ret = session_written(s, journal_write_cell(s->journal, record));
	/* A cell that this machine cannot run once it can never run. */
	if (ret == 0 && record->result.outcome == OUTCOME_ERROR)
		ret = record->result.error;
	return ret;
}

int session_run(struct session *s, const char *stage, unsigned round, const struct cell *cell,
		const struct cell_record **record)
{
	struct cell_record wanted = { .cell = *cell }, *r;
	const struct cell_record *known;
	char more[64] = "";
	int ret = 0;

	snprintf(wanted.stage, sizeof(wanted.stage), "%s", stage);
	/* Everything that the plan decides; not how long, which the budget decides. */
	if (cell->provokers || cell->waits.stretch || cell->loop)
		snprintf(more, sizeof(more), " p%x x%" PRIu64 " l%u", cell->provokers,
			 cell->waits.stretch, cell->loop);
	snprintf(wanted.key, sizeof(wanted.key),
		 "%s %u %s %s %s s%u %s n%u w%" PRIu64 "/%" PRIu64 " #%" PRIu64 "%s", wanted.stage,
		 round, placement_name(cell->placement), crossing_name(cell->crossing),
		 protocol_name(cell->protocol), cell->split, pair_name(cell->pair), cell->executors,
		 cell->waits.first, cell->waits.second, cell->seed, more);
	s->tries = 0;
	/* A cell that was interrupted is run again. If it saw tears, its record is added as well,
	 * since tears that were seen count. */
	for (size_t i = 0; i < s->known.count; i++) {
		known = &s->known.records[i];
		if (known->result.outcome != OUTCOME_INTERRUPTED ||
		    strcmp(known->key, wanted.key) != 0 || cell_result_tears(&known->result) == 0)
			continue;
		if (ARRAY_ADD(s->done, s->count, *known) < 0)
			return -ENOMEM;
	}
	if (ARRAY_ADD(s->done, s->count, wanted) < 0)
		return -ENOMEM;
	r = &s->done[s->count - 1];
	known = find_known(s, wanted.key);
	if (known) {
		*r = *known;
		s->used += r->result.seconds;
	} else if (*s->stop) {
		ret = -EINTR;
	} else {
		progress_begin_cell(&s->progress, cell, session_left(s));
		ret = measure_cell(s, r);
	}
	if (ret < 0) {
		s->count--;
		return ret;
	}
	s->tries++;
	*record = r;
	if (protocol_is_compiled(cell->protocol)) {
		s->progress.toggles += r->result.toggles;
		s->progress.tears += cell_result_tears(&r->result);
	}
	/* The journal says which cells are noisy, by the rules of the run that wrote it. */
	if (r->noisy && !noise_of_cell(&r->cell, &r->result, s->noise, sizeof(s->noise)))
		snprintf(s->noise, sizeof(s->noise), "as the journal has it");
	return *s->stop ? -EINTR : 0;
}

/* --- Gaps ------------------------------------------------------------------------------------- */

int session_known_gaps(struct session *s, const char *command, struct sums *sums)
{
	json_t *others = s->known.others, *line;
	size_t i;

	json_array_foreach(others, i, line)
	{
		const json_t *counted = json_object_get(line, "sums");
		int ret = 0;

		if (strcmp(json_text_of(line, "type"), "gaps") != 0 || !counted != !sums ||
		    (command && strcmp(json_text_of(line, "command"), command) != 0))
			continue;
		if (sums)
			ret = sums_from_json(counted, sums);
		json_array_remove(others, i);
		return ret == -ENOMEM ? -ENOMEM : 1;
	}
	return 0;
}

/* The line has its sums, for a run that resumes this journal. */
static int write_gaps(struct session *s, const struct cell *cell, const struct gap_result *result,
		      struct sums *sums)
{
	json_t *body = gap_to_json(cell, result);
	struct sums one = { 0 };
	int ret = body ? 0 : -ENOMEM;

	if (ret == 0 && sums && result->outcome == OUTCOME_DONE) {
		ret = long_add_gaps(&one, cell, result);
		if (ret == 0)
			ret = sums_add_all(sums, &one);
		if (ret == 0 && json_object_set_new(body, "sums", sums_to_json(&one)))
			ret = -ENOMEM;
	}
	if (ret == 0)
		ret = session_written(s, journal_write_line(s->journal, "gaps", body));
	json_decref(body);
	sums_free(&one);
	return ret;
}

int session_gaps(struct session *s, const struct cell *cell, struct sums *sums)
{
	struct run_options how = { .topology = s->topology, .stop = s->stop };
	static struct gap_result result; /* large */
	char command[512];
	int ret;

	gap_command(cell, command, sizeof(command));
	s->tries = 0;
	ret = session_known_gaps(s, command, sums);
	if (ret > 0)
		s->used += cell->seconds;
	if (ret)
		return ret;
	progress_begin_cell(&s->progress, cell, session_left(s));
	ret = gap_run(cell, &how, &result);
	if (ret == 0 && result.outcome == OUTCOME_ERROR)
		ret = result.error;
	if (ret < 0)
		return ret;
	s->tries = result.outcome == OUTCOME_DONE;
	ret = write_gaps(s, cell, &result, sums);
	if (ret < 0)
		return ret;
	return *s->stop ? -EINTR : result.outcome == OUTCOME_DONE;
}

void session_free(struct session *s)
{
	free(s->done);
	journal_free(&s->known);
	if (s->journal)
		journal_close(s->journal);
}
