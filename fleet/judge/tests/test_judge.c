/* SPDX-License-Identifier: MIT */
/* Fleets with known truth: it is found, and none is accused by luck. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <gsl/gsl_cdf.h>

#include "fleet/judge/changes.h"
#include "fleet/judge/judge.h"
#include "fleet/judge/ladder_of.h"
#include "fleet/tests/world.h"

#define MARGINAL  5u
#define SUSPECT	  1e-3
#define FLEETS	  200u
#define SMALL	  40u /* machines of each */
#define ONE_SIDED 0.05

static char path[64];
static struct fleet *fleet;
static struct world world = { .hours = 6, .unevenness = 0.8, .storms = 0.15 };

static int open_fleet(void **state)
{
	(void)state;
	strcpy(path, "/tmp/test_judge.XXXXXX");
	close(mkstemp(path));
	world.rng = gsl_rng_alloc(gsl_rng_taus);
	gsl_rng_set(world.rng, 7);
	world.hours = 6;
	return fleet_open(&fleet, path, true);
}

static int close_fleet(void **state)
{
	(void)state;
	gsl_rng_free(world.rng);
	fleet_close(fleet, false);
	return unlink(path);
}

static void add(const char *name, unsigned kind, bool bad, double times)
{
	assert_int_equal(world_machine(&world, fleet, name, kind, bad, times), 0);
}

static struct fleet_run *runs_of(unsigned kind, bool bad, size_t *count)
{
	struct fleet_kind *kinds;
	struct fleet_run *runs = NULL;
	struct identity id = world_identity(kind, bad);
	size_t n;

	assert_int_equal(fleet_kinds(fleet, &kinds, &n), 0);
	for (size_t i = 0; i < n; i++)
		if (kinds[i].identity.model == id.model &&
		    strcmp(kinds[i].identity.microcode, id.microcode) == 0)
			assert_int_equal(fleet_runs(fleet, kinds[i].id, &runs, count), 0);
	free(kinds);
	assert_non_null(runs);
	return runs;
}

/* Five of 300 tear thirty times as often, and a third of one kind has a bad microcode. */
static void truth_is_found(void **state)
{
	unsigned accused = 0, marginal = 0;

	(void)state;
	world.hours = 12;
	for (unsigned i = 0; i < 300; i++) {
		bool odd = i % 60 == 7 + i / 60;
		char name[32];

		snprintf(name, sizeof(name), "%s%u", odd ? "marginal" : "node", i);
		add(name, i % WORLD_KINDS, i % WORLD_KINDS == 2 && i % 9 == 2,
		    odd ? WORLD_MARGINAL : 1);
	}
	for (unsigned kind = 0; kind < WORLD_KINDS; kind++) {
		for (int bad = 0; bad <= (kind == 2); bad++) {
			struct judged *machines;
			size_t count, n;
			struct fleet_run *runs = runs_of(kind, bad, &count);

			assert_int_equal(judge_machines(runs, count, &machines, &n), 0);
			for (size_t i = 0; i < n && machines[i].p * (double)n < SUSPECT; i++) {
				accused++;
				marginal += strncmp(machines[i].name, "marginal", 8) == 0;
				assert_true(machines[i].times > 5);
			}
			free(machines);
			fleet_runs_free(runs, count);
		}
	}
	assert_int_equal(marginal, MARGINAL);
	assert_int_equal(accused, MARGINAL);
}

static void bad_microcode_is_found(void **state)
{
	size_t before, after;
	struct fleet_run *first, *second;
	struct moved moved;

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		char name[32];

		snprintf(name, sizeof(name), "node%u", i);
		add(name, 0, i % 3 == 0, 1);
	}
	first = runs_of(0, false, &before);
	second = runs_of(0, true, &after);
	assert_int_equal(judge_move(first, before, second, after, &moved), 0);
	print_message("# %.2g times as many tears, p %.2g\n", moved.times, moved.p);
	assert_true(moved.times > WORLD_BAD / 2 && moved.times < WORLD_BAD * 2);
	assert_true(moved.p < 1e-4);
	/* Half of the same against the other half. */
	assert_int_equal(
		judge_move(first, before / 2, first + before / 2, before - before / 2, &moved), 0);
	assert_true(moved.p > 1e-3);
	fleet_runs_free(first, before);
	fleet_runs_free(second, after);
}

