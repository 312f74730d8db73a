/* SPDX-License-Identifier: MIT */
/*
 * The command line of tmax bench.
 */
#ifndef BENCH_COMMAND_BENCH_OPTIONS_H
#define BENCH_COMMAND_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/method/method.h"

/* A benchmark by its name. */
struct bench_entry {
	const char *name;
	int (*run)(const struct bench_run *run, struct bench_result *result);
};

#define BENCH_ENTRIES 7
#define BENCH_NO_SEED UINT64_MAX
extern const struct bench_entry bench_entries[BENCH_ENTRIES];

/* What was asked for. Texts are the command line's. */
struct bench_request {
	const struct bench_entry *entry[BENCH_ENTRIES]; /* in the order asked for */
	unsigned entries;
	uint64_t rounds;
	uint64_t seed;	    /* BENCH_NO_SEED: to be drawn */
	uint64_t executors; /* 0: all that can be seated */
	bool have_waits;
	uint64_t first_wait, second_wait, stretch; /* to be assumed, in ticks */
	const char *journal;			   /* NULL: none */
	const char *figure;			   /* prefix, NULL: no figures */
	bool json, no_peers, quiet;
};

/* bench_options - parse it. EXIT_PASS, EXIT_HELPED, or EXIT_USAGE after a complaint. */
int bench_options(int argc, char **argv, struct bench_request *request);

#endif
