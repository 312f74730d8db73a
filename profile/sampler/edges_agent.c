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
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "base/clock.h"
#include "profile/sample/sample.h"

#define PATIENCE 2	/* seconds */
#define AGAIN	 500e-6 /* seconds, half of the first wait for another try */
#define SWEEP_NS 300000 /* nanoseconds between two looks for blocks that ran between phases */

static struct quality sum;
static struct moments moments; /* in seconds; calls are runs of edges */
static struct weights weights;
static double period, on_time, began;

static pthread_t thread;
static atomic_bool stopping;

/* --- Blocks, with the lock held ------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool visits; /* objects with blocks are pinned */

/* Blocks that ever ran come first. Between phases they are off. */
static uint32_t ids[FI_PROBES_MAX];
static size_t n, ran;
static bool some_on; /* some of the blocks that never ran are on */
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

static void turn_all_off(void)
{
	if (some_on)
		fi_deactivate_batch(ids + ran, n - ran);
	some_on = all_on = false;
}

/* All blocks are on, or none (negative errno). When an object has gone, they are collected anew. */
static int turn_blocks_on(void)
{
	int ret = fi_activate_how(ids, all_on ? ran : n, edges_block, FI_KEEPS_VECTORS);

	some_on = true;
	all_on = !ret;
	if (ret) {
		fi_deactivate_batch(ids, ran);
		turn_all_off();
	}
	if (ret == -ENODEV)
		forget_blocks();
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

/* --- New blocks ----------------------------------------------------------------------------- */

/* The lock is taken late: a pin waits for the loader, that for a fork(), and that for the lock. */
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
			ids[found++] = next_probe;
		}
	}
	pthread_mutex_lock(&lock);
	all_on &= found == n;
	n = found;
	pthread_mutex_unlock(&lock);
	sum.blocks = (double)n;
}

/* False: the scan failed. Where objects came, blocks may be there again, with the same ids. */
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

/* --- What must not meet a phase ------------------------------------------------------------- */

void sampler_before_fork(void)
{
	pthread_mutex_lock(&lock);
	turn_all_off();
}

void sampler_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* No block of an object that goes may be on. No lock is held: a constructor may call dlclose(). */
bool sampler_before_unload(void)
{
	sampler_before_fork();
	unloads++;
	sampler_after_fork();
	return true;
}

/* A child may have been forked within dlclose(). */
void sampler_after_unload(void)
{
	pthread_mutex_lock(&lock);
	unloads -= unloads > 0;
	pthread_mutex_unlock(&lock);
}

/* There are no blocks in the child. It is not profiled; another command may profile it. */
bool sampler_forked(bool runs, bool visit)
{
	(void)runs;
	(void)visit;
	n = ran = 0;
	unloads = 0;
	/* The owner of the lock is a thread of the parent. */
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	return false;
}

/* --- The thread ----------------------------------------------------------------------------- */

/* Turn off blocks that ran between phases for the first time. Each has woken this thread. */
static void sweep_blocks(void)
{
	edges_forget_wakes();
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
	double end;

	clock_gettime(CLOCK_MONOTONIC, &until);
	end = (double)until.tv_nsec / 1e9 + (seconds > 0 ? seconds : 0);
	until.tv_sec += (time_t)end;
	until.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
	while (!stopping && edges_wait(&until))
		if (sweeps && !stopping)
			sweep_blocks();
}

/* The part of a phase in which the program can have run: its machine may have stopped. */
static double time_watched(double length, double cpu)
{
	double most = cpu > on_time ? cpu : on_time;

	return length < most ? length : most;
}

/*
 * With the lock held. Toggling is CPU time: on a busy machine this thread waits in the middle of
 * it. False: not all could be turned on, as while a thread is made, with SIGTRAP blocked.
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
	/* Every thread has seen that. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
	one.toggling = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - own;
	start = clock_seconds(CLOCK_MONOTONIC);
	cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	edges_phase((uint64_t)++sum.epochs);
	rest_for(on_time, false);
	edges_phase(0);
	cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	one.on = time_watched(clock_seconds(CLOCK_MONOTONIC) - start, cpu);
	edges_forget_wakes();
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

void sampler_run(uintptr_t unused)
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
	sampler_before_fork();
	sampler_after_fork();
}

/* --- The session ---------------------------------------------------------------------------- */

int sampler_read(const char *options, const char *functions)
{
	(void)functions;
	return sscanf(options, "%lf %lf", &period, &on_time) == 2 ? 0 : -EINVAL;
}

int sampler_start(bool visit)
{
	int ret = edges_start();

	/* No change has a system call. */
	if (!ret)
		ret = fi_keep_writable(true);
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
int sampler_finish(void)
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
	return ret ? ret : fi_keep_writable(false);
}

int sampler_stop(void)
{
	int ret = fi_synchronize();

	if (!ret)
		pins_drop();
	return ret;
}

/* --- The report ----------------------------------------------------------------------------- */

static void put_block(FILE *out, uint32_t id)
{
	struct fi_probe probe;

	if (fi_get(id, &probe) < 0 || probe.kind != FI_BLOCK)
		return;
	fprintf(out, "B\t%u", id);
	/* A block whose object was unloaded has no name any more. */
	if (report_address(out, (uintptr_t)probe.address))
		report_text(out, probe.function);
	fputc('\n', out);
}

/* An edge that was seen has a count of 1 at least. */
static double estimate_count(const struct edge *edge, int half, double scale)
{
	double count = (double)(uint64_t)(edge->weighed[half] * scale + 0.5);

	return count >= 1 || !edge->count[half] ? count : 1;
}

static void put_edges(FILE *out)
{
	double seen = 0, weighed = 0, scale;
	uint32_t next = 0;
	struct edge edge;

	while (edges_next(&next, &edge)) {
		seen += (double)(edge.count[0] + edge.count[1]);
		weighed += edge.weighed[0] + edge.weighed[1];
	}
	scale = weighed > 0 ? seen / weighed : 0;
	for (next = 0; edges_next(&next, &edge);) {
		fprintf(out, "E\t%u\t%u", edge.from, edge.to);
		report_numbers(out,
			       (double[]){ estimate_count(&edge, 1, scale),
					   estimate_count(&edge, 0, scale),
					   (double)(edge.count[0] + edge.count[1]) },
			       3);
	}
}

void sampler_report(FILE *out)
{
	struct phase *last = moments.n ? &moments.moment[moments.n - 1] : NULL;
	uint32_t blocks = fi_probes();

	edges_sums(&sum);
	fputc('Q', out);
	report_numbers(out, &sum, QUALITY_NUMBERS);
	for (uint32_t id = 0; id < blocks; id++)
		put_block(out, id);
	put_edges(out);
	if (last) {
		last->length = sum.seconds - last->start;
		/* A thread may have been late with a run of the last phase. */
		last->calls += (double)edges_runs();
	}
	report_moments(out, &moments, 1);
}
