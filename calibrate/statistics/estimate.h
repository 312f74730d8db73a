/* SPDX-License-Identifier: MIT */
/* What the sums of a run, or of many, support: for each rung of the ladder a bound. And no more. */
#ifndef CALIBRATE_STATISTICS_ESTIMATE_H
#define CALIBRATE_STATISTICS_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "calibrate/plan/plan.h"
#include "calibrate/statistics/sums.h"
#include "results/journal/fields.h"

#define LONG_RUN    30	/* runs, from which on a bound speaks for more than their own time */
#define SPREAD_NONE 1.0 /* between slices where no tear tells of it */

/*
 * The same of single stores inside a line, between runs. Rates of stores across 32 bytes on AMD
 * family 26 went from 0 to 4e-4, their variance was 11 times the square of their mean; with 16 a
 * bound without a tear holds for runs like those, however many.
 */
#define WINDOW_SPREAD 16.0

/* Numbered as the exit statuses of tmax-calibrate(1). */
enum verdict {
	VERDICT_PASS,	      /* the levels in use for lines and pages keep what is required */
	VERDICT_FAIL,	      /* not even the top rung does, or a store inside a word tore */
	VERDICT_INCONCLUSIVE, /* blind: nothing can be said */
};

/*
 * What is claimed for sites that cross a line inside a page, and for those that
 * cross a page: apart, because a program may have only the first kind.
 */
enum {
	CLAIM_LINE,
	CLAIM_PAGE,
	CLAIMS
};

#define LONG_WAITS 5

/*
 * Slices that are looked at apart. Whether CPUs were near or far is not known of all: each bound is
 * another claim. Without a provoker, and by the largest number of executors, tears may be more
 * frequent than in the mean of all: a claim is that of the worst of these.
 */
enum part {
	PART_NEAR,
	PART_FAR,
	PART_ALONE,
	PART_MOST,
	PARTS
};

/* One rung, one crossing, one placement. */
struct section {
	enum placement placement;
	struct count count;
	struct count below; /* with those of all shorter waits, too */
	double longer_p;    /* lower bound of the rate at some longer wait; 0: none tore */
	double upper_p;	    /* 1: nothing is known */
	bool lent;	    /* upper_p rests on below, not on count */
	double dispersion;  /* of count */
};

/* What is known of one rung for one kind of site. */
struct claim {
	struct count count;  /* over all placements */
	struct count rests;  /* what upper_p rests on; none of a wait judged by gaps */
	struct count inside; /* of sites inside a line, if they have raised upper_p */
	double upper_p;	     /* the worst placement's and part's */
	struct section section[PLACEMENT_COUNT];
	unsigned sections;
	struct section part[PARTS][PLACEMENT_COUNT]; /* the same of some of the slices */
	double at_p[DISTANCES];			     /* near, and far: the worst placement's */
};

/* claim_part - its sections; PARTS: of all slices. claim_parts - those that bound a claim. */
#define CLAIM_PARTS 3
extern const enum part claim_parts[CLAIM_PARTS];

static inline const struct section *claim_part(const struct claim *claim, enum part part)
{
	return part < PARTS ? claim->part[part] : claim->section;
}

struct level {
	struct waits rung;
	struct claim claim[CLAIMS];
	double upper_p;		/* of the machine: the worse claim's */
	double at_p[DISTANCES]; /* the same if it were always near, or far */
	double ticks;		/* that a change takes; 0: unknown */
};

/*
 * The paper's T_max: the lowest constant wait of the grid without a tear. Whether it stays
 * at none above that wait is told beside it.
 */
struct paper_wait {
	bool known; /* every wait of the grid was tried */
	bool found; /* some wait did not tear */
	uint64_t wait;
	bool stays; /* no longer wait tore either */
};

struct window {
	unsigned bytes;
	uint64_t toggles; /* without a tear */
	uint64_t runs;	  /* that made them: the run is the unit of the bound */
	double upper_p;
	double ticks;  /* that a store takes; 0: unknown */
	unsigned torn; /* bytes across which stores tore, or do on machines of this kind; or 0 */
	enum crossing across; /* of torn: sites there are changed by the waits for lines */
	struct count stored;  /* stores across it */
	struct count waited;  /* such changes of sites there, on all rungs that stretch */
	bool word_tore;	      /* a store inside 8 bytes tore: nothing can be relied on here */
};

struct estimate {
	enum verdict verdict;
	char reason[160];
	double require_p;
	struct ladder ladder;
	struct level level[RUNGS_MAX]; /* one for each rung of the ladder, those at rest too */
	unsigned levels;	       /* the stretched ones */
	double spread[CLAIMS];	       /* variance of the rate between slices, in squares of it */
	double cap[CLAIMS];	       /* rate that no slice is taken to exceed, 0: none tore */
	uint64_t slices;	       /* of waits; */
	uint64_t slices_at[DISTANCES]; /* of others it is not known */
	struct level long_level[LONG_WAITS]; /* see long_wait.c */
	double factor[CLAIMS];		     /* tears per toggle by gaps per store; 0: unknown */
	uint64_t factor_wait[CLAIMS];	     /* where they differ most, ticks */
	double membarrier_ticks;	     /* that a change by membarrier takes; 0: unknown */
	struct paper_wait paper;
	struct window window;
	unsigned most[PLACEMENT_COUNT]; /* executors that the plan has there at most */
	bool tells_alone;		/* some slices are known to have been left alone */
	unsigned runs;
	unsigned wait_runs; /* of them, with toggles by waits; left alone, if any tells so */
	bool long_run;	    /* the bounds take the run as the unit */
	bool blind;	    /* estimate_blind(): what was counted is no evidence */
};

