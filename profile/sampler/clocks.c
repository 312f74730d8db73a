/* SPDX-License-Identifier: MIT */
#include "profile/sampler/epochs.h"

#define MEASURED 100e-6 /* seconds in which ticks are counted */
#define AT_ONCE	 1000	/* ticks between which two clocks are read */

static double parallel = 1; /* how many threads of the program run at once, of late */

void clocks_sleep(double seconds)
{
	struct timespec pause = { .tv_sec = (time_t)seconds };

	pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
	nanosleep(&pause, NULL);
}

/* Both clocks, read without a preemption between them. */
static double seconds_at(uint64_t *at)
{
	uint64_t before;
	double time;
	int tries = 0;

	do {
		before = __builtin_ia32_rdtsc();
		time = clock_seconds(CLOCK_MONOTONIC);
		*at = __builtin_ia32_rdtsc();
	} while (*at - before > AT_ONCE && ++tries < 1000);
	return time;
}

double clocks_measure(void)
{
	uint64_t start, end;
	double from = seconds_at(&start), to;

	do
		to = seconds_at(&end);
	while (to - from < MEASURED);
	return (double)(end - start) / (to - from);
}

/* A program that waits for a CPU counts as one thread at least. */
void clocks_learn_parallel(void)
{
	static uint64_t own_before, wall_before;
	uint64_t own = watch_clock(), wall = __builtin_ia32_rdtsc();

	if (wall_before && own > own_before && wall > wall_before) {
		double now = (double)(own - own_before) / (double)(wall - wall_before);

		parallel += (now - parallel) / 16;
		if (parallel < 1)
			parallel = 1;
	}
	own_before = own;
	wall_before = wall;
}

uint64_t clocks_since(uint64_t start, uint64_t now)
{
	return now > start ? (uint64_t)((double)(now - start) / parallel) : 0;
}

/* --- What the profile costs, by its own measure ---------------------------------------------- */

double cost_of_toggling(void)
{
	return (double)load_relaxed(&watch_common.off_ticks) + account.turning_on;
}

void cost_add_toggling(double since)
{
	account.turning_on +=
		(clock_seconds(CLOCK_THREAD_CPUTIME_ID) - since) * watch_common.per_second;
}

double cost_of_all(void)
{
	return account.start + clock_seconds(watch_common.own) * watch_common.per_second +
	       (double)load_relaxed(&watch_common.spent) +
	       (double)(ring_run() - account.run_at_start) * ring_price();
}

void cost_settle(void)
{
	double now = cost_of_all();

	account.spent = now > account.spent ? now : account.spent;
	account.used = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) * watch_common.per_second -
		       account.used_at_start;
}
