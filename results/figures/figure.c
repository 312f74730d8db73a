/* SPDX-License-Identifier: MIT */
/*
 * Figure 9: from records to points, and to a picture.
 */
#include "results/figures/figure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/figures/caption.h"
#include "results/figures/figure9_takes.h"
#include "results/figures/gnuplot.h"

#define SCRIPT	   "figure9.gp"
#define ALL_SPLITS 0 /* in place of a split */
#define MILLION	   UINT64_C(1000000)

struct point {
	enum crossing crossing;
	unsigned split;
	uint64_t wait;
	uint64_t events; /* tears, or failed runs */
	uint64_t trials; /* toggles, or runs */
};

struct figure {
	enum oracle oracle;
	struct point *points;
	size_t count;
	size_t cells;
	size_t left_out;  /* cells that ended without an answer */
	uint64_t crashes; /* where tears should only have been counted */
	uint64_t toggles;
	unsigned fewest, most; /* executors */
};

/* --- Points ------------------------------------------------------------------ */

/* Journals may claim anything: sums stay at the top instead of starting over. */
static void add_saturating(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

static struct point point_of(const struct cell_record *r)
{
	struct point p = {
		.crossing = r->cell.crossing,
		.split = r->cell.split,
		.wait = r->cell.first_wait,
		.events = r->result.outcome == OUTCOME_CRASH,
		.trials = 1,
	};

	if (r->cell.oracle == ORACLE_CRASH)
		return p;
	/* A crash under this oracle is a tear that no pad could count: the run has counted it. */
	p.events = 0;
	for (int kind = 0; kind < TEAR_KINDS; kind++)
		add_saturating(&p.events, r->result.tears[kind]);
	p.trials = r->result.toggles;
	return p;
}

static void take_record(struct figure *f, const struct cell_record *r)
{
	if (!figure9_has_answer(r)) {
		f->left_out++;
		return;
	}
	f->points[f->count] = point_of(r);
	/* The paper's figure has all splits in one. */
	if (f->oracle == ORACLE_CRASH) {
		f->points[f->count + 1] = f->points[f->count];
		f->points[++f->count].split = ALL_SPLITS;
	}
	f->count++;
	f->crashes += r->cell.oracle == ORACLE_COUNT && r->result.outcome == OUTCOME_CRASH;
	add_saturating(&f->toggles, r->result.toggles);
	if (!f->cells || r->cell.executors < f->fewest)
		f->fewest = r->cell.executors;
	if (r->cell.executors > f->most)
		f->most = r->cell.executors;
	f->cells++;
}

static int compare_points(const void *a, const void *b)
{
	const struct point *p = a, *q = b;

	if (p->crossing != q->crossing)
		return p->crossing < q->crossing ? -1 : 1;
	if (p->split != q->split)
		return p->split < q->split ? -1 : 1;
	return (p->wait > q->wait) - (p->wait < q->wait);
}

/* Adds up the points of the same crossing, split and wait, which stand together. */
static void merge_points(struct figure *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->count; i++) {
		if (kept && compare_points(&f->points[kept - 1], &f->points[i]) == 0) {
			add_saturating(&f->points[kept - 1].events, f->points[i].events);
			add_saturating(&f->points[kept - 1].trials, f->points[i].trials);
		} else {
			f->points[kept++] = f->points[i];
		}
	}
	f->count = kept;
}

/* Are there waits that stand still? */
static bool any_still(const struct journal_data *data, enum oracle oracle)
{
	for (size_t i = 0; i < data->count; i++)
		if (figure9_fits(&data->records[i].cell, oracle) &&
		    data->records[i].cell.stretch == 0)
			return true;
	return false;
}

static unsigned count_splits(const struct figure *f)
{
	unsigned seen = 0;

	for (size_t i = 0; i < f->count; i++)
		seen |= 1u << f->points[i].split;
	return (unsigned)__builtin_popcount(seen & ~(1u << ALL_SPLITS));
}

/* Of one split the sum over all would be the same curve again. */
static void drop_needless_sums(struct figure *f)
{
	size_t kept = 0;

	if (count_splits(f) > 1)
		return;
	for (size_t i = 0; i < f->count; i++)
		if (f->points[i].split != ALL_SPLITS)
			f->points[kept++] = f->points[i];
	f->count = kept;
}

static int collect_records(struct figure *f, const struct journal_data *data)
{
	bool still = f->oracle == ORACLE_COUNT && any_still(data, f->oracle);

	f->points = calloc(2 * data->count + 1, sizeof(*f->points));
	if (!f->points)
		return -ENOMEM;
	for (size_t i = 0; i < data->count; i++)
		if (figure9_fits(&data->records[i].cell, f->oracle) &&
		    (!still || data->records[i].cell.stretch == 0))
			take_record(f, &data->records[i]);
	qsort(f->points, f->count, sizeof(*f->points), compare_points);
	merge_points(f);
	drop_needless_sums(f);
	return f->count ? 0 : -ENODATA;
}

/* --- Texts ------------------------------------------------------------------- */

/* What a machine calls itself stays on its line, in the figure and in the data. */
static void make_plain(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = '?';
}

static void print_title(const struct identity *id, char *text, size_t size)
{
	bool bare = strcmp(id->hypervisor, "none") == 0;

	snprintf(text, size, "%s, microcode %s, %s%s", id->brand, id->microcode,
		 bare ? "bare metal" : "hypervisor ", bare ? "" : id->hypervisor);
	make_plain(text);
}

