/* SPDX-License-Identifier: MIT */
/* Figure 9: from records to points, and to a picture. */
#include "results/figures/figure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "results/figures/gnuplot.h"
#include "results/figures/tally.h"

#define ALL_SPLITS 0 /* in place of a split */

struct figure {
	enum oracle oracle;
	/* By crossing in bytes, split, wait: tears in toggles, or failed runs in runs. */
	struct tally points;
	struct tally splits;
	bool still; /* are there waits that stand still, as the paper's do? */
	size_t cells;
	size_t left_out;  /* cells that ended without an answer */
	uint64_t crashes; /* where tears should only have been counted */
	uint64_t toggles;
	unsigned fewest, most; /* executors */
	/* For gnuplot, lines: */
	char titles[416];
	char caption[CAPTION_ROOM]; /* empty where the figure needs none */
};

static bool belongs_to_figure(const struct cell *c, enum oracle oracle)
{
	/* The caption of the crash figure tells what differs from the paper; the other has none. */
	if (oracle == ORACLE_COUNT && (c->provokers || c->loop || c->rest == CELL_RESTED))
		return false;
	return c->oracle == oracle && c->protocol == PROTOCOL_WAIT &&
	       c->waits.first == c->waits.second &&
	       (c->crossing == CROSSING_LINE || c->crossing == CROSSING_PAGE);
}

/*
 * Did it run long enough to say something of its wait? A run that was stopped early has counted
 * as far as it went, but it has not survived. A hang or a kill says nothing about the site.
 */
static bool has_answer(const struct cell_record *r)
{
	enum outcome outcome = r->result.outcome;

	return r->result.toggles > 0 &&
	       (outcome == OUTCOME_DONE || outcome == OUTCOME_CRASH ||
		(outcome == OUTCOME_INTERRUPTED && r->cell.oracle == ORACLE_COUNT));
}

static bool figure9_takes(const struct cell_record *record, enum oracle oracle)
{
	return belongs_to_figure(&record->cell, oracle) && has_answer(record);
}

/* What the caption of the crash oracle's figure says of its runs, in this order. */
enum {
	RUNS = 4, /* with all else alike */
	SETS = 11
};

static const char *provoked_name(unsigned provoked)
{
	return provoked ? "provoked" : "not provoked";
}

static const struct {
	const char *before, *behind;
	const char *(*name)(unsigned value); /* NULL: it is a number */
} captions[SETS] = {
	{ "", "", placement_name },
	{ "N = ", "", NULL },
	{ "waits ", "", NULL },
	{ "S = ", "", NULL },
	[RUNS] = { "runs of each: ", "", NULL },
	{ "", " toggles a run", NULL },
	{ "a rest of ", " ticks", NULL },
	{ "pair ", "", pair_name },
	{ "across a ", "", crossing_name },
	{ "stretch ", "", NULL },
	{ "", "", provoked_name },
};

/* "2 to 6", "0 to 2400 by 100", and "1, 3" where three or more are not evenly apart. */
static void put_values(FILE *out, const struct tally *set, const char *(*name)(unsigned value))
{
	const struct tally_row *row = set->row;

	for (size_t i = 0, last; i < set->count; i = last + 1) {
		uint64_t step = i + 1 < set->count ? row[i + 1].key[0] - row[i].key[0] : 0;

		for (last = i; !name && last + 1 < set->count; last++)
			if (row[last + 1].key[0] - row[last].key[0] != step)
				break;
		last = last - i < 2 ? i : last;
		fprintf(out, "%s%s", i ? ", " : "",
			name ? name((unsigned)row[i].key[0]) : NUMBER(row[i].key[0]));
		if (last > i)
			fprintf(out, " to %s", NUMBER(row[last].key[0]));
		if (last > i && step > 1)
			fprintf(out, " by %s", NUMBER(step));
	}
}

