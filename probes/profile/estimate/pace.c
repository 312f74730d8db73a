/* SPDX-License-Identifier: MIT */
#include "probes/profile/estimate/pace.h"

#include "stress/base/random.h"

#define MEMORY	0.25 /* weight of the last epoch in what one costs of late */
#define AIM	0.9  /* of the budget */
#define CHANGES 0.06 /* of the budget; with those of the start they stay below a tenth */
#define THRIFT	4    /* times the length of an epoch, at most, while more was spent than allowed */

static double limit(double x, double low, double high)
{
	if (x < low)
		return low;
	return x > high ? high : x;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* A dear start is saved again, by longer epochs. */
static double debt(const struct pace *pace)
{
	double share = pace->used > 0 ? pace->spent / pace->used : 0;

	share /= pace->budget;
	return limit(share * share, 1, THRIFT);
}

static double remember(double before, double now)
{
	return before > 0 ? before + MEMORY * (now - before) : now;
}

/*
 * An epoch costs about the same at any length; but the first one, to which all functions
 * are new.
 */
uint64_t pace_next(struct pace *pace, uint64_t spent, uint64_t toggling, uint64_t used)
{
	double length = (double)pace->shortest, allowed;
	double last = (double)pace->last;
	double cost = larger((double)spent, (double)toggling / CHANGES);

	if (pace->last) {
		pace->cost = remember(pace->cost, cost);
		pace->busy = remember(pace->busy, (double)used / last);
	}
	pace->spent += cost;
	pace->used += (double)used;
	allowed = AIM * pace->budget * pace->busy;
	if (allowed > 0)
		length = pace->cost / allowed * debt(pace);
	length = limit(length, (double)pace->shortest, (double)pace->longest);
	pace->length = (uint64_t)length;
	pace->last = random_about(&pace->random, pace->length);
	return pace->last;
}
