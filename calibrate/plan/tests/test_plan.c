/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/plan/plan.h"
#include "stress/cell/cell.h"
#include "stress/tests/synthetic.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const names[] = { "quick", "default", "thorough" };

static void plans_have_names(void **state)
{
	static const char *const others[] = { "", "Quick", "quick ", "slow", "defaul" };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_non_null(plan_find(names[i]));
		assert_string_equal(plan_find(names[i])->name, names[i]);
	}
	for (size_t i = 0; i < COUNT(others); i++)
		assert_null(plan_find(others[i]));
}

static void plans_can_be_carried_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		const struct plan *p = plan_find(names[i]);

		assert_true(p->controls > 0 && p->window > 0 && p->fetch_gaps > 0);
		/* Most of the time is the ladder's. */
		assert_true(p->controls + p->window + p->fetch_gaps < 0.5);
		assert_true(p->budget > 0 && p->slice > 0);
		/* Each rung gets many slices: how they differ tells how sure a bound is. */
		assert_true(p->budget / p->slice > 4 * RUNGS_MAX);
		assert_true(p->require_p > 0 && p->require_p < 1);
		assert_int_equal(p->seats, 0);
		assert_int_equal(p->untested_placements, 0);
	}
}

static void longer_plans_measure_more(void **state)
{
	(void)state;
	for (size_t i = 1; i < COUNT(names); i++) {
		const struct plan *less = plan_find(names[i - 1]), *more = plan_find(names[i]);

		assert_true(more->budget > less->budget);
		/* A pass means the same, however long it took. */
		assert_true(more->require_p == less->require_p);
		assert_true(more->slice >= less->slice);
	}
	/* What scripts/calibrate runs has a minute in all. */
	assert_true(plan_find("quick")->budget < 60);
}

/* Numbers of executors in the order of the plan, 0 ends them; none: untested. */
struct wanted {
	enum placement placement;
	unsigned executors[12];
};

#define SAME_CORE   PLACEMENT_SAME_CORE
#define SAME_L2	    PLACEMENT_SAME_L2
#define SAME_L3	    PLACEMENT_SAME_L3
#define SAME_SOCKET PLACEMENT_SAME_SOCKET
#define CROSS	    PLACEMENT_CROSS_SOCKET
#define SPREAD	    PLACEMENT_SPREAD
#define OVER	    PLACEMENT_OVERSUBSCRIBED

static const struct {
	const char *description;
	struct wanted wanted[8];  /* placements that are not named are untested */
	enum placement spread_is; /* named by the reason of spread, PLACEMENT_COUNT: it is tested */
} machines[] = {
	{ "pu:1", { { OVER, { 1, 2 } } }, PLACEMENT_COUNT },
	/* A core with two threads, two cores behind one L3, two packages, two bare CPUs. */
	{ "core:1 pu:2", { { SAME_CORE, { 1 } }, { OVER, { 2, 4 } } }, SAME_CORE },
	{ "pack:1 l3:1 l2:2 core:1 pu:1", { { SAME_L3, { 1 } }, { OVER, { 2, 4 } } }, SAME_L3 },
	{ "pack:2 core:1 pu:1", { { CROSS, { 1 } }, { OVER, { 2, 4 } } }, CROSS },
	{ "pu:2", { { SAME_SOCKET, { 1 } }, { OVER, { 2, 4 } } }, SAME_SOCKET },
	/* Spread has the sibling as well, so it is none of the others. */
	{ "pack:1 l3:1 l2:2 core:1 pu:2",
	  { { SAME_CORE, { 1 } }, { SAME_L3, { 1, 2 } }, { SPREAD, { 3 } }, { OVER, { 4, 8 } } },
	  PLACEMENT_COUNT },
	{ "pack:2 l3:1 l2:50 core:1 pu:2",
	  { { SAME_CORE, { 1 } },
	    { SAME_L3, { 1, 2, 4, 8, 16, 32, 64, 98 } },
	    { CROSS, { 1, 2, 4, 8, 16, 32, 64, 100 } },
	    { SPREAD, { 199 } },
	    { OVER, { 200, 400 } } },
	  PLACEMENT_COUNT },
	/* No more executors than can be seated, and no seat twice. */
	{ "pack:1 core:600 pu:1",
	  { { SAME_SOCKET, { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 599 } },
	    { OVER, { 600, PLACEMENT_EXECUTORS_MAX } } },
	  SAME_SOCKET },
	{ "pack:1 core:1024 pu:1",
	  { { SAME_SOCKET, { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1023 } },
	    { OVER, { PLACEMENT_EXECUTORS_MAX } } },
	  SAME_SOCKET },
	{ "pack:1 core:1200 pu:1",
	  { { SAME_SOCKET, { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, PLACEMENT_EXECUTORS_MAX } } },
	  SAME_SOCKET },
};

