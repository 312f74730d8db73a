/* SPDX-License-Identifier: MIT */
#include "calibrate/tail_fit.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "calibrate/bound.h"
#include "calibrate/gpd.h"
#include "calibrate/serial.h"

#define DRAWS	   199
#define STABLE_Z   3.0 /* deviates by which two thresholds' shapes may differ */
#define RATE_SHARE 0.1 /* of the error, for the rate over the threshold */
/*
 * Of the error, for the profile likelihood. The rest is spent on what the limit does not
 * know of: it holds for many exceedances and for a threshold that was not
 * chosen by the data. With all of it, 93 to 94 % of simulated limits held for 95 %.
 */
#define SHAPE_SHARE 0.5

_Static_assert(TAIL_EXCEEDANCES >= SERIAL_MIN, "the tests of independence need so many");

struct peak {
	double size, time;
};

struct work {
	const struct tail_sample *sample;
	gsl_rng *rng;
	struct peak *peak; /* the largest first */
	size_t peaks;
	double floor;	/* every gap above it is among the peaks */
	double *excess; /* over the threshold, sorted upwards */
	double *room;
	double *time_room;
};

static void unknown(struct tail_threshold *t)
{
	*t = (struct tail_threshold){ .threshold = NAN, .fit_p = NAN, .xi = NAN, .sigma = NAN };
}

static bool is_sample(const struct tail_sample *s)
{
	if (s->count == 0 || s->stores == 0 || !(s->duration > 0) || !isfinite(s->duration))
		return false;
	if (!(s->granule >= 0) || !(s->target_p > 0) || !(s->target_p < 1))
		return false;
	if (!(s->confidence > 0.5) || !(s->confidence < 1))
		return false;
	for (size_t i = 0; i < s->count; i++)
		if (!isfinite(s->gap[i]) || !(s->time[i] >= 0) || s->time[i] > s->duration)
			return false;
	return true;
}

static int by_size(const void *a, const void *b)
{
	const struct peak *left = a, *right = b;

	return (left->size < right->size) - (left->size > right->size);
}

static int by_time(const void *a, const void *b)
{
	const struct peak *left = a, *right = b;

	return (left->time > right->time) - (left->time < right->time);
}

/* --- What counting alone supports --------------------------------------------------- */

static uint64_t count_above(const struct tail_sample *s, double wait)
{
	uint64_t above = 0;

	for (size_t i = 0; i < s->count; i++)
		above += s->gap[i] + s->granule > wait;
	return above;
}

/* peak is sorted, and without jitter yet. */
static void fill_rows(const struct work *w, struct tail_fit *fit)
{
	static const size_t above[TAIL_ROWS] = { 0, 1, 2, 5, 10, 20, 50, 100, 200, 500 };
	const struct tail_sample *s = w->sample;

	for (unsigned i = 0; i < TAIL_ROWS && above[i] < s->count; i++) {
		struct tail_row *r = &fit->row[fit->rows];

		r->wait = w->peak[above[i]].size + s->granule;
		r->above = count_above(s, r->wait);
		r->upper_p = bound_upper(r->above, s->stores, s->confidence);
		/* Ties make rows of one. */
		fit->rows += i == 0 || r->wait < r[-1].wait;
	}
}

/* --- Peaks and thresholds ----------------------------------------------------------- */

/*
 * Where the sample holds only the largest gaps, the lowest granule may be there in
 * part: what is above it is complete.
 */
static void keep_peaks(struct work *w, struct tail_fit *fit)
{
	const struct tail_sample *s = w->sample;

	for (size_t i = 0; i < s->count; i++)
		w->peak[i] = (struct peak){ s->gap[i], s->time[i] };
	qsort(w->peak, s->count, sizeof(*w->peak), by_size);
	fit->largest = w->peak[0].size;
	fill_rows(w, fit);
	w->floor = w->peak[s->count - 1].size + s->granule;
	for (size_t i = 0; i < s->count; i++)
		w->peak[i].size += s->granule * gsl_rng_uniform(w->rng);
	qsort(w->peak, s->count, sizeof(*w->peak), by_size);
	while (w->peaks < s->count && w->peak[w->peaks].size > w->floor)
		w->peaks++;
	if (w->peaks > TAIL_KEPT) {
		w->peaks = TAIL_KEPT;
		w->floor = w->peak[TAIL_KEPT].size;
	}
}

static void excesses(struct work *w, const struct tail_threshold *t)
{
	for (size_t i = 0; i < t->exceedances; i++)
		w->excess[i] = w->peak[t->exceedances - 1 - i].size - t->threshold;
}