static void print_subtitle(const struct figure *f, char *text, size_t size)
{
	bool many = f->toggles >= 10 * MILLION;
	char executors[32], left_out[64] = "", crashes[64] = "";

	snprintf(executors, sizeof(executors), "%u", f->fewest);
	if (f->fewest != f->most)
		snprintf(executors, sizeof(executors), "%u to %u", f->fewest, f->most);
	if (f->crashes)
		snprintf(crashes, sizeof(crashes), "; %" PRIu64 " crashed, each counted as a tear",
			 f->crashes);
	if (f->left_out)
		snprintf(left_out, sizeof(left_out), "; %zu without an answer left out",
			 f->left_out);
	snprintf(text, size, "%" PRIu64 "%s toggles in %zu %s, %s executor%s%s%s",
		 many ? f->toggles / MILLION : f->toggles, many ? " million" : "", f->cells,
		 f->oracle == ORACLE_CRASH ? "runs" : "cells", executors, f->most == 1 ? "" : "s",
		 crashes, left_out);
}

/* "64 4096" and "1 2 4": the panels and the curves that exist; 0 is all splits in one. */
static void list_crossings(const struct figure *f, char *text, size_t size)
{
	size_t length = 0;

	for (size_t i = 0; i < f->count; i++)
		if (!i || f->points[i].crossing != f->points[i - 1].crossing)
			length +=
				(size_t)snprintf(text + length, size - length, "%s%u", i ? " " : "",
						 crossing_bytes(f->points[i].crossing));
}

static void list_splits(const struct figure *f, char *text, size_t size)
{
	size_t length = 0;
	bool seen[5] = { false };

	for (size_t i = 0; i < f->count; i++)
		seen[f->points[i].split] = true;
	for (unsigned split = ALL_SPLITS; split <= 4; split++)
		if (seen[split])
			length += (size_t)snprintf(text + length, size - length, "%s%u",
						   length ? " " : "", split);
}

/* --- Files ------------------------------------------------------------------- */

struct drawing {
	const struct figure *figure;
	char title[160];
	char subtitle[256];
	char crossings[16];
	char splits[16];
	char caption[CAPTION_ROOM]; /* lines; empty where the figure needs none */
};

static void print_caption(FILE *stream, const char *caption)
{
	while (*caption) {
		int length = (int)strcspn(caption, "\n");

		fprintf(stream, "# %.*s\n", length, caption);
		caption += length;
		caption += *caption == '\n';
	}
}

static void print_points(FILE *stream, const void *arg)
{
	const struct drawing *d = arg;
	const struct figure *f = d->figure;
	bool crash = f->oracle == ORACLE_CRASH;

	fprintf(stream, "# %s\n# %s\n", d->title, d->subtitle);
	print_caption(stream, d->caption);
	fprintf(stream, "# crossing split wait %s\n", crash ? "failed runs" : "tears toggles");
	for (size_t i = 0; i < f->count; i++) {
		const struct point *p = &f->points[i];

		fprintf(stream, "%u %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			crossing_bytes(p->crossing), p->split, p->wait, p->events, p->trials);
	}
}

static int draw_picture(const struct drawing *d, const struct picture *p, char *error, size_t size)
{
	const char *const args[] = { d->title,	   d->subtitle, oracle_name(d->figure->oracle),
				     d->crossings, d->splits,	d->caption,
				     NULL };

	return picture_draw(p, SCRIPT, args, error, size);
}

/* --- Together ---------------------------------------------------------------- */

static int write_figure(const struct figure *f, const struct journal_data *data, const char *prefix,
			char *error, size_t size)
{
	struct drawing d = { .figure = f };
	struct picture p;
	int rc;

	if (f->oracle == ORACLE_CRASH && caption_paper(data, d.caption, sizeof(d.caption)))
		return picture_fail(-ENOMEM, error, size, "out of memory");
	print_title(&data->identity, d.title, sizeof(d.title));
	print_subtitle(f, d.subtitle, sizeof(d.subtitle));
	list_crossings(f, d.crossings, sizeof(d.crossings));
	list_splits(f, d.splits, sizeof(d.splits));
	rc = picture_data(&p, prefix, print_points, &d, error, size);
	return rc ? rc : draw_picture(&d, &p, error, size);
}

int figure9_write_oracle(const struct journal_data *data, enum oracle oracle, const char *prefix,
			 char *error, size_t size)
{
	struct figure f = { .oracle = oracle };
	int rc;

	if (!data->have_identity)
		return picture_fail(-EINVAL, error, size, "the journal names no machine");
	if (data->mixed)
		return picture_fail(-EINVAL, error, size, "the journal holds different machines");
	rc = collect_records(&f, data);
	if (rc == -ENODATA)
		picture_fail(rc, error, size, "no cell fits the figure");
	else if (rc)
		picture_fail(rc, error, size, "%s", strerror(-rc));
	else
		rc = write_figure(&f, data, prefix, error, size);
	free(f.points);
	return rc;
}

int figure9_write(const struct journal_data *data, const char *prefix, char *error, size_t size)
{
	return figure9_write_oracle(data, ORACLE_COUNT, prefix, error, size);
}
