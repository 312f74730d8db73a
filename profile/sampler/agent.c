/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst profile" puts into a program: a profile from its start to its end, and in a child.
 * Its options are FASTINST_PROFILE: "EPOCH BUDGET SAMPLES BY_COUNT NO_TIMES", numbers; the rest is
 * in session.h.
 */
#include "profile/sampler/epochs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "base/text.h"
#include "profile/sample/sample.h"

#define LONGEST_EPOCH 10.0   /* seconds */
#define OPENING	      1.0    /* seconds */
#define RECENT	      50e-6  /* seconds */
#define OVERLONG      0.1    /* seconds */
#define MEASURED      100e-6 /* seconds in which ticks are counted */
#define AT_ONCE	      1000   /* ticks between which two clocks are read */

struct options asked;
struct function_state function_states[FI_PROBES_MAX];
uint8_t rest_epochs[FI_PROBES_MAX];
uint32_t reopened[FI_PROBES_MAX];
uint32_t known_probes;
struct account account;
struct pace pace;

pthread_mutex_t profile_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct options options; /* of the next profile */
static pid_t profiled;	       /* the process whose epochs go on; 0: none */
static bool prepared;

/* -ETIMEDOUT after a second. */
static int lock_profile(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	return -pthread_mutex_clocklock(&profile_lock, CLOCK_MONOTONIC, &until);
}

static void unlock_profile(void)
{
	pthread_mutex_unlock(&profile_lock);
}

/* Changes with the lock held. */
static bool is_profiled(void)
{
	return profiled && profiled == getpid();
}

/* CPU seconds of this thread since the agent's start, or the child's. */
static double cost_of_start(void)
{
	return clock_seconds(CLOCK_THREAD_CPUTIME_ID) - asked.before;
}

