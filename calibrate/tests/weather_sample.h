/* SPDX-License-Identifier: MIT */
/*
 * Quick runs, simulated: the schedule and the estimate of a minute on two CPUs, on machines whose
 * rates are known. How much a slice counts is as the default run on AMD counted it; how tears
 * cluster is as the committed runs have it.
 */
#ifndef CALIBRATE_TESTS_WEATHER_SAMPLE_H
#define CALIBRATE_TESTS_WEATHER_SAMPLE_H

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>

#include "calibrate/session/schedule.h"
#include "calibrate/tests/sums_sample.h"

#define TSC    2.6e9 /* ticks a second */
#define SLICES 200
#define EACH   (55.0 / SLICES)
#define EVEN   0.4		 /* standard deviation of what slices count, in shares of it */
#define RESTS  32		 /* times as many tears of hot sites as of sites at rest */
#define ALONE  (1 - 6.0 / 9 / 3) /* one in three is provoked, if by one of the six that count here \
				  */
#define LINES 0.3		 /* as many tears across a line as across a page */

/* Rates as time goes: storms of some seconds, and slices that differ besides. */
struct weather {
	const char *name;
	double rate;   /* of the time: tears of an exposed toggle across a page, without a wait */
	double storm;  /* seconds, mean */
	double share;  /* of the time that is storms, in which all tears are */
	double site;   /* variance between slices of one time, in squares of the rate */
	unsigned fade; /* how tears fade with the wait: of fades[] */
	bool apart;    /* storms are the times at which the CPUs are far apart */
	double near;   /* what is left of a storm's rate between storms, */
};

static const struct weather weathers[] = {
	{ "as in the default run on AMD", 4.5e-6, 3, 0.2, 0.45, 0, false, 0 },
	{ "as in the default run on Intel", 3e-6, 1, 1, 4.4, 1, false, 0 },
	{ "as in the hour of the twenty quick runs", 2.7e-5, 3, 0.2, 1, 0, false, 0 },
	{ "in storms of 10 s", 1e-4, 10, 0.1, 1, 0, false, 0 },
	{ "as in the runs of three minutes on AMD", 2.1e-5, 3, 0.2, 1, 2, false, 0 },
	{ "far a sixth of the time, not known", 4.5e-6, 1.8, 0.17, 0.45, 0, false, 1.0 / 24 },
	{ "far a sixth of the time", 4.5e-6, 1.8, 0.17, 0.45, 0, true, 1.0 / 24 },
	{ "far a fifth of the time, many tears, not known", 2.7e-5, 3, 0.2, 1, 0, false, 0 },
	{ "far a fifth of the time, many tears", 2.7e-5, 3, 0.2, 1, 0, true, 0 },
	{ "far rarely, not known", 1e-5, 1.8, 0.03, 0.45, 0, false, 1.0 / 24 },
	{ "far rarely", 1e-5, 1.8, 0.03, 0.45, 0, true, 1.0 / 24 },
	{ "far mostly, not known", 1e-5, 20, 0.8, 0.45, 0, false, 1.0 / 10 },
	{ "far mostly", 1e-5, 20, 0.8, 0.45, 0, true, 1.0 / 10 },
};

#define WEATHERS (sizeof(weathers) / sizeof(weathers[0]))
#define ORDINARY 2 /* of these, first in order, with the rates of committed runs; */
#define HOUR	 2 /* and these two, with as many tears as that machine has ever had */
#define MINUTES	 4

/* What is left of the rate, by rung: 0, 100, 200, ... ticks. */
static const double fades[][RUNGS_MAX] = {
	{ 1, 1, 1, 0.4, 0.3, 0.15, 0.04, 0.02, 0.01, 0.005 },
	{ 1, 1, 1, 1, 1, 0.6, 0.5, 0.3, 0.1, 0.05 },
	{ 1, 1, 1, 1, 0.6, 0.17, 0.06, 0.04, 0.02, 0.01 },
};

/* Exposed toggles a second, by rung and seat. */
static const double exposed[][3] = {
	{ 111000, 59000, 24000 }, { 100000, 59000, 21000 }, { 114000, 56000, 24000 },
	{ 113000, 57000, 22000 }, { 112000, 53000, 21000 }, { 101000, 50000, 20000 },
	{ 167000, 83000, 35000 }, { 99000, 51000, 20000 },  { 49000, 31000, 11000 },
	{ 23000, 13000, 5400 },
};

/* And of sites at rest, by seat. */
static const double exposed_at_rest[] = { 105000, 52000, 19000 };

