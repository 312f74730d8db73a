/* SPDX-License-Identifier: MIT */

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "stress/witness/witness.h"

/*
 * Share of the CPUs' time that the hypervisor gave to others. Idle virtual machines show 0.1 %;
 * from a few per cent on a neighbour is at work, and vCPUs move between cores.
 */
#define STEAL_SHARE 0.02

/* /proc/stat counts in hundredths of a second: one may belong to the time before. */
#define STEAL_GRAIN 0.01

/*
 * Involuntary switches of one pinned thread that shares its CPU with no other. The kernel's
 * threads take it some 25 times a second; a program that wants the CPU 50 times at least on top.
 */
#define SWITCHES_PER_SECOND 50.0
#define SWITCHES_ANYWAY	    10 /* that also the shortest cell may see */

/* Turbo steps and the error of the measurement stay below; another power state does not. */
#define CLOCK_CHANGE 0.1

/* SMIs stop all cores. One every few seconds is the machine as it is; more is a disturbance. */
#define SMIS_PER_SECOND 1.0

/* TSCs further apart, in ticks, were not synchronised, or one was moved. */
#define OFFSET_ALLOWED 1000

struct noise_text {
	char *at;
	size_t size;
	bool any;
};

/* Whole parts only; the first one says enough in any case. */
__attribute__((format(printf, 2, 3))) static void say(struct noise_text *w, const char *format, ...)
{
	size_t length = w->size ? strlen(w->at) : 0;
	char part[NOISE_REASON_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(part, sizeof(part), format, args);
	va_end(args);
	w->any = true;
	if (w->size && (!length || length + 2 + strlen(part) < w->size))
		snprintf(w->at + length, w->size - length, "%s%s", length ? ", " : "", part);
}

bool noise_judge(const struct noise_case *n, char *reason, size_t size)
{
	struct noise_text w = { .at = reason, .size = size };
	const struct witness *t = n->witness;
	hwloc_bitmap_t cpus = seating_cpus(n->seating);
	unsigned used = cpus ? (unsigned)hwloc_bitmap_weight(cpus) : 1;
	unsigned provokers = n->cell->provokers;
	double cpu_seconds = n->seconds * used, threads = 1 + n->seating->executors;
	double switches = SWITCHES_ANYWAY + SWITCHES_PER_SECOND * threads * n->seconds;
	uint64_t apart = t->offset < 0 ? -(uint64_t)t->offset : (uint64_t)t->offset;
	/* The witness counted itself. As long as there are free CPUs others do not come to ours. */
	double others = t->load - 1, spare = n->online > used ? n->online - used : 0;

	hwloc_bitmap_free(cpus);
	if (size)
		reason[0] = '\0';
	if (t->steal * cpu_seconds - STEAL_GRAIN > STEAL_SHARE * cpu_seconds)
		say(&w, "steal %.1f %%", 100 * t->steal);
	/* Where threads are meant to share CPUs they take turns. */
	if (n->cell->placement != PLACEMENT_OVERSUBSCRIBED &&
	    !provokers_have(provokers, PROVOKER_SHARES) && t->involuntary != WITNESS_UNKNOWN &&
	    (double)t->involuntary > switches)
		say(&w, "%" PRIu64 " involuntary switches in %.3g s", t->involuntary, n->seconds);
	if (others > spare)
		say(&w, "%.0f other task%s runnable", others, others > 1 ? "s" : "");
	/* Wide vector work is there to change it. */
	if (t->clock[0] > 0 && t->clock[1] > 0 && !provokers_have(provokers, PROVOKER_CLOCKS) &&
	    fabs(t->clock[1] - t->clock[0]) > CLOCK_CHANGE * t->clock[0])
		say(&w, "clock rate from %.2f to %.2f cycles per tick", t->clock[0], t->clock[1]);
	if (t->longest_step == WITNESS_BACKWARDS)
		say(&w, "the TSC went backwards");
	/* An unknown error is larger than any offset. */
	if (apart > OFFSET_ALLOWED && apart - OFFSET_ALLOWED > t->offset_error)
		say(&w, "TSCs %" PRIu64 " ticks apart", apart);
	if (t->throttles != WITNESS_UNKNOWN && t->throttles > 0)
		say(&w, "throttled %" PRIu64 " time%s", t->throttles, t->throttles > 1 ? "s" : "");
	/* The first may come at any time, in the shortest cell too. */
	if (t->smis != WITNESS_UNKNOWN && t->smis > 1 &&
	    (double)t->smis > SMIS_PER_SECOND * n->seconds)
		say(&w, "%" PRIu64 " SMIs in %.3g s", t->smis, n->seconds);
	return w.any;
}
