/* SPDX-License-Identifier: MIT */
/*
 * How long a function's calls took, from those of which the exit was seen.
 *
 * The calls of an epoch (estimate.h) are taken to have lasted as long on average as those of them
 * that were timed. The unit of time is the caller's. Pure: no clock, no probe.
 */
#ifndef PROBES_PROFILE_DURATION_H
#define PROBES_PROFILE_DURATION_H

#include "probes/profile/estimate/estimate.h"

/* The sum over epochs. All zero is empty. */
struct duration {
	double calls;	      /* estimated, of epochs in which some were timed */
	double time;	      /* that these took, with a CPU */
	double wall;	      /* and with what they waited */
	struct spread spread; /* of time, by the mean of a call */
	double epochs;	      /* in which some were timed */
	double timed;	      /* calls */
	double torn;	      /* that were left without an exit that a probe is at */
	double cut;	      /* that were not waited for */
	double blur;	      /* time that the probes of a call may be misjudged by */
};

/* How often a function was called, and for how long. */
struct measured {
	struct estimate calls;
	struct duration time;
};

/* It is nothing but doubles, and goes from process to process as such. */
#define MEASURED_NUMBERS ((int)(sizeof(struct measured) / sizeof(double)))

/* What was timed in an epoch. */
struct timed {
	double calls; /* of the function in it, estimated */
	double timed; /* calls */
	double time;  /* theirs */
	double wall;
	double blur; /* per call */
};

/* duration_add - one more epoch. One in which nothing was timed says nothing. */
void duration_add(struct duration *duration, const struct timed *epoch);

/* measured_join - add what another process measured of the same function. */
void measured_join(struct measured *sum, const struct measured *other);

/*
 * duration_interval - of all calls; @wall: with what they waited. Nothing was timed: all zero, and
 * a problem.
 */
struct interval duration_interval(const struct duration *duration, const struct interval *calls,
				  double *wall);

#endif