static double fit_excesses(struct work *w, struct tail_threshold *t)
{
	struct gpd g;
	double log_likelihood;

	excesses(w, t);
	log_likelihood = gpd_fit(w->excess, t->exceedances, w->excess[t->exceedances - 1], &g);
	t->xi = g.xi;
	t->sigma = g.sigma;
	return log_likelihood;
}

/* The threshold that so many are over; where it is itself one of several ties, fewer. */
static void set_threshold(struct work *w, struct tail_threshold *t, size_t count)
{
	unknown(t);
	t->threshold = count < w->peaks ? w->peak[count].size : w->floor;
	while (count > 0 && w->peak[count - 1].size <= t->threshold)
		count--;
	t->exceedances = count;
}

static void candidates(struct work *w, struct tail_fit *fit)
{
	static const double share[TAIL_THRESHOLDS] = { 1, .7, .5, .35, .25, .175, .125, .0875 };

	for (unsigned i = 0; i < TAIL_THRESHOLDS; i++) {
		struct tail_threshold t;

		set_threshold(w, &t, (size_t)((double)w->peaks * share[i]));
		/*
		 * Above a threshold that is exceeded less often than the target there is
		 * nothing to look for.
		 */
		if (t.exceedances < TAIL_EXCEEDANCES ||
		    (double)t.exceedances / (double)fit->stores <= fit->target_p)
			return;
		if (i > 0 && t.exceedances == fit->tried[fit->thresholds - 1].exceedances)
			continue;
		fit_excesses(w, &t);
		fit->tried[fit->thresholds++] = t;
	}
}

/* The higher one's excesses are among the lower one's: the variances subtract. */
static bool shapes_agree(const struct tail_threshold *low, const struct tail_threshold *high)
{
	double variance = pow(1 + low->xi, 2) *
			  (1 / (double)high->exceedances - 1 / (double)low->exceedances);

	return fabs(high->xi - low->xi) <= STABLE_Z * sqrt(variance);
}

static bool is_stable(const struct tail_fit *fit, unsigned at)
{
	for (unsigned i = at + 1; i < fit->thresholds; i++)
		if (!shapes_agree(&fit->tried[at], &fit->tried[i]))
			return false;
	return true;
}

/* Leaves the best-fitting one in chosen if none will do. */
static bool choose(struct work *w, struct tail_fit *fit)
{
	for (unsigned i = 0; i < fit->thresholds; i++) {
		struct tail_threshold *t = &fit->tried[i];
		const struct gpd g = { t->xi, t->sigma };

		excesses(w, t);
		t->fit_p = gpd_fit_p(&g, w->excess, t->exceedances, w->rng, DRAWS, w->room);
		if (!(t->fit_p <= fit->chosen.fit_p))
			fit->chosen = *t;
		if (t->fit_p < TAIL_FIT_P || !is_stable(fit, i))
			continue;
		fit->chosen = *t;
		return true;
	}
	return false;
}

/* --- Tests that must come first ------------------------------------------------------ */

static void serial_tests(struct work *w, size_t count, struct peak *room, double p[2])
{
	for (size_t i = 0; i < count; i++)
		room[i] = w->peak[i];
	qsort(room, count, sizeof(*room), by_time);
	for (size_t i = 0; i < count; i++) {
		w->room[i] = room[i].size;
		w->time_room[i] = room[i].time;
	}
	p[0] = serial_independence_p(w->room, w->time_room, count, w->sample->duration);
	p[1] = serial_stationarity_p(w->room, w->time_room, count, w->sample->duration);
}

/*
 * The kept gaps tell more than the few over a high threshold; these in turn may be
 * crowded while the rest hides it.
 */
static int test_order(struct work *w, struct tail_fit *fit)
{
	const size_t over = fit->chosen.exceedances;
	struct peak *room = calloc(w->peaks, sizeof(*room));
	double all[2], chosen[2];

	if (!room)
		return -ENOMEM;
	serial_tests(w, w->peaks, room, all);
	if (over && over < w->peaks) {
		serial_tests(w, over, room, chosen);
		for (unsigned i = 0; i < 2; i++)
			all[i] = isnan(chosen[i]) ? NAN : fmin(1, 2 * fmin(all[i], chosen[i]));
	}
	free(room);
	fit->independence_p = all[0];
	fit->stationarity_p = all[1];
	return isnan(all[0]) || isnan(all[1]) ? -ENOMEM : 0;
}

