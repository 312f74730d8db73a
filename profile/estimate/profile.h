/* SPDX-License-Identifier: MIT */
/*
 * A profile of calls or of edges: functions, callers, and what happened when. In a profile of edges
 * the functions are basic blocks.
 */
#ifndef PROFILE_ESTIMATE_PROFILE_H
#define PROFILE_ESTIMATE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "profile/estimate/estimate.h"

/* Seconds of a function's calls. Nothing is known where all are 0. */
struct times {
	struct interval total; /* with callees, with a CPU; of nested calls the outermost */
	struct interval self;  /* without callees */
	double wall;	       /* total, with waits for a CPU */
};

/* What processes have reported of a function. */
struct function_evidence {
	struct measured measured;
	double seen;		     /* calls whose caller was seen, */
	double timed, seconds;	     /* and those that were timed, too, and their time */
	double bursts[SHARE_GROUPS]; /* seconds in each group of bursts */
	struct interval total; /* time of all calls, with calls within calls of the same function */
};

struct function {
	char *name, *object; /* the path of the program or library stands behind the name */
	uint64_t address;    /* of a block, in the object's file */
	struct interval calls;
	struct times times;
	struct function_evidence evidence;
	size_t was; /* its index before profile_sort() */
};

#define NO_CALLER SIZE_MAX

/* Calls of a function by another, or an edge between two blocks. */
struct arc {
	size_t from, to; /* indices of functions; from may be NO_CALLER */
	double calls;
	double seconds; /* self time; 0: not known */
	double total;	/* seconds with callees */
	double timed;	/* calls whose time was taken */
	double half[2]; /* of an edge: runs in odd and in even phases, and runs that were seen */
	double seen;
};

struct profile {
	char *program;
	bool edges; /* a profile of edges */
	struct function *function;
	struct arc *arc;
	struct phase *phase;
	size_t functions, arcs, phases;
	json_t *by_name, *by_ends; /* indices */
	struct quality quality;
};

/*
 * profile_function - index of a function by name and object (and of a block by its address), which
 * is made where there is none. Negative errno.
 */
long profile_function(struct profile *profile, const char *name, const char *object,
		      uint64_t address);

/* profile_arc - add an arc, or add to the arc that is there. 0, -ENOMEM. */
int profile_arc(struct profile *profile, const struct arc *arc);

/* has_times - whether times of the function are known. */
bool has_times(const struct function *function);

/* profile_has_times - whether times of any function are known. */
bool profile_has_times(const struct profile *profile);

/* profile_agreement - overlap of the shares of edges in odd and in even phases, from 0 to 1. */
double profile_agreement(const struct profile *profile);

/*
 * profile_sort - sort functions by self time, then by calls, the most first; blocks by object and
 * address; arcs get the new indices. -ENOMEM.
 */
int profile_sort(struct profile *profile);

void profile_free(struct profile *profile);

#endif
