/* SPDX-License-Identifier: MIT */
/*
 * Peaks over threshold: the wait that gaps exceed with a small probability per store,
 * out of the largest gaps of one run, or the reason why nothing can be said.
 *
 * The fit proposes, the campaign decides. A cause that did not act once in the run is in
 * no sample: no test can refuse for it, and an extrapolation knows nothing of it. What the
 * run supports whatever the causes are the rows (for the largest gap seen: 3 / stores)
 * and supported_p; nothing smaller may be published on its account. Gaps are
 * lower bounds of how far apart two fetches were, and so is the level.
 */
#ifndef CALIBRATE_TAIL_FIT_H
#define CALIBRATE_TAIL_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define TAIL_TARGET_P	 1e-9
#define TAIL_EXCEEDANCES 50	/* fewer do not tell one shape from another: refused */
#define TAIL_KEPT	 2000	/* more of the largest are not looked at */
#define TAIL_XI_MAX	 0.5	/* its upper limit above: variance infinite, levels worthless */
#define TAIL_XI_MIN	 (-0.5) /* below, maximum likelihood gives no confidence limits */
#define TAIL_DECADES	 4	/* that the target may be rarer than 1 / stores */
#define TAIL_P		 0.01	/* independence and stationarity are given up below */
#define TAIL_FIT_P	 0.1	/* a threshold is too low below */
#define TAIL_THRESHOLDS	 8
#define TAIL_ROWS	 10
#define TAIL_REASON_MAX	 160

/* The largest gaps of a run, and the run. */
struct tail_sample {
	const double *gap;  /* ticks, in any order; all there were, or the largest of them */
	const double *time; /* of each, ticks since the start */
	size_t count;
	double duration; /* ticks */
	uint64_t stores; /* all of the run */
	/*
	 * Gaps are multiples of so many ticks, 0 if they are not. Ties would pass for a
	 * bad fit: each is raised by a random part of a granule, upwards because it is a
	 * lower bound. tail_granule() finds it.
	 */
	double granule;
	double target_p; /* per store */
	double confidence;
	uint64_t seed;
};

struct tail_threshold {
	double threshold; /* ticks */
	size_t exceedances;
	double fit_p; /* NAN: not needed, a lower one was taken */
	double xi;
	double sigma;
};

/* Of all gaps above a wait. Holds although the wait is one of the gaps (order statistics). */
struct tail_row {
	double wait; /* ticks */
	uint64_t above;
	double upper_p; /* per store, Clopper-Pearson */
};

/* Numbers that were not come to are NAN. */
struct tail_fit {
	uint64_t stores;
	double target_p, confidence;
	struct tail_threshold chosen;		      /* the best one if none will do */
	struct tail_threshold tried[TAIL_THRESHOLDS]; /* lowest first */
	unsigned thresholds;
	double independence_p, stationarity_p;
	bool accepted;
	char reason[TAIL_REASON_MAX]; /* what was found, also if accepted */
	double level;		      /* ticks; only if accepted */
	double level_upper;	      /* its upper confidence limit */
	double supported_p;	      /* bound of the rate above level_upper from counting alone */
	double largest;		      /* gap seen, ticks */
	struct tail_row row[TAIL_ROWS]; /* longest wait first */
	unsigned rows;
};

/* Names for the journal. */
struct tail_origin {
	const char *source; /* "gaps" or "simulation" */
	const char *crossing;
	const char *kind;
	const char *provokers;
};

/*
 * tail_fit - fit, or refuse.
 *
 * 1. Independence and stationarity of the kept gaps, and of those over the
 *    threshold (calibrate/serial.h).
 * 2. The threshold: the lowest of up to eight over which the excesses fit
 *    (gpd_fit_p()) and whose shape agrees with that over all higher ones.
 * 3. The shape is within the limits above, the target not too far from the data.
 * 4. The level, and its limit from the profile likelihood: a tenth of the error is
 *    spent on the rate over the threshold, half on the shape, the rest on
 *    the threshold's having been chosen.
 *
 * 0, also for a refusal; -EINVAL for what is no sample, -ENOMEM. The same
 * sample and seed give the same answer.
 */
int tail_fit(const struct tail_sample *sample, struct tail_fit *fit);

/* tail_granule - greatest common divisor of the differences, in whole ticks; 1 if none. */
double tail_granule(const double *gap, size_t count);

/* tail_fit_to_json - body of the journal's "tail" line. NULL: out of memory. */
json_t *tail_fit_to_json(const struct tail_fit *fit, const struct tail_origin *origin);

#endif
