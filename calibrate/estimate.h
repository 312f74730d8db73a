/* SPDX-License-Identifier: MIT */
/*
 * What the records of a calibration support, and no more.
 */
#ifndef CALIBRATE_ESTIMATE_H
#define CALIBRATE_ESTIMATE_H

#include <stdbool.h>

#include "calibrate/plan.h"
#include "results/journal.h"

#define SECTIONS_MAX (PLACEMENT_COUNT * CROSSING_COUNT)

enum verdict {
	VERDICT_PASS,	      /* waits without tears were found and proved */
	VERDICT_FAIL,	      /* no wait up to the ceiling was free of tears */
	VERDICT_INCONCLUSIVE, /* not enough was measured, or the oracle saw nothing */
};

/* The highest waits that tore; seen is false if none did, not even 0. */
struct torn {
	bool seen[2]; /* first wait, second wait */
	uint64_t wait[2];
};

/* One placement and crossing. */
struct section {
	enum placement placement;
	enum crossing crossing;
	uint64_t toggles; /* at the estimate's waits */
	uint64_t tears;	  /* likewise */
	double upper_p;	  /* bound on the tear probability per toggle there */
	struct torn torn; /* over the whole run */
};

struct estimate {
	enum verdict verdict;
	char reason[160];
	uint64_t first_wait; /* ticks */
	uint64_t second_wait;
	uint64_t toggles; /* at these waits, all sections together */
	uint64_t tears;
	double upper_p;	 /* worst section's bound: what the machine is published with */
	double pooled_p; /* bound if all sections were alike */
	struct torn torn;
	double margin;	 /* the smaller of wait / highest torn wait, 0 if none tore */
	bool tears_here; /* the broken variants tore, so the oracle can see tears here */
	bool word_tore;	 /* a store inside 8 bytes tore: nothing can be relied on here */
	unsigned window; /* bytes */
	uint64_t window_toggles;
	double window_p;
	bool have_worst;
	struct cell_record worst; /* highest waits that tore, then highest rate */
	struct section section[SECTIONS_MAX];
	unsigned sections;
};

/* torn_add - take a record of the wait protocol into account. */
void torn_add(struct torn *torn, const struct cell_record *record);

/*
 * estimate_make - sum up records for the waits that the campaign ended with.
 *
 * verdict and reason are left to the caller, who knows how the run ended.
 */
void estimate_make(struct estimate *e, const struct cell_record *records, size_t count,
		   uint64_t first_wait, uint64_t second_wait);

const char *verdict_name(enum verdict verdict);

/* estimate_to_json - for the journal's "estimate" line. NULL: out of memory. */
json_t *estimate_to_json(const struct estimate *e);

#endif
