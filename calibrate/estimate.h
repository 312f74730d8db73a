/* SPDX-License-Identifier: MIT */
/*
 * What the records of a calibration support, and no more.
 */
#ifndef CALIBRATE_ESTIMATE_H
#define CALIBRATE_ESTIMATE_H

#include <stdbool.h>

#include "calibrate/arm.h"
#include "calibrate/plan.h"
#include "results/journal.h"

#define SECTIONS_MAX (PLACEMENT_COUNT * CROSSING_COUNT)
#define WORST_MAX    8

enum verdict {
	VERDICT_PASS,	      /* waits that keep the plan's promise were found and proved */
	VERDICT_FAIL,	      /* no wait up to the ceiling keeps it */
	VERDICT_INCONCLUSIVE, /* not enough was measured, or the oracle saw nothing */
};

/* The highest waits that tore; seen is false if none did, not even 0. */
struct torn {
	bool seen[2]; /* first wait, second wait */
	uint64_t wait[2];
};

struct waits {
	uint64_t first; /* ticks */
	uint64_t second;
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

struct claim {
	enum crossing crossing;
	struct waits waits;
	uint64_t toggles;     /* at these waits, in quiet cells */
	uint64_t tears;	      /* in all of them */
	double upper_p;	      /* per toggle: worst section or arm, or worst time if it drifted */
	double drift_p;	      /* how often a steady rate looks as unsteady as this */
	bool drifted;	      /* so seldom that it is not believed */
	uint64_t far_toggles; /* of these, with the CPUs far apart: see struct distance */
	uint64_t far_tears;
	uint64_t clean_before; /* most toggles in a row without a tear at waits given up since */
	struct torn torn;      /* over the whole run */
};

/* One placement and crossing. */
struct section {
	enum placement placement;
	enum crossing crossing;
	uint64_t toggles; /* as in the claim */
	uint64_t tears;
	double upper_p;	  /* bound there, corrected for the number of sections */
	struct torn torn; /* over the whole run */
};

/* A kind of cell, and what was seen at the claimed waits. */
struct worst {
	struct cell cell;
	uint64_t toggles;
	uint64_t tears;
};

/*
 * How far apart patcher and first executor are: half a round trip of a cache line,
 * ticks. A hypervisor may move its CPUs closer together and further apart while
 * they are measured. Twice the least of the same placement and more is far.
 */
struct distance {
	uint64_t least[PLACEMENT_COUNT]; /* 0: nobody knows */
	uint64_t greatest[PLACEMENT_COUNT];
	size_t cells; /* that know theirs */
	size_t far;   /* of them */
	bool both;    /* far ones are common enough to count by themselves */
};

struct estimate {
	enum verdict verdict;
	char reason[160];
	struct claim claim[CLAIMS];
	struct waits waits; /* of the machine: the longer of the claims' */
	uint64_t stretch;
	uint64_t toggles; /* at the claims' waits, together */
	uint64_t tears;
	double upper_p;	 /* the worse of the claims' */
	double pooled_p; /* bound if all sections were alike */
	struct torn torn;
	bool tears_here; /* the broken variants tore, so the oracle can see tears here */
	bool word_tore;	 /* a store inside 8 bytes tore: nothing can be relied on here */
	unsigned window; /* bytes */
	uint64_t window_toggles;
	double window_p;
	struct distance distance;
	size_t cells; /* of the campaign */
	size_t noisy; /* of them, not counted for that */
	bool have_torn_cell;
	struct cell_record torn_cell;  /* highest waits that tore, then highest rate */
	struct worst worst[WORST_MAX]; /* of the campaign: most tears, then least known */
	unsigned worsts;
	struct section section[SECTIONS_MAX];
	unsigned sections;
	struct arms arms; /* the provokers, as the run measured them */
};

/* torn_add - take a record of the wait protocol into account. */
void torn_add(struct torn *torn, const struct cell_record *record);

/* torn_highest - of both waits; 0 if none tore. */
uint64_t torn_highest(const struct torn *torn);

/* claim_of - CLAIM_LINE or CLAIM_PAGE, -1 for a crossing that nothing is claimed for. */
int claim_of(enum crossing crossing);

/*
 * estimate_make - sum up records for the waits that the campaign ended with, one
 * pair per claim, by the stretch and the promise of the plan.
 *
 * verdict and reason are left to the caller, who knows how the run ended.
 */
void estimate_make(struct estimate *e, const struct cell_record *records, size_t count,
		   const struct waits waits[CLAIMS], const struct plan *plan);

const char *verdict_name(enum verdict verdict);

/* estimate_to_json - for the journal's "estimate" line. NULL: out of memory. */
json_t *estimate_to_json(const struct estimate *e);

#endif
