/* SPDX-License-Identifier: MIT */
/* Machines against their kind, and runs against others, by ratios of hours. */
#include "fleet/judge/judge.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define ALMOST_NONE 0.5 /* added to tears, so that none has a logarithm */
#define TILTS	    200 /* of the residuals, that are tried for the tightest bound */
#define TILT_LEAST  1e-3
#define TILT_MOST   100.0
#define IQR_OF_ONE  1.349 /* between the quartiles of a normal distribution */
#define TAIL	    0.05  /* of the hours of a kind: those that tore most */
#define TAIL_LEAST  10	  /* hours of other machines; with fewer the tail is unknown */

/* An hour of a machine. */
struct hour {
	size_t machine; /* index */
	double ratio;
	double above; /* what is usual for its machine */
};

struct machine {
	const struct fleet_run *first;
	struct sums sums; /* of all its hours */
	unsigned hours;	  /* that have a ratio */
	double mean;	  /* of their ratios */
	unsigned bad;	  /* of its hours, that are in the tail of all */
	double excess;	  /* of these, over where the tail begins, together */
	double worst;	  /* the highest that an hour is above */
};

/* --- Ratios ----------------------------------------------------------------------------------- */

static bool is_wait(const struct sum *s)
{
	return sum_is_wait(s) && s->count.toggles;
}

/*
 * The logarithm of tears by those expected at the rates of all but own (NULL: of all), where others
 * (NULL: any) have counted too. False: all never tore where these toggled.
 */
static bool ratio_of(const struct sums *all, const struct sums *own, const struct sums *others,
		     const struct sums *these, double *ratio)
{
	double tears = ALMOST_NONE, expected = ALMOST_NONE;
	bool some = false;

	for (size_t i = 0; i < these->count; i++) {
		const struct sum *s = &these->sum[i], *rest = sums_find(all, s),
				 *mine = own ? sums_find(own, s) : NULL;
		double n, k;

		if (!is_wait(s) || !rest || (others && !sums_find(others, s)))
			continue;
		n = (double)rest->count.toggles - (mine ? (double)mine->count.toggles : 0);
		k = (double)rest->count.tears - (mine ? (double)mine->count.tears : 0);
		if (n <= 0)
			continue;
		some |= k > 0 || s->count.tears > 0;
		tears += (double)s->count.tears;
		expected += k / n * (double)s->count.toggles;
	}
	*ratio = log(tears / expected);
	return some;
}

/* --- How hours and machines differ ------------------------------------------------------------ */

struct fleet_spread {
	double tilt[TILTS],
		cgf[TILTS]; /* of the residuals of hours: log of the mean of e^(tilt r) */
	double within;	    /* variance of a machine's hours */
	double machines;    /* variance of machines' true means */
	double middle;	    /* median of their means */
	size_t residuals;
	size_t hours;
	double bad, excess; /* of all machines */
};

/*
 * The hours that tore most, each above what its machine's usually do: as far from the middle as
 * machines differ.
 */
static void measure_tail(struct fleet_spread *s, struct machine *machines, struct hour *hours,
			 size_t count, double *sorted)
{
	double from;

	for (size_t i = 0; i < count; i++) {
		const struct machine *m = &machines[hours[i].machine];
		double own =
			s->machines > 0 ? s->machines / (s->machines + s->within / m->hours) : 0;

		hours[i].above = hours[i].ratio - s->middle - own * (m->mean - s->middle);
		sorted[i] = hours[i].above;
	}
	gsl_sort(sorted, 1, count);
	from = gsl_stats_quantile_from_sorted_data(sorted, 1, count, 1 - TAIL);
	s->hours = count;
	for (size_t i = 0; i < count; i++) {
		struct machine *m = &machines[hours[i].machine];

		if (hours[i].above <= from)
			continue;
		s->bad++;
		m->bad++;
		s->excess += hours[i].above - from;
		m->excess += hours[i].above - from;
		m->worst = fmax(m->worst, hours[i].above);
	}
}

static int measure_spread(struct fleet_spread *s, struct machine *machines, size_t count,
			  struct hour *hours, size_t hour_count)
{
	double *residual = malloc((hour_count + 1) * sizeof(*residual)), squares = 0;
	double *mean = malloc((count + 1) * sizeof(*mean)), width, noise = 0;
	size_t means = 0;

