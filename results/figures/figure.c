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

#include "results/figures/gnuplot.h"
#include "results/figures/tally.h"
#include "stress/base/number.h"

#define ALL_SPLITS 0 /* in place of a split */

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
	/* For gnuplot: */
	char title[160];
	char subtitle[256];
	char caption[CAPTION_ROOM]; /* lines; empty where the figure needs none */
};

/* --- Points ------------------------------------------------------------------ */

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

/* --- The caption: what the crash oracle's figure says of how its runs differ from the paper's ---
 */

/* The sets of values that the runs have; of each value how many runs have it. */
enum {
	VARIANT, /* what runs of the same kind have in common */
	SEAT,	 /* placement, executors */
	WAIT,
	SPLIT,
	TOGGLES,
	REST,
	PAIR,
	CROSSING,
	STRETCH,
	PROVOKED,
	SETS
};

static void put_range(FILE *out, uint64_t least, uint64_t most)
{
	fputs(NUMBER(least), out);
	if (most != least)
		fprintf(out, " to %s", NUMBER(most));
}

static void put_ends(FILE *out, const struct tally *set)
{
	put_range(out, set->row[0].key[0], set->row[set->count - 1].key[0]);
}

/* "2 to 6", and "1, 3 to 4" where there are holes: one key of so many rows. */
static void put_values(FILE *out, const struct tally_row *row, size_t count, unsigned key)
{
	for (size_t i = 0, last; i < count; i = last + 1) {
		for (last = i; last + 1 < count; last++)
			if (row[last + 1].key[key] != row[last].key[key] + 1)
				break;
		fputs(i ? ", " : "", out);
		put_range(out, row[i].key[key], row[last].key[key]);
	}
}

/* How its runs differ from the paper's; where they sit is always told: the paper does not. */
static void put_here(FILE *out, const struct tally set[SETS], const struct identity *id)
{
	const struct tally *seats = &set[SEAT], *waits = &set[WAIT], *crossings = &set[CROSSING];
	uint64_t fewest = UINT64_MAX, most = 0, least_wait = waits->row[0].key[0];
	uint64_t most_wait = waits->row[waits->count - 1].key[0];
	bool even = least_wait == 0 && most_wait == PAPER_WAIT_MOST;

	for (size_t i = 0; i < set[VARIANT].count; i++) {
		uint64_t runs = set[VARIANT].row[i].trials;

		fewest = runs < fewest ? runs : fewest;
		most = runs > most ? runs : most;
	}
	fputs("Here: ", out);
	for (size_t i = 0, end; i < seats->count; i = end) {
		for (end = i + 1; end < seats->count && !tally_begins(seats, end, 1); end++)
			;
		fputs(i ? " and " : "N = ", out);
		put_values(out, &seats->row[i], end - i, 1);
		fprintf(out, " (%s)", placement_name((enum placement)seats->row[i].key[0]));
	}
	fprintf(out, " on %u CPUs, ", id->cpus);
	put_range(out, fewest, most);
	fprintf(out, " run%s of each, ", most == 1 ? "" : "s");
	put_ends(out, &set[TOGGLES]);
	fputs(" toggles a run", out);
	/* Only where they are not the paper's, all of them. */
	for (size_t i = 1; i < waits->count; i++)
		even = even && waits->row[i].key[0] - waits->row[i - 1].key[0] == PAPER_WAIT_STEP;
	if (!even)
		fprintf(out, ", %zu wait%s from %" PRIu64 " to %" PRIu64, waits->count,
			waits->count == 1 ? "" : "s", least_wait, most_wait);
	if (set[SPLIT].count < PAPER_SPLITS) {
		fputs(", only S = ", out);
		put_values(out, set[SPLIT].row, set[SPLIT].count, 0);
	}
	fputs("; a rest of ", out);
	put_ends(out, &set[REST]);
	fputs(" ticks between toggles", out);
	for (size_t i = 0; i < set[PAIR].count; i++)
		fprintf(out, "%s%s", i ? " and " : ", pair ",
			pair_name((enum code_pair)set[PAIR].row[i].key[0]));
	if (tally_find(crossings, (const uint64_t[TALLY_KEYS]){ CROSSING_PAGE }))
		fprintf(out, ", across a page%s", crossings->count > 1 ? ", too" : "");
	if (set[STRETCH].row[set[STRETCH].count - 1].key[0])
		fputs(", waits stretched", out);
	if (set[PROVOKED].row[set[PROVOKED].count - 1].key[0])
		fputs(", provoked", out);
	fputs(".", out);
}

