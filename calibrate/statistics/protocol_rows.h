/* SPDX-License-Identifier: MIT */
/*
 * What slices of tmax protocols say of each protocol's steps, where the protocol claims to hold and
 * just outside. A row speaks of a sequence of steps on this machine, not of the project that the
 * steps were read in.
 */
#ifndef CALIBRATE_STATISTICS_PROTOCOL_ROWS_H
#define CALIBRATE_STATISTICS_PROTOCOL_ROWS_H

#include "calibrate/statistics/sums.h"

/* The stages of the records. */
#define STAGE_CLAIMED "protocol"
#define STAGE_OUTSIDE "protocol-outside"
#define STAGE_STILL   "protocol-still" /* a site that is hardly ever changed, to compare with */

enum steps_verdict {
	STEPS_UNCLEAR, /* too little was seen, or the oracle saw nothing */
	STEPS_HOLD,
	STEPS_TEAR,
	STEPS_DIE /* executors died of a signal, or made no progress */
};

const char *steps_verdict_name(enum steps_verdict verdict);

struct protocol_part {
	struct count count;
	/* Of each crossing a set of 1u << split: all that were tried, where some slice tore, or
	 * died. */
	uint32_t tried_at[CROSSING_COUNT], torn_at[CROSSING_COUNT], died_at[CROSSING_COUNT];
	unsigned sites, torn, died; /* how many these are */
	enum steps_verdict verdict;
	double p;			   /* tears per change that could tear; NAN without one */
	double upper_p;			   /* bound on the mean over these sites, by CONFIDENCE */
	const struct cell_record *witness; /* the first that died, else the first that tore */
};

enum {
	PART_CLAIMED,
	PART_OUTSIDE,
	PROTOCOL_PARTS
};

struct protocol_row {
	enum protocol protocol;
	struct protocol_part part[PROTOCOL_PARTS];
	const struct cell_record *still; /* the first slice of its site that is not changed */
	struct count alike; /* slices of all sites with as many executors, in the same placement */
	/*
	 * Executions a second of an executor in the fastest slice: of that site; of the same being
	 * changed, so often a second; NAN: unknown. Other work slows slices, and makes none fast.
	 */
	double executions[2], changes;
	double ticks;  /* that a change takes of those alike; NAN: unknown */
	bool frontier; /* no other has as few tears and as cheap changes, and one of them less */
};

/* protocol_row_main - what it claims; of a protocol that claims nothing, the rest. */
const struct protocol_part *protocol_row_main(const struct protocol_row *row);

/* protocol_row_p - tears per change there; where none tore the bound; NAN: unknown. */
double protocol_row_p(const struct protocol_row *row);

/* protocol_row_loss - share of executions that the site's changes cost; NAN: unknown. */
double protocol_row_loss(const struct protocol_row *row);

struct protocol_rows {
	struct protocol_row *row;
	size_t count;
	bool seen; /* a protocol that is broken on purpose tore; else none of the others is said to
		      hold */
};

/*
 * protocol_rows_make - in the order in which the protocols come. Points to the records. 0, or
 * -ENOMEM with nothing to free.
 */
int protocol_rows_make(struct protocol_rows *rows, const struct cell_record *records, size_t count);
void protocol_rows_free(struct protocol_rows *rows);

#endif
