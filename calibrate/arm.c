/* SPDX-License-Identifier: MIT */
#include "calibrate/arm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "calibrate/bound.h"

#define SIGNIFICANT 0.05

static bool is_arm_of(const struct arm *arm, const struct cell *cell)
{
	return arm->provokers == cell->provokers && arm->loop == cell->loop &&
	       arm->rest == cell->rest;
}

struct arm *arm_of(struct arms *arms, const struct cell *cell)
{
	struct arm *arm;

	for (unsigned i = 0; i < arms->count; i++)
		if (is_arm_of(&arms->arm[i], cell))
			return &arms->arm[i];
	if (arms->count == ARMS_MAX)
		return NULL;
	arm = &arms->arm[arms->count++];
	*arm = (struct arm){
		.provokers = cell->provokers,
		.loop = cell->loop,
		.rest = cell->rest,
	};
	return arm;
}

void arm_to_cell(const struct arm *arm, struct cell *cell)
{
	cell->provokers = arm->provokers;
	cell->loop = arm->loop;
	cell->rest = arm->rest;
}

/*
 * Given all tears of two arms, those of one are binomial if both rates are the
 * same: an exact test, for counts however small.
 */
static double worse_by_chance(const struct arm *arm, const struct arm *none)
{
	uint64_t all = arm->tears + none->tears;

	if (arm->tears == 0 || arm->toggles == 0 || none->toggles == 0)
		return 1;
	return gsl_cdf_binomial_Q((unsigned)(arm->tears - 1),
				  (double)arm->toggles / (double)(arm->toggles + none->toggles),
				  (unsigned)all);
}

static void judge(struct arm *arm, const struct arm *none)
{
	double both_sides = (1 + CONFIDENCE) / 2;

	arm->rate = arm->toggles ? (double)arm->tears / (double)arm->toggles : 0;
	arm->lower = bound_lower(arm->tears, arm->toggles, both_sides);
	arm->upper = bound_upper(arm->tears, arm->toggles, both_sides);
	arm->ratio = none->tears ? arm->rate * (double)none->toggles / (double)none->tears : -1;
	arm->p = worse_by_chance(arm, none);
}

void arms_count(struct arms *arms, const struct cell_record *records, size_t count)
{
	*arms = (struct arms){ 0 };
	for (size_t i = 0; i < count; i++) {
		const struct cell_record *r = &records[i];
		struct arm *arm;

		if (strcmp(r->stage, "provoke") != 0)
			continue;
		arm = arm_of(arms, &r->cell);
		if (!arm)
			continue;
		/* A noisy cell was run again: its toggles would count twice, its tears stay. */
		arm->toggles += record_toggles(r);
		arm->tears += cell_result_tears(&r->result);
	}
	for (unsigned i = 0; i < arms->count; i++)
		judge(&arms->arm[i], &arms->arm[0]);
}

static bool is_worse(const struct arms *arms, unsigned i)
{
	return arms->arm[i].p * (arms->count - 1) < SIGNIFICANT &&
	       arms->arm[i].rate > arms->arm[0].rate;
}

static bool is_taken(const unsigned *index, unsigned taken, unsigned i)
{
	for (unsigned k = 0; k < taken; k++)
		if (index[k] == i)
			return true;
	return false;
}

unsigned arms_worst(const struct arms *arms, unsigned *index, unsigned room)
{
	unsigned taken = 0;

	if (arms->count == 0 || room == 0)
		return 0;
	index[taken++] = 0;
	while (taken < room) {
		unsigned worst = 0;

		for (unsigned i = 1; i < arms->count; i++)
			if (is_worse(arms, i) && !is_taken(index, taken, i) &&
			    (worst == 0 || arms->arm[i].rate > arms->arm[worst].rate))
				worst = i;
		if (worst == 0)
			break;
		index[taken++] = worst;
	}
	return taken;
}

char *arm_name(const struct arm *arm, char *buf, size_t size)
{
	char names[PROVOKERS_MAX];

	snprintf(buf, size, "%s rest %" PRIu64 " loop %u", provokers_name(arm->provokers, names),
		 arm->rest, arm->loop);
	return buf;
}