struct simulation {
	const struct weather *weather;
	struct plan plan;
	struct schedule schedule;
	struct sums sums;
	struct estimate e;
	gsl_rng *rng;
	bool storm;
	double ends; /* of the storm, or of the calm; seconds */
	double storms, time;
};

static inline double phase(struct simulation *s)
{
	const struct weather *w = s->weather;
	double calm = w->storm * (1 - w->share) / w->share;

	return s->time + gsl_ran_exponential(s->rng, s->storm ? w->storm : calm);
}

/* As many times the mean rate, in a storm or between two. */
static inline double times_mean(const struct weather *w, bool storm)
{
	double mean = w->share + (1 - w->share) * w->near;

	return (storm ? 1 : w->near) / mean;
}

/* The same now. */
static inline double weather_now(struct simulation *s)
{
	while (s->weather->share < 1 && s->ends < s->time) {
		s->storm = !s->storm;
		s->ends = phase(s);
	}
	s->storms += times_mean(s->weather, s->storm);
	return times_mean(s->weather, s->storm);
}

static inline unsigned index_of(const struct waits *rung)
{
	unsigned index = 0;

	for (uint64_t wait = 100; wait <= rung->first; wait *= 2)
		index++;
	return index;
}

static inline double rate_of(const struct weather *w, const struct waits *rung, int claim)
{
	return w->rate * (claim == CLAIM_LINE ? LINES : 1) * fades[w->fade][index_of(rung)];
}

static inline struct count run_slice(struct simulation *s, const struct sum *kind)
{
	const struct weather *w = s->weather;
	double n, rate = rate_of(w, &kind->rung, claim_of(kind->crossing)) * weather_now(s);
	struct count c;

	n = sum_is_rested(kind) ? exposed_at_rest[kind->executors / 2]
				: exposed[index_of(&kind->rung)][kind->executors / 2];
	n *= s->plan.slice * gsl_ran_gamma(s->rng, 1 / (EVEN * EVEN), EVEN * EVEN);
	if (sum_is_rested(kind))
		rate /= RESTS;
	if (w->site > 0)
		rate *= gsl_ran_gamma(s->rng, 1 / w->site, w->site);
	c = sample_count(1, (uint64_t)n + 1, 0);
	c.ticks = n * (2400 + 2 * (double)kind->rung.first);
	c.tears = gsl_ran_poisson(s->rng, rate * n);
	c.tears = c.tears < c.toggles ? c.tears : c.toggles;
	c.unevenness = (double)c.tears * (double)c.tears / (double)c.toggles;
	c.worst_tears = c.tears;
	return c;
}

/* As many slices of 0.275 s. */
static inline void simulate_slices(struct simulation *s, const struct weather *w, uint64_t seed,
				   unsigned slices)
{
	*s = (struct simulation){ .weather = w, .plan = sample_plan(2) };
	s->plan.seat[s->plan.seats++] = (struct seat){ PLACEMENT_OVERSUBSCRIBED, 4 };
	s->rng = gsl_rng_alloc(gsl_rng_taus2);
	gsl_rng_set(s->rng, seed);
	s->storm = gsl_rng_uniform(s->rng) < w->share;
	s->ends = phase(s);
	sample_membarrier(&s->sums, &s->plan, 51000);
	estimate_make(&s->e, &s->sums, 1, &s->plan);
	assert_int_equal(schedule_make(&s->schedule, &s->plan, &s->e.ladder, seed), 0);
	for (unsigned i = 0; i < slices; i++, s->time += EACH) {
		struct sum sum;

		estimate_so_far(&s->e, &s->sums, 1, &s->plan);
		sum = *schedule_next(&s->schedule, &s->e);
		if (s->schedule.focused || !sum.rung.stretch || gsl_rng_uniform(s->rng) < ALONE)
			sum.kind = sum_is_rested(&sum) ? SUM_RESTED_ALONE : SUM_ALONE;
		sum.count = run_slice(s, &sum);
		if (w->apart) {
			enum distance d = s->storm ? DISTANCE_FAR : DISTANCE_NEAR;

			sum.at[d] = sum.count;
			schedule_saw(&s->schedule, sum.placement, d);
			for (unsigned k = 0; k < s->plan.seats; k++)
				schedule_saw(&s->schedule, s->plan.seat[k].placement, d);
		}
		assert_int_equal(sums_add(&s->sums, &sum), 0);
	}
	estimate_make(&s->e, &s->sums, 1, &s->plan);
}

static inline void simulate(struct simulation *s, const struct weather *w, uint64_t seed)
{
	simulate_slices(s, w, seed, SLICES);
}

static inline void end_simulation(struct simulation *s)
{
	schedule_free(&s->schedule);
	sums_free(&s->sums);
	gsl_rng_free(s->rng);
}

#endif
