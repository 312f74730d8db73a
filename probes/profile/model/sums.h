/* SPDX-License-Identifier: MIT */
/*
 * What a profile says of itself. These structures are nothing but doubles, and go from a process to
 * the command as such.
 */
#ifndef PROBES_PROFILE_MODEL_SUMS_H
#define PROBES_PROFILE_MODEL_SUMS_H

/* One stretch of time, or several one behind the other. */
struct phase {
	double start, length; /* seconds from the program's start */
	double calls;	      /* estimated; of edges, runs of blocks */
	double cost;	      /* share of the program's time spent on the profile */
	double phases;	      /* how many it stands for */
	double on, toggling;  /* of edges: seconds in which blocks were on, or turned */
};

struct quality {
	double seconds; /* of the program */
	double epochs;	/* or phases */
	double budget;	/* share; what the profile was to cost */
	double cost;	/* share; what it says that it cost */
	double toggles;
	double toggling; /* of the cost: share that they took; of edges, seconds */
	double lost;	 /* calls of which the caller was not kept, blocks that were not counted */
	double refused;	 /* functions that could not be watched, or blocks */
	double processes;
	double exits;	  /* functions whose exits can be seen */
	double torn, cut; /* calls, see struct times */
	double on, late;  /* of edges: seconds in phases; runs of blocks outside of them */
	double blocks;
	double cpu; /* seconds of all threads */
};

#define PHASE_NUMBERS	((int)(sizeof(struct phase) / sizeof(double)))
#define QUALITY_NUMBERS ((int)(sizeof(struct quality) / sizeof(double)))

#endif
