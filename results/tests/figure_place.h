/* SPDX-License-Identifier: MIT */
/* For tests of figure 9: a folder, and the records that are to be drawn. */
#ifndef RESULTS_TESTS_FIGURE_PLACE_H
#define RESULTS_TESTS_FIGURE_PLACE_H

#include "results/figures/figure.h"
#include "results/tests/sample.h"
#include "results/tests/svg_check.h"

#define RECORDS_MAX 512

struct place {
	char path[64];
	struct cell_record records[RECORDS_MAX];
	struct journal_data data;
	char error[256];
};

static inline int enter_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->path, "/tmp/test_figure.XXXXXX");
	place->data.records = place->records;
	place->data.have_identity = 1;
	place->data.identity = sample_identity();
	*state = place;
	return enter_folder(place->path);
}

static inline int leave_place(void **state)
{
	struct place *place = *state;
	int rc = leave_folder(place->path);

	free(place);
	return rc;
}

/* Of the same cell, but for its waits and what came of it. Good until the place is left. */
static inline struct cell_record *add_record(struct place *place, uint64_t wait, uint64_t tears,
					     uint64_t toggles)
{
	struct cell_record *r = &place->records[place->data.count++];

	assert_true(place->data.count <= RECORDS_MAX);
	*r = sample_record(0);
	r->cell.split = 2;
	r->cell.waits.first = r->cell.waits.second = wait;
	r->result.toggles = toggles;
	r->result.tears[TEAR_OLD_FRONT] = tears;
	r->result.tears[TEAR_NEW_FRONT] = r->result.tears[TEAR_OTHER] = 0;
	return r;
}

/* Two splits at two waits, one run each, of which the very first crashed. */
static inline void add_crashes_of_two_splits(struct place *place)
{
	for (unsigned i = 0; i < 4; i++) {
		struct cell_record *r = add_record(place, 100 * (i / 2), 0, 1000);

		r->cell.oracle = ORACLE_CRASH;
		r->cell.split = 1 + i % 2;
		r->result.outcome = i ? OUTCOME_DONE : OUTCOME_CRASH;
	}
}

static inline int write_it(struct place *place)
{
	return figure9_write(&place->data, ORACLE_COUNT, "out", place->error, sizeof(place->error));
}

static inline int write_crashes(struct place *place)
{
	return figure9_write(&place->data, ORACLE_CRASH, "out", place->error, sizeof(place->error));
}

#endif
