/* SPDX-License-Identifier: MIT */
/*
 * What verify finds and what it accuses falsely: configs of simulated calibrations, each verified
 * seven times, on days of their own, on a machine whose rate is the same or has risen.
 * TMAX_STRESS_SCALE makes more of them.
 */
#include <gsl/gsl_cdf.h>
#include <math.h>

#include "calibrate/statistics/bound.h"
#include "calibrate/tests/weather_sample.h"
#include "patchcore/tests/scale.h"

/* It calls the bound of its samples P, as GSL's headers do a parameter. */
#include "calibrate/tests/verify_sample.h"

#define DAYS	 7
#define OVERHEAD 0.8 /* of a run's time is slices at waits */
#define CELLS	 6   /* three seats, lines and pages */
#define WEEKS	 20
#define TOLD	 4 /* weathers, first in order */

/* The config that the library reads of an estimate. */
static struct machine_conf conf_of(const struct estimate *e)
{
	struct machine_conf conf = { .window = 8, .require_p = REQUIRE_P };

	conf.spread_line = e->spread[CLAIM_LINE];
	conf.spread_page = e->spread[CLAIM_PAGE];
	for (unsigned i = 0; i < e->levels; i++)
		if (level_is_known(&e->level[i]))
			conf.level[conf.levels++] = (struct machine_conf_level){
				.waits = e->level[i].rung,
				.ticks = (uint64_t)rint(e->level[i].ticks),
				.line.upper_p = e->level[i].claim[CLAIM_LINE].upper_p,
				.page.upper_p = e->level[i].claim[CLAIM_PAGE].upper_p,
			};
	return conf;
}

/* How often the levels in use tear, against their bounds: the worse of lines and pages. */
static double share_of_p(const struct weather *w)
{
	double share = 0;

	for (int c = 0; c < CLAIMS; c++)
		share = fmax(share, rate_of(w, &verify_level(&v, c)->waits, c) / verify_p(&v, c));
	return share;
}

static void plan_verify(const struct machine_conf *conf)
{
	v = (struct verify){ .have_conf = true, .conf = *conf, .accept_p = REQUIRE_P };
}

/* One run of so many seconds, begun at a time of its own. exposure: what is taken for exposed. */
static void verify_once(const struct simulation *of, const struct weather *w, double seconds,
			double exposure)
{
	struct simulation s = { .weather = w, .plan = of->plan, .rng = of->rng };
	double each = s.plan.slice / 0.9;

	v.cells = 0;
	put(CHECK_CONTROL, 100, 20);
	put(CHECK_CONTROL, 100, 1);
	put(CHECK_WINDOW, 1000, 0);
	for (unsigned i = 0; i < CELLS; i++)
		put(CHECK_WAIT, 0, 0)->cell.crossing = claimed[i % CLAIMS];
	s.storm = gsl_rng_uniform(s.rng) < w->share;
	s.ends = phase(&s);
	for (unsigned i = 0; i * each < seconds * OVERHEAD; i++, s.time += each) {
		struct verify_cell *c = &v.cell[v.cells - CELLS + i % CELLS];
		struct sum kind = { .rung = verify_level(&v, (int)(i % CLAIMS))->waits,
				    .crossing = c->cell.crossing,
				    .executors = s.plan.seat[i % CELLS / CLAIMS].executors };
		struct count count = run_slice(&s, &kind);

		count.toggles = (uint64_t)((double)count.toggles * exposure);
		count_add(&c->count, &count);
		count_add(&c->quiet, &count);
		c->tears[TEAR_OLD_FRONT] += count.tears;
	}
	verify_judge(&v);
}

/* What a row of the table asks, and what came of it. */
struct row {
	double rise;	 /* so many times as many tears; or */
	double of_p;	 /* so many times the bound of the level in use */
	double seconds;	 /* that a run takes */
	double exposure; /* the share of all toggles that is taken for exposed: 1 where it is known
			  */
	unsigned weeks, found;	      /* in which some run says broken */
	unsigned runs, broken, above; /* above: p was too low for the truth */
	double share;		      /* sum of share_of_p() */
};

