/* SPDX-License-Identifier: MIT */
#include "calibrate/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress/clock.h"

double session_left(const struct session *s)
{
	return s->budget - s->used - (seconds_now() - s->begin);
}

/* Everything that the plan decides; not how long, which the budget decides. */
static void name_cell(struct cell_record *record, unsigned round)
{
	const struct cell *c = &record->cell;

	snprintf(record->key, sizeof(record->key),
		 "%s %u %s %s %s s%u %s n%u w%" PRIu64 "/%" PRIu64 " #%" PRIu64, record->stage,
		 round, placement_name(c->placement), crossing_name(c->crossing),
		 protocol_name(c->protocol), c->split, pair_name(c->pair), c->executors,
		 c->first_wait, c->second_wait, c->seed);
}

static const struct cell_record *find_known(const struct session *s, const char *key)
{
	for (size_t i = 0; i < s->known.count; i++) {
		const struct cell_record *r = &s->known.records[i];

		if (strcmp(r->key, key) == 0 && r->result.outcome != OUTCOME_INTERRUPTED &&
		    r->result.outcome != OUTCOME_ERROR)
			return r;
	}
	return NULL;
}

static struct cell_record *add_record(struct session *s)
{
	struct cell_record *more;
	size_t room = s->room ? s->room * 2 : 64;

	if (s->count == s->room) {
		more = realloc(s->done, room * sizeof(*more));
		if (!more)
			return NULL;
		s->done = more;
		s->room = room;
	}
	return &s->done[s->count++];
}

static int keep(struct session *s, const struct cell_record *record)
{
	int ret = journal_write_cell(s->journal, record);

	if (ret == 0)
		return 0;
	progress_end(&s->progress);
	fprintf(stderr, "tmax: cannot write the journal: %s\n", strerror(-ret));
	return -EIO;
}

static int measure(struct session *s, struct cell_record *record)
{
	struct run_options how = {
		.topology = s->topology,
		.stop = s->stop,
		.progress = progress_cell,
		.arg = &s->progress,
	};
	int ret = cell_run(&record->cell, &how, &record->result);

	if (ret < 0)
		return ret;
	journal_date(record->date, sizeof(record->date));
	ret = keep(s, record);
	/* What this machine cannot run once it cannot run at all. */
	if (ret == 0 && record->result.outcome == OUTCOME_ERROR)
		ret = record->result.error;
	return ret;
}

int session_run(struct session *s, const char *stage, unsigned round, const struct cell *cell,
		const struct cell_record **record)
{
	struct cell_record *r = add_record(s);
	const struct cell_record *known;
	int ret = 0;

	if (!r)
		return -ENOMEM;
	*r = (struct cell_record){ .cell = *cell };
	snprintf(r->stage, sizeof(r->stage), "%s", stage);
	name_cell(r, round);
	*record = r;
	known = find_known(s, r->key);
	if (known) {
		*r = *known;
		s->used += r->result.seconds;
	} else {
		progress_begin_cell(&s->progress, &r->cell, session_left(s));
		ret = *s->stop ? -EINTR : measure(s, r);
	}
	if (ret < 0) {
		s->count--;
		return ret;
	}
	progress_add(&s->progress, &r->result);
	return *s->stop ? -EINTR : 0;
}

void session_free(struct session *s)
{
	free(s->done);
	journal_free(&s->known);
	if (s->journal)
		journal_close(s->journal);
}
