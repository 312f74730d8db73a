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
#include "probes/agent/pin.h"
#include "probes/include/fastinst.h"
#include "probes/profile/edges/edges.h"

#define PATIENCE 2 /* seconds */
#define MOMENTS	 1024u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while blocks are on */
static unsigned holds;					 /* under it */
static pthread_mutex_t stop_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stop_asked = PTHREAD_COND_INITIALIZER;
static bool stopping;
static bool visits;	       /* a process that runs: see probes/agent/pin.h */
static atomic_bool counted_in; /* the thread counts as one of the tool's */
static pthread_t thread;
static double period, on_time, began;
static struct phases sum;
static struct moment moments[MOMENTS];
static size_t moments_n;
static uint64_t merged = 1; /* phases of a moment */

static uint32_t *ids;
static size_t ids_n;
static uint32_t looked_at; /* probes of ids below that */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* By a clock that is never set. True: the thread has to end. */
static bool rest(double seconds)
{
	struct timespec until;
	double end;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	end = (double)until.tv_nsec / 1e9 + seconds;
	until.tv_sec += (time_t)end;
	until.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
	pthread_mutex_lock(&stop_lock);
	while (!stopping && pthread_cond_clockwait(&stop_asked, &stop_lock, CLOCK_MONOTONIC,
						   &until) != ETIMEDOUT)
		;
	stop = stopping;
	pthread_mutex_unlock(&stop_lock);
	return stop;
}

/* Of those that are known the ones that are still there. */
static void drop_gone(void)
{
	struct fi_probe probe;
	size_t kept = 0;

	for (size_t i = 0; i < ids_n; i++)
		if (!fi_get(ids[i], &probe) && probe.state != FI_GONE)
			ids[kept++] = ids[i];
	ids_n = kept;
}

/* Blocks that came. */
static int collect(void)
{
	uint32_t n = fi_probes();
	struct fi_probe probe;
	uint32_t *more;

	if (n == looked_at)
		return 0;
	more = realloc(ids, n * sizeof(*ids));
	if (!more)
		return -ENOMEM;
	ids = more;
	drop_gone();
	for (; looked_at < n; looked_at++) {
		if (fi_get(looked_at, &probe) || probe.kind != FI_BLOCK || probe.state == FI_GONE)
			continue;
		if (probe.state == FI_REFUSED)
			sum.refused++;
		else if (!visits || pin_object(probe.address) == 0)
			ids[ids_n++] = looked_at;
	}
	sum.blocks = ids_n;
	return 0;
}

static int turn_on(void)
{
	return fi_activate_how(ids, ids_n, edges_block, FI_KEEPS_VECTORS);
}

/* An object may have gone since they were collected. */
static int turn_all_on(void)
{
	int ret = turn_on();

	if (ret != -ENODEV)
		return ret;
	drop_gone();
	return turn_on();
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
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
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
	double start = now(), counted, over, cpu, on = sum.on, toggling = sum.toggling;
	uint64_t runs = edges_runs();
	bool stop = false;

	if (turn_all_on() == 0) {
		all_see_it();
		counted = now();
		cpu = used();
		edges_phase(++sum.number);
		stop = rest(on_time);
		edges_phase(0);
		over = now();
		sum.on += watched(over - counted, used() - cpu);
		sum.toggling -= over - counted;
	}
	fi_deactivate_batch(ids, ids_n);
	sum.toggling += now() - start;
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
	if (atomic_exchange_explicit(&counted_in, false, memory_order_relaxed))
		fi_own_thread(-1);
}

static void *run(void *unused)
{
	unsigned short dice[3] = { (unsigned short)getpid(), 42, 4711 };
	bool stop = false;

	(void)unused;
	fi_own_thread(1);
	/* The first one is early: of a program that ends soon something is seen. */
	atomic_store_explicit(&counted_in, true, memory_order_relaxed);
	while (!stop && !agent_alone()) {
		/* A pin waits for the loader, that for a fork(), and that for the lock. */
		bool ready = fi_scan() >= 0 && !collect();

		pthread_mutex_lock(&lock);
		if (ready && ids_n && !holds)
			stop = phase();
		pthread_mutex_unlock(&lock);
		stop = stop || rest(period * (0.5 + erand48(dice)) - on_time);
	}
	count_out();
	return NULL;
}

int phases_start(double every, double on, bool visit)
{
	sigset_t all, before;
	int ret;

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) < 0)
		return -errno;
	visits = visit;
	period = every;
	on_time = on;
	began = now();
	sum = (struct phases){ 0 };
	moments_n = 0;
	merged = 1;
	stopping = false;
	looked_at = 0;
	ids_n = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	ret = -pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

int phases_stop(void)
{
	struct timespec until;

	sum.wall = now() - began;
	pthread_mutex_lock(&stop_lock);
	stopping = true;
	pthread_cond_signal(&stop_asked);
	pthread_mutex_unlock(&stop_lock);
	/* It was the last thread, and ends the process. */
	if (pthread_equal(thread, pthread_self()))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE;
	return -pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
}

void phases_hold(void)
{
	pthread_mutex_lock(&lock);
	holds++;
	pthread_mutex_unlock(&lock);
}

/* A child may have begun without. */
void phases_let(void)
{
	pthread_mutex_lock(&lock);
	holds -= holds > 0;
	pthread_mutex_unlock(&lock);
}

void phases_lock(void)
{
	pthread_mutex_lock(&lock);
}

void phases_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * The owner that the lock knows is a thread of the parent. So is the one that may just have been
 * making the list longer.
 */
void phases_forked(void)
{
	ids = NULL;
	holds = 0;
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	stop_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	stop_asked = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	count_out();
}

const struct phases *phases_get(void)
{
	return &sum;
}
