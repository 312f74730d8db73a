/* SPDX-License-Identifier: MIT */
/*
 * A calibration of a machine that is made up, in place of stress/run/child.c: how it tears is
 * known, and its time passes as it says.
 */
#ifndef CALIBRATE_SESSION_TESTS_CLIMB_MACHINE_H
#define CALIBRATE_SESSION_TESTS_CLIMB_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrate/session/session.h"
#include "calibrate/tests/session_place.h"

#define START_UP   0.02	 /* seconds that a cell takes beside its own */
#define TICKS	   2.6e9 /* a second */
#define STORES	   500	 /* ticks that a change takes beside its waits */
#define BARRIER	   26000 /* ticks that a change by membarrier takes */
#define NO_FAILURE SIZE_MAX

/* A site at rest tears less by this factor. */
#define AT_REST 40

struct machine {
	struct session_place place;
	double steep;	 /* tears per toggle without a wait */
	double fade;	 /* ticks by which it becomes e times less */
	double floor;	 /* and never less than this */
	bool sees;	 /* the broken protocols tear */
	bool word_tears; /* a store inside a word */
	bool half_tears; /* a store across 32 bytes of a line; and changes there by waits */
	size_t stops_at; /* the user asks to stop in this cell */
	size_t fails_at; /* and this one fails */
	size_t runs;
	size_t gap_runs;
	size_t gap_fails_at; /* and this run of the gap oracle fails */
	struct plan plan;
	struct sums sums;
	struct estimate estimate;
};

/* Tears per toggle at that wait. */
double rate_at(const struct machine *m, uint64_t wait);

/* An ordinary machine, for cmocka's setup and teardown. */
int new_machine(void **state);
int end_machine(void **state);

/* Another session, which has read the journal. */
void start_session(struct machine *m);

/* Spends what is left of the budget. */
void assert_climb_returns(struct machine *m, int ret);

#define TEST_ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, new_machine, end_machine)

#endif
