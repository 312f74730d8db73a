/* SPDX-License-Identifier: MIT */
/*
 * Reading numbers and names off the command line, strictly: what is not wholly
 * understood is refused with one line that names option and value.
 */
#ifndef CALIBRATE_PROGRAM_OPTIONS_H
#define CALIBRATE_PROGRAM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "stress/cell/cell.h"

/* option_u64 - decimal from min to max. Complains on stderr and returns false. */
bool option_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* option_seconds - "90", "90s", "10m", "2h", above 0 and at most 31 days. */
bool option_seconds(const char *option, const char *text, double *seconds);

/* option_name - one of the names that parse knows; valid lists them for the complaint. */
bool option_name(const char *option, const char *text, int (*parse)(const char *), int *value);

/* usage_error - "tmax COMMAND: why", and where help is. Returns EXIT_USAGE. */
int usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Options that describe a cell, shared by stress and the tests. getopt values
 * start at OPTION_CELL_FIRST.
 */
enum {
	OPTION_CELL_FIRST = 1000,
	OPTION_PLACEMENT = OPTION_CELL_FIRST,
	OPTION_CROSSING,
	OPTION_SPLIT,
	OPTION_EXECUTORS,
	OPTION_PAIR,
	OPTION_PROTOCOL,
	OPTION_ORACLE,
	OPTION_FIRST_WAIT,
	OPTION_SECOND_WAIT,
	OPTION_STRETCH,
	OPTION_REST,
	OPTION_PROVOKER,
	OPTION_LOOP,
	OPTION_TOGGLES,
	OPTION_SECONDS,
	OPTION_STOP_TEARS,
	OPTION_SEED,
	OPTION_PLACE,
	OPTION_SWAP,
	OPTION_CELL_END,
};

#define CELL_OPTIONS                                                                               \
	{ "placement", required_argument, NULL, OPTION_PLACEMENT },                                \
		{ "crossing", required_argument, NULL, OPTION_CROSSING },                          \
		{ "split", required_argument, NULL, OPTION_SPLIT },                                \
		{ "executors", required_argument, NULL, OPTION_EXECUTORS },                        \
		{ "pair", required_argument, NULL, OPTION_PAIR },                                  \
		{ "protocol", required_argument, NULL, OPTION_PROTOCOL },                          \
		{ "oracle", required_argument, NULL, OPTION_ORACLE },                              \
		{ "first-wait", required_argument, NULL, OPTION_FIRST_WAIT },                      \
		{ "second-wait", required_argument, NULL, OPTION_SECOND_WAIT },                    \
		{ "stretch", required_argument, NULL, OPTION_STRETCH },                            \
		{ "rest", required_argument, NULL, OPTION_REST },                                  \
		{ "provoker", required_argument, NULL, OPTION_PROVOKER },                          \
		{ "loop", required_argument, NULL, OPTION_LOOP },                                  \
		{ "toggles", required_argument, NULL, OPTION_TOGGLES },                            \
		{ "seconds", required_argument, NULL, OPTION_SECONDS },                            \
		{ "stop-tears", required_argument, NULL, OPTION_STOP_TEARS },                      \
		{ "seed", required_argument, NULL, OPTION_SEED },                                  \
		{ "place", required_argument, NULL, OPTION_PLACE },                                \
	{                                                                                          \
		"swap", no_argument, NULL, OPTION_SWAP                                             \
	}

/* option_cell - take one of them. False (after a complaint) if the value is no good. */
bool option_cell(int option, const char *text, struct cell *cell);

#endif