	*s = (struct fleet_spread){ 0 };
	if (!residual || !mean) {
		free(residual);
		free(mean);
		return -ENOMEM;
	}
	for (size_t i = 0; i < hour_count; i++) {
		const struct machine *m = &machines[hours[i].machine];
		double n = m->hours;

		if (m->hours < 2)
			continue;
		residual[s->residuals] = (hours[i].ratio - m->mean) * sqrt(n / (n - 1));
		squares += residual[s->residuals] * residual[s->residuals];
		s->residuals++;
	}
	for (int t = 0; t < TILTS && s->residuals; t++) {
		double sum = 0;

		s->tilt[t] = TILT_LEAST * pow(TILT_MOST / TILT_LEAST, t / (TILTS - 1.0));
		for (size_t i = 0; i < s->residuals; i++)
			sum += exp(s->tilt[t] * residual[i]);
		s->cgf[t] = log(sum / (double)s->residuals);
	}
	s->within = s->residuals ? squares / (double)s->residuals : 0;
	for (size_t i = 0; i < count; i++)
		if (machines[i].hours) {
			mean[means++] = machines[i].mean;
			noise += s->within / machines[i].hours;
		}
	gsl_sort(mean, 1, means);
	if (means) {
		s->middle = gsl_stats_median_from_sorted_data(mean, 1, means);
		width = (gsl_stats_quantile_from_sorted_data(mean, 1, means, 0.75) -
			 gsl_stats_quantile_from_sorted_data(mean, 1, means, 0.25)) /
			IQR_OF_ONE;
		s->machines = fmax(0, width * width - noise / (double)means);
		measure_tail(s, machines, hours, hour_count, residual);
	}
	free(residual);
	free(mean);
	return 0;
}

/* --- Judging ---------------------------------------------------------------------------------- */

ORDER_BY(by_chance, struct judged, p)

/*
 * The chance of so many hours in the tail that reach so far together: as many as come by chance,
 * each as far as the other machines' reach, which is taken to fall off exponentially. A sum of j
 * exponential numbers by that of j and k others has a beta distribution.
 */
static double chance_of_hours(const struct machine *m, const struct fleet_spread *s)
{
	double others = s->bad - m->bad, share = (others + 1) / ((double)s->hours - m->hours + 1);
	double p = 0;

	if (!m->bad || others < TAIL_LEAST)
		return 1;
	for (unsigned j = 1; j <= m->hours; j++)
		p += gsl_ran_binomial_pdf(j, share, m->hours) *
		     gsl_cdf_beta_Q(m->excess / s->excess, j, others);
	return p;
}

static struct judged judge(const struct machine *m, const struct fleet_spread *s)
{
	struct judged judged = { .machine = m->first->machine,
				 .hours = m->hours,
				 .bad_hours = m->bad,
				 .worst = exp(m->worst),
				 .times = exp(m->mean - s->middle) };
	double n = m->hours, excess = m->mean - s->middle, best = 0;
	double by_hours = chance_of_hours(m, s);

	memcpy(judged.name, m->first->name, sizeof(judged.name));
	/*
	 * Chernoff's bound of the chance that a machine like the others has such a mean: the
	 * residuals of its hours are drawn from those of all, its own true mean from a normal
	 * distribution.
	 */
	for (int t = 0; t < TILTS && s->residuals >= JUDGE_HOURS && m->hours; t++)
		if (isfinite(s->cgf[t]))
			best = fmax(best,
				    n * (s->tilt[t] * excess - s->cgf[t]) -
					    s->tilt[t] * s->tilt[t] * n * n * s->machines / 2);
	/* Two looks at each machine. */
	judged.by_hours = by_hours < exp(-best);
	judged.p = fmin(1, 2 * fmin(by_hours, exp(-best)));
	for (size_t i = 0; i < m->sums.count; i++)
		if (is_wait(&m->sums.sum[i])) {
			judged.toggles += m->sums.sum[i].count.toggles;
			judged.tears += m->sums.sum[i].count.tears;
		}
	return judged;
}