static const unsigned *executors_of(const struct wanted *wanted, size_t count, enum placement p)
{
	static const unsigned none[1];

	for (size_t i = 0; i < count; i++)
		if (wanted[i].executors[0] && wanted[i].placement == p)
			return wanted[i].executors;
	return none;
}

static void assert_seats(const struct plan *plan, enum placement p, const unsigned *executors)
{
	for (unsigned i = 0; i < plan->seats; i++) {
		if (plan->seat[i].placement != p)
			continue;
		assert_int_equal(plan->seat[i].executors, *executors);
		executors++;
	}
	assert_int_equal(*executors, 0);
}

static const struct untested *find_unseated(const struct plan *plan, enum placement p)
{
	const struct untested *found = NULL;

	for (unsigned i = 0; i < plan->untested_placements; i++) {
		if (plan->untested[i].which != (int)p)
			continue;
		assert_null(found);
		found = &plan->untested[i];
	}
	return found;
}

static void every_placement_is_seated_or_says_why_not(void **state)
{
	(void)state;
	for (size_t m = 0; m < COUNT(machines); m++) {
		hwloc_topology_t t = synthetic(machines[m].description);
		struct plan plan = *plan_find("quick");

		plan_seat(&plan, t);
		for (int p = 0; p < PLACEMENT_COUNT; p++) {
			const unsigned *executors = executors_of(
				machines[m].wanted, COUNT(machines[m].wanted), (enum placement)p);
			const struct untested *unseated = find_unseated(&plan, (enum placement)p);

			assert_seats(&plan, (enum placement)p, executors);
			assert_int_equal(unseated == NULL, *executors != 0);
			if (unseated)
				assert_true(unseated->reason[0] != '\0');
		}
		hwloc_topology_destroy(t);
	}
}

static void every_seat_can_be_taken(void **state)
{
	(void)state;
	for (size_t m = 0; m < COUNT(machines); m++) {
		hwloc_topology_t t = synthetic(machines[m].description);
		struct plan plan = *plan_find("quick");
		struct seating seating;
		char reason[160];

		plan_seat(&plan, t);
		assert_true(plan.seats > 0);
		for (unsigned i = 0; i < plan.seats; i++)
			assert_int_equal(placement_seat(t, plan.seat[i].placement,
							plan.seat[i].executors, 0, &seating, reason,
							sizeof(reason)),
					 0);
		hwloc_topology_destroy(t);
	}
}

static void a_spread_that_is_another_placement_says_which(void **state)
{
	(void)state;
	for (size_t m = 0; m < COUNT(machines); m++) {
		hwloc_topology_t t = synthetic(machines[m].description);
		struct plan plan = *plan_find("quick");

		plan_seat(&plan, t);
		if (machines[m].spread_is != PLACEMENT_COUNT)
			assert_non_null(strstr(find_unseated(&plan, PLACEMENT_SPREAD)->reason,
					       placement_name(machines[m].spread_is)));
		hwloc_topology_destroy(t);
	}
}

/* Every relation, and as many CPUs as can be: nothing is dropped for lack of room. */
static void there_is_room_for_the_largest_machine(void **state)
{
	hwloc_topology_t t = synthetic("pack:2 l3:4 l2:8 core:8 pu:2");
	struct plan plan = *plan_find("thorough");

	(void)state;
	plan_seat(&plan, t);
	assert_true(plan.seats < PLAN_SEATS_MAX);
	assert_int_equal(plan.seat[plan.seats - 1].placement, PLACEMENT_OVERSUBSCRIBED);
	assert_int_equal(plan.untested_placements, 2);
	assert_non_null(find_unseated(&plan, PLACEMENT_KIND_UP));
	assert_non_null(find_unseated(&plan, PLACEMENT_KIND_DOWN));
	hwloc_topology_destroy(t);
}

static void a_cpuset_is_all_there_is(void **state)
{
	hwloc_topology_t t = synthetic("pack:2 l3:1 l2:50 core:1 pu:2");
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	struct plan plan = *plan_find("quick");

	(void)state;
	hwloc_bitmap_only(set, 117);
	assert_int_equal(hwloc_topology_restrict(t, set, 0), 0);
	plan_seat(&plan, t);
	assert_int_equal(plan.seats, 2);
	assert_int_equal(plan.seat[0].placement, PLACEMENT_OVERSUBSCRIBED);
	assert_int_equal(plan.seat[0].executors, 1);
	assert_int_equal(plan.seat[1].executors, 2);
	assert_int_equal(plan.untested_placements, PLACEMENT_COUNT - 1);
	hwloc_bitmap_free(set);
	hwloc_topology_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_have_names),
		cmocka_unit_test(plans_can_be_carried_out),
		cmocka_unit_test(longer_plans_measure_more),
		cmocka_unit_test(every_placement_is_seated_or_says_why_not),
		cmocka_unit_test(every_seat_can_be_taken),
		cmocka_unit_test(a_spread_that_is_another_placement_says_which),
		cmocka_unit_test(there_is_room_for_the_largest_machine),
		cmocka_unit_test(a_cpuset_is_all_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
