/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst profile --edges" puts into a program: phases, with all blocks on in one batch, and
 * off in one. Its options are FASTINST_PROFILE: "PERIOD ON", seconds; the rest is in session.h. A
 * child of fork() is not profiled: the thread of phases is its parent's.
 *
 * Counting starts when all are on and every thread has seen that, and ends before the first is
 * turned off: so no block of a phase is passed over, which would join two that are no neighbours.
 *
 * Most of a program's blocks are never run: turned on once, such a block stays on, which costs
 * nothing. Blocks that ran are turned off behind each phase; those that run between phases for the
 * first time, soon after that.
 */
#include "profile/sampler/edges.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "base/clock.h"
#include "profile/sample/pages.h"
#include "profile/sample/relaxed.h"
#include "profile/sampler/session.h"

#define PATIENCE 2	/* seconds */
#define AGAIN	 500e-6 /* seconds, half of the first wait for another try */
#define SWEEP_NS 300000 /* nanoseconds between two looks for blocks that ran between phases */

static struct quality sum;
static struct moments moments; /* in seconds; calls are runs of edges */
static struct weights weights;
static double period, on_time, began;

static pthread_t thread;
static atomic_bool stopping;
static uint32_t swept; /* edges_wakes() when blocks that ran were last turned off */

/* --- Blocks, with the lock held -------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool visits; /* objects with blocks are pinned */

/* Blocks that ever ran come first. Between phases those are off. */
static uint32_t ids[FI_PROBES_MAX];
static size_t n, ran;
static bool some_on; /* of those that never ran, some are on */
static bool all_on;
static uint32_t next_probe; /* the first that was not looked at */
static unsigned unloads;    /* dlclose() under way: no phase may begin */

static void forget_blocks(void)
{
	n = ran = 0;
	some_on = all_on = false;
	next_probe = 0;
	sum.refused = 0;
}

/* An object may have gone since its blocks were collected. */
static void drop_gone(void)
{
	struct fi_probe probe;
	size_t kept = 0, kept_ran = 0;

	for (size_t i = 0; i < n; i++) {
		if (fi_get(ids[i], &probe) || probe.state == FI_GONE)
			continue;
		kept_ran += i < ran;
		ids[kept++] = ids[i];
	}
	n = kept;
	ran = kept_ran;
}

static int turn_all_on(void)
{
	return fi_activate_how(ids, all_on ? ran : n, edges_block, FI_KEEPS_VECTORS);
}

static void turn_all_off(void)
{
	if (some_on)
		fi_deactivate_batch(ids + ran, n - ran);
	some_on = all_on = false;
}

/* All blocks are on, or none (negative errno). */
static int turn_blocks_on(void)
{
	int ret;

	some_on = true;
	ret = turn_all_on();
	if (ret == -ENODEV) {
		drop_gone();
		ret = turn_all_on();
	}
	all_on = !ret;
	if (ret) {
		fi_deactivate_batch(ids, ran);
		turn_all_off();
	}
	return ret;
}

/* Move the blocks that ran since the last look to the front. */
static void move_run_blocks(void)
{
	for (size_t i = ran; i < n; i++) {
		uint32_t id = ids[i];

		if (!edges_has_run(id))
			continue;
		ids[i] = ids[ran];
		ids[ran++] = id;
	}
}

/* Turn off blocks that ran, from that index on. */
static void turn_run_blocks_off(size_t from)
{
	move_run_blocks();
	fi_deactivate_batch(ids + from, ran - from);
}

/* --- New blocks ------------------------------------------------------------------------------ */

/*
 * The lock is taken for the end of the list only: a pin waits for the loader, the loader for a
 * fork(), and the fork() for the lock.
 */
static void collect_blocks(void)
{
	uint32_t end = fi_probes();
	struct fi_probe probe;
	size_t found = n;

	for (; next_probe < end; next_probe++) {
		if (fi_get(next_probe, &probe) || probe.kind != FI_BLOCK || probe.state == FI_GONE)
			continue;
		if (probe.state == FI_REFUSED) {
			sum.refused++;
		} else if (!visits || pin_object(probe.address) == 0) {
			pages_note(probe.object, probe.address);
			ids[found++] = next_probe;
		}
	}
	pages_open();
	pthread_mutex_lock(&lock);
	all_on &= found == n;
	n = found;
	pthread_mutex_unlock(&lock);
	sum.blocks = (double)n;
}

/*
 * False: the scan failed. Where objects came, blocks that were dropped may be there again, with the
 * same ids.
 */
static bool scan_blocks(void)
{
	int found = fi_scan();

	if (found < 0)
		return false;
	if (found > 0) {
		pthread_mutex_lock(&lock);
		forget_blocks();
		pthread_mutex_unlock(&lock);
	}
	collect_blocks();
	return true;
}

/* --- What must not meet a phase -------------------------------------------------------------- */

static void lock_blocks_off(void)
{
	pthread_mutex_lock(&lock);
	turn_all_off();
}