int judge_machines(const struct fleet_run *runs, size_t count, struct judged **judged,
		   size_t *judged_count)
{
	struct machine *machines = calloc(count + 1, sizeof(*machines)), *m = machines;
	struct hour *ratios = malloc((count + 1) * sizeof(*ratios));
	size_t n = 0, with_ratio = 0;
	struct sums all = { 0 };
	struct fleet_spread spread;
	struct hours hours;
	int ret = hours_of(&hours, runs, count, false);

	*judged = calloc(count + 1, sizeof(**judged));
	if (!machines || !ratios || !*judged)
		ret = -ENOMEM;
	for (size_t i = 0; i < hours.count && ret == 0; i++) {
		if (i == 0 || hours.first[i]->machine != m->first->machine) {
			m = &machines[n++];
			m->first = hours.first[i];
		}
		ret = sums_add_all(&m->sums, &hours.sums[i]);
		if (ret == 0)
			ret = sums_add_all(&all, &hours.sums[i]);
	}
	m = machines;
	for (size_t i = 0; i < hours.count && ret == 0; i++) {
		struct hour *hour = &ratios[with_ratio];

		m += hours.first[i]->machine != m->first->machine;
		hour->machine = (size_t)(m - machines);
		if (!ratio_of(&all, &m->sums, NULL, &hours.sums[i], &hour->ratio))
			continue;
		m->mean += (hour->ratio - m->mean) / ++m->hours;
		with_ratio++;
	}
	if (ret == 0)
		ret = measure_spread(&spread, machines, n, ratios, with_ratio);
	for (size_t i = 0; i < n && ret == 0; i++)
		(*judged)[i] = judge(&machines[i], &spread);
	if (ret == 0)
		qsort(*judged, n, sizeof(**judged), by_chance);
	for (size_t i = 0; i < n; i++)
		sums_free(&machines[i].sums);
	*judged_count = n;
	hours_free(&hours);
	sums_free(&all);
	free(machines);
	free(ratios);
	return ret;
}

/* --- Moves ------------------------------------------------------------------------------------ */

/*
 * The mean ratio of each machine's hours, by the rates of both together, at waits that others
 * tried. Not the ratio of their sum: hours are skewed, and a machine with more of them would seem
 * to tear more.
 */
static int means_of(const struct fleet_run *runs, size_t count, const struct sums *both,
		    const struct sums *others, double *mean, size_t *n)
{
	struct hours hours;
	int ret = hours_of(&hours, runs, count, false);
	double sum = 0, ratio;
	unsigned some = 0;

	for (size_t i = 0; i < hours.count && ret == 0; i++) {
		if (ratio_of(both, NULL, others, &hours.sums[i], &ratio)) {
			some++;
			sum += ratio;
		}
		if (i + 1 < hours.count && hours.first[i + 1]->machine == hours.first[i]->machine)
			continue;
		if (some)
			mean[(*n)++] = sum / some;
		sum = some = 0;
	}
	hours_free(&hours);
	return ret;
}

int judge_move(const struct fleet_run *before, size_t before_count, const struct fleet_run *after,
	       size_t after_count, struct moved *moved)
{
	const struct fleet_run *runs[] = { before, after };
	const size_t counts[] = { before_count, after_count };
	struct sums both = { 0 }, each[2] = { { 0 }, { 0 } };
	double *mean[2] = { malloc((before_count + 1) * sizeof(double)),
			    malloc((after_count + 1) * sizeof(double)) };
	size_t n[2] = { 0, 0 };
	int ret = mean[0] && mean[1] ? 0 : -ENOMEM;

	*moved = (struct moved){ .times = 1, .p = 1 };
	for (int g = 0; g < 2; g++)
		for (size_t i = 0; i < counts[g] && ret == 0; i++)
			ret = sums_add_all(&each[g], &runs[g][i].sums);
	for (int g = 0; g < 2 && ret == 0; g++)
		ret = sums_add_all(&both, &each[g]);
	for (int g = 0; g < 2 && ret == 0; g++)
		ret = means_of(runs[g], counts[g], &both, &each[1 - g], mean[g], &n[g]);
	if (ret == 0 && n[0] && n[1]) {
		double m[2], v[2] = { 0, 0 }, error, freedom;

		for (int g = 0; g < 2; g++) {
			m[g] = gsl_stats_mean(mean[g], 1, n[g]);
			moved->machines[g] = (unsigned)n[g];
			if (n[g] > 1)
				v[g] = gsl_stats_variance(mean[g], 1, n[g]) / (double)n[g];
		}
		moved->times = exp(m[1] - m[0]);
		error = v[0] + v[1];
		/* Welch's, for machines of both sides that differ by their own. */
		if (n[0] > 2 && n[1] > 2 && error > 0) {
			freedom = error * error /
				  (v[0] * v[0] / (double)(n[0] - 1) +
				   v[1] * v[1] / (double)(n[1] - 1));
			moved->p = 2 * gsl_cdf_tdist_Q(fabs(m[1] - m[0]) / sqrt(error), freedom);
		}
	}
	for (int g = 0; g < 2; g++) {
		sums_free(&each[g]);
		free(mean[g]);
	}
	sums_free(&both);
	return ret;
}
