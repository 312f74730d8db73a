/* SPDX-License-Identifier: MIT */
#ifndef FLEET_JUDGE_EACH_KIND_H
#define FLEET_JUDGE_EACH_KIND_H

#include "fleet/judge/ladder_of.h"

/* One kind, and what it supports. */
struct kind_report {
	struct fleet *fleet;
	const struct fleet_kind *kinds, *kind;
	size_t kind_count;
	const struct fleet_run *runs;
	size_t count;
	struct estimate estimate;
	struct behind behind;
};

/*
 * each_kind - call tell for each kind, those of most machines first, with its runs and its ladder.
 * The sum of what it returns, or the first negative errno; -ENODATA: there is no run.
 */
int each_kind(struct fleet *fleet, int (*tell)(const struct kind_report *report, void *arg),
	      void *arg);

#endif
