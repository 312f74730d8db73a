/* SPDX-License-Identifier: MIT */
/* Which functions are profiled, and the thread that ends the windows of one epoch and opens those
 * of the next. */
#include "profile/sampler/epochs.h"

#include <link.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "base/random.h"
#include "base/text.h"

#define OFTEN	    100 /* calls in an epoch, from which a function is frequent */
#define SLOWED_MOST 0.2 /* share of the program's time */

static double open_cost;	  /* share of the program's time, if all short windows were open */
static _Atomic uintptr_t session; /* number of the thread of epochs that goes on; the others end */

/* Ticks: the thread of epochs, what turned probes off, calls of the probe function. */
static double cost_of_all(void)
{
	return account.start + clock_seconds(watch_common.own) * watch_common.per_second +
	       (double)load_relaxed(&watch_common.spent) +
	       (double)(ring_run() - account.run_before) * ring_price();
}

void cost_settle(void)
{
	double now = cost_of_all();

	account.spent = now > account.spent ? now : account.spent;
	account.used = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) * watch_common.per_second -
		       account.used_before;
}

/* --- Which functions are profiled, as objects come and go ----------------------------------- */

static uint32_t found[FI_PROBES_MAX]; /* probes that a pattern names */

static void take_function(uint32_t id, size_t *taken)
{
	struct fi_probe probe;

	if (id < known_probes || function_states[id].watched || fi_get(id, &probe) < 0 ||
	    probe.kind != FI_ENTRY || price_is_own(probe.address) ||
	    (asked.visits && pin_object(probe.address) < 0))
		return;
	function_states[id].watched = true;
	reopened[(*taken)++] = id;
}

void functions_watch(uint32_t n)
{
	char *copy = strdup(asked.functions), *rest = copy, *pattern;
	size_t taken = 0;
	long matches, functions;

	while (copy && (pattern = text_word(&rest))) {
		matches = *pattern ? fi_find_from(pattern, known_probes, found, n) : 0;
		for (long i = 0; i < matches && i < (long)n; i++)
			take_function(found[i], &taken);
	}
	/* Exits are turned on and off with their entries. */
	functions = asked.no_times ? 0 : exits_find(reopened, taken, known_probes);
	account.sum.exits += functions > 0 ? (double)functions : 0;
	windows_activate(reopened, taken);
	known_probes = n;
	free(copy);
}

/* A probe whose object comes again is on if it was, and begins a new epoch. */
static void follow_object(uint32_t id)
{
	struct function_state *function = &function_states[id];
	struct fi_probe probe;

	if ((!function->watched && !function->gone) || fi_get(id, &probe) < 0)
		return;
	function->opened &= !function->gone;
	function->gone = probe.state == FI_GONE;
	function->watched = !function->gone;
}

void functions_scan(void)
{
	uint32_t n;

	fi_scan();
	n = fi_probes();
	for (uint32_t id = 0; id < known_probes; id++)
		follow_object(id);
	if (n > known_probes)
		functions_watch(n);
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(unsigned long long *)data = info->dlpi_adds;
	return 1;
}

static void scan_if_loaded(void)
{
	static unsigned long long before;
	unsigned long long now = 0;

	dl_iterate_phdr(count_loads, &now);
	if (now != before)
		functions_scan();
	before = now;
}

/* --- The thread ------------------------------------------------------------------------------ */

static bool is_closed(uint32_t id)
{
	return load_relaxed(&watches[id].state) & WATCH_BITS;
}

/*
 * Whether a probe that is off is turned on in this epoch: so many that they slow the program by a
 * fifth at most. Estimates are corrected for a slower program, but not well.
 */
static bool draw_turn(void)
{
	double turns = open_cost / SLOWED_MOST;

	return turns <= 1 || (double)(random_next(&pace.random) >> 40) * turns < 16777216.0;
}

static double visit_function(uint32_t id, size_t *reopen, uint64_t now)
{
	uint64_t state = load_acquire(&watches[id].state);

	windows_read(id, state, now);
	if ((state & WATCH_BITS) != WATCH_OPEN) {
		reopened[(*reopen)++] = id;
		return 0;
	}
	return windows_continue(id, state, now);
}

/* The estimated calls of the epochs that end here. */
static double look_at_all(void)
{
	uint64_t now = watch_clock(), frequent = 0;
	double rates = 0, calls = 0;
	size_t reopen = 0;

	for (uint32_t id = 0; id < known_probes; id++) {
		/* Skip probes that rest, unless they turned themselves off. */
		if (rest_epochs[id] && !is_closed(id)) {
			rest_epochs[id]--;
			continue;
		}
		if (!function_states[id].watched)
			continue;
		frequent += function_states[id].estimate.expected * (double)pace.length > OFTEN;
		if (function_states[id].window != WINDOW_WHOLE)
			rates += function_states[id].estimate.expected;
		if (!is_closed(id) || draw_turn())
			calls += visit_function(id, &reopen, now);
	}
	account.frequent = frequent;
	open_cost = rates * watch_common.price;
	return calls + windows_activate(reopened, reopen);
}

static void run_epoch(void)
{
	uint64_t start = account.last ? account.last : account.began;
	double calls;

	bursts_sample();
	windows_set_affordable();
	calls = look_at_all();
	bursts_settle();
	account.last = __builtin_ia32_rdtsc();
	/* cost_of_all() falls when a lower price of calls is measured. */
	moments_add(&account.moments,
		    &(struct phase){ .start = (double)(start - account.began),
				     .length = (double)(account.last - start),
				     .calls = calls,
				     .cost = fmax(0, cost_of_all() - account.spent),
				     .phases = 1 });
	account.sum.epochs++;
}

static uint64_t tick_epoch(void)
{
	double used_before = account.used;
	double last = account.spent, toggling_before = toggles_cost();

	windows_learn_parallel();
	scan_if_loaded();
	run_epoch();
	cost_settle();
	return pace_next(&pace, (uint64_t)(account.spent - last),
			 (uint64_t)(toggles_cost() - toggling_before),
			 account.used > used_before ? (uint64_t)(account.used - used_before) : 0);
}

static bool is_session(uintptr_t number)
{
	return number == load_relaxed(&session);
}

/* False: the process or the profile has ended, maybe in the middle of a long epoch. */
static bool sleep_epoch(uint64_t length, uintptr_t number)
{
	double left = (double)length / watch_common.per_second;

	for (; is_session(number) && !is_program_over(); left--) {
		usleep((useconds_t)(fmin(left, 1) * 1e6));
		if (left <= 1)
			return true;
	}
	return false;
}

void sampler_run(uintptr_t number)
{
	uint64_t next = pace.length;

	while (sleep_epoch(next, number)) {
		if (pthread_mutex_lock(&profile_lock))
			break;
		if (is_session(number))
			next = tick_epoch();
		pthread_mutex_unlock(&profile_lock);
	}
}

int epochs_start_thread(void)
{
	uintptr_t number = atomic_fetch_add(&session, 1) + 1;
	pthread_t id;
	int ret = session_thread(&id, number);

	if (ret)
		return ret;
	pthread_getcpuclockid(id, &watch_common.own);
	pthread_detach(id);
	return 0;
}

void epochs_end_thread(void)
{
	atomic_fetch_add(&session, 1);
}
