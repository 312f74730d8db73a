/* SPDX-License-Identifier: MIT */
/*
 * The order of cells on machines of many CPUs, and whether one bad CPU of 200 is named: by promises
 * that a model keeps or breaks, in no time.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "conform/rounds.h"

#define CPUS 200u

/* --- Order ------------------------------------------------------------------------------------ */

static void check_round(unsigned cpus, unsigned promises, unsigned first, uint64_t round)
{
	const struct order o = { .cpus = cpus, .promises = promises, .first = first };
	unsigned *writes = calloc((size_t)cpus * promises, sizeof(*writes)),
		 *executes = calloc((size_t)cpus * promises, sizeof(*executes));

	assert_int_equal(count_turns(&o), (uint64_t)cpus * promises);
	for (uint64_t n = 0; n < count_turns(&o); n++) {
		struct turn t = find_turn(&o, round * count_turns(&o) + n);

		assert_true(t.writer < cpus && t.executor < cpus && t.promise < promises);
		assert_true(cpus == 1 || t.writer != t.executor);
		assert_true(cpus < 3 || (t.load_on != t.writer && t.load_on != t.executor));
		writes[t.writer * promises + t.promise]++;
		executes[t.executor * promises + t.promise]++;
	}
	for (unsigned i = 0; i < cpus * promises; i++) {
		assert_int_equal(writes[i], 1);
		assert_int_equal(executes[i], 1);
	}
	free(writes);
	free(executes);
}

static void test_every_cpu_in_both_roles_in_every_round(void **state)
{
	static const unsigned cpus[] = { 1, 2, 3, 4, 5, 64, 199, CPUS, 256 };

	(void)state;
	for (unsigned i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++)
		for (uint64_t round = 0; round < 5; round++)
			check_round(cpus[i], 9, cpus[i] / 3, round);
}

/* Each pair comes, loaded and not, within twice as many rounds as there are partners. */
static void test_all_pairs_in_the_end(void **state)
{
	(void)state;
	for (unsigned cpus = 2; cpus < 20; cpus++) {
		const struct order o = { .cpus = cpus, .promises = 1 };
		unsigned *seen = calloc((size_t)cpus * cpus * 2, sizeof(*seen));

		for (uint64_t n = 0; n < 2 * (cpus - 1) * count_turns(&o); n++) {
			struct turn t = find_turn(&o, n);

			seen[(t.writer * cpus + t.executor) * 2 + t.loaded]++;
		}
		for (unsigned i = 0; i < cpus * cpus; i++)
			for (unsigned loaded = 0; loaded < 2; loaded++)
				assert_int_equal(seen[i * 2 + loaded], i % cpus != i / cpus);
		free(seen);
	}
}

static void test_fixed_roles(void **state)
{
	const struct order o = { .cpus = 2, .promises = 3, .fixed = true };

	(void)state;
	assert_int_equal(count_turns(&o), 3);
	for (uint64_t n = 0; n < 20; n++) {
		struct turn t = find_turn(&o, n);

		assert_int_equal(t.writer, 0);
		assert_int_equal(t.executor, 1);
		assert_int_equal(t.promise, n % 3);
		assert_int_equal(t.loaded, n / 3 % 2);
	}
}

/* --- A machine with known truth --------------------------------------------------------------- */

static struct {
	int bad;	 /* its CPU, or -1 */
	enum role role;	 /* in which it fails */
	double cells;	 /* share of its cells that do */
	double all;	 /* of all cells: a defect of no core */
	const char *of;	 /* the one promise that fails; NULL: all */
	uint64_t trials; /* of a cell; 0: 1000 */
	int error;	 /* of cells that the bad CPU has a part in, instead of failures */
	uint64_t random;
	unsigned writes[CPUS], executes[CPUS];
} truth;

static bool with_chance(double p)
{
	return (double)(random_next(&truth.random) >> 11) * 0x1p-53 < p;
}

static int try_model(const struct conform_cell *cell, const struct run_options *options,
		     struct conform_result *result)
{
	bool writes = (int)cell->writer == truth.bad, executes = (int)cell->executor == truth.bad;
	bool part =
		(truth.role != ROLE_EXECUTOR && writes) || (truth.role != ROLE_WRITER && executes);

	(void)options;
	*result = (struct conform_result){ .trials = truth.trials ? truth.trials : 1000,
					   .seconds = cell->seconds };
	truth.writes[cell->writer]++;
	truth.executes[cell->executor]++;
	if (part && truth.error) {
		result->error = truth.error;
		return 0;
	}
	if (truth.of && strcmp(truth.of, cell->guarantee->name) != 0)
		return 0;
	if (with_chance(truth.all) || (part && with_chance(truth.cells)))
		result->failures = 1;
	return 0;
}

