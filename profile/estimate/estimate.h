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
#ifndef PROFILE_ESTIMATE_ESTIMATE_H
#define PROFILE_ESTIMATE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/* What one epoch saw of one function. Times are ticks. */
struct epoch {
	uint64_t calls;	  /* counted calls */
	uint64_t watched; /* ticks in which calls were counted; to the last call if full */
	uint64_t length;  /* from its start to the start of the next */
	uint64_t first;	  /* from its start to the first call, if there was one */
	uint64_t middle;  /* of a full epoch, from its start to the middle call, or 0 */
	uint64_t used;	  /* ticks of all threads together; 0: not known */
	double slowed;	  /* share that counting took; watched is without it */
	bool full;	  /* counting stopped by the last of calls */
	bool sudden;	  /* full, though few calls were expected in all of it */
};

/* How much neighbouring epochs differ, by chance and by what the program does. */
struct spread {
	double squares; /* variance of the sum, without correction for few epochs */
	double quads;	/* sum of the squares of its parts */
	double last;	/* value of the last epoch */
	double weight;	/* of the last epoch in the variance */
};

/* spread_add - add an epoch. @first: no epoch came before; @also: variance of its own */
void spread_add(struct spread *spread, double value, double weight, bool first, double also);

/* The sum over epochs. All zero is empty. */
struct call_estimate {
	double calls;	      /* estimated */
	double counted;	      /* of these */
	struct spread spread; /* of calls, by the rate per tick */
	double largest;	      /* most calls of one epoch that were not counted */
	double sampled;	      /* epochs that were not watched as a whole */
	double active;	      /* of them with calls */
	double full;	      /* of them full */
	double first;	      /* in full epochs: time to the first call */
	double between;	      /* and from each to the next, on average */
	double expected;      /* calls per tick: what the next window is chosen by */
	double known;	      /* epochs */
	double pending;	      /* ticks after a sudden end, which the next window tells about */
	double sudden_rate;   /* calls per tick before the sudden end */
	double lifted;	      /* likely calls after sudden ends */
	double hidden;	      /* further possible calls, if they went on, and faster */
	double time;	      /* ticks of all epochs */
	double unwatched;     /* of these */
	double used;	      /* by all threads together */
	double blurred;	      /* calls that may be missing since counting slowed the program */
	double faded;	      /* calls that may be too many for the same reason */
	double lone;	      /* calls estimated from windows without neighbours */
};

/* Estimated, and the interval of 95 %. */
struct interval {
	double value, low, high;
	const char *problem; /* why the interval may be wrong; static, or NULL */
};

/* estimate_add - add an epoch. An epoch without length changes nothing. */
void estimate_add(struct call_estimate *estimate, const struct epoch *epoch);

struct interval estimate_interval(const struct call_estimate *estimate);

/* student_quantile - 97.5 % of Student's law, by degrees of freedom. */
double student_quantile(double freedom);

/*
 * spread_factor - how far above and below a sum the interval reaches, as a factor. @variance:
 * relative
 */
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
uint64_t estimate_window(const struct call_estimate *estimate, uint64_t length, unsigned samples,
			 unsigned few, uint64_t shortest);

/* --- What share of the program's time a function has, by a random sample of that time --------- */

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

/* --- duration.c: how long calls took ---------------------------------------------------------- */

/*
 * A call is timed if its exit is seen; the other calls of an epoch are taken to last as long as the
 * timed ones on average. The unit of time is the caller's.
 */

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
	struct call_estimate calls;
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

/* --- pace.c: how long the next epoch is, as short as a budget allows -------------------------- */

struct pace {
	double budget;	   /* share of the program's time that may be spent */
	uint64_t shortest; /* epochs, in ticks */
	uint64_t longest;
	uint64_t length; /* now, on average */
	uint64_t last;	 /* the last one, with jitter */
	double cost;	 /* of an epoch, moving average */
	double busy;	 /* CPU time per time, moving average */
	double spent;	 /* ticks, in all */
	double used;	 /* by the program */
	uint64_t random;
	double opening; /* ticks of CPU time, at first, whose budget may be spent early */
	double early;	/* ticks spent early */
	double afford;	/* ticks that calls may cost in the next epoch, beside its other costs */
};

/*
 * pace_open - the first epoch of a program that may end soon. Epochs of the opening are a quarter
 * of the time that has passed: so a program of any length has seen some, and the last one is a
 * small part of it.
 *
 * pace_next - length of the next epoch, jittered from half to one and a half, so that it meets no
 * beat of the program's.
 * @spent: ticks that the last one cost
 * @toggling: of them, in turning probes on and off, for which a part of the budget is meant
 * @used:  ticks of CPU time that the process used in it
 */
void pace_open(struct pace *pace, double ticks);
uint64_t pace_next(struct pace *pace, uint64_t spent, uint64_t toggling, uint64_t used);

/* --- What a profile says of itself; it goes from a process to the command as such ------------- */

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