int caption_paper(const struct journal_data *data, char *text, size_t size)
{
	struct tally set[SETS] = { 0 };
	bool failed = false;
	char *made = NULL;
	size_t length, runs = 0;

	text[0] = '\0';
	for (size_t i = 0; i < data->count; i++)
		if (figure9_takes(&data->records[i], ORACLE_CRASH)) {
			const struct cell *c = &data->records[i].cell;
			const struct tally_row row[SETS] = {
				[VARIANT] = { .key = { c->waits.first, c->crossing, c->split,
						       c->executors, c->placement } },
				[SEAT] = { .key = { c->placement, c->executors } },
				[WAIT] = { .key = { c->waits.first } },
				[SPLIT] = { .key = { c->split } },
				[TOGGLES] = { .key = { c->toggles } },
				[REST] = { .key = { c->rest } },
				[PAIR] = { .key = { c->pair } },
				[CROSSING] = { .key = { c->crossing } },
				[STRETCH] = { .key = { c->waits.stretch } },
				[PROVOKED] = { .key = { c->provokers || c->loop } },
			};

			for (int k = 0; k < SETS; k++) {
				struct tally_row one = row[k];

				one.trials = 1;
				tally_add(&set[k], &one);
			}
			runs++;
		}
	for (int i = 0; i < SETS; i++)
		failed |= set[i].failed;
	if (runs && !failed) {
		FILE *out = open_memstream(&made, &length);

		if (out) {
			fprintf(out,
				"The paper: %d waits from 0 to %d, S = 1 to %d, N = %d to %d "
				"executors, %d runs of each, %s toggles a run.\n",
				PAPER_WAITS, PAPER_WAIT_MOST, PAPER_SPLITS, PAPER_N_FEWEST,
				PAPER_N_MOST, PAPER_REPETITIONS, NUMBER(PAPER_TOGGLES));
			put_here(out, set, &data->identity);
		}
		failed = !out || fclose(out);
		if (!failed)
			snprintf(text, size, "%s", made);
		free(made);
	}
	for (int i = 0; i < SETS; i++)
		tally_free(&set[i]);
	return failed ? -ENOMEM : runs ? 0 : -ENODATA;
}

/* --- The picture --------------------------------------------------------------- */

static void print_points(FILE *stream, const void *arg)
{
	const struct figure *f = arg;
	const char *line = f->caption;

	fprintf(stream, "# %s\n# %s\n", f->title, f->subtitle);
	while (*line) {
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

int figure9_write_oracle(const struct journal_data *data, enum oracle oracle, const char *prefix,
			 char *error, size_t size)
{
	struct figure f = { .oracle = oracle };
	const struct identity *id = &data->identity;
	const json_t *paper = json_object_get(line_last(data, "estimate"), "paper");
	const struct cell_record *end;
	bool bare = strcmp(id->hypervisor, "none") == 0;
	char titles[sizeof(f.title) + sizeof(f.subtitle)], executors[32], left_out[64] = "";
	char crossings[16], splits[16] = "", mark[32] = "", crashes[64] = "";
	const char *const args[] = { titles, oracle_name(oracle), crossings,
				     splits, f.caption,		  mark,
				     NULL };
	const struct picture picture = { print_points, &f, "figure9.gp", args };
	size_t length = 0;
	int rc;

	if (!data->have_identity)
		return picture_fail(-EINVAL, error, size, "the journal names no machine");
	if (data->mixed)
		return picture_fail(-EINVAL, error, size, "the journal holds different machines");
	end = data->records + data->count;
	for (const struct cell_record *r = data->records; r < end; r++)
		f.still |= fits(&r->cell, oracle) && !r->cell.waits.stretch;
	for (const struct cell_record *r = data->records; r < end; r++) {
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
	snprintf(f.title, sizeof(f.title), "%s, microcode %s, %s%s", id->brand, id->microcode,
		 bare ? "bare metal" : "hypervisor ", bare ? "" : id->hypervisor);
	/* What a machine calls itself stays on its line, in the figure and in the data. */
	for (char *c = f.title; *c; c++)
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
	snprintf(f.subtitle, sizeof(f.subtitle), "%s toggles in %zu %s, %s executor%s%s%s",
		 NUMBER(f.toggles), f.cells, oracle == ORACLE_CRASH ? "runs" : "cells", executors,
		 f.most == 1 ? "" : "s", crashes, left_out);
	snprintf(titles, sizeof(titles), "%s\n%s", f.title, f.subtitle);
	tally_words(&f.points, 1, 0, crossings, sizeof(crossings));
	for (unsigned split = ALL_SPLITS; split <= PAPER_SPLITS; split++)
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

int figure9_write(const struct journal_data *data, const char *prefix, char *error, size_t size)
{
	return figure9_write_oracle(data, ORACLE_COUNT, prefix, error, size);
}