/* --- Verdict ------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int refuse(struct tail_fit *fit, const char *format,
							...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fit->reason, sizeof(fit->reason), format, args);
	va_end(args);
	return 0;
}

static double shape_upper(const struct tail_threshold *t, double confidence)
{
	double z = gsl_cdf_ugaussian_Pinv(confidence);

	return t->xi + z * (1 + t->xi) / sqrt((double)t->exceedances);
}

static int set_levels(struct work *w, struct tail_fit *fit)
{
	struct tail_threshold *t = &fit->chosen;
	const double log_likelihood = fit_excesses(w, t), error = 1 - fit->confidence;
	const struct gpd g = { t->xi, t->sigma };
	const double rate = (double)t->exceedances / (double)fit->stores;
	const double rate_upper = bound_upper(t->exceedances, fit->stores, 1 - RATE_SHARE * error);
	double upper = gpd_level_upper(&g, log_likelihood, w->excess, t->exceedances,
				       w->excess[t->exceedances - 1], fit->target_p / rate_upper,
				       1 - SHAPE_SHARE * error);

	if (!isfinite(upper))
		return refuse(fit, "the gaps set no upper limit to the level");
	fit->level = t->threshold + gpd_quantile(&g, fit->target_p / rate);
	fit->level_upper = t->threshold + upper;
	fit->supported_p =
		bound_upper(count_above(w->sample, fit->level_upper), fit->stores, fit->confidence);
	fit->accepted = true;
	return refuse(fit, "the tail over %.0f ticks fits", t->threshold);
}

static int judge(struct work *w, struct tail_fit *fit, bool fits)
{
	const struct tail_threshold *t = &fit->chosen;
	const double decades = -log10(fit->target_p * (double)fit->stores);

	if (fit->independence_p < TAIL_P)
		return refuse(fit, "large gaps are not independent (p %.2g)", fit->independence_p);
	if (fit->stationarity_p < TAIL_P)
		return refuse(fit, "the gaps changed during the run (p %.2g)", fit->stationarity_p);
	if (fit->thresholds == 0)
		return refuse(fit, "the target is no rarer than the gaps kept: count them instead");
	if (!fits && t->fit_p >= TAIL_FIT_P)
		return refuse(fit, "the shape of the tail depends on the threshold");
	if (!fits)
		return refuse(fit, "no generalised Pareto tail fits (best p %.2g)", t->fit_p);
	if (t->xi < TAIL_XI_MIN)
		return refuse(fit, "the tail ends too abruptly for a limit (xi %.2f)", t->xi);
	if (shape_upper(t, fit->confidence) > TAIL_XI_MAX)
		return refuse(fit, "the tail may be too heavy to extrapolate (xi %.2f, up to %.2f)",
			      t->xi, shape_upper(t, fit->confidence));
	if (decades > TAIL_DECADES)
		return refuse(fit, "the target is %.1f decades beyond what was measured", decades);
	return set_levels(w, fit);
}

static int fit_peaks(struct work *w, struct tail_fit *fit)
{
	bool fits;
	int rc;

	keep_peaks(w, fit);
	if (w->peaks < TAIL_EXCEEDANCES)
		return refuse(fit, "%zu gaps over the lowest are too few: %d are needed", w->peaks,
			      TAIL_EXCEEDANCES);
	candidates(w, fit);
	fits = choose(w, fit);
	rc = test_order(w, fit);
	return rc ? rc : judge(w, fit, fits);
}

int tail_fit(const struct tail_sample *sample, struct tail_fit *fit)
{
	struct work w = { .sample = sample };
	int rc = -ENOMEM;

	*fit = (struct tail_fit){ .independence_p = NAN,
				  .stationarity_p = NAN,
				  .level = NAN,
				  .level_upper = NAN,
				  .supported_p = NAN,
				  .largest = NAN };
	unknown(&fit->chosen);
	if (!is_sample(sample))
		return -EINVAL;
	fit->stores = sample->stores;
	fit->target_p = sample->target_p;
	fit->confidence = sample->confidence;
	w.rng = gsl_rng_alloc(gsl_rng_taus2);
	gsl_rng_set(w.rng, (unsigned long)sample->seed);
	w.peak = calloc(sample->count, sizeof(*w.peak));
	w.excess = calloc(TAIL_KEPT, sizeof(*w.excess));
	w.room = calloc(TAIL_KEPT, sizeof(*w.room));
	w.time_room = calloc(TAIL_KEPT, sizeof(*w.time_room));
	if (w.peak && w.excess && w.room && w.time_room)
		rc = fit_peaks(&w, fit);
	free(w.time_room);
	free(w.room);
	free(w.excess);
	free(w.peak);
	gsl_rng_free(w.rng);
	return rc;
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

double tail_granule(const double *gap, size_t count)
{
	uint64_t granule = 0;

	for (size_t i = 1; i < count; i++)
		granule = divisor(granule, (uint64_t)fabs(round(gap[i] - gap[0])));
	return granule ? (double)granule : 1;
}
