/* SPDX-License-Identifier: MIT */
/*
 * Another process, of this same program, in which so many sites are known.
 *
 * What is known stays known as long as a process lives (see patchcore/site/site.h). So to find out
 * what that costs takes a process per number, and none that has patched anything before: it
 * is started by exec(), as
 *
 *	tmax bench --serve-sites SITES FIRST SECOND STRETCH
 *
 * and the command hands over to known_serve(). Parent and child share a socket, the child's
 * standard input and output.
 *
 * KNOWN_PATCHED of the sites are code, each across a line; the others are only addresses,
 * spread as calls in functions are.
 */
#ifndef BENCH_CASES_SCALING_KNOWN_H
#define BENCH_CASES_SCALING_KNOWN_H

#include <stdint.h>
#include <sys/types.h>

#include "bench/method/samples.h"

#define KNOWN_PATCHED	8  /* the least number of sites there can be, too */
#define KNOWN_AT_ONCE	64 /* finds, or traps, in one sample */
#define KNOWN_COUNT_MAX 4096

/*
 * What can be measured, in ticks. Finds and traps are made KNOWN_AT_ONCE in a row, with an LFENCE
 * between any two so that none begins before the one in front is complete, as it is where a
 * patch or a trap needs the answer; some ticks of each figure are the fence's.
 *
 * KNOWN_TRAP is the library's handler for an executor that comes late: it finds the site, finds
 * it free and goes on. It is called with a made-up context: what the kernel takes to deliver
 * a signal does not depend on the sites.
 */
enum known_what {
	KNOWN_FIND,	  /* sites in random order: with many, most are in no cache */
	KNOWN_FIND_HOT,	  /* one site, again and again */
	KNOWN_FIND_MISS,  /* addresses that are no site, in random order */
	KNOWN_WAIT,	  /* pc_patch() of one of KNOWN_PATCHED, policy wait */
	KNOWN_MEMBARRIER, /* policy membarrier; there is no other thread in that process */
	KNOWN_TRAP,	  /* at one of KNOWN_PATCHED */
	KNOWN_KINDS
};

struct known {
	pid_t pid; /* 0: not open */
	int socket;
};

/* What the child shall use for policy wait: what the parent found. All 0: what it finds itself. */
struct known_waits {
	uint64_t first, second, stretch;
};

/*
 * known_open - start the process, and return when it knows its sites. It inherits the CPUs that
 * the caller is pinned to. known_measure - count samples, at most KNOWN_COUNT_MAX. known_close -
 * end it. 0 or a negative errno with a line in why, of BENCH_WHY bytes.
 */
int known_open(struct known *known, unsigned long sites, const struct known_waits *waits,
	       char *why);
int known_measure(struct known *known, enum known_what what, unsigned count, struct samples *s,
		  char *why);
void known_close(struct known *known);

/*
 * known_serve - the child: serve until standard input ends. Returns 0, or a negative errno if
 * it cannot.
 */
int known_serve(unsigned long sites, const struct known_waits *waits);

/*
 * bench_count_finds - find so many sites, of so many known, in random order, and nothing else:
 * for callgrind, as tmax bench --count-finds SITES FINDS. 0 or a negative errno.
 */
int bench_count_finds(unsigned long sites, unsigned long finds);

#endif
