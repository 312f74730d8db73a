/* SPDX-License-Identifier: MIT */
/*
 * A made-up program: functions as a compiler lays them out, each with one call to be patched.
 *
 *	.align 16
 *	<prologue>		of random but plausible length, returns 0 from here on
 *	call	target		the site: 5 bytes
 *	<epilogue>
 *	ret
 *	<body>			of random size, never run: what else is in a function
 *
 * No function is laid out for the site in it. So which sites cross a boundary, and how
 * many, is left to chance as in a real program.
 *
 * The calls are counted twice: by the target in memory, and by what each function returns.
 * An executor that called without counting, or counted without calling, shows.
 */
#ifndef BENCH_METHOD_SITES_H
#define BENCH_METHOD_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/method/hot.h"

#define SITES_LENGTH 5	/* bytes of a site */
#define SITES_ROUND  64 /* functions that an executor runs between two looks at its work */

/* Runs one function. calls[0]: raised by the target. Returns 1 if it was called, else 0. */
typedef uint64_t sites_fn(uint64_t *calls);

struct sites {
	unsigned long count;
	sites_fn **run; /* by function */
	uint8_t **site;
	uint8_t *map; /* the target of all calls, then the functions */
	size_t bytes;
};

/*
 * sites_build - lay out so many functions, all calls on, and open their pages for patching
 * (pc_init() was called). Same seed, same program. 0 or a negative errno. sites_free - for a
 * program that no executor runs and where nothing is in flight: pc_forget() and unmap. An empty one
 * is fine.
 */
int sites_build(struct sites *sites, unsigned long count, uint64_t seed);
void sites_free(struct sites *sites);

/* sites_code - what stands at a site when it is on, or off: the call, or 0F 1F 44 00 00. */
void sites_code(const struct sites *sites, unsigned long i, bool on, uint8_t code[SITES_LENGTH]);

/* sites_crosses - does the site cross a multiple of so many bytes? */
bool sites_crosses(const uint8_t *site, unsigned boundary);

/* sites_straddlers - the share of those that do. */
double sites_straddlers(const struct sites *sites, unsigned boundary);

/*
 * sites_run - the work of executors, with the struct sites as arg: SITES_ROUND functions at a
 * time, all functions in order, again and again. In counts: calls[0] as the target counted,
 * calls[1] as the functions returned, executed all functions that were run.
 */
void sites_run(const struct hot_work *work, unsigned executor, struct hot_counts *counts);

#endif
