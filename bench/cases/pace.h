/* SPDX-License-Identifier: MIT */
#ifndef BENCH_CASES_PACE_H
#define BENCH_CASES_PACE_H

#include <stdbool.h>
#include <stdint.h>
#include <x86intrin.h>

/*
 * When a patcher that toggles so often a second shall make its next change.
 *
 * The moments are laid down in advance, so a change that comes late does not shift those
 * behind it: they follow as fast as they can until the schedule is met again. Change k (from
 * 0) is due k + 1/2 periods after the start. So in a time of an even number of periods either
 * state has exactly half of it, and as many changes are made as the rate says.
 */
struct pace {
	uint64_t start, end; /* ticks */
	double period;	     /* ticks; 0: as fast as possible, INFINITY: none is ever due */
	uint64_t done;
};

/* pace_from - so often a second (0, INFINITY: see above), by a clock of so many ticks in one. */
static inline struct pace pace_from(uint64_t start, double rate, double seconds,
				    double ticks_per_second)
{
	return (struct pace){
		.start = start,
		.end = start + (uint64_t)(seconds * ticks_per_second),
		.period = ticks_per_second / rate,
	};
}

/* pace_due - when the next change is; at the end, if none is due before. */
static inline uint64_t pace_due(const struct pace *pace)
{
	double due = ((double)pace->done + 0.5) * pace->period;

	return due < (double)(pace->end - pace->start) ? pace->start + (uint64_t)due : pace->end;
}

/* pace_passed - is it that late? Also across a wrap. */
static inline bool pace_passed(uint64_t moment)
{
	return (int64_t)(__rdtsc() - moment) >= 0;
}

/*
 * pace_next - spin until the next change is due. True: make it now. False: the end.
 * No PAUSE, which would coarsen the schedule: see ticks_wait_since().
 */
static inline bool pace_next(struct pace *pace)
{
	uint64_t due = pace_due(pace);

	while (!pace_passed(due))
		;
	if (pace_passed(pace->end))
		return false;
	pace->done++;
	return true;
}

#endif
