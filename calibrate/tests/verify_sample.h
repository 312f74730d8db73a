/* SPDX-License-Identifier: MIT */
/* Counts to judge, and records to add up. */
#ifndef CALIBRATE_TESTS_VERIFY_SAMPLE_H
#define CALIBRATE_TESTS_VERIFY_SAMPLE_H

#include <string.h>

#include "calibrate/tests/sums_sample.h"
#include "calibrate/verify/verify.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define P	  1e-6
#define ENOUGH	  UINT64_C(370000) /* toggles without a tear that exclude 1e-5 with BOTH */
#define BOTH	  0.975		   /* lines and pages at once with 95 % */

static struct verify v;

static inline void set_count(struct verify_cell *c, uint64_t toggles, uint64_t tears)
{
	c->count = sample_count(1, toggles, tears);
	c->tears[TEAR_OLD_FRONT] = tears;
}

static inline struct verify_cell *put(enum verify_check check, uint64_t toggles, uint64_t tears)
{
	struct verify_cell *c = &v.cell[v.cells++];

	*c = (struct verify_cell){ .check = check, .runs = 1 };
	set_count(c, toggles, tears);
	c->quiet = c->count;
	c->apart = true;
	cell_defaults(&c->cell);
	return c;
}

static inline void promise(double p)
{
	v = (struct verify){ .have_conf = true, .conf = { .levels = 1, .window = 8 } };
	v.conf.level[0].line.upper_p = v.conf.level[0].page.upper_p = p;
}

/* Controls that tear and a window that does not, as it should be. */
static inline void begin_cells(void)
{
	put(CHECK_CONTROL, 100, 20);
	put(CHECK_CONTROL, 100, 1);
	put(CHECK_WINDOW, 1000, 0);
}

static inline void begin(void)
{
	promise(P);
	begin_cells();
}

static inline struct cell_record record_of(uint64_t toggles, uint64_t tears, enum outcome outcome)
{
	struct cell_record r = {
		.result = { .toggles = toggles,
			    .exposed = toggles,
			    .torn = tears,
			    .outcome = outcome },
	};

	r.result.tears[TEAR_NEW_FRONT] = tears;
	r.result.seating.executors = 1;
	r.cell.seed = toggles;
	return r;
}

#endif
