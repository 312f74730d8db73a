/* SPDX-License-Identifier: MIT */
/* How long the probe of a function is watched, what that has shown, and the next window. */
#include "profile/sampler/epochs.h"

#include <time.h>

#define SHORTEST_WINDOW 200e-6 /* seconds; opening one and switching to a thread take 10e-6 */
#define WARM_UP		200e-6 /* seconds */
#define SLACK		10000  /* ticks by which a call may seem to come before the window */
#define REST		16     /* epochs between looks at a function that is hardly called */
#define MANY		4      /* times the samples, of which the first are not timed */
#define FEW		20     /* times the samples: a window costs more than to count those */
#define MOST		300    /* times the samples, in a window */
#define SUDDEN		100    /* times the samples, where few were expected */
#define MISJUDGED	0.5    /* share of the ticks taken off calls' time that may be wrong */

static double parallel = 1; /* how many threads of the program run at once, of late */

/* A program that waits for a CPU counts as one thread at least. */
void windows_learn_parallel(void)
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

/* The program's CPU time since, as wall time in which it runs: windows are chosen in that. */
static uint64_t wall_since(uint64_t start, uint64_t now)
{
	return now > start ? (uint64_t)((double)(now - start) / parallel) : 0;
}

/* Add the times of calls that ended since the last look. */
static void learn_times(uint32_t id, double calls)
{
	struct watch *watch = &watches[id];
	struct duration *duration = &function_states[id].duration;
	struct timed epoch = { .calls = calls };
	double taken;

	if (!watch->group)
		return;
	epoch.timed = (double)swap_relaxed(&watch->timed, 0);
	epoch.time = (double)swap_relaxed(&watch->time, 0);
	epoch.wall = (double)swap_relaxed(&watch->wall, 0);
	taken = (double)swap_relaxed(&watch->taken, 0);
	if (epoch.timed > 0)
		epoch.blur = MISJUDGED * taken / epoch.timed;
	duration->torn += (double)swap_relaxed(&watch->torn, 0);
	duration->cut += (double)swap_relaxed(&watch->cut, 0);
	duration_add(duration, &epoch);
}

double windows_learn(uint32_t id, uint64_t end)
{
	struct function_state *function = &function_states[id];
	double before = function->estimate.calls;

	function->epoch.length = wall_since(function->start, end);
	function->epoch.used = end > function->start ? end - function->start : 0;
	/* An epoch in which the clock stood still may have calls. */
	if (!function->epoch.length)
		function->epoch.length = 1;
	if (function->epoch.watched > function->epoch.length)
		function->epoch.watched = function->epoch.length;
	estimate_add(&function->estimate, &function->epoch);
	learn_times(id, function->estimate.calls - before);
	return function->estimate.calls - before;
}

/* A point in the window without the wait for a CPU, which mostly comes right after the start. */
static uint64_t without_waiting(uint64_t at, uint64_t waited, uint64_t most)
{
	at = at > waited ? at - waited : 0;
	return at < most ? at : most;
}

static void read_full_window(const struct watch *watch, const struct function_state *function,
			     struct epoch *epoch)
{
	uint64_t filled = load_relaxed(&watch->filled);
	uint64_t waited = load_relaxed(&watch->waited);

	epoch->full = true;
	epoch->sudden = function->window == WINDOW_WHOLE;
	epoch->calls = load_relaxed(&watch->limit);
	epoch->watched = filled > waited ? filled - waited : 1;
	epoch->first = without_waiting(load_relaxed(&watch->first), waited, epoch->watched);
	epoch->middle = without_waiting(load_relaxed(&watch->middle), waited, epoch->watched);
}

/* Take off the share of the window in which probes ran, and the program did not get on. */
static void take_off_counting(const struct watch *watch, uint64_t state, uint64_t own,
			      struct epoch *epoch)
{
	uint64_t closed = load_relaxed(&watch->slowed);
	double share = (double)closed / 4294967296.0;

	if ((state & WATCH_BITS) == WATCH_OPEN)
		share = watch_slowed(watch, own);
	epoch->slowed = share;
	epoch->watched = (uint64_t)((double)epoch->watched * (1 - share));
	epoch->first = (uint64_t)((double)epoch->first * (1 - share));
	epoch->middle = (uint64_t)((double)epoch->middle * (1 - share));
	if (!epoch->watched)
		epoch->watched = 1;
}

void windows_read(uint32_t id, uint64_t state, uint64_t now)
{
	struct watch *watch = &watches[id];
	struct function_state *function = &function_states[id];
	uint64_t calls = load_relaxed(&watch->calls) - load_relaxed(&watch->base);
	uint64_t began = load_relaxed(&watch->began) + load_relaxed(&watch->warm);
	struct epoch *epoch = &function->epoch;

	*epoch = (struct epoch){ .calls = calls, .watched = wall_since(began, now) };
	if ((state & WATCH_BITS) == WATCH_FULL && calls >= load_relaxed(&watch->limit))
		read_full_window(watch, function, epoch);
	else if ((state & WATCH_BITS) != WATCH_OPEN && function->window == WINDOW_WHOLE)
		/* It was turned off while its last epoch was read, and has watched nothing since.
		 */
		epoch->watched = 0;
	else if (epoch->watched > function->window)
		epoch->watched = function->window;
	if (epoch->full || function->window != WINDOW_WHOLE)
		take_off_counting(watch, state, now > began ? now - began : 0, epoch);
}

/* Calls of the probe function that the budget of the opening still pays for. */
static double affordable_calls(void)
{
	return pace.afford / watch_common.price;
}

void windows_set_affordable(void)
{
	store_relaxed(&watch_common.affordable_calls, ring_run() + (uint64_t)affordable_calls());
}

