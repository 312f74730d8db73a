/* SPDX-License-Identifier: MIT */
#include "calibrate/experiment/paper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress/base/random.h"

void paper_defaults(struct paper *paper)
{
	*paper = (struct paper){
		.toggles = PAPER_TOGGLES,
		.repetitions = PAPER_REPETITIONS,
		.rest = PAPER_REST,
		.seed = 1,
	};
	paper_executors(paper, PAPER_EXECUTORS);
}

static int add_executors(struct paper *paper, unsigned n)
{
	if (n < 1 || n > PAPER_EXECUTORS_MAX || paper->seats == PAPER_SEATS_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < paper->seats; i++)
		if (paper->seat[i].executors == n)
			return -EINVAL;
	paper->seat[paper->seats++] = (struct seat){ PLACEMENT_SPREAD, n };
	return 0;
}

static bool take_number(const char **text, unsigned long *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*number = strtoul(*text, &end, 10);
	*text = end;
	return *number >= 1 && *number <= PAPER_EXECUTORS_MAX;
}

/* "4" or "2-6". */
static int take_range(struct paper *paper, const char **text)
{
	unsigned long first, last;

	if (!take_number(text, &first))
		return -EINVAL;
	last = first;
	if (**text == '-') {
		++*text;
		if (!take_number(text, &last) || last < first)
			return -EINVAL;
	}
	for (unsigned long n = first; n <= last; n++)
		if (add_executors(paper, (unsigned)n) < 0)
			return -EINVAL;
	return 0;
}

int paper_executors(struct paper *paper, const char *list)
{
	paper->seats = 0;
	do {
		if (take_range(paper, &list) < 0)
			return -EINVAL;
	} while (*list++ == ',');
	return list[-1] ? -EINVAL : 0;
}

