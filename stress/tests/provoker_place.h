/* SPDX-License-Identifier: MIT */
/* For tests of provokers: a site that they are told of, and seats for them and for a cell. */
#ifndef STRESS_TESTS_PROVOKER_PLACE_H
#define STRESS_TESTS_PROVOKER_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "stress/run/run.h"

#define PAGE 4096u

static struct run_options how;
static bool alone;    /* one CPU */
static uint8_t *site; /* across two pages */

static inline void seat(struct cell *cell, struct seating *seating, unsigned provokers)
{
	char reason[160];

	cell_defaults(cell);
	cell->placement = alone ? PLACEMENT_OVERSUBSCRIBED : PLACEMENT_SPREAD;
	cell->provokers = provokers;
	assert_int_equal(placement_seat(how.topology, cell->placement, 1, 0, seating, reason,
					sizeof(reason)),
			 0);
}

static inline struct provokers *start(unsigned provokers)
{
	struct provokers *p;
	struct seating seating;
	struct cell cell;

	seat(&cell, &seating, provokers);
	assert_int_equal(provokers_start(&p, &cell, how.topology, &seating, site), 0);
	return p;
}

static inline bool map_site(void)
{
	uint8_t *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return false;
	memset(pages, 0x90, 2 * PAGE);
	site = pages + PAGE - 3;
	return true;
}

/* Before all else; false: it cannot be had here. */
static inline bool open_place(void)
{
	char reason[160];
	int foreign;

	if (topology_open(&how.topology, &foreign) < 0 || foreign || !map_site()) {
		fprintf(stderr, "the topology cannot be read\n");
		return false;
	}
	alone = placement_max(how.topology, PLACEMENT_SPREAD, reason, sizeof(reason)) == 0;
	return true;
}

#endif