static uint64_t window_of(const struct function_state *function)
{
	unsigned few = FEW * asked.samples, share;

	share = (unsigned)(affordable_calls() / (account.frequent ? account.frequent : 1));
	return estimate_window(&function->estimate, pace.length, asked.samples,
			       share > few ? share : few,
			       (uint64_t)(SHORTEST_WINDOW * watch_common.per_second));
}

/* No window is open, so that nothing is counted until start_window(). */
static void prepare_window(uint32_t id, uint64_t window)
{
	struct watch *watch = &watches[id];
	struct function_state *function = &function_states[id];
	bool whole = window == WINDOW_WHOLE;
	bool many = !whole && function->estimate.expected * (double)window > MANY * asked.samples;
	uint64_t limit = whole ? SUDDEN : MOST;

	function->window = window;
	/* Counting SUDDEN calls of a rare function costs as much as turning it off: do that. */
	store_relaxed(&watch->limit, limit * asked.samples);
	store_relaxed(&watch->base, load_relaxed(&watch->calls));
	store_relaxed(&watch->window, window);
	store_relaxed(&watch->wish, window);
	/*
	 * Caches are cold, by the thread that opens windows or as the program comes: it is slower.
	 */
	store_relaxed(&watch->warm, whole ? 0 : (uint64_t)(WARM_UP * watch_common.per_second));
	/* The first calls find cold caches. They are not timed where many more are expected. */
	store_relaxed(&watch->skip, many ? asked.samples : 0);
	watch_mark(watch);
}

/* Right after the clock was read: the program may run meanwhile. */
static void start_window(uint32_t id, uint64_t now)
{
	store_relaxed(&watches[id].began, now);
	store_release(&watches[id].from, __builtin_ia32_rdtsc() + load_relaxed(&watches[id].warm));
}

/* A rare function's window is read again after so many epochs: all calls count anyway. */
static void set_rest(uint32_t id)
{
	const struct function_state *function = &function_states[id];
	bool rare = function->window == WINDOW_WHOLE &&
		    function->estimate.expected * (double)pace.length * REST < asked.samples;

	rest_epochs[id] = rare ? REST - 1 : 0;
}

double toggles_cost(void)
{
	return (double)load_relaxed(&watch_common.off_ticks) + account.turning_on;
}

void toggles_note(double since, bool refused)
{
	account.turning_on +=
		(clock_seconds(CLOCK_THREAD_CPUTIME_ID) - since) * watch_common.per_second;
	account.sum.refused += refused;
}

void toggles_on(uint32_t *ids, size_t n)
{
	double before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);

	toggles_note(before, fi_activate_how(ids, n, watch_call, FI_KEEPS_VECTORS) < 0);
	account.sum.toggles += (double)n;
}

/* Exits of these entries, before the entries. */
static void turn_exits_on(const uint32_t *ids, size_t n)
{
	long exits = exits_turn_on(ids, n);

	account.sum.refused += exits < 0;
	account.sum.toggles += exits > 0 ? (double)exits : 0;
}

static double continue_window(uint32_t id, uint64_t state, uint64_t now)
{
	struct watch *watch = &watches[id];
	struct function_state *function = &function_states[id];
	bool whole = function->window == WINDOW_WHOLE;
	uint64_t window;
	double calls;

	if (whole) {
		calls = windows_learn(id, now);
		function->start = now;
		window = window_of(function);
		add_relaxed(&watch->base, function->epoch.calls);
		/* The window goes on, so that no call is missed. */
		if (window == WINDOW_WHOLE) {
			store_relaxed(&watch->began, now);
			watch_mark(watch);
			store_relaxed(&watch->from, __builtin_ia32_rdtsc() - SLACK);
			return calls;
		}
	}
	store_release(&watch->from, NEVER);
	if (!watch_next(watch, state))
		return whole ? calls : 0;
	if (!whole) {
		calls = windows_learn(id, now);
		window = window_of(function);
	}
	function->start = now;
	prepare_window(id, window);
	start_window(id, watch_clock());
	return calls;
}

double windows_continue(uint32_t id, uint64_t state, uint64_t now)
{
	double calls = continue_window(id, state, now);

	/* An exit may have turned itself off just when the entry was turned on. */
	turn_exits_on(&id, 1);
	set_rest(id);
	return calls;
}

/* Probes that are being turned off right now wait for the next epoch. */
static size_t claim_probes(uint32_t *ids, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct watch *watch = &watches[ids[i]];
		uint64_t state = atomic_load(&watch->state);

		if (state & WATCH_LEAVES)
			continue;
		/* First: no call that sees the new state may use the old start. */
		store_release(&watch->from, NEVER);
		if (watch_next(watch, state))
			ids[kept++] = ids[i];
	}
	return kept;
}

double windows_activate(uint32_t *ids, size_t n)
{
	double calls = 0;
	uint64_t now;

	n = claim_probes(ids, n);
	if (!n)
		return 0;
	turn_exits_on(ids, n);
	toggles_on(ids, n);
	now = watch_clock();
	for (size_t i = 0; i < n; i++) {
		struct function_state *function = &function_states[ids[i]];

		if (function->opened)
			calls += windows_learn(ids[i], now);
		function->opened = true;
		function->start = now;
		prepare_window(ids[i], window_of(function));
		set_rest(ids[i]);
	}
	now = watch_clock();
	for (size_t i = 0; i < n; i++) {
		/* Calls until now are not known: the first epoch starts here. */
		if (!(function_states[ids[i]].estimate.known > 0))
			function_states[ids[i]].start = now;
		start_window(ids[i], now);
	}
	return calls;
}
