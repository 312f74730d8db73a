/* SPDX-License-Identifier: MIT */
/*
 * How often a function was called, from epochs in which only some of its calls were counted.
 *
 * A probe counts for a window that was chosen before it opened, from epochs before, or until it has
 * counted so many calls that it stops (full). Calls per time in a window are then what the whole
 * epoch had on average, however the calls are spread. If counting stops by the n-th call at time T,
 * n / T is too high: the end of the window was chosen by a call. (n - 1) / T is right on average if
 * calls come at random (Poisson), together with k / window where fewer than n came. It is too low
 * for calls at even distances, and far off for bursts. So a probe should be full rarely, and what
 * full epochs say is held against the time that passed until the first call.
 *
 * Pure: no clock, no probe.
 */
#ifndef PROBES_PROFILE_ESTIMATE_H
#define PROBES_PROFILE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* What one epoch saw of one function. Times are ticks. */
struct epoch {
	uint64_t calls;	  /* that were counted */
	uint64_t watched; /* how long; to the last of them if full */
	uint64_t length;  /* from its start to the start of the next */
	uint64_t first;	  /* from its start to the first call, if there was one */
	uint64_t middle;  /* of a full one, to the last call of the first half, if that is known */
	uint64_t used;	  /* by all threads together; 0: not known */
	double slowed;	  /* share that counting took, and that watched is without */
	bool full;	  /* counting stopped by the last of calls */
	bool sudden;	  /* and so few were expected that all of it was to be watched */
};

/* How much neighbouring epochs differ, by chance and by what the program does. */
struct spread {
	double squares; /* variance of the sum, but for few epochs */
	double quads;	/* sum of the squares of its parts */
	double last;	/* value of the last epoch */
	double weight;	/* of its variance */
};

/* spread_add - @first: there is none before it; @also: variance that it has alone. */
void spread_add(struct spread *spread, double value, double weight, bool first, double also);

/* The sum over epochs. All zero is empty. */
struct estimate {
	double calls;	      /* estimated */
	double counted;	      /* of them */
	struct spread spread; /* of calls, by the rate per tick */
	double largest;	      /* part of one epoch in what was not counted */
	double sampled;	      /* epochs that were not watched as a whole */
	double active;	      /* of them with calls */
	double full;	      /* of them full */
	double first;	      /* in full epochs: time to the first call */
	double between;	      /* and from each to the next, on average */
	double expected;      /* calls per tick: what the next window is chosen by */
	double known;	      /* epochs */
	double pending;	      /* ticks behind a sudden end: they are as the next window is */
	double sudden_rate;   /* calls per tick before that end */
	double lifted;	      /* calls that there likely are behind sudden ends */
	double hidden;	      /* and that there may be in addition, if it went on, and faster */
	double time;	      /* ticks of all epochs */
	double unwatched;     /* of them */
	double used;	      /* by all threads together */
	double blurred; /* how many more calls there may be since counting slowed the program */
	double faded;	/* and how many fewer */
	double lone;	/* calls that only windows tell which have no neighbours to differ from */
};

/* Estimated, and the interval of 95 %. */
struct interval {
	double value, low, high;
	const char *problem; /* why the interval may be wrong; static, or NULL */
};

/* estimate_add - one more epoch. One without length says nothing. */
void estimate_add(struct estimate *estimate, const struct epoch *epoch);

struct interval estimate_interval(const struct estimate *estimate);

/*
 * spread_freedom - degrees of freedom of the variance. spread_factor - how far above and below a
 * sum the interval reaches, as a factor. @variance: relative
 */
double spread_freedom(const struct spread *spread);
double spread_factor(const struct spread *spread, double variance);

/*
 * estimate_slowed - share of a window in which the program did not get on, from 0 to 0.97.
 * @calls: of the probe function, by all probes
 * @price: ticks of one
 * @spent: ticks in turning other probes off
 * @ticks: of CPU time that the program's threads had in the window
 */
double estimate_slowed(double calls, double price, double spent, double ticks);

#define WINDOW_WHOLE UINT64_MAX

/*
 * estimate_window - how long to count in the next epoch so that about so many calls come.
 * @length:   of the epoch
 * @samples:  that are wanted
 * @few:      calls that cost less to count than it does to open a window and to end it
 * @shortest: window, so that what it takes to open it does not matter
 *
 * WINDOW_WHOLE where no more than few calls are expected in all of it.
 */
uint64_t estimate_window(const struct estimate *estimate, uint64_t length, unsigned samples,
			 unsigned few, uint64_t shortest);

/* --- share.c: what share of the program's time a function has, by a random sample of that time --
 */

/*
 * Samples are dealt out to groups in turn. How much groups differ tells how far off all together
 * may be, also where one sample has to do with the next part of the program.
 *
 * share_of - @part: of @all, by group; a group without all says nothing. @samples: in all groups.
 * What no sample has seen may have up to three of them. Of fewer than two groups: 0 to 1.
 */
#define SHARE_GROUPS 10
struct interval share_of(const double part[SHARE_GROUPS], const double all[SHARE_GROUPS],
			 double samples);

#endif
