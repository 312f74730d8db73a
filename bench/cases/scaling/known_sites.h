/* SPDX-License-Identifier: MIT */
/*
 * Sites that are known, in the process that knows them. See known.h.
 */
#ifndef BENCH_CASES_SCALING_KNOWN_SITES_H
#define BENCH_CASES_SCALING_KNOWN_SITES_H

#include <stdint.h>

#include "bench/cases/scaling/known.h"

struct known_sites {
	unsigned long count;
	uintptr_t *order;		 /* all of them, in random order */
	unsigned long at;		 /* the next of them */
	uint8_t *patched[KNOWN_PATCHED]; /* those that are code */
	uint8_t *code;			 /* that code; the caller may want it open */
	size_t code_bytes;
	unsigned patches;
};

/*
 * known_sites_make - by site_get(). 0 or a negative errno. They stay known as long as the process
 * lives; known_sites_free() only forgets which they were.
 */
int known_sites_make(struct known_sites *sites, unsigned long count, uint64_t seed);
void known_sites_free(struct known_sites *sites);

/* known_sites_next - in their order, round and round. */
static inline uintptr_t known_sites_next(struct known_sites *sites)
{
	uintptr_t site = sites->order[sites->at];

	sites->at = sites->at + 1 < sites->count ? sites->at + 1 : 0;
	return site;
}

/* known_sites_miss - an address next to a site, that is none. */
static inline uintptr_t known_sites_miss(uintptr_t site)
{
	return site ^ 8;
}

/* known_sites_time - one sample. A negative errno if it cannot be. pc_init() was called. */
int known_sites_time(struct known_sites *sites, enum known_what what, double *ticks);

#endif