static void unlock_blocks(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * No block of an object that goes may be on meanwhile. No lock is held: dlclose() waits for the
 * loader, and a constructor, which has that, may call it.
 */
static bool begin_unload(void)
{
	lock_blocks_off();
	unloads++;
	unlock_blocks();
	return true;
}

/* A child may have been forked within dlclose(). */
static void end_unload(void)
{
	pthread_mutex_lock(&lock);
	unloads -= unloads > 0;
	pthread_mutex_unlock(&lock);
}

/* There are no blocks in the child. It is not profiled; another command may profile it. */
static bool forget_session(bool runs, bool visit)
{
	(void)runs;
	(void)visit;
	n = ran = 0;
	unloads = 0;
	/* The owner of the lock is a thread of the parent. */
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	return false;
}

/* --- The thread ------------------------------------------------------------------------------ */

/* Turn off blocks that ran between phases for the first time. Each has woken this thread. */
static void sweep_blocks(void)
{
	pthread_mutex_lock(&lock);
	turn_run_blocks_off(ran);
	pthread_mutex_unlock(&lock);
	/* Others run with them. */
	nanosleep(&(struct timespec){ .tv_nsec = SWEEP_NS }, NULL);
}

/* Wait by a clock that is never set, or until the thread has to end. */
static void rest_for(double seconds, bool sweeps)
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

static void sync_all_threads(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

/*
 * The part of a phase in which the program can have run. In a phase that lasts too long the program
 * or its machine may have been stopped: then no thread had a CPU.
 */
static double time_watched(double length, double cpu)
{
	double most = cpu > on_time ? cpu : on_time;

	return length < most ? length : most;
}

/*
 * With the lock held. Toggling is CPU time of this thread: on a busy machine it waits for a CPU in
 * the middle of a change. False: not all blocks could be turned on, as while a thread is being
 * made, which has SIGTRAP blocked for a moment.
 */
static bool run_phase(void)
{
	struct phase one = { .start = clock_seconds(CLOCK_MONOTONIC) - began, .phases = 1 };
	double own = clock_seconds(CLOCK_THREAD_CPUTIME_ID), start, cpu;
	double weight;

	if (turn_blocks_on()) {
		sum.toggling += clock_seconds(CLOCK_THREAD_CPUTIME_ID) - own;
		return false;
	}
	sync_all_threads();
	one.toggling = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - own;
	start = clock_seconds(CLOCK_MONOTONIC);
	cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	edges_phase((uint64_t)++sum.epochs);
	rest_for(on_time, false);
	edges_phase(0);
	cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	one.on = time_watched(clock_seconds(CLOCK_MONOTONIC) - start, cpu);
	swept = edges_wakes();
	own = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
	turn_run_blocks_off(0);
	one.toggling += clock_seconds(CLOCK_THREAD_CPUTIME_ID) - own;
	weight = weight_of_phase(&weights, one.on, cpu, edges_runs());
	one.calls = (double)edges_weigh(weight);
	sum.on += one.on;
	sum.toggling += one.toggling;
	moments_add(&moments, &one);
	return true;
}

static void run_phases(uintptr_t unused)
{
	unsigned short dice[3] = { (unsigned short)getpid(), 42, 4711 };
	double again = AGAIN;

	(void)unused;
	/* The first phase is early: a program may end soon. */
	do {
		bool ready = scan_blocks();
		double rest = period * (0.5 + erand48(dice)) - on_time;

		pthread_mutex_lock(&lock);
		if (!ready || !(sum.blocks > 0) || unloads || run_phase())
			again = AGAIN;
		else if ((again *= 2) < rest)
			rest = again;
		pthread_mutex_unlock(&lock);
		rest_for(rest, true);
	} while (!stopping && !is_program_over());
	lock_blocks_off();
	unlock_blocks();
}

/* --- The session ----------------------------------------------------------------------------- */

static int read_options(const char *options, const char *functions)
{
	(void)functions;
	return sscanf(options, "%lf %lf", &period, &on_time) == 2 ? 0 : -EINVAL;
}

static int start_phases(bool visit)
{
	int ret = edges_start();

	if (ret)
		return ret;
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) < 0)
		return -errno;
	began = clock_seconds(CLOCK_MONOTONIC);
	sum = (struct quality){ 0 };
	moments = (struct moments){ 0 };
	weights = (struct weights){ 0 };
	stopping = false;
	visits = visit;
	forget_blocks();
	return session_thread(&thread, 0);
}

/* End the thread, with all blocks off. -ETIMEDOUT: it did not end in two seconds. */
static int finish_phases(void)
{
	struct timespec until;
	int ret;

	sum.seconds = clock_seconds(CLOCK_MONOTONIC) - began;
	stopping = true;
	edges_wake();
	/* The thread of phases was the last one, and ends the process. */
	if (pthread_equal(thread, pthread_self()))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE;
	ret = -pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
	return ret ? ret : pages_close();
}

static int stop_phases(void)
{
	int ret = fi_synchronize();

	if (!ret)
		pins_drop();
	return ret;
}

static void report_phases(FILE *out)
{
	if (moments.n) {
		struct phase *last = &moments.moment[moments.n - 1];

		last->length = sum.seconds - last->start;
	}
	edges_sums(&sum);
	report_edges(out, &sum, &moments);
}

__attribute__((constructor)) static void start(void)
{
	/* No block is on at a fork. */
	static const struct sampler sampling = {
		.read = read_options,
		.start = start_phases,
		.finish = finish_phases,
		.stop = stop_phases,
		.report = report_phases,
		.run = run_phases,
		.before_unload = begin_unload,
		.after_unload = end_unload,
		.before_fork = lock_blocks_off,
		.after_fork = unlock_blocks,
		.forked = forget_session,
	};

	session_start(&sampling);
}