static void begin_epochs(void)
{
	account.began = __builtin_ia32_rdtsc();
	account.began_at = clock_seconds(CLOCK_MONOTONIC);
	account.used_before = (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cost_of_start()) *
			      watch_common.per_second;
	store_relaxed(&watch_common.spent, 0);
	store_relaxed(&watch_common.offs, 0);
	store_relaxed(&watch_common.off_ticks, 0);
	account.run_before = ring_run();
	pace = (struct pace){ .budget = asked.budget,
			      .shortest = (uint64_t)(asked.epoch * watch_common.per_second),
			      .longest = (uint64_t)(LONGEST_EPOCH * watch_common.per_second),
			      .random = account.began ^ (uint64_t)getpid() };
	if (pace.longest < pace.shortest)
		pace.longest = pace.shortest;
	pace_open(&pace, OPENING * watch_common.per_second);
	windows_set_affordable();
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

/* Ticks per second, within a percent: it chooses windows and epochs only. */
static double measure_ticks(void)
{
	uint64_t start, end;
	double from = seconds_at(&start), to;

	do
		to = seconds_at(&end);
	while (to - from < MEASURED);
	return (double)(end - start) / (to - from);
}

static int prepare_profiling(void)
{
	int ret = ring_start();

	if (ret)
		return ret;
	prepared = true;
	/* No change has a system call, also not those that measure. */
	fi_keep_writable(true);
	watch_common.per_second = measure_ticks();
	watch_start();
	watch_common.callers = options.samples;
	watch_common.ticks_per_4s = (uint64_t)(watch_common.per_second * 4294967296e-9);
	watch_common.recent = (uint64_t)(RECENT * watch_common.per_second);
	watch_common.overlong = (uint64_t)(OVERLONG * watch_common.per_second);
	price_measure();
	return 0;
}

/* In a child, threads of the parent that were turning probes off cannot finish that. */
static void reset_function(uint32_t id)
{
	struct watch *watch = &watches[id];
	uint64_t state = load_relaxed(&watch->state);

	function_states[id] = (struct function_state){ .watched = true };
	/* A frame that another session has left belongs to no call of this one. */
	*watch = (struct watch){
		.state = (state & ~(uint64_t)WATCH_LOW) | WATCH_OVER,
		.from = NEVER,
		.pending = (uint64_t)(PENDING_CUTS(load_relaxed(&watch->pending)) + 1) << 32,
		.group = watch->group,
		.next = watch->next,
		.entry = watch->entry,
		.hooks = watch->hooks,
	};
}

/* Calls that come late see that no window is open. */
static int turn_all_off(void)
{
	size_t n = 0;
	int ret, exits;

	for (uint32_t id = 0; id < known_probes; id++) {
		if (!function_states[id].opened)
			continue;
		atomic_fetch_or(&watches[id].state, WATCH_OVER);
		reopened[n++] = id;
	}
	ret = fi_deactivate_batch(reopened, n);
	exits = exits_turn_all_off();
	return ret < 0 ? ret : exits;
}

/* The next profile starts as if it were the first. */
static void forget_functions(void)
{
	for (uint32_t id = 0; id < known_probes; id++) {
		reset_function(id);
		function_states[id] = (struct function_state){ 0 };
		watches[id].group = NULL;
		rest_epochs[id] = 0;
	}
	exits_forget();
	known_probes = 0;
	account = (struct account){ 0 };
	callers_forget();
	bursts_forget();
}

/* Threads leave the probe functions before counts are forgotten: late calls would count. */
static int end_last_profile(void)
{
	int ret;

	turn_all_off();
	fi_keep_writable(false);
	ret = fi_synchronize();
	if (ret != -ETIMEDOUT)
		forget_functions();
	return ret == -ETIMEDOUT ? ret : 0;
}

int sampler_read(const char *text, const char *functions)
{
	static char *patterns;
	int no_times;

	options = (struct options){ .before = clock_seconds(CLOCK_THREAD_CPUTIME_ID) };
	free(patterns);
	options.functions = patterns = strdup(functions);
	if (!patterns || sscanf(text, "%lf %lf %u %d", &options.epoch, &options.budget,
				&options.samples, &no_times) != 4)
		return -EINVAL;
	options.no_times = no_times;
	return 0;
}

/* --- The session ---------------------------------------------------------------------------- */

/* Find probes, open all windows, start the thread. */
int sampler_start(bool visit)
{
	bool again = prepared;
	int ret = again ? 0 : prepare_profiling();

	if (!ret)
		ret = lock_profile();
	if (ret)
		return ret;
	ret = again ? end_last_profile() : 0;
	if (ret) {
		unlock_profile();
		return ret;
	}
	fi_keep_writable(true);
	asked = options;
	asked.visits = visit;
	watch_common.callers = asked.samples;
	begin_epochs();
	ret = epochs_start_thread();
	if (!ret)
		functions_watch(fi_probes());
	profiled = ret ? 0 : getpid();
	account.start = account.spent = pace.spent = cost_of_start() * watch_common.per_second;
	unlock_profile();
	return ret;
}

/* Turn all probes off. */
int sampler_stop(void)
{
	int ret = lock_profile();

	if (ret)
		return ret;
	epochs_end_thread();
	ret = turn_all_off();
	if (!ret)
		ret = fi_keep_writable(false);
	unlock_profile();
	if (!ret)
		ret = fi_synchronize();
	if (ret)
		return ret;
	/* No thread runs or changes code of pinned objects any more: they may be unloaded. */
	for (uint32_t id = 0; id < known_probes; id++)
		function_states[id].opened = false;
	pins_drop();
	return 0;
}

/* Open all windows before the child runs on. */
static void open_again(void)
{
	size_t n = 0;

	for (uint32_t id = 0; id < known_probes; id++) {
		if (!function_states[id].watched)
			continue;
		reset_function(id);
		reopened[n++] = id;
	}
	windows_activate(reopened, n);
}

/* A child of a process that was preloaded is profiled like it. */
bool sampler_forked(bool runs, bool visit)
{
	double exits = account.sum.exits;

	if (!runs)
		return false;
	/* The owner of the lock is no thread of the child. */
	profile_lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	ring_reset_in_child();
	exits_reset_in_child();
	account = (struct account){ .sum.exits = exits };
	callers_forget();
	burst_close();
	bursts_forget();
	asked.before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
	begin_epochs();
	profiled = visit ? 0 : getpid();
	if (visit) {
		turn_all_off();
		fi_keep_writable(false);
		return false;
	}
	if (lock_profile() || epochs_start_thread())
		return true;
	open_again();
	unlock_profile();
	return true;
}

/* End the last epoch. */
int sampler_finish(void)
{
	int ret = lock_profile();
	uint64_t now;

	if (ret)
		return ret;
	now = watch_clock();
	profiled = 0;
	epochs_end_thread();
	for (uint32_t id = 0; id < known_probes; id++) {
		uint64_t state = load_relaxed(&watches[id].state);

		if (!function_states[id].opened)
			continue;
		windows_read(id, state, now);
		windows_learn(id, now);
	}
	cost_settle();
	unlock_profile();
	return 0;
}

bool sampler_before_unload(void)
{
	return is_profiled() && !lock_profile();
}

void sampler_after_unload(void)
{
	if (is_profiled())
		functions_scan();
	unlock_profile();
}

/* Locks that a fork() finds taken are made anew in the child. */
void sampler_before_fork(void)
{
}

void sampler_after_fork(void)
{
}

/* --- The report ----------------------------------------------------------------------------- */

static void put_probe(FILE *out, char letter, const struct fi_probe *probe)
{
	fputc(letter, out);
	report_text(out, probe->function);
	report_text(out, probe->object);
}

static struct duration in_seconds(const struct duration *ticks, double per_second)
{
	struct duration duration = *ticks;
	double variance = per_second * per_second;

	duration.time /= per_second;
	duration.wall /= per_second;
	duration.blur /= per_second;
	duration.spread.last /= per_second;
	duration.spread.squares /= variance;
	duration.spread.quads /= variance * variance;
	return duration;
}

/* Functions that were never called are left out: most functions of most programs. */
static void put_function(FILE *out, uint32_t id, double per_second)
{
	const struct function_state *function = &function_states[id];
	struct measured measured = { function->estimate,
				     in_seconds(&function->duration, per_second) };
	struct fi_probe probe;

	if (!(function->estimate.counted > 0) || fi_get(id, &probe) < 0)
		return;
	put_probe(out, 'F', &probe);
	report_numbers(out, &measured, MEASURED_NUMBERS);
}

static void put_caller(FILE *out, const struct caller_count *count, double per_second)
{
	double number[] = { (double)count->calls, (double)count->timed,
			    (double)count->time / per_second };
	struct fi_probe probe;

	if (!(number[0] + number[1] > 0) || fi_get(count->id, &probe) < 0)
		return;
	put_probe(out, 'C', &probe);
	if (report_address(out, count->from))
		report_numbers(out, number, 3);
	else
		fputc('\n', out);
}

void sampler_report(FILE *out)
{
	double seconds = clock_seconds(CLOCK_MONOTONIC) - account.began_at;
	double per_second = (double)(__builtin_ia32_rdtsc() - account.began) / seconds;
	double used = account.used > 0 ? account.used : INFINITY;
	const struct caller_count *callers;
	struct quality sum = account.sum;
	uint32_t n = fi_probes();

	sum.seconds = seconds;
	sum.budget = asked.budget;
	sum.cost = account.spent / used;
	sum.toggles += (double)load_relaxed(&watch_common.offs);
	sum.toggling = toggles_cost() / used;
	sum.lost = (double)callers_lost();
	sum.cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	fputc('Q', out);
	report_numbers(out, &sum, QUALITY_NUMBERS);
	for (uint32_t id = 0; id < n; id++)
		put_function(out, id, per_second);
	callers = callers_list(&n);
	for (uint32_t i = 0; i < n; i++)
		put_caller(out, &callers[i], per_second);
	bursts_report(out, sum.cpu);
	report_moments(out, &account.moments, per_second);
}
