/* SPDX-License-Identifier: MIT */
/*
 * What a profile says of itself. These structures have doubles only, and go from a process to the
 * command as such.
 */
#ifndef PROFILE_STATISTICS_SUMS_H
#define PROFILE_STATISTICS_SUMS_H

/* A phase or an epoch, or several consecutive ones. */
struct phase {
	double start, length; /* seconds from the program's start */
	double calls;	      /* estimated; in profiles of edges runs of edges */
	double cost;	      /* share of the program's time spent on the profile */
	double phases;	      /* how many phases are joined in it */
	double on, toggling;  /* in profiles of edges: seconds in which blocks were on, and that
				 changing them took */
};

struct quality {
	double seconds; /* of the program */
	double epochs;	/* or phases */
	double budget;	/* share that the profile may cost */
	double cost;	/* share that it cost, by its own measure */
	double toggles;
	double toggling; /* share of CPU time that toggles took; in profiles of edges seconds */
	double lost;	 /* calls whose caller found no room, edges that found no room */
	double refused;	 /* functions, or blocks, that could not be watched */
	double processes;
	double exits;	  /* functions whose exits can be seen */
	double torn, cut; /* calls, see struct times */
	double on, late;  /* in profiles of edges: seconds in phases; runs of blocks outside of
			     phases */
	double blocks;
	double cpu; /* CPU seconds of all threads */
};

#define PHASE_NUMBERS	((int)(sizeof(struct phase) / sizeof(double)))
#define QUALITY_NUMBERS ((int)(sizeof(struct quality) / sizeof(double)))

#endif
