/* SPDX-License-Identifier: MIT */
/*
 * Fleets with known truth: three microarchitectures, one bad microcode, marginal machines, and
 * hours that differ as storms make them.
 */
#ifndef FLEET_TESTS_WORLD_H
#define FLEET_TESTS_WORLD_H

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fleet/store/store.h"

#define WORLD_KINDS    3
#define WORLD_RUNGS    8
#define WORLD_TOGGLES  20000u /* of each rung and crossing in an hour */
#define WORLD_BASE     2e-4   /* tears per toggle at the first rung, of the first kind */
#define WORLD_BAD      5.0    /* times as many with the bad microcode */
#define WORLD_MARGINAL 30.0   /* and on a marginal machine */
#define WORLD_START    1700000000
#define WORLD_DAY      86400

struct world {
	gsl_rng *rng;
	unsigned hours;	   /* of each machine, one a day */
	double unevenness; /* standard deviation of the logarithm of an hour's rate */
	double storms;	   /* share of hours with ten times the rate */
	bool here;	   /* all are this machine's kind, tested at every placement */
};

static inline struct identity world_identity(unsigned kind, bool bad)
{
	static const unsigned families[WORLD_KINDS] = { 6, 25, 6 }, models[] = { 106, 17, 143 };
	struct identity id = {
		.family = families[kind],
		.model = models[kind],
		.stepping = 1,
		.cache_line = 64,
		.tsc_invariant = true,
		.tsc_khz = 2600000,
		.sockets = 2,
		.cores = 64,
		.cpus = 128,
	};

	strcpy(id.vendor, kind == 1 ? "AuthenticAMD" : "GenuineIntel");
	snprintf(id.brand, sizeof(id.brand), "Simulated %u", kind);
	strcpy(id.microcode, bad ? "0x2" : "0x1");
	strcpy(id.hypervisor, "none");
	strcpy(id.caches, "L1d 32K");
	strcpy(id.kernel, "6.1");
	return id;
}

/* One hour of a machine that tears `times` as often as its kind. The caller frees the sums. */
static inline struct evidence_run world_hour(struct world *w, unsigned kind, bool bad, double times,
					     unsigned day)
{
	struct evidence_run run = { .time = WORLD_START + (int64_t)day * WORLD_DAY,
				    .identity = world_identity(kind, bad) };
	double rate = WORLD_BASE * (kind + 1) * times * (bad ? WORLD_BAD : 1) *
		      exp(gsl_ran_gaussian(w->rng, w->unevenness));

	if (w->here && identity_read(&run.identity) < 0)
		return run;
	if (gsl_rng_uniform(w->rng) < w->storms)
		rate *= 10;
	strcpy(run.source, "default");
	snprintf(run.boot, sizeof(run.boot), "%08lx-%08lx", gsl_rng_get(w->rng),
		 gsl_rng_get(w->rng));
	snprintf(run.print, sizeof(run.print), "%.8s%.8s", run.boot, run.boot + 9);
	strcpy(run.start, run.print);
	strcpy(run.date, "2026-01-01T00:00:00Z");
	run.cpus.word[0] = 3;
	for (unsigned k = 0; k < 2 * WORLD_RUNGS * (w->here ? PLACEMENT_COUNT : 1); k++) {
		unsigned i = k % (2 * WORLD_RUNGS);
		uint64_t wait = i / 2 ? 50u << (i / 2) : 0;
		struct sum s = {
			.kind = SUM_WAIT,
			.rung = { wait, wait, 4 },
			.crossing = i % 2 ? CROSSING_PAGE : CROSSING_LINE,
			.placement = w->here ? (enum placement)(k / (2 * WORLD_RUNGS))
					     : PLACEMENT_SAME_L3,
			.executors = 1,
		};
		double p = fmin(0.5, rate * pow(10, -0.4 * (i / 2)));
		uint64_t tears = gsl_ran_poisson(w->rng, p * WORLD_TOGGLES);

		s.count = (struct count){
			.slices = 4,
			.toggles = WORLD_TOGGLES,
			.tears = tears,
			.unevenness = (double)tears * (double)tears / WORLD_TOGGLES,
			.squares = WORLD_TOGGLES / 4.0 * WORLD_TOGGLES,
			.ticks = 3000.0 * WORLD_TOGGLES,
			.worst_tears = tears,
			.worst_toggles = WORLD_TOGGLES,
		};
		if (sums_add(&run.sums, &s) < 0)
			break;
	}
	return run;
}

/* Every hour of one machine into the database. */
static inline int world_machine(struct world *w, struct fleet *fleet, const char *name,
				unsigned kind, bool bad, double times)
{
	char machine[FLEET_NAME];
	int ret = 0;

	snprintf(machine, sizeof(machine), "%s", name);
	for (unsigned day = 0; day < w->hours && ret >= 0; day++) {
		struct evidence_run run = world_hour(w, kind, bad, times, day);
		int64_t id;

		ret = fleet_add_run(fleet, machine, &run, &id);
		sums_free(&run.sums);
	}
	return ret < 0 ? ret : 0;
}

#endif
