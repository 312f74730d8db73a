/* SPDX-License-Identifier: MIT */
#include "calibrate/plan/plan.h"

#include <stdio.h>
#include <string.h>

#include "stress/run/run.h"

#define LOWEST UINT64_C(100)  /* ticks; above 0 */
#define SURELY UINT64_C(3200) /* ticks; tried however little a membarrier costs */

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void add_rung(struct ladder *ladder, uint64_t wait, uint64_t stretch)
{
	if (ladder->count < RUNGS_MAX)
		ladder->rung[ladder->count++] = (struct waits){ wait, wait, stretch };
}

/* None, 100, and so many times as long each. */
static void add_stretched(struct ladder *ladder, uint64_t top, unsigned times)
{
	add_rung(ladder, 0, LADDER_STRETCH);
	for (uint64_t wait = LOWEST; wait <= top; wait *= times)
		add_rung(ladder, wait, LADDER_STRETCH);
}

void ladder_make(struct ladder *ladder, uint64_t ticks)
{
	uint64_t top = ticks ? ticks / 2 : LADDER_TOP;

	*ladder = (struct ladder){ 0 };
	if (top < SURELY)
		top = SURELY;
	if (top > LADDER_TOP)
		top = LADDER_TOP;
	add_stretched(ladder, top, 2);
	ladder->stretched = ladder->count;
	for (uint64_t wait = 0; wait <= LADDER_PAPER; wait += LADDER_STEP)
		add_rung(ladder, wait, 0);
	ladder->rested = ladder->count;
	add_stretched(ladder, SURELY, 4);
	ladder->rested = ladder->count - ladder->rested;
	ladder->count -= ladder->rested;
}

#define PLAN(...)                                                                                  \
	{                                                                                          \
		.fetch_gaps = 0.08, .require_p = REQUIRE_P, __VA_ARGS__                            \
	}

static const struct plan plans[] = {
	/* The rest of a minute is for starting and drawing. */
	PLAN(.name = "quick", .budget = 55, .controls = 0.04, .window = 0.12, .slice = 0.2),
	PLAN(.name = "default", .budget = 14.5 * 60, .controls = 0.01, .window = 0.35,
	     .slice = 0.25),
	PLAN(.name = "thorough", .budget = 2 * 3600, .controls = 0.005, .window = 0.35,
	     .slice = 0.25),
};

const struct plan *plan_find(const char *name)
{
	for (size_t i = 0; i < COUNT(plans); i++)
		if (strcmp(plans[i].name, name) == 0)
			return &plans[i];
	return NULL;
}

const char *untested_name(const struct untested *u)
{
	return u->is_provoker ? provoker_name((enum provoker)u->which)
			      : placement_name((enum placement)u->which);
}

static void add_untested(struct plan *plan, bool is_provoker, int which, const char *reason)
{
	struct untested *u = &plan->untested[plan->untesteds++];

	*u = (struct untested){ .is_provoker = is_provoker, .which = which };
	snprintf(u->reason, sizeof(u->reason), "%s", reason);
	plan->untested_placements += !is_provoker;
}

static void add_seat(struct plan *plan, enum placement p, unsigned executors)
{
	if (plan->seats < PLAN_SEATS_MAX)
		plan->seat[plan->seats++] = (struct seat){ p, executors };
}

/* On a small machine spread has the same CPUs as another placement. */
static const struct seat *find_same(const struct plan *plan, hwloc_topology_t topology,
				    enum placement p, unsigned executors)
{
	struct seating wanted, other;
	char reason[160];

	if (placement_seat(topology, p, executors, 0, &wanted, reason, sizeof(reason)) < 0)
		return NULL;
	for (unsigned i = 0; i < plan->seats; i++) {
		const struct seat *seat = &plan->seat[i];

		if (seat->executors == executors &&
		    placement_seat(topology, seat->placement, executors, 0, &other, reason,
				   sizeof(reason)) == 0 &&
		    seating_is_same(&wanted, &other))
			return seat;
	}
	return NULL;
}

void plan_seat(struct plan *plan, hwloc_topology_t topology)
{
	struct seating seating;
	char reason[160];

	for (enum placement p = 0; p < PLACEMENT_COUNT; p++) {
		unsigned max = placement_max(topology, p, reason, sizeof(reason));
		const struct seat *same =
			p == PLACEMENT_SPREAD && max ? find_same(plan, topology, p, max) : NULL;

		if (same)
			snprintf(reason, sizeof(reason), "the same CPUs as %s here",
				 placement_name(same->placement));
		if (max == 0 || same) {
			add_untested(plan, false, (int)p, reason);
		} else if (p == PLACEMENT_OVERSUBSCRIBED) {
			unsigned cpus = (unsigned)hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);

			/* One thread too many, and twice as many executors as CPUs. */
			add_seat(plan, p, cpus);
			if (cpus < max)
				add_seat(plan, p, 2 * cpus < max ? 2 * cpus : max);
		} else {
			for (unsigned n = 1; n < max && p != PLACEMENT_SPREAD; n *= 2)
				add_seat(plan, p, n);
			add_seat(plan, p, max);
		}
	}
	if (plan->seats == 0 ||
	    placement_seat(topology, plan->seat[0].placement, plan->seat[0].executors, 0, &seating,
			   reason, sizeof(reason)) < 0)
		return;
	for (int p = 0; p < PROVOKER_COUNT; p++)
		if (provokers_possible(1u << p, topology, &seating, reason, sizeof(reason)) < 0)
			add_untested(plan, true, p, reason);
}
