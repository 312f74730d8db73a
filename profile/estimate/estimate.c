/* SPDX-License-Identifier: MIT */
/*
 * Calls of a function, estimated from the epochs of its probe, and their interval: see estimate.h.
 */
#include "profile/estimate/estimate.h"

#include <math.h>
#include <stddef.h>

#define FORGET	0.125 /* weight of an epoch in the rate that chooses windows */
#define ENOUGH	10    /* epochs with calls, and degrees of freedom, that a normal law needs */
#define LARGEST 0.25  /* share of one epoch */
#define MATTERS 0.02  /* share of calls that were not counted, or of time */
#define ONE_CALL                                                                                   \
	0.125	       /* variance by the ends of a window, which lie anywhere between two calls   \
			*/
#define BLUR	  0.25 /* relative error of the price of counting */
#define FASTEST	  1    /* ticks from a call to the next one, at least */
#define BLUR_MOST 0.25 /* of calls; beyond, the interval is not believed */
#define SLOWEST	  0.97 /* share that counting is believed to take at most */
#define FASTER	  30   /* times as fast as before, at most, after a sudden end */
#define LONE	  12   /* times as many or as few calls as a lone window says */
#define FULL_MANY 0.1  /* share of full epochs from which bursts are looked for */

static double rate_of(const struct epoch *epoch)
{
	double calls = (double)epoch->calls;

	return (epoch->full && calls > 0 ? calls - 1 : calls) / (double)epoch->watched;
}

void spread_add(struct spread *spread, double value, double weight, bool first, double also)
{
	double step = value - spread->last;
	double part = (weight + spread->weight) / 2 * step * step / 2 + also;

	if (!first) {
		spread->squares += part;
		spread->quads += part * part;
	}
	spread->last = value;
	spread->weight = weight;
}

static void add_gaps(struct call_estimate *estimate, const struct epoch *epoch)
{
	if (!epoch->full || epoch->calls < 2)
		return;
	estimate->full++;
	estimate->first += (double)epoch->first;
	estimate->between += (double)(epoch->watched - epoch->first) / (double)(epoch->calls - 1);
}

/* The rate of the last half of the calls: the function may have been quiet before. */
static double sudden_rate_of(const struct epoch *epoch)
{
	uint64_t from = epoch->middle ? epoch->middle : epoch->first;
	uint64_t calls = epoch->middle ? epoch->calls - epoch->calls / 2 : epoch->calls - 1;

	if (epoch->full && epoch->calls > 1 && epoch->watched > from)
		return (double)calls / (double)(epoch->watched - from);
	return rate_of(epoch);
}

/*
 * Where the clock stood still, the time after the end is not known: as many calls may be hidden
 * there as were seen.
 */
static void add_sudden(struct call_estimate *estimate, const struct epoch *epoch)
{
	estimate->calls += (double)epoch->calls;
	estimate->pending += (double)(epoch->length - epoch->watched);
	estimate->sudden_rate = sudden_rate_of(epoch);
	if (epoch->length == epoch->watched)
		estimate->hidden += (double)epoch->calls;
}

/* A wrong price of counting gives a wrong distance between calls without counting. */
static void add_blur(struct call_estimate *estimate, const struct epoch *epoch, double unseen)
{
	double apart = (double)epoch->watched / (double)epoch->calls;
	double off = BLUR * apart * epoch->slowed / (1 - epoch->slowed);

	estimate->blurred += unseen * fmax(0, apart / fmax(apart - off, FASTEST) - 1);
	estimate->faded += unseen * (1 - apart / (apart + off));
}

void estimate_add(struct call_estimate *estimate, const struct epoch *epoch)
{
	double length = (double)epoch->length, rate, all, unseen, hidden, weight, end = 0;

	if (!epoch->length)
		return;
	/* An epoch in which nothing was watched is taken to be as the others. */
	rate = epoch->watched ? rate_of(epoch) : estimate->expected;
	estimate->counted += (double)epoch->calls;
	estimate->time += length;
	estimate->used += (double)epoch->used;
	/* At first the mean of all epochs, then a moving average. */
	estimate->expected += fmax(FORGET, 1 / ++estimate->known) * (rate - estimate->expected);
	if (epoch->sudden) {
		add_sudden(estimate, epoch);
		return;
	}
	if (epoch->watched >= epoch->length && !epoch->full && !(estimate->pending > 0)) {
		estimate->calls += (double)epoch->calls;
		return;
	}
	length += estimate->pending;
	/* The sudden calls stopped at any time until then: half of them are likely. */
	hidden = fmax(0, estimate->sudden_rate - rate) * estimate->pending;
	estimate->lifted += hidden / 2;
	estimate->hidden += hidden * (FASTER - 0.5);
	estimate->pending = 0;
	all = rate * length;
	unseen = all - (double)epoch->calls;
	estimate->calls += all;
	if (epoch->slowed > 0 && epoch->slowed < 1 && epoch->calls && unseen > 0)
		add_blur(estimate, epoch, unseen);
	estimate->unwatched += length - (double)epoch->watched;
	estimate->sampled++;
	estimate->active += epoch->calls > 0;
	estimate->largest = fmax(estimate->largest, unseen);
	weight = length * (length - (double)epoch->watched);
	/* Windows with equal numbers of calls do not tell how near they came to one more. */
	if (epoch->watched && rate > 0)
		end = weight / (double)epoch->watched / (double)epoch->watched * ONE_CALL;
	spread_add(&estimate->spread, rate, weight, estimate->sampled <= 1, end);
	estimate->lone =
		estimate->spread.squares > 0 ? 0 : fmax(0, estimate->calls - estimate->counted);
	add_gaps(estimate, epoch);
}