/* As if every toggle tore by itself: the sum of a machine's tears against that of its kind. */
static double chance_if_even(const struct judged *m, const struct judged *all, size_t count)
{
	double tears = 0, toggles = 0;

	for (size_t i = 0; i < count; i++) {
		tears += (double)all[i].tears;
		toggles += (double)all[i].toggles;
	}
	return m->tears ? gsl_cdf_poisson_Q((unsigned)m->tears - 1,
					    tears / toggles * (double)m->toggles)
			: 1;
}

/* None is marginal. A judge that forgets storms accuses in nearly every fleet, this one hardly. */
static void luck_is_no_ground(void **state)
{
	unsigned accused = 0, by_even = 0;

	(void)state;
	for (unsigned f = 0; f < FLEETS; f++) {
		struct judged *machines;
		struct fleet_run *runs;
		size_t count, n;
		bool even = false;

		fleet_close(fleet, false);
		assert_int_equal(fleet_open(&fleet, path, true), 0);
		world.hours = 2 + f % 5;
		for (unsigned i = 0; i < SMALL; i++) {
			char name[32];

			snprintf(name, sizeof(name), "node%u", i);
			/* Machines differ a little, too. */
			add(name, 0, false, exp(gsl_ran_gaussian(world.rng, 0.2)));
		}
		runs = runs_of(0, false, &count);
		assert_int_equal(judge_machines(runs, count, &machines, &n), 0);
		accused += machines[0].p * (double)n < ONE_SIDED;
		for (size_t i = 0; i < n; i++)
			even |= chance_if_even(&machines[i], machines, n) * (double)n < ONE_SIDED;
		by_even += even;
		free(machines);
		fleet_runs_free(runs, count);
	}
	print_message(
		"# of %u fleets without a marginal machine %u have one accused at %.0f %%; %u "
		"if toggles tore by themselves\n",
		FLEETS, accused, 100 * ONE_SIDED, by_even);
	assert_true(accused <= 2 * ONE_SIDED * FLEETS);
	assert_true(by_even > FLEETS / 2);
}

/* --- Bad hours of a machine that is sound in the others ----------------------------------------
 */

/* Machine 0 tears so many times as often in each twelfth hour. The caller frees all. */
static struct fleet_run *draw_fleet(unsigned machines, double times)
{
	struct fleet_run *runs = calloc((size_t)machines * world.hours, sizeof(*runs)), *run = runs;

	for (unsigned i = 0; i < machines; i++) {
		double level = exp(gsl_ran_gaussian(world.rng, 0.2));

		for (unsigned day = 0; day < world.hours; day++, run++) {
			bool bad = i == 0 && day % 12 == 5;
			struct evidence_run hour =
				world_hour(&world, 0, false, level * (bad ? times : 1), day);

			*run = (struct fleet_run){ .machine = i, .time = hour.time };
			run->sums = hour.sums;
		}
	}
	return runs;
}

/* In how many of so many fleets machine 0 is named; others: gets how many have another one named.
 */
static unsigned find_bad_hours(unsigned fleets, double times, unsigned *others)
{
	unsigned found = 0;

	*others = 0;
	for (unsigned f = 0; f < fleets; f++) {
		struct fleet_run *runs = draw_fleet(SMALL, times);
		struct judged *machines;
		bool other = false;
		size_t n;

		assert_int_equal(judge_machines(runs, SMALL * world.hours, &machines, &n), 0);
		for (size_t i = 0; i < n && machines[i].p * (double)n < SUSPECT; i++) {
			found += machines[i].machine == 0;
			other |= machines[i].machine != 0;
		}
		*others += other;
		free(machines);
		fleet_runs_free(runs, SMALL * world.hours);
	}
	return found;
}

