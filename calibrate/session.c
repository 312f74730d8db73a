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
	size_t size = sizeof(record->key);
	int length;

	length = snprintf(record->key, size,
			  "%s %u %s %s %s s%u %s n%u w%" PRIu64 "/%" PRIu64 " #%" PRIu64,
			  record->stage, round, placement_name(c->placement),
			  crossing_name(c->crossing), protocol_name(c->protocol), c->split,
			  pair_name(c->pair), c->executors, c->first_wait, c->second_wait, c->seed);
	if (length < 0 || (size_t)length >= size || !(c->provokers || c->stretch || c->loop))
		return;
	snprintf(record->key + length, size - (size_t)length, " p%x x%" PRIu64 " l%u", c->provokers,
		 c->stretch, c->loop);
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
	char reason[NOISE_REASON_MAX];
	int ret = cell_run(&record->cell, &how, &record->result);

	if (ret < 0)
		return ret;
	journal_date(record->date, sizeof(record->date));
	record->noisy = record->result.outcome == OUTCOME_DONE &&
			noise_of_cell(&record->cell, &record->result, reason, sizeof(reason));
	ret = keep(s, record);
	/* What this machine cannot run once it cannot run at all. */
	if (ret == 0 && record->result.outcome == OUTCOME_ERROR)
		ret = record->result.error;
	return ret;
}

/* Take it from the journal or measure it. */
static int obtain(struct session *s, struct cell_record *record)
{
	const struct cell_record *known = find_known(s, record->key);

	if (known) {
		*record = *known;
		s->used += record->result.seconds;
		return 0;
	}
	if (*s->stop)
		return -EINTR;
	progress_begin_cell(&s->progress, &record->cell, session_left(s));
	return measure(s, record);
}

static int try_once(struct session *s, const struct cell_record *wanted,
		    const struct cell_record **record)
{
	struct cell_record *r = add_record(s);
	int ret;

	if (!r)
		return -ENOMEM;
	*r = *wanted;
	ret = obtain(s, r);
	if (ret < 0) {
		s->count--;
		return ret;
	}
	s->tries++;
	*record = r;
	progress_add(&s->progress, &r->result);
	return 0;
}

/* Another seed is another rhythm: the old one may beat with what disturbs. */
static void make_repeat(const struct cell_record *first, unsigned again, struct cell_record *repeat)
{
	uint64_t z = first->cell.seed + again * UINT64_C(0x9e3779b97f4a7c15);

	*repeat = *first;
	repeat->cell.seed = (z ^ (z >> 31)) & INT64_MAX;
	snprintf(repeat->key + strlen(repeat->key), sizeof(repeat->key) - strlen(repeat->key),
		 " again %u", again);
}

/*
 * Did the run that is resumed go on without this repeat, its budget spent? Then
 * so must this one, or the cells that follow are others than those it has.
 */
static bool was_left_out(const struct session *s, const char *key, const char *repeat)
{
	const struct cell_record *known = find_known(s, key);

	return known && known + 1 < s->known.records + s->known.count &&
	       strcmp(known[1].key, repeat) != 0;
}

static bool may_repeat(const struct session *s, const char *key, const char *repeat)
{
	if (s->once)
		return false;
	if (find_known(s, repeat))
		return true;
	return session_left(s) > 0 && s->repeated < SESSION_REPEAT_SHARE * s->budget &&
	       !was_left_out(s, key, repeat);
}

static int repeat_while_noisy(struct session *s, const struct cell_record *first,
			      const struct cell_record **record)
{
	struct cell_record repeat;
	int ret = 0;

	for (unsigned again = 1; ret == 0 && (*record)->noisy && again <= SESSION_REPEATS;
	     again++) {
		make_repeat(first, again, &repeat);
		if (!may_repeat(s, (*record)->key, repeat.key))
			break;
		ret = try_once(s, &repeat, record);
		if (ret == 0)
			s->repeated += (*record)->result.seconds;
	}
	return ret;
}

/* What the journal calls noisy is so, by whatever rules it was judged. */
static void add_noise(struct session *s)
{
	const struct cell_record *last = &s->done[s->count - 1];
	struct session_noise *n = &s->noise;

	n->cells++;
	n->noisy += s->done[s->count - s->tries].noisy;
	if (!last->noisy)
		return;
	n->stayed++;
	if (!noise_of_cell(&last->cell, &last->result, n->reason, sizeof(n->reason)))
		snprintf(n->reason, sizeof(n->reason), "as the journal has it");
}

int session_run(struct session *s, const char *stage, unsigned round, const struct cell *cell,
		const struct cell_record **record)
{
	struct cell_record first = { .cell = *cell };
	int ret;

	snprintf(first.stage, sizeof(first.stage), "%s", stage);
	name_cell(&first, round);
	s->tries = 0;
	ret = try_once(s, &first, record);
	if (ret < 0)
		return ret;
	ret = repeat_while_noisy(s, &first, record);
	add_noise(s);
	if (ret < 0)
		return ret;
	return *s->stop ? -EINTR : 0;
}

void session_free(struct session *s)
{
	free(s->done);
	journal_free(&s->known);
	if (s->journal)
		journal_close(s->journal);
}
