/* SPDX-License-Identifier: MIT */
/*
 * A profile, by any way of measuring: functions, who calls whom, what happened when. In one of
 * edges a basic block is a function.
 */
#ifndef PROBES_PROFILE_MODEL_PROFILE_H
#define PROBES_PROFILE_MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "probes/profile/estimate/duration.h"
#include "probes/profile/model/sums.h"

/* Seconds of a function's calls. Nothing is known where all are 0. */
struct times {
	struct interval
		total; /* with a CPU, and what the calls called; of nested ones the outermost */
	struct interval self; /* without what they called */
	double wall;	      /* total, and what the calls waited */
	double timed;	      /* calls */
	double torn, cut;     /* calls that were timed in vain: without an exit, and for too long */
};

/* What processes have reported of a function. */
struct evidence {
	struct measured measured;
	double seen;		     /* calls whose caller was seen, */
	double timed, seconds;	     /* and those that were timed, too, and their time */
	double bursts[SHARE_GROUPS]; /* seconds that it was seen to run, by group of bursts */
	struct interval total;	     /* of all its calls, also of those within others */
};

struct function {
	char *name;
	char *object;	  /* path of the program or library */
	uint64_t address; /* of a block, in the object's file */
	struct interval calls;
	double counted; /* calls that were seen */
	struct times times;
	struct evidence evidence;
	size_t was; /* its index before profile_sort() */
};

#define NO_CALLER SIZE_MAX

/* Calls of a function by another, or an edge: indices of functions. */
struct arc {
	size_t from, to; /* from may be NO_CALLER */
	double calls;
	double seconds; /* self; 0 where nothing is known */
	double total;	/* seconds with what it calls */
	double timed;	/* calls whose time was taken */
	double half[2]; /* of an edge, calls in odd and in even phases, and those that were seen */
	double seen;
};

struct profile {
	char *program;
	bool edges; /* it is of those */
	struct function *function;
	struct arc *arc;
	struct phase *phase;
	size_t functions, arcs, phases;
	json_t *by_name, *by_ends; /* indices */
	struct quality quality;
};

/*
 * profile_function - index of a function by name and object, and of a block by its address; makes
 * one where there is none. Negative errno.
 */
long profile_function(struct profile *profile, const char *name, const char *object,
		      uint64_t address);

/* profile_arc - one more, or what is added to the one that is there. 0, -ENOMEM. */
int profile_arc(struct profile *profile, const struct arc *arc);

/* times_are_known - whether times of the function are. */
bool times_are_known(const struct times *times);

/* profile_has_times - whether times of any function are known. */
bool profile_has_times(const struct profile *profile);

/* profile_agreement - what the shares of edges have in common in odd and even phases, 0 to 1. */
double profile_agreement(const struct profile *profile);

/* profile_sort - functions by their own time, then by calls, the most first; arcs name them by
 * their new indices. -ENOMEM. */
int profile_sort(struct profile *profile);

void profile_free(struct profile *profile);

#endif
