/* SPDX-License-Identifier: MIT */
#include "probes/profile/estimate/pace.h"

#include <math.h>

#include "stress/base/random.h"

#define MEMORY	0.25 /* weight of the last epoch in what one costs of late */
#define AIM	0.9  /* of the budget */
#define CHANGES 0.06 /* of the budget; with those of the start they stay below a tenth */
#define GROW	0.25 /* of the time passed: epochs of the opening, */
#define FIRST	10   /* and of the shortest later one: the first of them */
#define FOLDS	7    /* how often the opening's time multiplies by e */
#define THRIFT	4    /* times the length of an epoch, at most, while more was spent than allowed */

static double clamp(double x, double low, double high)
{
	return fmax(low, fmin(high, x));
}

/* A dear start is saved again, by longer epochs. */
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

/* As much of what is left goes to each epoch of the opening that is to come. */
static double early_length(struct pace *pace, double cost)
{
	double left = pace->opening * pace->budget - pace->early;
	double grow = cost * FOLDS / left, length;

	pace->afford = 0;
	if (pace->used >= pace->opening || left <= 0)
		return (double)pace->longest;
	pace->afford = left * GROW / FOLDS;
	length = fmax(pace->used * fmax(grow, GROW), (double)pace->shortest / FIRST);
	/* What sleeps has as much time left as it takes to use it. */
	return pace->busy > 0 && pace->busy < 1 ? length / pace->busy : length;
}

void pace_open(struct pace *pace, double ticks)
{
	pace->opening = ticks;
	pace->length = (uint64_t)early_length(pace, 0);
}

/*
 * An epoch costs about the same at any length; but the first one, to which all functions
 * are new.
 */
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
