/* SPDX-License-Identifier: MIT */
/*
 * How long the next epoch is: as short as a budget allows.
 */
#ifndef PROFILE_STATISTICS_PACE_H
#define PROFILE_STATISTICS_PACE_H

#include <stdint.h>

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

#endif
