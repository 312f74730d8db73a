/* SPDX-License-Identifier: MIT */
/* Lists of cells: reading them, and running them into a journal. */
#include "calibrate/session/experiment.h"

#include <errno.h>
#include <error.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/command_line.h"
#include "base/exit_status.h"
#include "base/random.h"
#include "base/text_file.h"
#include "calibrate/statistics/sums.h"
#include "results/journal/journal.h"
#include "stress/cell/cell.h"
#include "stress/run/gap.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

/* --- What is asked for ------------------------------------------------------------------------ */

bool option_shard(const struct option_row *row, const char *text, void *request, char *why)
{
	struct shard *shard = (void *)((char *)request + row->at);
	size_t digits = strcspn(text, "/");
	uint64_t number, of;
	char first[8];

	snprintf(first, sizeof(first), "%.*s", (int)(digits < 7 ? digits : 7), text);
	if (!text[digits] || !number_in(text + digits + 1, 1, SHARDS_MAX, &of) ||
	    !number_in(first, 1, of, &number))
		return option_refuse(why, "must be such as 3/16, of 1000 at most");
	*shard = (struct shard){ (unsigned)number, (unsigned)of };
	return true;
}

void experiment_name(struct experiment *e)
{
	const char *slash = strrchr(e->list, '/'), *base = slash ? slash + 1 : e->list;

	snprintf(e->name, sizeof(e->name), "%.*s", (int)strcspn(base, "."), base);
	/* Of letters that a stage may have. */
	for (char *c = e->name; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789", *c))
			*c = '-';
	if (e->name[0] < 'a')
		snprintf(e->name, sizeof(e->name), "list");
}

/* --- Lists of cells --------------------------------------------------------------------------- */

void cells_free(struct cells *cells)
{
	free(cells->at);
	*cells = (struct cells){ 0 };
}

static int read_cell(const char *text, struct listed *l, char *why)
{
	size_t name = strspn(text, NAME_LETTERS);
	struct cell *cell = &l->cell;
	char command[8] = "";
	int ret;

	*l = (struct listed){ 0 };
	if (name && text[name] == ':') {
		if (name >= sizeof(l->name) || text[0] < 'a') {
			snprintf(why, OPTION_WHY, "its name is not one of %d letters at most",
				 CELLS_NAME - 1);
			return -EINVAL;
		}
		memcpy(l->name, text, name);
		text += name + 1;
	}
	if (sscanf(text, " tmax %7s", command) == 1)
		l->gaps = strcmp(command, "gaps") == 0;
	if (l->gaps)
		gap_defaults(cell);
	else
		cell_defaults(cell);
	/* Values that no line can give: they are replaced where the line gives one. */
	cell->seed = UINT64_MAX;
	cell->placement = PLACEMENT_COUNT;
	ret = cell_read(text, l->gaps ? "gaps" : "stress", cell, why);
	if (ret < 0)
		return ret;
	l->seeded = cell->seed != UINT64_MAX;
	l->placed = cell->placement != PLACEMENT_COUNT;
	if (!l->seeded)
		cell->seed = 1;
	if (!l->placed)
		cell->placement = PLACEMENT_SPREAD;
	return l->gaps ? gap_check(cell, why, OPTION_WHY) : cell_check(cell, why, OPTION_WHY);
}

int cells_read(FILE *stream, struct cells *cells, char *why)
{
	char *line = NULL, reason[OPTION_WHY] = "";
	struct listed listed;
	size_t room = 0;
	int ret = 0;

	for (size_t number = 1; ret == 0 && getline(&line, &room, stream) > 0; number++) {
		const char *text = line + strspn(line, " \t\r\n");

		if (!*text || *text == '#')
			continue;
		ret = read_cell(text, &listed, reason);
		if (ret == 0 && cells->count == CELLS_MAX) {
			option_refuse(reason, "there are too many cells");
			ret = -EINVAL;
		}
		if (ret == -EINVAL)
			snprintf(why, CELLS_WHY, "line %zu: %s", number, reason);
		if (ret == 0)
			ret = ARRAY_ADD(cells->at, cells->count, listed);
	}
	free(line);
	return ret == 0 && ferror(stream) ? -EIO : ret;
}

/* --- The list --------------------------------------------------------------------------------- */

static int read_list(struct experiment *e)
{
	char path[PATH_MAX], why[CELLS_WHY];
	FILE *stream;
	int ret = -ENOENT;

	snprintf(path, sizeof(path), "%s", e->list);
	stream = fopen(path, "re");
	if (!stream && errno == ENOENT && !strchr(path, '/') &&
	    data_file(e->list, path, sizeof(path)) == 0)
		stream = fopen(path, "re");
	else if (!stream)
		ret = -errno;
	if (!stream)
		return complain(EXIT_MISSING, ret, "cannot read the list %s", e->list);
	ret = cells_read(stream, &e->cells, why);
	fclose(stream);
	if (ret == -EINVAL)
		error(0, 0, "%s: %s", path, why);
	else if (ret < 0)
		error(0, -ret, "cannot read the list %s", path);
	else if (!e->cells.count)
		error(0, 0, "%s: there is no cell in it", path);
	else
		return EXIT_PASS;
	return ret < 0 && ret != -EINVAL ? EXIT_MISSING : EXIT_USAGE;
}

/* Do both lines make the same runs? */
static bool is_same_cell(const struct listed *l, const struct listed *k)
{
	const struct cell *a = &l->cell, *b = &k->cell;

	return l->gaps == k->gaps && a->seed == b->seed && waits_same(&a->waits, &b->waits) &&
	       a->rest == b->rest && a->toggles == b->toggles && a->place == b->place &&
	       a->placement == b->placement && a->crossing == b->crossing && a->pair == b->pair &&
	       a->protocol == b->protocol && a->oracle == b->oracle && a->split == b->split &&
	       a->executors == b->executors && a->swap == b->swap && a->provokers == b->provokers &&
	       a->loop == b->loop;
}

int experiment_prepare(struct experiment *e, hwloc_topology_t topology)
{
	struct listed *end, *l, *k;
	struct seating seating;
	char reason[OPTION_WHY];
	int status = read_list(e);

	if (status != EXIT_PASS)
		return status;
	end = e->cells.at + e->cells.count;
	for (l = e->cells.at; l < end; l++) {
		struct cell *cell = &l->cell;

		for (const struct option_row *r = cell_options; r->name; r++) {
			if (!(e->replaced >> (r - cell_options) & 1))
				continue;
			l->placed |= strcmp(r->name, "placement") == 0;
			memcpy((char *)cell + r->at, (const char *)&e->with + r->at, r->size);
		}
		if ((l->gaps ? gap_check : cell_check)(cell, reason, sizeof(reason)) < 0)
			return refuse_usage("%s", reason);
		if (!topology || l->placed)
			continue;
		/* One CPU each if there are enough beside the patcher's; else all are shared. */
		if (placement_max(topology, PLACEMENT_SPREAD, reason, sizeof(reason)) <
		    cell->executors)
			cell->placement = PLACEMENT_OVERSUBSCRIBED;
		if (placement_seat(topology, cell->placement, cell->executors, 0, &seating, reason,
				   sizeof(reason)) < 0)
			return complain(EXIT_MISSING, 0, "%s", reason);
	}
	for (l = e->cells.at; l < end; l++)
		for (k = e->cells.at, l->copies = 0; k < end; k++) {
			if (k == l)
				l->copy = l->copies;
			l->copies += is_same_cell(k, l);
		}
	return EXIT_PASS;
}

/* --- Its cells -------------------------------------------------------------------------------- */

struct listed *experiment_line(const struct experiment *e, size_t i)
{
	return &e->cells.at[(i + i / e->cells.count) % e->cells.count];
}

unsigned experiment_cell(const struct experiment *e, size_t i, struct cell *cell)
{
	const struct listed *l = experiment_line(e, i);
	unsigned run = (unsigned)(i / e->cells.count) * l->copies + l->copy;
	const uint64_t parts[] = { l->cell.waits.first, l->cell.split, l->cell.executors,
				   l->cell.placement,	run,	       l->cell.toggles,
				   l->cell.rest };
	uint64_t seed = random_at(e->seed, 0);

	*cell = l->cell;
	/* Parts that differ in one bit give seeds that differ in half of theirs. */
	for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
		seed = random_at(seed ^ parts[k], 0);
	cell->seed = (l->seeded ? cell->seed + run : seed) & INT64_MAX;
	return run;
}

char *experiment_stage(const struct experiment *e, const struct listed *listed,
		       char stage[sizeof(((struct cell_record *)0)->stage)])
{
	snprintf(stage, sizeof(((struct cell_record *)0)->stage), "%s%s%s", e->name,
		 listed->name[0] ? "-" : "", listed->name);
	return stage;
}

bool has_answer(const struct cell_record *r)
{
	return r->result.outcome == OUTCOME_CRASH ||
	       (r->result.outcome == OUTCOME_DONE && (r->result.toggles >= r->cell.toggles ||
						      r->cell.seconds > 0 || r->cell.stop_tears));
}

/* --- Its cells one by one into the journal -------------------------------------------------- */

/* 0: all of it has an answer; 1: some cell hung, was killed or left out. */
static int run_cells(struct experiment *e, struct session *s)
{
	size_t left, count = e->cells.count * e->repetitions, done = 0;
	bool unanswered = false;
	const struct cell_record *record;
	char stage[sizeof(record->stage)];
	double used;
	int ret = 0;

	for (size_t i = e->shard.number - 1; ret >= 0 && i < count; i += e->shard.of) {
		struct listed *l = experiment_line(e, i);
		const char *name = l->name[0] ? l->name : e->name;
		struct cell cell;
		unsigned run = experiment_cell(e, i, &cell);

		/* For the time left that the progress shows: the others take as long. */
		s->budget = done ? s->used + (seconds_now() - s->begin) *
						     (1 + (double)((count - i) / e->shard.of) /
								  (double)done)
				 : 0;
		used = s->used;
		experiment_stage(e, l, stage);
		if (!l->left_out && s->progress.stage != name)
			s->progress.stage = name;
		if (l->left_out)
			ret = 0;
		else if (l->gaps)
			ret = session_gaps(s, &cell, NULL);
		else if ((ret = session_run(s, stage, run, &cell, &record)) >= 0)
			ret = has_answer(record);
		unanswered |= ret == 0;
		done += !(s->used > used);
		if (ret >= 0 || ret == -EINTR || ret == -EIO || ret == -ENOMEM)
			continue;
		progress_end(&s->progress);
		error(0, -ret, "%s not run here", stage);
		unanswered = true;
		/* What this machine cannot run once it can never run. */
		left = 0;
		for (struct listed *k = e->cells.at; k < e->cells.at + e->cells.count; k++) {
			k->left_out |= is_same_cell(k, l);
			left += !k->left_out;
		}
		ret = left ? 0 : -ENOENT;
	}
	progress_end(&s->progress);
	return ret < 0 ? ret : unanswered;
}

int experiment_run(struct experiment *e, struct session *s)
{
	struct journal_data *known = &s->known;
	size_t kept = 0;
	int ret;

	/* A session would take a cell that hung for an answer. */
	for (size_t i = 0; i < known->count; i++)
		if (has_answer(&known->records[i]))
			known->records[kept++] = known->records[i];
	known->count = kept;
	ret = run_cells(e, s);
	printf("Journal: %s; tmax report makes a page of it\n", e->journal);
	puts("Config:  left as it is: this was an experiment, not a calibration");
	if (ret == -EINTR) {
		puts("Interrupted: the same command with --resume goes on from here");
		return EXIT_INTERRUPTED;
	}
	if (ret == -EIO)
		return EXIT_CANNOT_WRITE;
	if (ret < 0)
		return complain(EXIT_MISSING, ret, "the experiment broke off");
	return ret > 0 ? EXIT_INCONCLUSIVE : EXIT_PASS;
}
