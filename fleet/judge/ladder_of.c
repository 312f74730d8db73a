/* SPDX-License-Identifier: MIT */
/* The ladder of a kind, and that for a machine that was never seen. */
#include "fleet/judge/ladder_of.h"
#include "patchcore/machine/kinds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The placements that occur, in plan_seat()'s order: what a change costs is timed at the first. */
static void seat_what_occurs(struct plan *plan, const struct fleet_run *runs, size_t count)
{
	unsigned most[PLACEMENT_COUNT] = { 0 };

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < runs[i].sums.count; k++) {
			const struct sum *s = &runs[i].sums.sum[k];

			if (sum_is_wait(s) && s->executors > most[s->placement])
				most[s->placement] = s->executors;
		}
	plan->seats = 0;
	for (enum placement p = 0; p < PLACEMENT_COUNT; p++)
		if (most[p])
			plan->seat[plan->seats++] = (struct seat){ p, most[p] };
}

int ladder_of_kind(const struct identity *of, const struct fleet_run *runs, size_t count,
		   struct estimate *e, bool by_machine)
{
	struct plan plan = *plan_find("default");
	struct hours hours;
	int ret = hours_of(&hours, runs, count, by_machine);

	plan.widest = kind_read(of).widest;
	seat_what_occurs(&plan, runs, count);
	if (ret == 0)
		estimate_make(e, hours.sums, hours.count, &plan);
	hours_free(&hours);
	return ret;
}

/* --- For a machine that was never seen -------------------------------------------------------- */

static bool has_toggled(const struct fleet_run *run, const struct sum *like)
{
	for (size_t k = 0; k < run->sums.count; k++) {
		const struct sum *s = &run->sums.sum[k];

		if (sum_is_like(s, like) && s->count.toggles &&
		    (!sum_is_wait(s) ||
		     (s->placement == like->placement && waits_same(&s->rung, &like->rung))))
			return true;
	}
	return false;
}

/* Count the machines that have toggled there, and keep the smaller number. */
static void take_fewer(struct behind_one *fewest, const struct fleet_run *runs, size_t count,
		       const struct sum *like)
{
	struct behind_one n = { 0 };
	int64_t last = -1;

	for (size_t i = 0; i < count; i++) {
		if (!has_toggled(&runs[i], like))
			continue;
		n.runs++;
		n.machines += runs[i].machine != last;
		last = runs[i].machine;
	}
	if (n.machines < fewest->machines)
		*fewest = n;
}

void ladder_behind(const struct fleet_run *runs, size_t count, const struct estimate *e,
		   struct behind *behind)
{
	static const enum crossing crossings[] = { CROSSING_LINE, CROSSING_PAGE },
				   inside[] = { CROSSING_8, CROSSING_16, CROSSING_32 };

	*behind = (struct behind){ .window = { UINT64_MAX, 0 } };
	for (unsigned i = 0; i < CLAIMS * e->levels; i++) {
		const struct level *level = &e->level[i / CLAIMS];
		const struct claim *claim = &level->claim[i % CLAIMS];
		struct sum like = { .kind = SUM_WAIT,
				    .rung = level->rung,
				    .crossing = crossings[i % CLAIMS] };
		struct behind_one *fewest = &behind->level[i / CLAIMS][i % CLAIMS];

		if (!claim->count.toggles)
			continue;
		fewest->machines = UINT64_MAX;
		for (unsigned k = 0; k < claim->sections; k++) {
			like.placement = claim->section[k].placement;
			take_fewer(fewest, runs, count, &like);
		}
	}
	for (unsigned i = 0; i < 3; i++) {
		const struct sum like = { .kind = SUM_STORE, .crossing = inside[i] };

		take_fewer(&behind->window, runs, count, &like);
	}
}

int prior_of_kind(const struct identity *of, const struct fleet_run *runs, size_t count,
		  struct estimate *e, struct behind *behind)
{
	int ret = ladder_of_kind(of, runs, count, e, true);

	if (ret < 0)
		return ret;
	ladder_behind(runs, count, e, behind);
	for (unsigned i = 0; i < e->levels; i++) {
		struct level *level = &e->level[i];

		level->upper_p = 0;
		for (int c = 0; c < CLAIMS; c++) {
			double missed = bound_missed(behind->level[i][c].machines);

			level->claim[c].upper_p = fmin(1, level->claim[c].upper_p + missed);
			level->upper_p = fmax(level->upper_p, level->claim[c].upper_p);
		}
	}
	e->window.upper_p = fmin(1, e->window.upper_p + bound_missed(behind->window.machines));
	return 0;
}

int each_kind(struct fleet *fleet, int (*tell)(const struct kind_report *report, void *arg),
	      void *arg)
{
	struct kind_report *r = calloc(1, sizeof(*r));
	struct fleet_kind *kinds = NULL;
	int ret = r ? 0 : -ENOMEM, sum = 0;

	if (ret == 0) {
		r->fleet = fleet;
		ret = fleet_kinds(fleet, &kinds, &r->kind_count);
		r->kinds = kinds;
	}
	if (ret == 0 && !r->kind_count)
		ret = -ENODATA;
	for (size_t i = 0; ret >= 0 && i < r->kind_count; i++) {
		struct fleet_run *runs;

		r->kind = &kinds[i];
		ret = fleet_runs(fleet, r->kind->id, &runs, &r->count);
		r->runs = runs;
		if (ret == 0)
			ret = ladder_of_kind(&r->kind->identity, runs, r->count, &r->estimate,
					     false);
		if (ret == 0) {
			ladder_behind(runs, r->count, &r->estimate, &r->behind);
			ret = tell(r, arg);
		}
		fleet_runs_free(runs, r->count);
		sum += ret;
	}
	free(kinds);
	free(r);
	return ret < 0 ? ret : sum;
}