int caption_paper(const struct journal_data *data, char *text, size_t size)
{
	struct tally set[SETS] = { 0 }, alike = { 0 };
	bool failed = false;
	int rc = -ENODATA;
	FILE *out;

	text[0] = '\0';
	for (size_t i = 0; i < data->count; i++) {
		const struct cell *c = &data->records[i].cell;
		/* In the order of captions; the runs of each are counted below. */
		const struct tally_row run = {
			.key = { c->placement, c->executors, c->waits.first, c->split, 0,
				 c->toggles, c->rest, c->pair, c->crossing, c->waits.stretch,
				 c->provokers || c->loop },
			.trials = 1,
		};

		if (!figure9_takes(&data->records[i], ORACLE_CRASH))
			continue;
		for (int k = 0; k < SETS; k++)
			if (k != RUNS)
				tally_add(&set[k], &(struct tally_row){ .key[0] = run.key[k] });
		tally_add(&alike, &run);
	}
	for (size_t i = 0; i < alike.count; i++)
		tally_add(&set[RUNS], &(struct tally_row){ .key[0] = alike.row[i].trials });
	for (int i = 0; i < SETS; i++)
		failed |= set[i].failed;
	out = alike.count && !failed && !alike.failed ? fmemopen(text, size, "w") : NULL;
	if (out) {
		fprintf(out,
			"The paper: 25 waits from 0 to 2400, S = 1 to 4, N = 2 to 6 executors, "
			"5 runs of each, 5e7 toggles a run.\nHere: %u CPU%s",
			data->identity.cpus, S(data->identity.cpus));
		for (int i = 0; i < SETS; i++) {
			fprintf(out, "; %s", captions[i].before);
			put_values(out, &set[i], captions[i].name);
			fputs(captions[i].behind, out);
		}
		fputs(".", out);
		fclose(out);
		rc = 0;
	} else if (alike.count || alike.failed) {
		rc = -ENOMEM;
	}
	for (int i = 0; i < SETS; i++)
		tally_free(&set[i]);
	tally_free(&alike);
	return rc;
}

static void print_points(FILE *stream, const void *arg)
{
	const struct figure *f = arg;
	const char *const texts[] = { f->titles, f->caption };

	for (unsigned i = 0; i < 2; i++)
		for (const char *line = texts[i]; *line;) {
			int length = (int)strcspn(line, "\n");

			fprintf(stream, "# %.*s\n", length, line);
			line += length + (line[length] == '\n');
		}
	fprintf(stream, "# crossing split wait %s\n",
		f->oracle == ORACLE_CRASH ? "failed runs" : "tears toggles");
	for (size_t i = 0; i < f->points.count; i++) {
		const struct tally_row *p = &f->points.row[i];

		fprintf(stream, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			p->key[0], p->key[1], p->key[2], p->events, p->trials);
	}
}

/* Adds up what belongs to the figure. */
static void gather_points(struct figure *f, const struct journal_data *data)
{
	bool counting = f->oracle == ORACLE_COUNT;

	for (size_t i = 0; i < data->count; i++)
		f->still |= belongs_to_figure(&data->records[i].cell, f->oracle) &&
			    !data->records[i].cell.waits.stretch;
	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];
		const struct cell *c = &r->cell;
		bool crashed = r->result.outcome == OUTCOME_CRASH;
		struct tally_row point = {
			.key = { crossing_bytes(c->crossing), c->split, c->waits.first },
			.events = counting ? cell_result_tears(&r->result) : crashed,
			.trials = counting ? r->result.toggles : 1,
		};

		if (!belongs_to_figure(c, f->oracle) || (counting && f->still && c->waits.stretch))
			continue;
		if (!has_answer(r)) {
			f->left_out++;
			continue;
		}
		f->crashes += counting && crashed;
		tally_add(&f->points, &point);
		tally_add(&f->splits, &(struct tally_row){ .key[0] = c->split });
		sum_add(&f->toggles, r->result.toggles);
		if (!f->cells++ || c->executors < f->fewest)
			f->fewest = c->executors;
		if (c->executors > f->most)
			f->most = c->executors;
	}
}