static void verify_week(struct row *row, const struct simulation *s)
{
	struct weather now = *s->weather;
	bool found = false;

	now.rate *= row->of_p > 0 ? row->of_p / share_of_p(s->weather) : row->rise;
	for (unsigned day = 0; day < DAYS; day++) {
		verify_once(s, &now, row->seconds, row->exposure);
		found |= v.verdict == VERIFY_BROKEN;
		row->broken += v.verdict == VERIFY_BROKEN;
	}
	row->runs += DAYS;
	row->weeks++;
	row->found += found;
	row->above += share_of_p(&now) > 1;
	row->share += share_of_p(&now);
}

/* Configs of calibrations of so many slices, each verified for every row. */
static void verify_weeks(const struct weather *w, unsigned slices, struct row *rows, size_t count)
{
	const unsigned weeks = (unsigned)ceil(WEEKS * test_scale());

	for (unsigned seed = 1; rows[0].weeks < weeks && seed < 20 * weeks; seed++) {
		struct simulation s;
		struct machine_conf conf;

		simulate_slices(&s, w, seed, slices);
		conf = conf_of(&s.e);
		plan_verify(&conf);
		for (size_t i = 0; i < count && s.e.verdict == VERDICT_PASS; i++)
			verify_week(&rows[i], &s);
		end_simulation(&s);
	}
	for (const struct row *r = rows; r < rows + count; r++)
		print_message("# %s, %.0f s; %gx of the %s, %.0f s: %.2g of p; found in %u of %u "
			      "weeks, broken %u of %u runs\n",
			      w->name, slices * EACH, r->of_p > 0 ? r->of_p : r->rise,
			      r->of_p > 0 ? "bound" : "rate", r->seconds, r->share / r->weeks,
			      r->found, r->weeks, r->broken, r->runs);
}

/* More than chance allows for, one time in a million. */
static void assert_at_most(unsigned found, unsigned tried, double p)
{
	if (found > 0 && gsl_cdf_binomial_Q(found - 1, p, tried) < 1e-6)
		fail_msg("%u of %u, where %g of them are allowed", found, tried, p);
}

static void assert_at_least(unsigned found, unsigned tried, double p)
{
	if (gsl_cdf_binomial_P(found, p, tried) < 1e-6)
		fail_msg("%u of %u, where %g of them should", found, tried, p);
}

static void a_rise_is_found_and_none_is_made_up(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TOLD; i++) {
		struct row rows[] = {
			{ .rise = 1, .seconds = 30, .exposure = 1 },
			{ .rise = 10, .seconds = 30, .exposure = 1 },
			{ .rise = 100, .seconds = 30, .exposure = 1 },
			{ .of_p = 1, .seconds = 30, .exposure = 1 },
			{ .of_p = 10, .seconds = 30, .exposure = 1 },
			{ .of_p = 10, .seconds = 300, .exposure = 1 },
			{ .of_p = 100, .seconds = 30, .exposure = 1 },
			/* Broken: all toggles, of which a fifth is exposed. */
			{ .of_p = 10, .seconds = 30, .exposure = 5 },
		};

		verify_weeks(&weathers[i], SLICES, rows, LENGTH(rows));
		/* The bound of a minute in storms of 10 s may be below the truth. */
		if (!rows[0].above)
			assert_at_most(rows[0].broken, rows[0].runs, VERIFY_ALPHA);
		assert_at_most(rows[3].broken, rows[3].runs, VERIFY_ALPHA);
		if (i >= ORDINARY)
			continue;
		assert_at_least(rows[4].found, rows[4].weeks, 0.9);
		assert_true(rows[7].broken < rows[4].broken / 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rise_is_found_and_none_is_made_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
