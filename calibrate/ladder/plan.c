/* SPDX-License-Identifier: MIT */
#include "calibrate/ladder/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "stress/provoke/provoker.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct plan plans[] = {
	{
		.name = "quick",
		.budget = 55, /* the rest of a minute is for starting and drawing */
		.controls = 0.04,
		.window = 0.12,
		.fetch_gaps = 0.08,
		.slice = 0.2,
		.require_p = REQUIRE_P,
	},
	{
		.name = "default",
		.budget = 14.5 * 60,
		.controls = 0.01,
		.window = 0.35,
		.fetch_gaps = 0.08,
		.slice = 0.25,
		.require_p = REQUIRE_P,
	},
	{
		.name = "thorough",
		.budget = 2 * 3600,
		.controls = 0.005,
		.window = 0.35,
		.fetch_gaps = 0.08,
		.slice = 0.25,
		.require_p = REQUIRE_P,
	},
};

const struct plan *plan_find(const char *name)
{
	for (size_t i = 0; i < COUNT(plans); i++)
		if (strcmp(plans[i].name, name) == 0)
			return &plans[i];
	return NULL;
}

static void add_unseated(struct plan *plan, enum placement p, const char *reason)
{
	struct unseated *unseated = &plan->unseated[plan->unseateds++];

	unseated->placement = p;
	snprintf(unseated->reason, sizeof(unseated->reason), "%s", reason);
}

static void add_seat(struct plan *plan, enum placement p, unsigned executors)
{
	if (plan->seats < PLAN_SEATS_MAX)
		plan->seat[plan->seats++] = (struct seat){ p, executors };
}

/* On small machines spread is one of the others under a new name. */
static const struct seat *find_same(const struct plan *plan, hwloc_topology_t topology,
				    enum placement p, unsigned executors)
{
	struct seating wanted, other;
	char reason[160];

	if (placement_seat(topology, p, executors, &wanted, reason, sizeof(reason)) < 0)
		return NULL;
	for (unsigned i = 0; i < plan->seats; i++) {
		const struct seat *seat = &plan->seat[i];

		if (seat->executors == executors &&
		    placement_seat(topology, seat->placement, executors, &other, reason,
				   sizeof(reason)) == 0 &&
		    seating_is_same(&wanted, &other))
			return seat;
	}
	return NULL;
}

static void seat_spread(struct plan *plan, hwloc_topology_t topology, unsigned max)
{
	const struct seat *same = find_same(plan, topology, PLACEMENT_SPREAD, max);
	char reason[160];

	if (!same) {
		add_seat(plan, PLACEMENT_SPREAD, max);
		return;
	}
	snprintf(reason, sizeof(reason), "the same CPUs as %s here",
		 placement_name(same->placement));
	add_unseated(plan, PLACEMENT_SPREAD, reason);
}

static void seat_placement(struct plan *plan, hwloc_topology_t topology, enum placement p)
{
	char reason[160] = "";
	unsigned max = placement_max(topology, p, reason, sizeof(reason));

	if (max == 0) {
		add_unseated(plan, p, reason);
		return;
	}
	if (p == PLACEMENT_OVERSUBSCRIBED) {
		unsigned cpus = (unsigned)hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);

		/* One thread too many, and twice as many executors as CPUs. */
		add_seat(plan, p, cpus);
		if (cpus < max)
			add_seat(plan, p, 2 * cpus < max ? 2 * cpus : max);
		return;
	}
	if (p == PLACEMENT_SPREAD) {
		seat_spread(plan, topology, max);
		return;
	}
	for (unsigned n = 1; n < max; n *= 2)
		add_seat(plan, p, n);
	add_seat(plan, p, max);
}

static void list_unprovoked(struct plan *plan, hwloc_topology_t topology)
{
	struct seating seating;
	char reason[160];

	if (plan->seats == 0 ||
	    placement_seat(topology, plan->seat[0].placement, plan->seat[0].executors, &seating,
			   reason, sizeof(reason)) < 0)
		return;
	for (int p = 0; p < PROVOKER_COUNT; p++) {
		struct unprovoked *u = &plan->unprovoked[plan->unprovokeds];

		if (provoker_possible((enum provoker)p, topology, &seating, u->reason,
				      sizeof(u->reason)) == 0)
			continue;
		u->provoker = (enum provoker)p;
		plan->unprovokeds++;
	}
}

void plan_seat(struct plan *plan, hwloc_topology_t topology)
{
	for (int p = 0; p < PLACEMENT_COUNT; p++)
		seat_placement(plan, topology, (enum placement)p);
	list_unprovoked(plan, topology);
}
