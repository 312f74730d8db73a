/* SPDX-License-Identifier: MIT */
/*
 * A run made of records that a test writes down, and what is estimated from it.
 */
#ifndef CALIBRATE_TESTS_ESTIMATE_RUN_H
#define CALIBRATE_TESTS_ESTIMATE_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/bound.h"
#include "calibrate/estimate.h"
#include "calibrate/sequential.h"

#define RECORDS	    100
#define PROMISE	    1e-3
#define STRETCH	    4
#define FIRST	    3000 /* the waits that the campaign ended with, across lines */
#define SECOND	    2000
#define PAGE_FIRST  5000 /* and across pages */
#define PAGE_SECOND 1000

struct run {
	struct cell_record record[RECORDS];
	size_t count;
	struct plan plan;
	struct estimate estimate;
};

static inline int new_run(void **state)
{
	struct run *run = calloc(1, sizeof(*run));

	*state = run;
	if (!run)
		return -1;
	run->plan.promise = PROMISE;
	run->plan.stretch = STRETCH;
	return 0;
}

static inline int end_run(void **state)
{
	free(*state);
	return 0;
}

/* A cell of the campaign at the final waits of its crossing, to be changed by the caller. */
static inline struct cell_record *add_across(struct run *run, enum crossing crossing,
					     uint64_t toggles)
{
	struct cell_record *r = &run->record[run->count++];

	assert_true(run->count <= RECORDS);
	*r = (struct cell_record){ .stage = "campaign" };
	cell_defaults(&r->cell);
	r->cell.crossing = crossing;
	r->cell.first_wait = crossing == CROSSING_PAGE ? PAGE_FIRST : FIRST;
	r->cell.second_wait = crossing == CROSSING_PAGE ? PAGE_SECOND : SECOND;
	r->cell.stretch = STRETCH;
	snprintf(r->key, sizeof(r->key), "record %zu", run->count);
	r->result.toggles = toggles;
	return r;
}

static inline struct cell_record *add(struct run *run, uint64_t toggles)
{
	return add_across(run, CROSSING_LINE, toggles);
}

static inline struct cell_record *add_waits(struct run *run, const char *stage, uint64_t first,
					    uint64_t second)
{
	struct cell_record *r = add(run, 1000);

	snprintf(r->stage, sizeof(r->stage), "%s", stage);
	r->cell.first_wait = first;
	r->cell.second_wait = second;
	return r;
}

static inline const struct estimate *make(struct run *run)
{
	static const struct waits waits[CLAIMS] = {
		[CLAIM_LINE] = { FIRST, SECOND },
		[CLAIM_PAGE] = { PAGE_FIRST, PAGE_SECOND },
	};

	/* Whatever was there before must not shine through. */
	memset(&run->estimate, 0xa5, sizeof(run->estimate));
	estimate_make(&run->estimate, run->record, run->count, waits, &run->plan);
	return &run->estimate;
}

/* The bound of one section among so many. */
static inline double bound(uint64_t tears, uint64_t toggles, unsigned sections)
{
	return sequential_upper(tears, toggles, PROMISE, (1 - CONFIDENCE) / sections);
}

static inline void assert_torn(const struct torn *torn, int64_t first, int64_t second)
{
	assert_int_equal(torn->seen[0], first >= 0);
	assert_int_equal(torn->seen[1], second >= 0);
	if (first >= 0)
		assert_int_equal(torn->wait[0], first);
	if (second >= 0)
		assert_int_equal(torn->wait[1], second);
}

#define ON_RUN(test) cmocka_unit_test_setup_teardown(test, new_run, end_run)

#endif
