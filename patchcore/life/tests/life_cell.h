/* SPDX-License-Identifier: MIT */
/* The cells of the matrix: an event in a protocol, and what is to come of it. */
#ifndef PATCHCORE_LIFE_TESTS_LIFE_CELL_H
#define PATCHCORE_LIFE_TESTS_LIFE_CELL_H

#include <stdbool.h>
#include <stdio.h>

#include "patchcore/life/tests/life.h"

#define ERRORS_MAX 4

/* Where neither is named it is said of all. The last that fits counts. */
struct expected {
	const char *event, *protocol;
	const char *na;		/* why it cannot be, or cannot be seen */
	int errors[ERRORS_MAX]; /* beside 0 */
	bool refused;		/* patches in the child, with -EACCES */
	unsigned visits;	/* at most, where each takes long; 0: as many as others */
};

/* expected_of - never NULL. */
const struct expected *expected_of(const struct event *event, const struct protocol *protocol);

/* expected_is - is that what was seen? */
bool expected_is(const struct expected *expected, const struct event *event);

/* expected_print - the table, in Markdown. */
void expected_print(void);

struct cell {
	const struct protocol *protocol;
	const struct event *event;
	char name[80];
};

static inline void cell_name(struct cell *cell, const struct protocol *protocol,
			     const struct event *event)
{
	cell->protocol = protocol;
	cell->event = event;
	snprintf(cell->name, sizeof(cell->name), "%s: %s", protocol->name, event->name);
}

enum outcome {
	CELL_WELL,
	CELL_SKIPPED, /* it cannot be, or not here */
	CELL_FAILED,
};

struct report {
	unsigned points, states; /* that there are for the event */
	unsigned visits, met;
	char what[256]; /* has failed */
};

/* cells_start - once. cell_try - all its visits, or up to the first that fails. */
void cells_start(void);
enum outcome cell_try(const struct cell *cell, struct report *report);

#endif