static void run_request(struct conformance *c, struct conform_request r)
{
	struct cpus all = { 0 };

	for (unsigned i = 0; i < CPUS; i++) {
		all.word[i / 64] |= UINT64_C(1) << (i % 64);
		truth.writes[i] = truth.executes[i] = 0;
	}
	r.seed = 7;
	r.load = LOAD_IN_TURN;
	r.try_one = try_model;
	assert_int_equal(conform_request_all(&r, &all), 0);
	assert_int_equal(r.cpus, CPUS);
	assert_int_equal(conformance_try(c, &r), 0);
	free(r.cpu);
}

static void run_model(struct conformance *c, double budget, bool strict)
{
	run_request(c, (struct conform_request){ .budget = budget, .strict = strict });
}

static void test_one_bad_cpu_of_200_is_named(void **state)
{
	static const struct {
		enum role role;
		double cells;
	} bad[] = { { ROLE_EXECUTOR, 1 },
		    { ROLE_WRITER, 1 },
		    { ROLE_EITHER, 0.3 },
		    { ROLE_EXECUTOR, 0.3 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (int cpu = 0; cpu < (int)CPUS; cpu += 37) {
			struct conformance c;

			truth.bad = cpu;
			truth.role = bad[i].role;
			truth.cells = bad[i].cells;
			truth.all = 0;
			run_model(&c, 60, false);
			assert_int_equal(conformance_status(&c), CONFORM_BROKEN);
			assert_int_equal(c.reached, CPUS);
			assert_int_equal(c.suspects, 1);
			assert_int_equal(c.suspect[0].cpu, cpu);
			assert_true(bad[i].cells < 1 || c.suspect[0].role == bad[i].role);
			conformance_free(&c);
		}
	}
}

/* What is of no core accuses none: of 100 runs, each with a chance of 0.01, 15 are 1e-14. */
static void test_no_cpu_is_named_without_cause(void **state)
{
	static const double all[] = { 1, 0.5, 0.05, 0.003 };
	unsigned named = 0;

	(void)state;
	truth.bad = -1;
	for (unsigned i = 0; i < 100; i++) {
		struct conformance c;

		truth.all = all[i % 4];
		run_model(&c, 60, false);
		named += c.suspects > 0;
		conformance_free(&c);
	}
	assert_true(named < 15);
}

/* By the number of failures alone, which is what is broken here, partners would be accused. */
static void test_counting_alone_accuses_partners(void **state)
{
	unsigned most = 0, at_most = 0, part[CPUS] = { 0 };
	struct conformance c;

	(void)state;
	truth.bad = 5;
	truth.role = ROLE_EXECUTOR;
	truth.cells = 1;
	truth.all = 0;
	run_model(&c, 60, false);
	for (size_t i = 0; i < c.pairs; i++) {
		if (!c.pair[i].failed)
			continue;
		part[c.pair[i].writer]++;
		part[c.pair[i].executor] += c.pair[i].executor != c.pair[i].writer;
	}
	for (unsigned i = 0; i < CPUS; i++)
		at_most += part[i] > 0;
	for (unsigned i = 0; i < CPUS; i++)
		most = part[i] > part[most] ? i : most;
	assert_true(at_most > 1);
	assert_int_equal(most, 5);
	assert_int_equal(c.suspects, 1);
	conformance_free(&c);
}

static void test_a_share_keeps_its_budget(void **state)
{
	struct conformance c;

	(void)state;
	truth.bad = -1;
	truth.all = 0;
	run_model(&c, 3, true);
	assert_true(c.seconds <= 3.1);
	assert_in_range(c.reached, 10, CPUS - 1);
	assert_int_equal(truth.writes[7], 10);
	assert_int_equal(conformance_status(&c), CONFORMS);
	conformance_free(&c);
	/* Without that, one round is run, as long as it takes. */
	run_model(&c, 1, false);
	assert_int_equal(c.reached, CPUS);
	for (unsigned i = 0; i < CPUS; i++)
		assert_in_range(truth.writes[i], 10, 11);
	conformance_free(&c);
}

/* --- What is no proof ------------------------------------------------------------------------- */

static void test_a_cell_that_was_no_test_is_an_error(void **state)
{
	static const int errors[] = { CONFORM_UNSEATED, CONFORM_IDLE };

	(void)state;
	truth.bad = 9;
	truth.role = ROLE_EXECUTOR;
	truth.all = 0;
	for (unsigned i = 0; i < 2; i++) {
		struct conformance c;

		truth.error = errors[i];
		run_model(&c, 60, false);
		assert_int_equal(conformance_status(&c), CONFORM_INCONCLUSIVE);
		for (unsigned k = 0; k < c.count; k++) {
			bool alone = c.tried[k].guarantee->threads == 1;
			char text[256];

			assert_int_equal(tried_status(&c.tried[k]), PROMISE_ERROR);
			tried_reason(&c.tried[k], text, sizeof(text));
			assert_non_null(strstr(text, i ? "never ran" : "not on its CPU"));
			/* The other cells have trials. */
			assert_in_range(c.tried[k].untried, 1, c.tried[k].cells / (alone ? 2 : 4));
		}
		assert_int_equal(c.suspects, 0);
		conformance_free(&c);
	}
	truth.error = 0;
}

static void test_few_trials_are_too_little(void **state)
{
	struct tried t = { .guarantee = guarantees, .cells = 1, .trials = 460 };
	struct conformance c;

	(void)state;
	assert_int_equal(tried_status(&t), PROMISE_TOO_LITTLE);
	assert_true(pow(1 - RATE_TO_SHOW, 461) < 0.01);
	t.trials++;
	assert_int_equal(tried_status(&t), PROMISE_HOLDS);
	t.hung = 1;
	assert_int_equal(tried_status(&t), PROMISE_ERROR);
	t.failures = 1;
	assert_int_equal(tried_status(&t), PROMISE_BROKEN);
	truth.bad = -1;
	truth.all = 0;
	truth.trials = 1;
	run_model(&c, 60, false);
	assert_int_equal(conformance_status(&c), CONFORM_INCONCLUSIVE);
	assert_int_equal(tried_status(&c.tried[0]), PROMISE_TOO_LITTLE);
	conformance_free(&c);
	truth.trials = 0;
}

/* fresh and executable rest on an interrupt that a broadcast flush does without. */
static void test_a_broadcast_flush_accuses_nobody(void **state)
{
	static const struct {
		const char *of;
		enum fault fault;
		bool broadcast;
		enum conformance_status status;
	} runs[] = {
		{ "fresh", FAULT_NONE, true, CONFORM_INCONCLUSIVE },
		{ "executable", FAULT_NONE, true, CONFORM_INCONCLUSIVE },
		{ "fresh", FAULT_NONE, false, CONFORM_BROKEN },
		{ "executable", FAULT_STALE, true, CONFORM_BROKEN },
		{ "reused", FAULT_NONE, true, CONFORM_BROKEN },
	};

	(void)state;
	truth.bad = 9;
	truth.role = ROLE_EXECUTOR;
	truth.cells = 1;
	for (unsigned i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct conformance c;

		truth.of = runs[i].of;
		run_request(&c, (struct conform_request){ .budget = 120,
							  .fault = runs[i].fault,
							  .broadcast = runs[i].broadcast });
		assert_int_equal(conformance_status(&c), runs[i].status);
		assert_int_equal(c.suspects, runs[i].status == CONFORM_BROKEN);
		conformance_free(&c);
	}
	truth.of = NULL;
}

static void test_a_cell_on_one_cpu_can_be_run_again(void **state)
{
	struct conform_cell cell = { .guarantee = guarantees, .writer = 3, .executor = 3 };
	char text[256];

	(void)state;
	conform_command(&cell, text, sizeof(text));
	assert_non_null(strstr(text, " --cpus 3 "));
	cell.executor = 4;
	conform_command(&cell, text, sizeof(text));
	assert_non_null(strstr(text, " --cpus 3,4 "));
}

/* --- How long --------------------------------------------------------------------------------- */

static void test_how_long(void **state)
{
	(void)state;
	/* 99 %: (1 - rate) ^ trials is 1 %. */
	assert_true(fabs(pow(1 - 1e-3, seconds_to_exclude(1e-3, 1)) - 0.01) < 1e-9);
	assert_true(fabs(seconds_to_exclude(1e-6, 1e6) - 4.60517) < 1e-3);
	assert_true(fabs(rate_excluded(460517) - 1e-5) < 1e-9);
	assert_true(rate_excluded(0) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_cpu_in_both_roles_in_every_round),
		cmocka_unit_test(test_all_pairs_in_the_end),
		cmocka_unit_test(test_fixed_roles),
		cmocka_unit_test(test_one_bad_cpu_of_200_is_named),
		cmocka_unit_test(test_no_cpu_is_named_without_cause),
		cmocka_unit_test(test_counting_alone_accuses_partners),
		cmocka_unit_test(test_a_share_keeps_its_budget),
		cmocka_unit_test(test_a_cell_that_was_no_test_is_an_error),
		cmocka_unit_test(test_few_trials_are_too_little),
		cmocka_unit_test(test_a_broadcast_flush_accuses_nobody),
		cmocka_unit_test(test_a_cell_on_one_cpu_can_be_run_again),
		cmocka_unit_test(test_how_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