/*
 * estimate_make - from the sums of so many runs. The placements of the plan's seats are those
 * that must be known. verdict and reason say what the numbers say; a caller that knows better
 * (the run saw nothing) says so with estimate_blind().
 */
void estimate_make(struct estimate *e, const struct sums *runs, size_t count,
		   const struct plan *plan);

/*
 * estimate_so_far - of these, what the choice of the next slice goes by: the ladder, its counts,
 * and the bounds of the machine.
 */
void estimate_so_far(struct estimate *e, const struct sums *runs, size_t count,
		     const struct plan *plan);

/* estimate_decide - the verdict and its reason: does some level keep that probability? */
void estimate_decide(struct estimate *e, double require_p);

/*
 * estimate_blind - inconclusive, for that reason, and without a window. A tear inside one word
 * stays a failure.
 */
void estimate_blind(struct estimate *e, const char *reason);

/*
 * estimate_bound - the bound of a count: by the spread or by the cap, whichever is lower; each gets
 * half of the error. Where slices are whole runs the higher one counts, and the cap is twice the
 * worst run's rate: neither knows of bad times that none of the runs met.
 */
double estimate_bound(const struct count *count, double spread, double cap, double confidence);

/*
 * estimate_section - of a section, by its own counts or by those of all shorter waits as well,
 * whichever say more; each get half of the error. A longer wait tears no more often than a shorter
 * one of the same time, so what bounds the mean of both bounds the longer one, and what a longer
 * one has counted bounds the shorter one from below: what came in a storm at one wait, would have
 * come at each shorter one. 1 where it was not tried itself.
 */
double estimate_section(struct section *section, double spread, double cap, double confidence);

/*
 * estimate_count - add up the sums of all runs that are like this one, but for the parts that may
 * be any. Counts of one rung, and of a rung and all below it, have the run as unit in the long run.
 */
enum {
	ANY_RUNG = 1,
	ANY_PLACEMENT = 2,
	ANY_EXECUTORS = 4,
	RUNGS_BELOW = 8, /* that stretch alike and wait no longer */
	ONLY_NEAR = 16,	 /* of the slices, */
	ONLY_FAR = 32,
	ONLY_ALONE = 64,
	ONLY_MOST = 128,
};
struct count estimate_count(const struct estimate *e, const struct sums *runs,
			    const struct sum *like, unsigned any);

/* --- Long waits: see long_wait.c ------------------------------------------------------------- */

#define LONG_GAPS 30 /* as many make a wait one by which the oracles are compared */

extern const uint64_t long_waits[LONG_WAITS]; /* ticks, rising */

struct cell;
struct gap_result;

/* long_add_gaps - what one run of the gap oracle has counted. 0 or -ENOMEM. */
int long_add_gaps(struct sums *sums, const struct cell *cell, const struct gap_result *result);

/* long_estimate - for estimate_make(), when the levels are made. */
void long_estimate(struct estimate *e, const struct sums *runs, const struct plan *plan);

/* --- What it says ----------------------------------------------------------------------------- */

/* level_is_known - is it counted for lines and for pages? Others are not in machine.conf. */
bool level_is_known(const struct level *level);

/*
 * estimate_best - the index of the level by which the library changes sites of a claim for that p,
 * or -1: see machine_conf_cheapest(). estimate_accepted - the same with levels at rest, which it
 * takes where none of the others will do: machine_conf_accepted().
 * estimate_kept - the worse bound of those of both claims; above p: one has no level.
 */
int estimate_best(const struct estimate *e, int claim, double p);
int estimate_accepted(const struct estimate *e, int claim, double p);
double estimate_kept(const struct estimate *e, double p);

/* The crossing of each claim. claim_of - the claim of a crossing, -1: nothing is claimed for it. */
extern const enum crossing claimed[CLAIMS];
int claim_of(enum crossing crossing);
const char *claim_name(int claim);

const char *verdict_name(enum verdict verdict);

/* The numbers of an estimate: how JSON, machine.conf and tables call them. */
extern const struct field level_fields[], claim_fields[], section_fields[], window_fields[],
	paper_fields[], estimate_fields[];

/* fields_put_conf - a line of machine.conf for each, with a prefix ("") before the key. */
void fields_put_conf(FILE *out, const struct field *fields, const void *base, const char *prefix);

/* fields_put_row - a row of a table in text: those that have a title. base NULL: the titles. */
#define FIELD_WIDTH 12
void fields_put_row(FILE *out, const struct field *fields, const void *base);

/* estimate_to_json - for the journal's "estimate" line. */
json_t *estimate_to_json(const struct estimate *e);

#endif
