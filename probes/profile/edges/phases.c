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
#include <signal.h>
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
#include "probes/profile/sample/pages.h"
#include "probes/profile/sample/relaxed.h"

#define PATIENCE 2	/* seconds */
#define SWEEP_NS 300000 /* between two looks at what was run between phases */
#define MOMENTS	 1024u

static atomic_bool stopping;
static uint32_t swept; /* how often the bell had rung when it was last looked at what was run */
static unsigned holds; /* with the lock held: no phase begins */
static atomic_bool counted_in; /* the thread counts as one of the tool's */
static pthread_t thread;
static double period, on_time, began;
static struct phases sum;
static struct weights weights;
static struct moment moments[MOMENTS];
static size_t moments_n;
static uint64_t merged = 1; /* phases of a moment */

static double phase_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double phase_now(void)
{
	return phase_clock(CLOCK_MONOTONIC);
}

/* Of this thread: on a busy machine it waits for a CPU in the middle of a change. */
static double own_time(void)
{
	return phase_clock(CLOCK_THREAD_CPUTIME_ID);
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

/* --- What happened when -------------------------------------------------------------------------
 */

static void join(struct moment *to, const struct moment *next)
{
	to->phases += next->phases;
	to->length += next->length;
	to->on += next->on;
	to->toggling += next->toggling;
	to->runs += next->runs;
}

/* Memory is limited: there is room for as many again, each twice as long. */
static void merge(void)
{
	for (size_t i = 0; i < MOMENTS / 2; i++) {
		moments[i] = moments[2 * i];
		join(&moments[i], &moments[2 * i + 1]);
	}
	moments_n = MOMENTS / 2;
	merged *= 2;
}

static void add_moment(const struct moment *moment)
{
	struct moment *last = moments_n ? &moments[moments_n - 1] : NULL;

	if (last)
		last->length = moment->start - last->start;
	if (last && last->phases < merged) {
		join(last, moment);
		return;
	}
	if (moments_n == MOMENTS)
		merge();
	moments[moments_n++] = *moment;
}

size_t phases_moments(const struct moment **first)
{
	if (moments_n)
		moments[moments_n - 1].length = sum.wall - moments[moments_n - 1].start;
	*first = moments;
	return moments_n;
}

/* --- Phases -------------------------------------------------------------------------------------
 */

static double used(void)
{
	return phase_clock(CLOCK_PROCESS_CPUTIME_ID);
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
	double start = phase_now(), own = own_time(), counted, over, cpu;
	double on = sum.on, toggling = sum.toggling;
	uint64_t runs = edges_runs();
	bool stop = false;

	if (set_on() == 0) {
		all_see_it();
		sum.toggling += own_time() - own;
		counted = phase_now();
		cpu = used();
		edges_phase(++sum.number);
		stop = rest_between(on_time, false);
		edges_phase(0);
		over = phase_now();
		cpu = used() - cpu;
		sum.on += watched(over - counted, cpu);
		swept = bell_rings();
		own = own_time();
		set_rest();
		edges_weigh(weight_of_phase(&weights, sum.on - on, cpu, edges_runs() - runs));
	}
	sum.toggling += own_time() - own;
	add_moment(&(struct moment){ .phases = 1,
				     .start = start - began,
				     .on = sum.on - on,
				     .toggling = sum.toggling - toggling,
				     .runs = edges_runs() - runs });
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
		bool ready = fi_scan() >= 0 && !set_collect();

		sum.blocks = set_blocks();
		sum.refused = set_refused();
		set_lock();
		if (ready && sum.blocks && !holds)
			stop = phase();
		set_unlock();
		stop = stop || rest_between(period * (0.5 + erand48(dice)) - on_time, true);
	}
	phases_lock();
	phases_unlock();
	count_out();
	return NULL;
}

int phases_start(double every, double on, bool visit)
{
	sigset_t all, before;
	int ret;

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) < 0)
		return -errno;
	period = every;
	on_time = on;
	began = phase_now();
	sum = (struct phases){ 0 };
	weights = (struct weights){ 0 };
	moments_n = 0;
	merged = 1;
	stopping = false;
	set_start(visit);
	sigfillset(&all);
	sigdelset(&all, SIGTRAP); /* of patches */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	ret = -pthread_create(&thread, NULL, run_phases, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

int phases_stop(void)
{
	struct timespec until;
	int ret;

	sum.wall = phase_now() - began;
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

void phases_hold(void)
{
	phases_lock();
	holds++;
	phases_unlock();
}

/* A child may have begun without. */
void phases_let(void)
{
	set_lock();
	holds -= holds > 0;
	set_unlock();
}

void phases_lock(void)
{
	set_lock();
	set_clear();
}

void phases_unlock(void)
{
	set_unlock();
}

void phases_forked(void)
{
	set_forked();
	holds = 0;
	count_out();
}

const struct phases *phases_get(void)
{
	return &sum;
}