/* The series of Cornish and Fisher: for 2 degrees of freedom 3 % too low, for more better. */
double student_quantile(double freedom)
{
	const double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;

	if (freedom < 2)
		return 12.71;
	return z + (z3 + z) / (4 * freedom) +
	       (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
}

/* Degrees of freedom. Neighbouring differences share an epoch: three are worth two. */
static double spread_freedom(const struct spread *spread)
{
	return spread->quads > 0 ? spread->squares / spread->quads * spread->squares * 2 / 3 : 0;
}

/* As if the logarithm were normal: a sum of few large parts has a long upper tail. */
double spread_factor(const struct spread *spread, double variance)
{
	return exp(student_quantile(spread_freedom(spread)) * sqrt(log1p(variance)));
}

/* Unless calls come in bursts, the first call comes after the mean time between two calls. */
static bool in_bursts(const struct call_estimate *estimate)
{
	if (estimate->full < 2 || estimate->full < FULL_MANY * estimate->active)
		return false;
	return estimate->first > estimate->between * (1 + 4 * sqrt(1.2 / estimate->full));
}

static const char *problem_of(const struct call_estimate *estimate)
{
	double unseen = estimate->calls - estimate->counted;

	if (estimate->blurred > BLUR_MOST * estimate->calls)
		return "called so often that counting slows it";
	if (in_bursts(estimate))
		return "calls come in bursts";
	if (estimate->pending > 0)
		return "calls came suddenly, and its last ones were not counted";
	if (estimate->hidden + estimate->lifted > MATTERS * estimate->calls)
		return "calls came suddenly, and stopped unseen";
	/* Windows without calls say little of what came between them. */
	if (estimate->active < ENOUGH && !(estimate->full > 0) &&
	    estimate->unwatched < MATTERS * estimate->time &&
	    fabs(unseen) < MATTERS * estimate->counted)
		return NULL;
	if (estimate->active < ENOUGH)
		return "few epochs with calls";
	if (unseen > MATTERS * estimate->calls && estimate->largest > LARGEST * unseen)
		return "calls come in bursts";
	if (estimate->spread.squares > 0 && spread_freedom(&estimate->spread) < ENOUGH)
		return "calls come in bursts";
	return NULL;
}

struct interval estimate_interval(const struct call_estimate *estimate)
{
	struct interval interval = { .value = estimate->calls,
				     .low = estimate->calls,
				     .high = estimate->calls };
	double few, spread, factor, open;

	if (!(estimate->sampled > 0) && !(estimate->pending > 0) && !(estimate->hidden > 0))
		return interval;
	interval.value = fmax(estimate->calls, estimate->counted);
	interval.problem = problem_of(estimate);
	few = estimate->sampled > 1 ? estimate->sampled / (estimate->sampled - 1) : 1;
	spread = interval.value > 0 ? sqrt(estimate->spread.squares * few) / interval.value : 0;
	factor = spread_factor(&estimate->spread, spread * spread);
	/* Calls are whole numbers, and a call at the end of an epoch may count in the next. */
	interval.low = fmax(estimate->counted, interval.value / factor - 1 - estimate->faded -
						       estimate->lone * (1 - 1.0 / LONE));
	interval.value += estimate->lifted;
	/* No epoch after the sudden end tells more: the calls went on like that, or faster. */
	open = estimate->sudden_rate * estimate->pending;
	interval.value += open;
	interval.high = interval.value * factor + 1 + estimate->blurred + estimate->hidden +
			open * (FASTER - 1) + estimate->lone * (LONE - 1);
	/* There is no time for more calls. */
	if (estimate->used > 0)
		interval.high = fmax(interval.value, fmin(interval.high, estimate->used / FASTEST));
	return interval;
}

double estimate_slowed(double calls, double price, double spent, double ticks)
{
	return ticks > 0 ? fmin(SLOWEST, (calls * price + spent) / ticks) : 0;
}

uint64_t estimate_window(const struct call_estimate *estimate, uint64_t length, unsigned samples,
			 unsigned few, uint64_t shortest)
{
	double window;

	if (estimate->expected * (double)length <= few)
		return WINDOW_WHOLE;
	window = samples / estimate->expected;
	return window < (double)shortest ? shortest : (uint64_t)window;
}

struct interval share_of(const double part[SHARE_GROUPS], const double all[SHARE_GROUPS],
			 double samples)
{
	double parts = 0, sum = 0, squares = 0, error;
	struct interval share = { 0 };
	unsigned groups = 0;

	for (unsigned i = 0; i < SHARE_GROUPS; i++) {
		parts += part[i];
		sum += all[i];
		groups += all[i] > 0;
	}
	if (groups < 2)
		return (struct interval){ .value = sum > 0 ? parts / sum : 0, .high = 1 };
	share.value = parts / sum;
	for (unsigned i = 0; i < SHARE_GROUPS; i++)
		squares += pow(part[i] - share.value * all[i], 2);
	error = student_quantile(groups - 1) * sqrt(squares * groups / (groups - 1)) / sum;
	share.low = fmax(0, share.value - error);
	share.high = fmin(1, fmax(share.value + error, 3 / fmax(samples, 3)));
	return share;
}
