/* SPDX-License-Identifier: MIT */
/*
 * Phases: all blocks on in one batch, and off in one.
 *
 * Counting starts when all are on and every thread has seen that, and ends before the first is
 * turned off: so no block of a phase is passed over, which would join two that are no neighbours.
 */
#include "probes/profile/edges/edges.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/agent/alone.h"
#include "probes/profile/sample/clock.h"
#include "probes/profile/sample/pages.h"
#include "probes/profile/sample/relaxed.h"
#include "probes/profile/session/session.h"

#define PATIENCE 2	/* seconds */
#define AGAIN	 500e-6 /* seconds, half of the first wait for another try */
#define SWEEP_NS 300000 /* between two looks at what was run between phases */

static atomic_bool stopping;
static uint32_t swept; /* edges_wakes() when blocks that were run were last turned off */
static pthread_t thread;
static double period, on_time, began;
static struct phases all;
static struct weights weights;

/* Turn off blocks that were run between phases for the first time. Each has woken this thread. */
static void sweep_blocks(void)
{
	set_lock();
	set_sweep();
	set_unlock();
	/* Others come with them. */
	nanosleep(&(struct timespec){ .tv_nsec = SWEEP_NS }, NULL);
}

/* By a clock that is never set; not when the thread has to end. */
static void rest_between(double seconds, bool sweeps)
{
	struct timespec until;
	uint32_t wakes;
	double end;

	clock_gettime(CLOCK_MONOTONIC, &until);
	end = (double)until.tv_nsec / 1e9 + (seconds > 0 ? seconds : 0);
	until.tv_sec += (time_t)end;
	until.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
	do {
		wakes = edges_wakes();
		if (sweeps && wakes != swept && !stopping) {
			swept = wakes;
			sweep_blocks();
		}
	} while (!stopping && edges_wait(wakes, &until));
}

static void all_see_it(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

/*
 * The part of a phase in which the program can have been watched. Where a phase lasts longer than
 * it was to, the program or its machine may have been stopped in it: then no thread had a CPU.
 */
static double watched(double length, double cpu)
{
	double most = cpu > on_time ? cpu : on_time;

	return length < most ? length : most;
}

/*
 * The lock is held. Toggling is time of this thread: on a busy machine it waits for a CPU in the
 * middle of a change. False: not all blocks could be turned on, as where a thread is just being
 * made, which has SIGTRAP blocked for a moment.
 */
static bool run_phase(void)
{
	struct phase one = { .start = clock_seconds(CLOCK_MONOTONIC) - began, .phases = 1 };
	double own = clock_seconds(CLOCK_THREAD_CPUTIME_ID), start, cpu;
	uint64_t runs;

	if (set_on()) {
		all.sum.toggling += clock_seconds(CLOCK_THREAD_CPUTIME_ID) - own;
		return false;
	}
	all_see_it();
	one.toggling = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - own;
	start = clock_seconds(CLOCK_MONOTONIC);
	cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	edges_phase((uint64_t)++all.sum.epochs);
	rest_between(on_time, false);
	edges_phase(0);
	cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	one.on = watched(clock_seconds(CLOCK_MONOTONIC) - start, cpu);
	swept = edges_wakes();
	own = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
	set_rest();
	one.toggling += clock_seconds(CLOCK_THREAD_CPUTIME_ID) - own;
	runs = edges_runs();
	one.calls = (double)runs;
	edges_weigh(weight_of_phase(&weights, one.on, cpu, runs));
	all.sum.on += one.on;
	all.sum.toggling += one.toggling;
	moments_add(&all.moments, &one);
	return true;
}

void phases_run(uintptr_t unused)
{
	unsigned short dice[3] = { (unsigned short)getpid(), 42, 4711 };
	double again = AGAIN;

	(void)unused;
	/* The first one is early: of a program that ends soon something is seen. */
	do {
		/* A pin waits for the loader, that for a fork(), and that for the lock. */
		int found = fi_scan();
		double rest = period * (0.5 + erand48(dice)) - on_time;

		if (found >= 0)
			set_collect(found > 0, &all.sum);
		set_lock();
		if (found < 0 || !(all.sum.blocks > 0) || set_held() || run_phase())
			again = AGAIN;
		else if ((again *= 2) < rest)
			rest = again;
		set_unlock();
		rest_between(rest, true);
	} while (!stopping && !is_program_over());
	set_lock_off();
	set_unlock();
}

int phases_start(double every, double on, bool visit)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) < 0)
		return -errno;
	period = every;
	on_time = on;
	began = clock_seconds(CLOCK_MONOTONIC);
	all = (struct phases){ 0 };
	weights = (struct weights){ 0 };
	stopping = false;
	set_start(visit);
	return session_thread(&thread, 0);
}

int phases_stop(void)
{
	struct timespec until;
	int ret;

	all.sum.seconds = clock_seconds(CLOCK_MONOTONIC) - began;
	stopping = true;
	edges_wake();
	/* It was the last thread, and ends the process. */
	if (pthread_equal(thread, pthread_self()))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE;
	ret = -pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
	return ret ? ret : pages_close();
}

const struct phases *phases_get(void)
{
	struct moments *moments = &all.moments;

	if (moments->n) {
		struct phase *last = &moments->moment[moments->n - 1];

		last->length = all.sum.seconds - last->start;
	}
	return &all;
}
