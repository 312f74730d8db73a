/* SPDX-License-Identifier: MIT */
#include "results/figures/caption.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/figures/figure9_takes.h"

#define EXECUTORS_LISTED 64 /* of a placement; more are "and more" */

/* Least and greatest of something; least above greatest: nothing yet. */
struct range {
	uint64_t least;
	uint64_t most;
};

struct summary {
	struct range toggles, rest, wait, repetitions, stretch;
	unsigned waits; /* different ones */
	bool even;	/* each a step above the one before */
	bool split[PAPER_SPLITS + 1];
	bool pair[PAIR_COUNT];
	bool crossing[CROSSING_COUNT];
	bool provoked;
	bool executors[PLACEMENT_COUNT][EXECUTORS_LISTED + 2]; /* the last: more than listed */
};

struct text {
	char *at;
	size_t left;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *t, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(t->at, t->left, format, args);
	va_end(args);
	if (length < 0)
		return;
	if ((size_t)length >= t->left)
		length = t->left ? (int)t->left - 1 : 0;
	t->at += length;
	t->left -= (size_t)length;
}

/* --- Sums -------------------------------------------------------------------------- */

static void widen_range(struct range *r, uint64_t value)
{
	if (value < r->least)
		r->least = value;
	if (value > r->most)
		r->most = value;
}

/* By wait, then by what makes a variant within it. */
static int compare_runs(const void *a, const void *b)
{
	const struct cell *p = &(*(const struct cell_record *const *)a)->cell;
	const struct cell *q = &(*(const struct cell_record *const *)b)->cell;

	if (p->first_wait != q->first_wait)
		return p->first_wait < q->first_wait ? -1 : 1;
	if (p->crossing != q->crossing)
		return p->crossing < q->crossing ? -1 : 1;
	if (p->split != q->split)
		return p->split < q->split ? -1 : 1;
	if (p->executors != q->executors)
		return p->executors < q->executors ? -1 : 1;
	return (p->placement > q->placement) - (p->placement < q->placement);
}

static void add_one(struct summary *s, const struct cell *c)
{
	widen_range(&s->toggles, c->toggles);
	widen_range(&s->rest, c->rest);
	widen_range(&s->wait, c->first_wait);
	widen_range(&s->stretch, c->stretch);
	s->split[c->split] = true;
	s->pair[c->pair] = true;
	s->crossing[c->crossing] = true;
	s->provoked |= c->provokers || c->loop;
	s->executors[c->placement]
		    [c->executors <= EXECUTORS_LISTED ? c->executors : EXECUTORS_LISTED + 1] = true;
}

static void add_wait(struct summary *s, const struct cell *before, const struct cell *c)
{
	if (before && before->first_wait == c->first_wait)
		return;
	if (before && c->first_wait - before->first_wait != PAPER_WAIT_STEP)
		s->even = false;
	s->waits++;
}

/* The runs stand sorted, those of one variant together. */
static void add_runs(struct summary *s, const struct cell_record *const *runs, size_t count)
{
	size_t begin = 0;

	for (size_t i = 0; i < count; i++) {
		add_one(s, &runs[i]->cell);
		add_wait(s, i ? &runs[i - 1]->cell : NULL, &runs[i]->cell);
		if (i + 1 < count && compare_runs(&runs[i], &runs[i + 1]) == 0)
			continue;
		widen_range(&s->repetitions, i + 1 - begin);
		begin = i + 1;
	}
}

/* --- Words --------------------------------------------------------------------------- */

static void put_number(struct text *t, uint64_t n)
{
	if (n >= 1000000 && n % 100000 == 0)
		put(t, "%g million", (double)n / 1e6);
	else
		put(t, "%" PRIu64, n);
}

static void put_range(struct text *t, const struct range *r)
{
	put_number(t, r->least);
	if (r->most == r->least)
		return;
	put(t, " to ");
	put_number(t, r->most);
}

/* "2 to 6" of a row of flags, "1, 3 to 4" where it has holes. */
static void put_flags(struct text *t, const bool *flag, unsigned count)
{
	const char *before = "";

	for (unsigned i = 0; i < count; i++) {
		unsigned last = i;

		if (!flag[i])
			continue;
		while (last + 1 < count && flag[last + 1])
			last++;
		put(t, "%s%u", before, i);
		if (last > i)
			put(t, " to %u", last);
		before = ", ";
		i = last;
	}
}