int paper_seat(struct paper *paper, hwloc_topology_t topology, char *reason, size_t size)
{
	struct seating seating;

	for (unsigned i = 0; i < paper->seats; i++) {
		struct seat *seat = &paper->seat[i];
		unsigned most = placement_max(topology, PLACEMENT_SPREAD, reason, size);
		int ret;

		seat->placement =
			most >= seat->executors ? PLACEMENT_SPREAD : PLACEMENT_OVERSUBSCRIBED;
		ret = placement_seat(topology, seat->placement, seat->executors, &seating, reason,
				     size);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* --- The grid ---------------------------------------------------------------- */

size_t paper_count(const struct paper *paper)
{
	return (size_t)PAPER_WAITS * PAPER_SPLITS * paper->seats * paper->repetitions;
}

/* Where cell i stands in each direction of the grid. */
struct point {
	unsigned wait;
	unsigned split;
	unsigned seat;
	unsigned repetition;
};

static struct point point_of(const struct paper *paper, size_t i)
{
	struct point p;

	p.wait = (unsigned)(i % PAPER_WAITS);
	i /= PAPER_WAITS;
	p.split = (unsigned)(i % PAPER_SPLITS);
	i /= PAPER_SPLITS;
	p.seat = (unsigned)(i % paper->seats);
	p.repetition = (unsigned)(i / paper->seats);
	return p;
}

/* What differs in one bit comes out differing in half. */
static uint64_t seed_of_cell(const struct paper *paper, const struct cell *c, unsigned repetition)
{
	const uint64_t parts[] = { c->first_wait, c->split,   c->executors, (uint64_t)c->placement,
				   repetition,	  c->toggles, c->rest };
	uint64_t seed = random_at(paper->seed, 0);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		seed = random_at(seed ^ parts[i], 0);
	return seed & INT64_MAX;
}

unsigned paper_repetition(const struct paper *paper, size_t i)
{
	return point_of(paper, i).repetition;
}

void paper_cell(const struct paper *paper, size_t i, struct cell *cell)
{
	struct point p = point_of(paper, i);

	cell_defaults(cell);
	cell->placement = paper->seat[p.seat].placement;
	cell->executors = paper->seat[p.seat].executors;
	cell->crossing = CROSSING_LINE;
	cell->pair = PAIR_CALL_NOP;
	cell->protocol = PROTOCOL_WAIT;
	cell->oracle = ORACLE_CRASH;
	cell->split = p.split + 1;
	cell->first_wait = cell->second_wait = (uint64_t)p.wait * PAPER_WAIT_STEP;
	cell->stretch = 0;
	cell->rest = paper->rest;
	cell->toggles = paper->toggles;
	cell->seconds = 0;
	cell->stop_tears = 0;
	cell->seed = seed_of_cell(paper, cell, p.repetition);
}

/* --- What is there ------------------------------------------------------------- */

/* As figure 9 counts: it ran to its end, or it crashed. */
static bool has_answer(const struct cell_record *r)
{
	return r->result.outcome == OUTCOME_CRASH ||
	       (r->result.outcome == OUTCOME_DONE && r->result.toggles >= r->cell.toggles);
}

static bool same_cell(const struct cell *a, const struct cell *b)
{
	return a->seed == b->seed && a->placement == b->placement && a->crossing == b->crossing &&
	       a->pair == b->pair && a->protocol == b->protocol && a->oracle == b->oracle &&
	       a->split == b->split && a->executors == b->executors &&
	       a->first_wait == b->first_wait && a->second_wait == b->second_wait &&
	       a->stretch == b->stretch && a->rest == b->rest && a->provokers == b->provokers &&
	       a->loop == b->loop && a->toggles == b->toggles;
}

struct known {
	struct cell cell;
	size_t index;
};

static int compare_cells(const void *a, const void *b)
{
	const struct known *p = a, *q = b;

	return (p->cell.seed > q->cell.seed) - (p->cell.seed < q->cell.seed);
}

static struct known *list_cells(const struct paper *paper)
{
	size_t count = paper_count(paper);
	struct known *known = calloc(count, sizeof(*known));

	if (!known)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		paper_cell(paper, i, &known[i].cell);
		known[i].index = i;
	}
	qsort(known, count, sizeof(*known), compare_cells);
	return known;
}

static const struct known *find_known(const struct known *known, size_t count,
				      const struct cell *cell)
{
	struct known wanted = { .cell = *cell };
	const struct known *found = bsearch(&wanted, known, count, sizeof(*known), compare_cells);

	return found && same_cell(&found->cell, cell) ? found : NULL;
}

static void look_at(const struct cell_record *r, const struct known *known, size_t count,
		    bool *seen, struct paper_there *there)
{
	const struct known *k = find_known(known, count, &r->cell);

	if (!k) {
		there->other += strcmp(r->stage, PAPER_STAGE) == 0;
		return;
	}
	if (!has_answer(r))
		return;
	if (seen[k->index]) {
		there->doubled++;
		return;
	}
	seen[k->index] = true;
	there->missing--;
}

int paper_look(const struct paper *paper, const struct journal_data *data, bool *have,
	       struct paper_there *there)
{
	size_t count = paper_count(paper);
	struct known *known = list_cells(paper);
	bool *seen = calloc(count, sizeof(*seen));
	int ret = known && seen ? 0 : -ENOMEM;

	*there = (struct paper_there){ .missing = count };
	for (size_t i = 0; ret == 0 && i < data->count; i++)
		look_at(&data->records[i], known, count, seen, there);
	if (have && seen)
		memcpy(have, seen, count * sizeof(*seen));
	free(known);
	free(seen);
	return ret;
}

void paper_seat_as(struct paper *paper, const struct journal_data *data)
{
	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];

		for (unsigned n = 0; n < paper->seats; n++)
			if (paper->seat[n].executors == r->cell.executors &&
			    strcmp(r->stage, PAPER_STAGE) == 0)
				paper->seat[n].placement = r->cell.placement;
	}
}

/* --- How long ------------------------------------------------------------------ */

static double cell_seconds(const struct paper *paper, const struct paper_pace *pace, size_t i)
{
	struct point p = point_of(paper, i);
	const struct paper_pace *its = &pace[p.seat];
	double share = (double)p.wait / (PAPER_WAITS - 1);
	double toggle = its->low + share * (its->high - its->low);

	return its->start + (double)paper->toggles * toggle;
}

double paper_seconds(const struct paper *paper, const struct paper_pace *pace, const size_t *cells,
		     size_t count)
{
	double seconds = 0;

	for (size_t i = 0; i < count; i++)
		seconds += cell_seconds(paper, pace, cells[i]);
	return seconds;
}
