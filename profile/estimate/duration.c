/* SPDX-License-Identifier: MIT */
#include "profile/estimate/estimate.h"

#include <math.h>
#include <stddef.h>

#define ENOUGH	10   /* epochs with timed calls that an interval needs */
#define BLURRED 0.25 /* share of time; beyond, the interval is not believed */
#define LEFT	0.1  /* share of timed calls that may be lost: they may be unlike the others */

void duration_add(struct duration *duration, const struct timed *epoch)
{
	double calls = fmax(epoch->calls, epoch->timed);

	if (!(epoch->timed > 0))
		return;
	duration->epochs++;
	duration->timed += epoch->timed;
	duration->calls += calls;
	duration->time += calls * epoch->time / epoch->timed;
	duration->wall += calls * epoch->wall / epoch->timed;
	duration->blur += calls * epoch->blur;
	spread_add(&duration->spread, epoch->time / epoch->timed, calls * calls,
		   duration->epochs <= 1, 0);
}

void measured_join(struct measured *sum, const struct measured *other)
{
	const struct call_estimate *calls = &other->calls;
	double largest = fmax(sum->calls.largest, calls->largest),
	       sudden_rate = sum->calls.sudden_rate;

	if (calls->pending > 0)
		sudden_rate =
			(sudden_rate * sum->calls.pending + calls->sudden_rate * calls->pending) /
			(sum->calls.pending + calls->pending);
	/* The last epoch's rate and mean have no meaning in a sum. */
	for (int i = 0; i < MEASURED_NUMBERS; i++)
		((double *)sum)[i] += ((const double *)other)[i];
	sum->calls.largest = largest;
	sum->calls.sudden_rate = sudden_rate;
}

static const char *problem_of(const struct duration *duration, const struct interval *calls)
{
	if (!(duration->timed > 0))
		return duration->torn > 0 ? "no exit was seen" : "no call was timed";
	if (duration->cut > LEFT * duration->timed)
		return "calls went on for too long to be waited for";
	if (duration->torn > LEFT * duration->timed)
		return "many calls were left without an exit";
	if (duration->blur > BLURRED * duration->time)
		return "calls are too short to be timed";
	/* All calls were timed. */
	if (calls->low == calls->high && duration->timed > calls->value - 0.5)
		return NULL;
	if (calls->problem)
		return calls->problem;
	return duration->epochs < ENOUGH ? "few epochs with timed calls" : NULL;
}

/* Combine the factors of two independent intervals. */
static double combine_factors(double one, double other)
{
	return exp(hypot(log(one), log(other)));
}

struct interval duration_interval(const struct duration *duration, const struct interval *calls,
				  double *wall)
{
	struct interval time = { .problem = problem_of(duration, calls) };
	double scale, few, missed, factor = 1, blur, raw;

	*wall = 0;
	if (!(duration->timed > 0) || !(calls->value > 0))
		return time;
	scale = calls->value / duration->calls;
	time.value = fmax(0, duration->time * scale);
	*wall = fmax(time.value, duration->wall * scale);
	blur = duration->blur * scale;
	/* Variance is relative to the measured time, before the cost of probes was taken off. */
	raw = time.value + blur;
	missed = fmax(0, 1 - duration->timed / calls->value);
	few = duration->epochs > 1 ? duration->epochs / (duration->epochs - 1) : 1;
	if (raw > 0)
		factor = spread_factor(&duration->spread, duration->spread.squares * few * missed *
								  scale / raw * scale / raw);
	time.high = raw * combine_factors(calls->high / calls->value, factor);
	if (calls->low > 0)
		time.low = fmax(0, raw / combine_factors(calls->value / calls->low, factor) -
					   2 * blur);
	return time;
}
