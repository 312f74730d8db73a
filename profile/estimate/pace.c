/* SPDX-License-Identifier: MIT */
#include "profile/estimate/estimate.h"

#include <math.h>

#include "base/random.h"

#define MEMORY	0.25 /* weight of the last epoch in the moving averages */
#define AIM	0.9  /* of the budget */
#define CHANGES 0.06 /* of the budget; with those of the start they stay below a tenth */
#define GROW	0.25 /* of the time that has passed: length of an epoch in the opening */
#define FIRST	10   /* the first epoch is shorter than later ones, by that factor */
#define FOLDS	7    /* how often the opening's time multiplies by e */
#define THRIFT	4    /* times the length of an epoch, at most, while more was spent than allowed */

static double clamp(double x, double low, double high)
{
	return fmax(low, fmin(high, x));
}

/* A factor that lengthens epochs until an expensive start is paid off. */
static double stretch_for_debt(const struct pace *pace)
{
	double share = pace->used > 0 ? pace->spent / pace->used : 0;

	share /= pace->budget;
	return clamp(share * share, 1, THRIFT);
}

static double update_average(double before, double now)
{
	return before > 0 ? before + MEMORY * (now - before) : now;
}

/* What is left of the budget is spread evenly over the coming epochs of the opening. */
static double early_length(struct pace *pace, double cost)
{
	double left = pace->opening * pace->budget - pace->early;
	double grow = cost * FOLDS / left, length;

	pace->afford = 0;
	if (pace->used >= pace->opening || left <= 0)
		return (double)pace->longest;
	pace->afford = left * GROW / FOLDS;
	length = fmax(pace->used * fmax(grow, GROW), (double)pace->shortest / FIRST);
	/* A program that sleeps takes longer to use the CPU time of an epoch. */
	return pace->busy > 0 && pace->busy < 1 ? length / pace->busy : length;
}

void pace_open(struct pace *pace, double ticks)
{
	pace->opening = ticks;
	pace->length = (uint64_t)early_length(pace, 0);
}

/* An epoch costs about the same at any length, but for the first: all functions are new to it. */
uint64_t pace_next(struct pace *pace, uint64_t spent, uint64_t toggling, uint64_t used)
{
	double length = (double)pace->shortest, allowed;
	double last = (double)pace->last, early;
	double cost = fmax((double)spent, (double)toggling / CHANGES);

	if (pace->last) {
		pace->cost = update_average(pace->cost, cost);
		pace->busy = update_average(pace->busy, (double)used / last);
	}
	pace->spent += cost;
	pace->used += (double)used;
	pace->early += (double)spent;
	allowed = AIM * pace->budget * pace->busy;
	if (allowed > 0)
		length = pace->cost / allowed * stretch_for_debt(pace);
	length = clamp(length, (double)pace->shortest, (double)pace->longest);
	early = early_length(pace, (double)spent);
	pace->length = (uint64_t)(early < length ? early : length);
	pace->last = random_about(&pace->random, pace->length);
	return pace->last;
}
