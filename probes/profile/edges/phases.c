/* SPDX-License-Identifier: MIT */
/*
 * Phases: all blocks on in one batch, and off in one.
 *
 * Counting starts when all are on and every thread has seen that, and ends before the first is
 * turned off: so no block of a phase is passed over, which would join two that are no neighbours.
 */
#include "probes/profile/edges/phases.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probes/agent/alone.h"
#include "probes/include/fastinst.h"
#include "probes/profile/edges/bell.h"
#include "probes/profile/edges/edges.h"
#include "probes/profile/edges/set.h"
#include "probes/profile/edges/weight.h"
#include "probes/profile/sample/clock.h"
#include "probes/profile/sample/pages.h"
#include "probes/profile/sample/relaxed.h"
#include "probes/profile/session/session.h"

#define PATIENCE 2	/* seconds */
#define SWEEP_NS 300000 /* between two looks at what was run between phases */

static atomic_bool stopping;
static uint32_t swept; /* how often the bell had rung when it was last looked at what was run */
static atomic_bool counted_in; /* the thread counts as one of the tool's */
static pthread_t thread;
static double period, on_time, began;
static struct phases all;
static struct weights weights;

static double now(void)
{
	return clock_seconds(CLOCK_MONOTONIC);
}

/* Of this thread: on a busy machine it waits for a CPU in the middle of a change. */
static double own_time(void)
{
	return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

/* Blocks that were run between phases for the first time. The bell rings once for each. */
static void sweep_blocks(void)
{
	set_lock();
	set_sweep();
	set_unlock();
	/* Others come with them. */
	nanosleep(&(struct timespec){ .tv_nsec = SWEEP_NS }, NULL);
}

/* By a clock that is never set. True: the thread has to end. */
static bool rest_between(double seconds, bool sweeps)
{
	struct timespec until;
	uint32_t rings;
	double end;

	clock_gettime(CLOCK_MONOTONIC, &until);
	end = (double)until.tv_nsec / 1e9 + (seconds > 0 ? seconds : 0);
	until.tv_sec += (time_t)end;
	until.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
	do {
		rings = bell_rings();
		if (sweeps && rings != swept && !stopping) {
			swept = rings;
			sweep_blocks();
		}
	} while (!stopping && bell_wait(rings, &until));
	return stopping;
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

/* The lock is held. True: the thread has to end. */
static bool phase(void)
{
	struct phase one = { .start = now() - began, .phases = 1 };
	double own = own_time(), counted, cpu;
	uint64_t runs = edges_runs();
	bool stop = false;

	if (set_on() == 0) {
		all_see_it();
		one.toggling = own_time() - own;
		counted = now();
		cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
		edges_phase((uint64_t)++all.sum.epochs);
		stop = rest_between(on_time, false);
		edges_phase(0);
		counted = now() - counted;
		cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
		one.on = watched(counted, cpu);
		swept = bell_rings();
		own = own_time();
		set_rest();
		edges_weigh(weight_of_phase(&weights, one.on, cpu, edges_runs() - runs));
	}
	one.toggling += own_time() - own;
	one.calls = (double)(edges_runs() - runs);
	all.sum.on += one.on;
	all.sum.toggling += one.toggling;
	moments_add(&all.moments, &one);
	return stop;
}

/* Once in each process: the thread ends, or is not in a child. */
static void count_out(void)
{
	if (swap_relaxed(&counted_in, false))
		fi_own_thread(-1);
}

static void *run_phases(void *unused)
{
	unsigned short dice[3] = { (unsigned short)getpid(), 42, 4711 };
	bool stop = false;

	(void)unused;
	fi_own_thread(1);
	/* The first one is early: of a program that ends soon something is seen. */
	store_relaxed(&counted_in, true);
	while (!stop && !agent_alone()) {
		/* A pin waits for the loader, that for a fork(), and that for the lock. */
		bool ready = fi_scan() >= 0 && !set_collect(&all.sum);

		set_lock();
		if (ready && all.sum.blocks > 0 && !set_held())
			stop = phase();
		set_unlock();
		stop = stop || rest_between(period * (0.5 + erand48(dice)) - on_time, true);
	}
	set_lock_off();
	set_unlock();
	count_out();
	return NULL;
}

int phases_start(double every, double on, bool visit)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) < 0)
		return -errno;
	period = every;
	on_time = on;
	began = now();
	all = (struct phases){ 0 };
	weights = (struct weights){ 0 };
	stopping = false;
	set_start(visit);
	return session_thread(&thread, run_phases, NULL);
}

int phases_stop(void)
{
	struct timespec until;
	int ret;

	all.sum.seconds = now() - began;
	stopping = true;
	bell_ring();
	/* It was the last thread, and ends the process. */
	if (pthread_equal(thread, pthread_self()))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE;
	ret = -pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
	return ret ? ret : pages_close();
}

void phases_forked(void)
{
	set_forked();
	count_out();
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