static void bad_hours_are_found(void **state)
{
	static const struct {
		unsigned hours;
		double storms, times;
		unsigned least;
	} cases[] = { { 12, 0, 1000, 30 },   { 60, 0, 30, 36 }, { 60, 0, 100, 58 },
		      { 60, 0.15, 300, 50 }, { 12, 0, 1, 0 },	{ 12, 0.15, 1, 0 },
		      { 60, 0, 1, 0 },	     { 60, 0.15, 1, 0 } };
	const struct world before = world;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned found, others;

		world.hours = cases[i].hours;
		world.storms = cases[i].storms;
		found = find_bad_hours(60, cases[i].times, &others);
		print_message("# %u hours, storms %g, one in 12 tears %g times as often: found in "
			      "%u of 60 fleets, others named in %u\n",
			      cases[i].hours, cases[i].storms, cases[i].times, found, others);
		assert_true(found >= cases[i].least);
		assert_true(others <= 1);
		assert_true(cases[i].times > 1 || !found);
	}
	world.unevenness = before.unevenness;
	world.storms = before.storms;
}

/*
 * The same machines with six hours each, then with one: the rate is the same. Hours are skewed, so
 * the logarithm of six together lies above that of one: a judge of machines' sums would see a
 * change.
 */
static void fewer_hours_are_no_change(void **state)
{
	struct fleet_run *before, *after;
	size_t counts[2];
	struct moved moved;

	(void)state;
	for (unsigned i = 0; i < 600; i++) {
		char name[32];

		snprintf(name, sizeof(name), "node%u", i);
		world.hours = i % 2 ? 6 : 1;
		add(name, i % 2, false, i % 2 ? 0.5 : 1); /* kinds differ by a factor of 2 */
	}
	before = runs_of(1, false, &counts[0]);
	after = runs_of(0, false, &counts[1]);
	assert_int_equal(judge_move(before, counts[0], after, counts[1], &moved), 0);
	print_message("# %.2g times as many tears, p %.2g\n", moved.times, moved.p);
	assert_true(moved.p > 1e-3);
	fleet_runs_free(before, counts[0]);
	fleet_runs_free(after, counts[1]);
}

/* Half of the runs are under a kernel with which all tear five times as often. */
static void bad_kernel_is_found(void **state)
{
	static struct kind_report report;
	struct fleet_change *changes;
	struct fleet_kind *kinds;
	struct fleet_run *runs;
	size_t count, n, kind_count;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		for (unsigned day = 0; day < 6; day++) {
			struct evidence_run run =
				world_hour(&world, 0, false, day < 3 ? 1 : WORLD_BAD, day);
			char name[FLEET_NAME];
			int64_t id;

			snprintf(name, sizeof(name), "node%u", i);
			strcpy(run.identity.kernel, day < 3 ? "6.1" : "6.2");
			assert_int_equal(fleet_add_run(fleet, name, &run, &id), 1);
			sums_free(&run.sums);
		}
	}
	assert_int_equal(fleet_kinds(fleet, &kinds, &kind_count), 0);
	runs = runs_of(0, false, &count);
	report = (struct kind_report){ .fleet = fleet,
				       .kinds = kinds,
				       .kind = kinds,
				       .kind_count = kind_count,
				       .runs = runs,
				       .count = count };
	assert_int_equal(changes_of_kind(&report, &changes, &n), 0);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_true(changes[i].moved.times > WORLD_BAD / 2);
		assert_true(changes[i].moved.p < 1e-4);
	}
	assert_string_equal(changes[0].what, "kernel");
	assert_string_equal(changes[0].from, "6.1");
	assert_string_equal(changes[0].to, "6.2");
	assert_string_equal(changes[1].what, "time");
	free(changes);
	free(kinds);
	fleet_runs_free(runs, count);
}

/*
 * A share q of all machines is bad, as many as 1 fleet in 20 of this size misses, and they always
 * tear. Those that have only good ones must not claim less of the next machine than it then has. By
 * the ladder of the machines that were seen alone (the broken variant) they would.
 */