static bool any(const bool *flag, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (flag[i])
			return true;
	return false;
}

/* Where they sit is always told: the paper does not. */
static void put_executors(struct text *t, const struct summary *s)
{
	const char *before = "N = ";

	for (int p = 0; p < PLACEMENT_COUNT; p++) {
		const bool *n = s->executors[p];

		if (!any(n, EXECUTORS_LISTED + 2))
			continue;
		put(t, "%s", before);
		put_flags(t, n, EXECUTORS_LISTED + 1);
		put(t, "%s (%s)", n[EXECUTORS_LISTED + 1] ? " and more" : "",
		    placement_name((enum placement)p));
		before = " and ";
	}
}

static void put_waits(struct text *t, const struct summary *s)
{
	bool whole = s->even && s->wait.least == 0 && s->wait.most == PAPER_WAIT_MOST;

	if (whole)
		return;
	put(t, ", %u wait%s from ", s->waits, s->waits == 1 ? "" : "s");
	put(t, "%" PRIu64 " to %" PRIu64, s->wait.least, s->wait.most);
}

static void put_splits(struct text *t, const struct summary *s)
{
	for (unsigned split = 1; split <= PAPER_SPLITS; split++) {
		if (s->split[split])
			continue;
		put(t, ", only S = ");
		put_flags(t, s->split, PAPER_SPLITS + 1);
		return;
	}
}

static void put_site(struct text *t, const struct summary *s)
{
	const char *before = ", pair ";

	for (int p = 0; p < PAIR_COUNT; p++) {
		if (!s->pair[p])
			continue;
		put(t, "%s%s", before, pair_name((enum code_pair)p));
		before = " and ";
	}
	if (s->crossing[CROSSING_PAGE])
		put(t, "%s",
		    s->crossing[CROSSING_LINE] ? ", across a page, too" : ", across a page");
	if (s->stretch.most)
		put(t, ", waits stretched");
	if (s->provoked)
		put(t, ", provoked");
}

static void put_caption(struct text *t, const struct summary *s, const struct identity *id)
{
	put(t, "The paper: %d waits from 0 to %d, S = 1 to %d, N = %d to %d executors, ",
	    PAPER_WAITS, PAPER_WAIT_MOST, PAPER_SPLITS, PAPER_N_FEWEST, PAPER_N_MOST);
	put(t, "%d runs of each, %d million toggles a run.\n", PAPER_REPETITIONS,
	    PAPER_TOGGLES / 1000000);
	put(t, "Here: ");
	put_executors(t, s);
	put(t, " on %u CPUs, ", id->cpus);
	put_range(t, &s->repetitions);
	put(t, " run%s of each, ", s->repetitions.most == 1 ? "" : "s");
	put_range(t, &s->toggles);
	put(t, " toggles a run");
	put_waits(t, s);
	put_splits(t, s);
	put(t, "; a rest of ");
	put_range(t, &s->rest);
	put(t, " ticks between toggles");
	put_site(t, s);
	put(t, ".");
}

/* --- Together -------------------------------------------------------------------------- */

static size_t list_runs(const struct journal_data *data, const struct cell_record **runs)
{
	size_t count = 0;

	for (size_t i = 0; i < data->count; i++)
		if (figure9_takes(&data->records[i], ORACLE_CRASH))
			runs[count++] = &data->records[i];
	qsort(runs, count, sizeof(*runs), compare_runs);
	return count;
}

int caption_paper(const struct journal_data *data, char *text, size_t size)
{
	const struct range none = { UINT64_MAX, 0 };
	struct summary *s = calloc(1, sizeof(*s));
	const struct cell_record **runs = calloc(data->count + 1, sizeof(*runs));
	struct text t = { text, size };
	int ret = s && runs ? -ENODATA : -ENOMEM;
	size_t count = s && runs ? list_runs(data, runs) : 0;

	text[0] = '\0';
	if (count) {
		s->toggles = s->rest = s->wait = s->repetitions = s->stretch = none;
		s->even = true;
		add_runs(s, runs, count);
		put_caption(&t, s, &data->identity);
		ret = 0;
	}
	free(runs);
	free(s);
	return ret;
}
