/* SPDX-License-Identifier: MIT */
/*
 * Figure 9: from records to points, and to a picture.
 */
#include "results/figures/figure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "results/figures/gnuplot.h"
#include "results/figures/tally.h"

#define ALL_SPLITS 0 /* in place of a split */
#define SPLITS	   4
#define TITLE_ROOM 160

struct figure {
	enum oracle oracle;
	/* By crossing in bytes, split, wait: tears in toggles, or failed runs in runs. */
	struct tally points;
	unsigned splits; /* a bit each */
	bool still;	 /* are there waits that stand still, as the paper's do? */
	size_t cells;
	size_t left_out;  /* cells that ended without an answer */
	uint64_t crashes; /* where tears should only have been counted */
	uint64_t toggles;
	unsigned fewest, most; /* executors */
	/* For gnuplot, lines: */
	char titles[416];
	char caption[CAPTION_ROOM]; /* empty where the figure needs none */
};

static bool fits(const struct cell *c, enum oracle oracle)
{
	/* The caption of the crash figure tells what differs from the paper; the other has none. */
	if (oracle == ORACLE_COUNT && (c->provokers || c->loop))
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

bool figure9_takes(const struct cell_record *record, enum oracle oracle)
{
	return fits(&record->cell, oracle) && has_answer(record);
}

/*
 * The caption of the crash oracle's figure, which says how its runs differ from the paper's: the
 * sets of values that the runs have, in the order in which they are told.
 */
enum {
	PLACED,
	EXECUTORS,
	WAIT,
	SPLIT,
	RUNS, /* with all else alike */
	TOGGLES,
	REST,
	PAIR,
	CROSSING,
	STRETCH,
	PROVOKED,
	SETS
};

static const char *provoked_name(unsigned provoked)
{
	return provoked ? "provoked" : "not provoked";
}

static const struct {
	const char *before, *behind;
	const char *(*name)(unsigned value); /* NULL: it is a number */
} told[SETS] = {
	[PLACED] = { "", "", placement_name },
	[EXECUTORS] = { "N = ", "", NULL },
	[WAIT] = { "waits ", "", NULL },
	[SPLIT] = { "S = ", "", NULL },
	[RUNS] = { "runs of each: ", "", NULL },
	[TOGGLES] = { "", " toggles a run", NULL },
	[REST] = { "a rest of ", " ticks", NULL },
	[PAIR] = { "pair ", "", pair_name },
	[CROSSING] = { "across a ", "", crossing_name },
	[STRETCH] = { "stretch ", "", NULL },
	[PROVOKED] = { "", "", provoked_name },
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
	char *made = NULL;
	size_t length, runs = 0;
	FILE *out;

	text[0] = '\0';
	for (size_t i = 0; i < data->count; i++)
		if (figure9_takes(&data->records[i], ORACLE_CRASH)) {
			const struct cell *c = &data->records[i].cell;
			const struct tally_row run = {
				.key = { c->placement, c->executors, c->waits.first, c->split,
					 c->crossing },
				.trials = 1,
			};
			const uint64_t value[SETS] = {
				[PLACED] = c->placement,
				[EXECUTORS] = c->executors,
				[WAIT] = c->waits.first,
				[SPLIT] = c->split,
				[TOGGLES] = c->toggles,
				[REST] = c->rest,
				[PAIR] = c->pair,
				[CROSSING] = c->crossing,
				[STRETCH] = c->waits.stretch,
				[PROVOKED] = c->provokers || c->loop,
			};

			tally_add(&alike, &run);
			for (int k = 0; k < SETS; k++)
				if (k != RUNS)
					tally_add(&set[k],
						  &(struct tally_row){ .key[0] = value[k] });
			runs++;
		}
	for (size_t i = 0; i < alike.count; i++)
		tally_add(&set[RUNS], &(struct tally_row){ .key[0] = alike.row[i].trials });
	for (int i = 0; i < SETS; i++)
		failed |= set[i].failed;
	out = runs && !failed && !alike.failed ? open_memstream(&made, &length) : NULL;
	if (out) {
		fprintf(out,
			"The paper: 25 waits from 0 to 2400, S = 1 to 4, N = 2 to 6 executors, "
			"5 runs of each, 5e7 toggles a run.\nHere: %u CPU%s",
			data->identity.cpus, S(data->identity.cpus));
		for (int i = 0; i < SETS; i++) {
			fprintf(out, "; %s", told[i].before);
			put_values(out, &set[i], told[i].name);
			fputs(told[i].behind, out);
		}
		fputs(".", out);
	}
	failed = runs && (!out || fclose(out));
	if (runs && !failed)
		snprintf(text, size, "%s", made);
	free(made);
	for (int i = 0; i < SETS; i++)
		tally_free(&set[i]);
	tally_free(&alike);
	return failed ? -ENOMEM : runs ? 0 : -ENODATA;
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

int figure9_write(const struct journal_data *data, enum oracle oracle, const char *prefix,
		  char *error, size_t size)
{
	struct figure f = { .oracle = oracle };
	const struct identity *id = &data->identity;
	const json_t *paper = json_object_get(line_last(data, "estimate"), "paper");
	bool bare = strcmp(id->hypervisor, "none") == 0;
	char executors[32], left_out[64] = "", crashes[64] = "";
	char crossings[16], splits[16] = "", mark[32] = "";
	const char *const args[] = { f.titles, oracle_name(oracle), crossings,
				     splits,   f.caption,	    mark,
				     NULL };
	const struct picture picture = { print_points, &f, "figure9.gp", args };
	size_t length = 0;
	int rc;

	if (!data->have_identity)
		return picture_fail(-EINVAL, error, size, "the journal names no machine");
	if (data->mixed)
		return picture_fail(-EINVAL, error, size, "the journal holds different machines");
	for (size_t i = 0; i < data->count; i++)
		f.still |= fits(&data->records[i].cell, oracle) &&
			   !data->records[i].cell.waits.stretch;
	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];
		const struct cell *c = &r->cell;
		bool crashed = r->result.outcome == OUTCOME_CRASH;
		struct tally_row point = { .key = { crossing_bytes(c->crossing), c->split,
						    c->waits.first },
					   .events = crashed,
					   .trials = 1 };

		if (!fits(c, oracle) || (oracle == ORACLE_COUNT && f.still && c->waits.stretch))
			continue;
		if (!has_answer(r)) {
			f.left_out++;
			continue;
		}
		if (oracle == ORACLE_COUNT) {
			point.events = record_tears(r);
			point.trials = r->result.toggles;
			f.crashes += crashed;
		}
		tally_add(&f.points, &point);
		f.splits |= 1u << c->split;
		sum_add(&f.toggles, r->result.toggles);
		if (!f.cells || c->executors < f.fewest)
			f.fewest = c->executors;
		if (c->executors > f.most)
			f.most = c->executors;
		f.cells++;
	}
	/* The paper's figure has all splits in one. Of one split that would be the same again. */
	if (oracle == ORACLE_CRASH && f.splits & (f.splits - 1)) {
		struct tally each = f.points;

		f.points = (struct tally){ .failed = each.failed };
		for (size_t i = 0; i < each.count; i++) {
			struct tally_row sum = each.row[i];

			tally_add(&f.points, &sum);
			sum.key[1] = ALL_SPLITS;
			tally_add(&f.points, &sum);
		}
		tally_free(&each);
		f.splits |= 1u << ALL_SPLITS;
	}
	if (f.points.failed ||
	    (oracle == ORACLE_CRASH && caption_paper(data, f.caption, CAPTION_ROOM) == -ENOMEM))
		rc = picture_fail(-ENOMEM, error, size, "out of memory");
	else
		rc = f.points.count
			     ? 0
			     : picture_fail(-ENODATA, error, size, "no cell fits the figure");
	if (rc) {
		tally_free(&f.points);
		return rc;
	}
	snprintf(f.titles, TITLE_ROOM, "%s, microcode %s, %s%s", id->brand, id->microcode,
		 bare ? "bare metal" : "hypervisor ", bare ? "" : id->hypervisor);
	/* What a machine calls itself stays on its line, in the figure and in the data. */
	for (char *c = f.titles; *c; c++)
		if ((unsigned char)*c < ' ' || *c == '\x7f')
			*c = '?';
	snprintf(executors, sizeof(executors), "%u", f.fewest);
	if (f.fewest != f.most)
		snprintf(executors, sizeof(executors), "%u to %u", f.fewest, f.most);
	if (f.crashes)
		snprintf(crashes, sizeof(crashes), "; %" PRIu64 " crashed, each counted as a tear",
			 f.crashes);
	if (f.left_out)
		snprintf(left_out, sizeof(left_out), "; %zu without an answer left out",
			 f.left_out);
	length = strlen(f.titles);
	snprintf(f.titles + length, sizeof(f.titles) - length,
		 "\n%s toggles in %zu %s, %s executor%s%s%s", NUMBER(f.toggles), f.cells,
		 oracle == ORACLE_CRASH ? "runs" : "cells", executors, S(f.most), crashes,
		 left_out);
	length = 0;
	tally_words(&f.points, 1, 0, crossings, sizeof(crossings));
	for (unsigned split = ALL_SPLITS; split <= SPLITS; split++)
		if (f.splits & 1u << split)
			length += (size_t)snprintf(splits + length, sizeof(splits) - length, "%s%u",
						   length ? " " : "", split);
	/* The paper's T_max, as the last estimate has it. */
	if (oracle == ORACLE_COUNT && f.still && json_is_true(json_object_get(paper, "found")) &&
	    json_real_of(paper, "wait") >= 0)
		snprintf(mark, sizeof(mark), "%.0f", json_real_of(paper, "wait"));
	rc = picture_make(&picture, prefix, error, size);
	tally_free(&f.points);
	return rc;
}