static void a_prior_knows_of_bad_machines(void **state)
{
	const unsigned size = 40;
	const double bad = 1 - pow(0.05, 1.0 / size);
	struct estimate e, alone;
	struct behind behind;
	struct fleet_run *runs;
	struct identity id = world_identity(0, false);
	size_t count;

	(void)state;
	world.hours = 2;
	for (unsigned i = 0; i < size; i++) {
		char name[32];

		snprintf(name, sizeof(name), "node%u", i);
		add(name, 0, false, 1e-3);
	}
	runs = runs_of(0, false, &count);
	assert_int_equal(ladder_of_kind(&id, runs, count, &alone, false), 0);
	assert_int_equal(prior_of_kind(&id, runs, count, &e, &behind), 0);
	for (unsigned i = 0; i < WORLD_RUNGS; i++) {
		assert_int_equal(behind.level[i][CLAIM_LINE].machines, size);
		assert_int_equal(behind.level[i][CLAIM_LINE].runs, 2 * size);
		assert_true(e.level[i].claim[CLAIM_LINE].upper_p >= bad);
		assert_true(e.level[i].claim[CLAIM_LINE].upper_p < 2 * bad);
		assert_true(alone.level[i].claim[CLAIM_LINE].upper_p < bad);
		assert_true(e.level[i].upper_p >= e.level[i].claim[CLAIM_PAGE].upper_p);
	}
	/* Never tried, nothing known. */
	assert_int_equal(behind.window.machines, 0);
	assert_true(e.window.upper_p == 1);
	assert_true(e.level[e.levels - 1].upper_p == 1);
	fleet_runs_free(runs, count);
}

/* Where stores across 32 bytes tear now and then, a fleet that saw none claims no window either. */
static void a_window_is_no_wider_than_its_kind_has(void **state)
{
	static const enum crossing inside[] = { CROSSING_8, CROSSING_16, CROSSING_32 };
	struct identity id = world_identity(1, false);
	struct fleet_run run = { .machine = 1 };
	struct estimate e;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(sums_add(&run.sums, &(struct sum){ .kind = SUM_STORE,
								    .crossing = inside[i],
								    .count.slices = 1,
								    .count.toggles = 1000000 }),
				 0);
	assert_int_equal(ladder_of_kind(&id, &run, 1, &e, false), 0);
	assert_int_equal(e.window.bytes, 64);
	id.family = 26;
	assert_int_equal(ladder_of_kind(&id, &run, 1, &e, false), 0);
	assert_int_equal(e.window.bytes, 32);
	sums_free(&run.sums);
}

static void few_machines_exclude_little(void **state)
{
	struct estimate e;
	struct identity id = world_identity(0, false);
	size_t count;
	struct fleet_run *runs;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		char name[32];

		snprintf(name, sizeof(name), "node%u", i);
		add(name, 0, false, 1);
	}
	runs = runs_of(0, false, &count);
	assert_int_equal(ladder_of_kind(&id, runs, count, &e, false), 0);
	assert_int_equal(e.runs, 60);
	assert_true(e.long_run);
	assert_true(bound_missed(10) > 0.25);
	assert_true(bound_missed(3000) < 1.01e-3);
	fleet_runs_free(runs, count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(truth_is_found, open_fleet, close_fleet),
		cmocka_unit_test_setup_teardown(bad_microcode_is_found, open_fleet, close_fleet),
		cmocka_unit_test_setup_teardown(luck_is_no_ground, open_fleet, close_fleet),
		cmocka_unit_test_setup_teardown(bad_hours_are_found, open_fleet, close_fleet),
		cmocka_unit_test_setup_teardown(fewer_hours_are_no_change, open_fleet, close_fleet),
		cmocka_unit_test_setup_teardown(bad_kernel_is_found, open_fleet, close_fleet),
		cmocka_unit_test_setup_teardown(a_prior_knows_of_bad_machines, open_fleet,
						close_fleet),
		cmocka_unit_test(a_window_is_no_wider_than_its_kind_has),
		cmocka_unit_test_setup_teardown(few_machines_exclude_little, open_fleet,
						close_fleet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
