/* SPDX-License-Identifier: MIT */
/* Ladders of which it is known what their rates differ by. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include <cmocka.h>

#include "calibrate/statistics/estimate.h"

#define SLICES	3000
#define PLACES	24
#define TOGGLES 100000

struct truth {
	double place, time; /* variances */
	double rate;
};

static gsl_rng *rng;

static double draw(double variance)
{
	return variance > 0 ? gsl_ran_gamma(rng, 1 / variance, variance) : 1;
}

static struct cell_record *make(const struct truth *truth)
{
	struct cell_record *records = calloc(SLICES, sizeof(*records));
	double place[PLACES], time = 1;

	for (unsigned i = 0; i < PLACES; i++)
		place[i] = draw(truth->place);
	for (unsigned i = 0; i < SLICES; i++) {
		struct cell_record *r = &records[i];
		unsigned at = (unsigned)gsl_rng_uniform_int(rng, PLACES);

		if (i % FACTORS_TIME == 0)
			time = draw(truth->time);
		cell_defaults(&r->cell);
		r->cell.place = 1 + at;
		r->cell.waits.stretch = 4;
		r->cell.waits.first = r->cell.waits.second =
			gsl_rng_uniform_int(rng, 2) ? 100 : 1600;
		r->result.toggles = r->result.exposed = TOGGLES;
		r->result.torn = r->result.tears[TEAR_OLD_FRONT] =
			gsl_ran_poisson(rng, truth->rate * TOGGLES * place[at] * time /
						     (r->cell.waits.first == 100 ? 1 : 10));
	}
	return records;
}

static struct factors factors_under(const struct truth *truth)
{
	struct cell_record *records = make(truth);
	struct factors f;

	assert_int_equal(factors_of(&f, records, SLICES), 0);
	assert_int_equal(f.slices, SLICES);
	assert_int_equal(f.places, PLACES);
	free(records);
	return f;
}

static int begin(void **state)
{
	(void)state;
	rng = gsl_rng_alloc(gsl_rng_mt19937);
	return 0;
}

static int end(void **state)
{
	(void)state;
	gsl_rng_free(rng);
	return 0;
}

/* Chance alone is no factor. The waits are: 1 and 0.1, half of the time each. */
static void chance_is_no_factor(void **state)
{
	struct factors f = factors_under(&(struct truth){ .rate = 1e-4 });

	(void)state;
	assert_true(fabs(f.place) < 0.02);
	assert_true(fabs(f.time) < 0.02);
	assert_true(fabs(f.wait - (1.01 / 2 / (0.55 * 0.55) - 1)) < 0.1);
	assert_true(f.worst_rate < 1.3);
}

static void each_factor_is_told_from_the_other(void **state)
{
	struct factors places = factors_under(&(struct truth){ .place = 3, .rate = 1e-4 });
	struct factors times = factors_under(&(struct truth){ .time = 3, .rate = 1e-4 });

	(void)state;
	assert_true(places.place > 1 && fabs(places.time) < places.place / 5);
	assert_true(times.time > 1.5 && fabs(times.place) < times.time / 5);
	assert_true(places.worst_rate > 2);
}

/* Also where most slices have no tear at all. */
static void few_tears_tell_as_well(void **state)
{
	struct factors f = factors_under(&(struct truth){ .place = 4, .rate = 3e-6 });

	(void)state;
	assert_true(f.place > 1);
	assert_true(fabs(f.time) < f.place / 2);
}

static void too_few_tears_tell_nothing(void **state)
{
	struct cell_record *records = make(&(struct truth){ .rate = 1e-9 });
	struct factors f;

	(void)state;
	assert_int_equal(factors_of(&f, records, SLICES), -ENODATA);
	assert_int_equal(factors_of(&f, NULL, 0), -ENODATA);
	free(records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chance_is_no_factor),
		cmocka_unit_test(each_factor_is_told_from_the_other),
		cmocka_unit_test(few_tears_tell_as_well),
		cmocka_unit_test(too_few_tears_tell_nothing),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