/* The paper's figure adds up all splits: another curve, unless there is one split only. */
static void add_all_splits(struct figure *f)
{
	struct tally each = f->points;

	if (f->splits.count < 2)
		return;
	f->points = (struct tally){ .failed = each.failed };
	for (size_t i = 0; i < each.count; i++) {
		struct tally_row sum = each.row[i];

		tally_add(&f->points, &sum);
		sum.key[1] = ALL_SPLITS;
		tally_add(&f->points, &sum);
	}
	tally_free(&each);
	tally_add(&f->splits, &(struct tally_row){ .key[0] = ALL_SPLITS });
}

static int print_titles(struct figure *f, const struct identity *id)
{
	bool bare = strcmp(id->hypervisor, "none") == 0;
	FILE *out = fmemopen(f->titles, sizeof(f->titles), "w");
	char machine[160], shown[160];

	if (!out)
		return -ENOMEM;
	snprintf(machine, sizeof(machine), "%s, microcode %s, %s%s", id->brand, id->microcode,
		 bare ? "bare metal" : "hypervisor ", bare ? "" : id->hypervisor);
	/* What a machine calls itself stays on its line, in the figure and in the data. */
	text_printable(shown, sizeof(shown), machine);
	fprintf(out, "%s\n%s toggles in %zu %s, %u", shown, NUMBER(f->toggles), f->cells,
		f->oracle == ORACLE_CRASH ? "runs" : "cells", f->fewest);
	if (f->fewest != f->most)
		fprintf(out, " to %u", f->most);
	fprintf(out, " executor%s", S(f->most));
	if (f->crashes)
		fprintf(out, "; %" PRIu64 " crashed, each counted as a tear", f->crashes);
	if (f->left_out)
		fprintf(out, "; %zu without an answer left out", f->left_out);
	fclose(out);
	return 0;
}

static int draw_figure(struct figure *f, const struct journal_data *data, const char *prefix,
		       char *error, size_t size)
{
	const json_t *paper = json_object_get(line_last(data, "estimate"), "paper");
	char crossings[16], splits[16], mark[48];
	int length;
	const char *const args[] = {
		f->titles, oracle_name(f->oracle), crossings, splits, f->caption, mark, NULL
	};
	const struct picture picture = { print_points, f, "figure9.gp", args };

	gather_points(f, data);
	if (f->oracle == ORACLE_CRASH)
		add_all_splits(f);
	if (f->points.failed || f->splits.failed || print_titles(f, &data->identity) < 0 ||
	    (f->oracle == ORACLE_CRASH && caption_paper(data, f->caption, CAPTION_ROOM) == -ENOMEM))
		return picture_fail(-ENOMEM, error, size, "out of memory");
	if (!f->points.count)
		return picture_fail(-ENODATA, error, size, "no cell fits the figure");
	tally_words(&f->points, 1, 0, crossings, sizeof(crossings));
	tally_words(&f->splits, 1, 0, splits, sizeof(splits));
	length = snprintf(mark, sizeof(mark), "%.9g", (double)data->identity.tsc_khz / 1000);
	/* The paper's T_max, as the last estimate has it. */
	if (f->oracle == ORACLE_COUNT && f->still &&
	    json_is_true(json_object_get(paper, "found")) && json_real_of(paper, "wait") >= 0)
		snprintf(mark + length, sizeof(mark) - (size_t)length, " %.0f",
			 json_real_of(paper, "wait"));
	return picture_make(&picture, prefix, error, size);
}

int figure9_write(const struct journal_data *data, enum oracle oracle, const char *prefix,
		  char *error, size_t size)
{
	struct figure f = { .oracle = oracle };
	int rc;

	if (!data->have_identity)
		return picture_fail(-EINVAL, error, size, "the journal names no machine");
	if (data->mixed)
		return picture_fail(-EINVAL, error, size, "the journal holds different machines");
	rc = draw_figure(&f, data, prefix, error, size);
	tally_free(&f.points);
	tally_free(&f.splits);
	return rc;
}
