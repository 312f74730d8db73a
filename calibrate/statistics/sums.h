/* SPDX-License-Identifier: MIT */
/*
 * What slices add up to: all that a bound needs, and what the store of evidence keeps.
 *
 * A slice is one cell of a fraction of a second. Counts of the same rung, crossing,
 * placement and number of executors are added, over a run and over runs. Nothing that was
 * counted is ever taken away again.
 */
#ifndef CALIBRATE_STATISTICS_SUMS_H
#define CALIBRATE_STATISTICS_SUMS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "results/journal/fields.h"
#include "results/journal/journal.h"

/* Counts, and what tells how unevenly tears come. */
struct count {
	uint64_t slices;
	uint64_t toggles;     /* that could tear: an executor had run what they replaced */
	uint64_t tears;	      /* toggles that tore */
	double unevenness;    /* sum over the slices of tears * tears / toggles, */
	double squares;	      /* and of toggles * toggles */
	double ticks;	      /* that all toggles took together, without the rests between them */
	uint64_t worst_tears; /* of the slice with the highest rate, */
	uint64_t worst_toggles;
	bool are_runs; /* count_as_unit(): each slice is all of a run */
};

enum sum_kind {
	SUM_WAIT,	/* changes by the word protocol, with the waits of a rung */
	SUM_MEMBARRIER, /* by membarrier */
	SUM_STORE,	/* one store, inside a line: the atomic window */
	SUM_GAP,	/* stores, and gaps between fetches as long as the rung: long_wait.c */
	SUM_ALONE,	/* as SUM_WAIT, where nothing provoked; old stores have it there */
	SUM_RESTED,	/* the same two of sites at rest: CELL_RESTED */
	SUM_RESTED_ALONE,
	SUM_KINDS
};

struct sum {
	enum sum_kind kind;
	struct waits rung; /* of waits or of gaps, else all 0 */
	enum crossing crossing;
	enum placement placement;
	unsigned executors;
	struct count count;
	struct count at[DISTANCES]; /* of these: slices near and far; of others it is not known */
};

struct sums {
	struct sum *sum;
	size_t count;
};

extern const struct field sum_fields[], count_fields[]; /* of struct sum, struct count */

/*
 * sum_kind_of - of a cell; -1: it proves nothing of the library's (a broken protocol), or something
 * kept its tears rare: a provoker that makes lines cold, or a rest that is neither of a hot site
 * nor of one at rest.
 */
int sum_kind_of(const struct cell *cell);

/* sum_is_wait - has it counted changes by waits? */
static inline bool sum_is_wait(const struct sum *sum)
{
	return sum->kind == SUM_WAIT || sum->kind >= SUM_ALONE;
}

/* sum_is_rested, sum_is_alone - of waits: of a site at rest? Without a provoker? */
static inline bool sum_is_rested(const struct sum *sum)
{
	return sum->kind >= SUM_RESTED;
}

static inline bool sum_is_alone(const struct sum *sum)
{
	return sum->kind == SUM_ALONE || sum->kind == SUM_RESTED_ALONE;
}

/* sum_is_like - are both of one kind and crossing, provoked or not? */
static inline bool sum_is_like(const struct sum *sum, const struct sum *like)
{
	return sum->crossing == like->crossing &&
	       (sum->kind == like->kind || (sum_is_wait(sum) && sum_is_wait(like) &&
					    sum_is_rested(sum) == sum_is_rested(like)));
}

/* count_add - add to what was counted. */
void count_add(struct count *to, const struct count *what);

/*
 * count_dispersion - how many times more tears vary between slices than if each toggle
 * tore by itself; 1 at least, and 1 where fewer than two slices or no tears tell nothing.
 * count_units - how many slices of one length are worth as much as these.
 */
double count_dispersion(const struct count *count);
double count_units(const struct count *count);

/* count_as_unit - all of it as one slice, where the run is the unit. */
struct count count_as_unit(struct count count);

/* count_of_record - of one slice. A slice that hung or was killed has tears, and no toggles. */
struct count count_of_record(const struct cell_record *record);

/* sums_add - to the sum of its kind, made if it is new. 0 or -ENOMEM. */
int sums_add(struct sums *sums, const struct sum *sum);
int sums_add_record(struct sums *sums, const struct cell_record *record);
int sums_add_all(struct sums *sums, const struct sums *others);

/* sums_find - NULL if nothing was counted there. */
struct sum *sums_find(const struct sums *sums, const struct sum *like);

/* sums_to_json, sums_from_json - an array. NULL: no memory. -EINVAL: not what the first writes. */
json_t *sums_to_json(const struct sums *sums);
int sums_from_json(const json_t *array, struct sums *sums);

void sums_free(struct sums *sums);

#endif
