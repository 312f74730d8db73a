/* SPDX-License-Identifier: MIT */
/*
 * How long a function's calls took. A call is timed if its exit is seen; the other calls of an
 * epoch (estimate.h) are taken to last as long as the timed ones on average. The unit of time is
 * the caller's. Pure: no clock, no probe.
 */
#ifndef PROFILE_STATISTICS_DURATION_H
#define PROFILE_STATISTICS_DURATION_H

#include "profile/statistics/estimate.h"

/* The sum over epochs. All zero is empty. */
struct duration {
	double calls;	      /* estimated, of epochs in which some were timed */
	double time;	      /* of these calls, with a CPU */
	double wall;	      /* of these calls, with waits */
	struct spread spread; /* of time, by the mean of a call in each epoch */
	double epochs;	      /* in which some were timed */
	double timed;	      /* calls */
	double torn;	      /* calls that left without an exit probe */
	double cut;	      /* calls that went on for too long */
	double blur;	      /* time by which the cost of probes may be misjudged */
};

/* How often a function was called, and for how long. */
struct measured {
	struct estimate calls;
	struct duration time;
};

/* It has doubles only, and goes from process to process as such. */
#define MEASURED_NUMBERS ((int)(sizeof(struct measured) / sizeof(double)))

/* What was timed in an epoch. */
struct timed {
	double calls; /* of the function in the epoch, estimated */
	double timed; /* calls */
	double time;  /* of these calls, with a CPU */
	double wall;
	double blur; /* per call */
};

/* duration_add - add an epoch. An epoch without timed calls changes nothing. */
void duration_add(struct duration *duration, const struct timed *epoch);

/* measured_join - add what another process measured of the same function. */
void measured_join(struct measured *sum, const struct measured *other);

/*
 * duration_interval - time of all calls; @wall: with waits. Without timed calls all is zero, with a
 * problem.
 */
struct interval duration_interval(const struct duration *duration, const struct interval *calls,
				  double *wall);

#endif
