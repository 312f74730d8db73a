/* SPDX-License-Identifier: MIT */
#include "probes/profile/sample/epochs.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "probes/agent/alone.h"
#include "probes/agent/pin.h"
#include "probes/profile/estimate/pace.h"
#include "probes/profile/sample/callers.h"
#include "probes/profile/sample/exits.h"
#include "probes/profile/sample/pages.h"
#include "probes/profile/sample/price.h"
#include "probes/profile/sample/watch.h"
#include "stress/base/random.h"

#define SHORTEST_WINDOW 200e-6 /* seconds; opening one and switching to a thread take 10e-6 */
#define WARM_UP		200e-6 /* seconds */
#define LONGEST_EPOCH	1.0    /* seconds */
#define SLACK		10000  /* ticks by which a call may seem to come before the window */
#define SLOWED_MOST	0.2    /* share */
#define REST		16     /* epochs between looks at what is hardly called */
#define MANY		4      /* times the samples, of which the first are not timed */
#define FEW		20     /* times the samples: a window costs more than to count those */
#define SUDDEN		100    /* times the samples, where few were expected */
#define RECENT		50e-6  /* seconds */
#define OVERLONG	0.1    /* seconds */
#define MEASURED	100e-6 /* seconds, of which the ticks are counted */
#define AT_ONCE		1000   /* ticks between which two clocks are read */
#define MISJUDGED	0.5    /* share of what is taken off calls' time that may be wrong */

static struct options options;
static struct book *books;
static uint8_t rests[FI_PROBES_MAX]; /* epochs until a probe is looked at again */
static double
	dear; /* share of the program's time, if all windows that are short were open at once */
static struct account account;
static struct pace pace;
static double per_second;   /* ticks */
static double parallel = 1; /* threads of the program that run, of late */
static double calls_run;    /* of the probe function */
static uint32_t known;	    /* probes that were asked for */
static pthread_mutex_t lock;
static _Atomic unsigned session; /* another for each thread of epochs, and when it is over */

/* --- Clocks ---------------------------------------------------------------------------------- */

static uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* 0 where there is no such thread any more. */
static double clock_seconds(clockid_t clock)
{
	struct timespec time = { 0 };

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void sleep_ticks(uint64_t length)
{
	double time = (double)length / per_second;
	struct timespec pause = { .tv_sec = (time_t)time };

	pause.tv_nsec = (long)((time - (double)pause.tv_sec) * 1e9);
	nanosleep(&pause, NULL);
}

/* Both clocks at once: no preemption came between. */
static double seconds_at(uint64_t *at)
{
	uint64_t before;
	double time;
	int tries = 0;

	do {
		before = ticks();
		time = clock_seconds(CLOCK_MONOTONIC);
		*at = ticks();
	} while (*at - before > AT_ONCE && ++tries < 1000);
	return time;
}

/* Within a percent: only windows and epochs are chosen by it. */
static double measure_ticks(void)
{
	uint64_t start, end;
	double from = seconds_at(&start), to;

	do
		to = seconds_at(&end);
	while (to - from < MEASURED);
	return (double)(end - start) / (to - from);
}

/* --- The lock -------------------------------------------------------------------------------- */

static void lock_start(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

int epochs_lock(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	return -pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until);
}

void epochs_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

struct book *epochs_book(uint32_t id)
{
	return &books[id];
}

struct account *epochs_account(void)
{
	return &account;
}

const struct options *epochs_options(void)
{
	return &options;
}

double epochs_cost(void)
{
	return account.used > 0 ? account.spent / account.used : 0;
}

static double toggling(void)
{
	return (double)atomic_load_explicit(&watch_common.off_ticks, memory_order_relaxed) +
	       account.turning_on;
}

double epochs_toggling(void)
{
	return account.used > 0 ? toggling() / account.used : 0;
}

/* --- Windows --------------------------------------------------------------------------------- */

static uint64_t window_of(const struct book *book)
{
	if (options.by_count)
		return WINDOW_WHOLE;
	return estimate_window(&book->estimate, pace.length, options.samples, FEW * options.samples,
			       (uint64_t)(SHORTEST_WINDOW * per_second));
}

/*
 * Windows are chosen in wall time in which the program runs, and epochs measured by its clock: with
 * several threads at work that one is faster.
 */
static uint64_t time_since(uint64_t start, uint64_t now)
{
	return now > start ? (uint64_t)((double)(now - start) / parallel) : 0;
}

/* The time of calls that ended since the last look. */
static void learn_times(uint32_t id, double calls)
{
	struct watch *watch = &watches[id];
	struct duration *duration = &books[id].duration;
	struct timed epoch = { .calls = calls };
	double taken;

	if (!watch->group)
		return;
	epoch.timed = (double)atomic_exchange_explicit(&watch->timed, 0, memory_order_relaxed);
	epoch.time = (double)atomic_exchange_explicit(&watch->time, 0, memory_order_relaxed);
	epoch.wall = (double)atomic_exchange_explicit(&watch->wall, 0, memory_order_relaxed);
	taken = (double)atomic_exchange_explicit(&watch->taken, 0, memory_order_relaxed);
	if (epoch.timed > 0)
		epoch.blur = MISJUDGED * taken / epoch.timed;
	duration->torn += (double)atomic_exchange_explicit(&watch->torn, 0, memory_order_relaxed);
	duration->cut += (double)atomic_exchange_explicit(&watch->cut, 0, memory_order_relaxed);
	duration_add(duration, &epoch);
}

static double learn_rate(uint32_t id, uint64_t end)
{
	struct book *book = &books[id];
	double before = book->estimate.calls;

	book->epoch.length = time_since(book->start, end);
	/* An epoch in which the clock stood still has calls all the same. */
	if (!book->epoch.length)
		book->epoch.length = 1;
	if (book->epoch.watched > book->epoch.length)
		book->epoch.watched = book->epoch.length;
	estimate_add(&book->estimate, &book->epoch);
	calls_run += (double)book->epoch.calls;
	learn_times(id, book->estimate.calls - before);
	return book->estimate.calls - before;
}

static void read_full(const struct watch *watch, const struct book *book, struct epoch *epoch)
{
	uint64_t filled = atomic_load_explicit(&watch->filled, memory_order_relaxed);
	uint64_t waited = atomic_load_explicit(&watch->waited, memory_order_relaxed);
	uint64_t first = atomic_load_explicit(&watch->first, memory_order_relaxed);
	uint64_t middle = atomic_load_explicit(&watch->middle, memory_order_relaxed);

	epoch->full = true;
	epoch->sudden = book->window == WINDOW_WHOLE && !options.by_count;
	epoch->calls = book->limit;
	epoch->watched = filled > waited ? filled - waited : 1;
	/* Most often the program waited for its CPU right behind the start. */
	epoch->first = first > waited ? first - waited : 0;
	epoch->middle = middle > waited ? middle - waited : 0;
	if (epoch->first > epoch->watched)
		epoch->first = epoch->watched;
	if (epoch->middle > epoch->watched)
		epoch->middle = epoch->watched;
}

/* Counting took a share of the window, in which the program did not get on. */
static void correct(const struct watch *watch, uint64_t state, uint64_t own, struct epoch *epoch)
{
	uint64_t closed = atomic_load_explicit(&watch->slowed, memory_order_relaxed);
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

/* What the window has seen until now. */
static void read_epoch(uint32_t id, uint64_t state, uint64_t now)
{
	struct watch *watch = &watches[id];
	struct book *book = &books[id];
	uint64_t calls = atomic_load_explicit(&watch->calls, memory_order_relaxed) - book->base;
	uint64_t began = atomic_load_explicit(&watch->began, memory_order_relaxed) +
			 atomic_load_explicit(&watch->warm, memory_order_relaxed);
	struct epoch *epoch = &book->epoch;

	*epoch = (struct epoch){ .calls = calls, .watched = time_since(began, now) };
	if ((state & WATCH_BITS) == WATCH_FULL && calls >= book->limit)
		read_full(watch, book, epoch);
	else if ((state & WATCH_BITS) != WATCH_OPEN && book->window == WINDOW_WHOLE)
		/* It was filled while the epoch before was read: nothing was watched since. */
		epoch->watched = 0;
	else if (epoch->watched > book->window)
		epoch->watched = book->window;
	if (epoch->full || book->window != WINDOW_WHOLE)
		correct(watch, state, now > began ? now - began : 0, epoch);
}

/*
 * The thread that opens windows has just emptied the caches of the CPU that the program gets back,
 * or the program has just come to it: for a while it is slower than it is on average.
 */
static uint64_t warm_of(uint64_t window)
{
	if (window == WINDOW_WHOLE)
		return 0;
	return (uint64_t)(WARM_UP * per_second);
}

/* Where many calls are expected there are enough behind the first ones. */
static uint64_t skip_of(const struct book *book, uint64_t window)
{
	bool many = window != WINDOW_WHOLE &&
		    book->estimate.expected * (double)window > MANY * options.samples;

	return many ? options.samples : 0;
}

/*
 * What was rare and is called often costs as much by then as what turning it off takes, and the
 * next window tells more.
 */
static uint64_t limit_of(uint64_t window)
{
	uint64_t sudden = (uint64_t)SUDDEN * options.samples;

	return window == WINDOW_WHOLE && sudden < options.limit ? sudden : options.limit;
}

/* No window is open, so that nothing is counted until start_window(). */
static void prepare_window(uint32_t id, uint64_t window)
{
	struct watch *watch = &watches[id];
	struct book *book = &books[id];

	calls_run += (double)atomic_exchange_explicit(&watch->late, 0, memory_order_relaxed);
	book->base = atomic_load_explicit(&watch->calls, memory_order_relaxed);
	book->window = window;
	book->limit = limit_of(window);
	atomic_store_explicit(&watch->limit, book->limit, memory_order_relaxed);
	atomic_store_explicit(&watch->base, book->base, memory_order_relaxed);
	atomic_store_explicit(&watch->window, window, memory_order_relaxed);
	atomic_store_explicit(&watch->wish, window, memory_order_relaxed);
	atomic_store_explicit(&watch->warm, warm_of(window), memory_order_relaxed);
	atomic_store_explicit(&watch->skip, skip_of(book, window), memory_order_relaxed);
	watch_mark(watch);
}

/* Right behind the clock was read: the program may run meanwhile. */
static void start_window(uint32_t id, uint64_t now)
{
	atomic_store_explicit(&watches[id].began, now, memory_order_relaxed);
	atomic_store_explicit(&watches[id].from,
			      ticks() +
				      atomic_load_explicit(&watches[id].warm, memory_order_relaxed),
			      memory_order_release);
}

/* A probe that is still on, so that no code has to be changed. */
static double go_on(uint32_t id, uint64_t state, uint64_t now)
{
	struct watch *watch = &watches[id];
	struct book *book = &books[id];
	bool whole = book->window == WINDOW_WHOLE;
	uint64_t window;
	double calls;

	if (whole) {
		calls = learn_rate(id, now);
		book->base += book->epoch.calls;
		book->start = now;
		window = window_of(book);
		atomic_store_explicit(&watch->base, book->base, memory_order_relaxed);
		/* Nothing else changes, so that no call is missed. */
		if (window == WINDOW_WHOLE) {
			atomic_store_explicit(&watch->began, now, memory_order_relaxed);
			watch_mark(watch);
			atomic_store_explicit(&watch->from, ticks() - SLACK, memory_order_relaxed);
			return calls;
		}
	}
	atomic_store_explicit(&watch->from, NEVER, memory_order_release);
	if (!watch_next(watch, state))
		return whole ? calls : 0;
	if (!whole) {
		calls = learn_rate(id, now);
		window = window_of(book);
	}
	book->start = now;
	prepare_window(id, window);
	start_window(id, watch_clock());
	return calls;
}

/* What is hardly called is looked at now and then: all its calls are counted anyway. */
static void rest_function(uint32_t id)
{
	const struct book *book = &books[id];
	bool rare = book->window == WINDOW_WHOLE &&
		    book->estimate.expected * (double)pace.length * REST < options.samples;

	rests[id] = rare ? REST - 1 : 0;
}

struct reopen {
	uint32_t *ids;
	uint64_t *windows;
	size_t n;
};

static void add_reopen(struct reopen *reopen, uint32_t id)
{
	reopen->windows[reopen->n] = window_of(&books[id]);
	reopen->ids[reopen->n++] = id;
}

/* Without those that are being turned off right now: their turn is the next epoch. */
static size_t claim_all(const struct reopen *reopen)
{
	size_t kept = 0;

	for (size_t i = 0; i < reopen->n; i++) {
		struct watch *watch = &watches[reopen->ids[i]];
		uint64_t state = atomic_load(&watch->state);

		if (state & WATCH_LEAVES)
			continue;
		/* Before the state: a call that sees the new one must not go by the old window's.
		 */
		atomic_store_explicit(&watch->from, NEVER, memory_order_release);
		if (!watch_next(watch, state))
			continue;
		reopen->ids[kept] = reopen->ids[i];
		reopen->windows[kept++] = reopen->windows[i];
	}
	return kept;
}

static void exits_first(const uint32_t *ids, size_t n)
{
	long exits = exits_on(ids, n);

	if (exits < 0)
		account.refused++;
	else
		account.toggles += (uint64_t)exits;
}

static double activate(const struct reopen *reopen)
{
	const uint32_t *ids = reopen->ids;
	size_t n = claim_all(reopen);
	double calls = 0, before;
	uint64_t now;

	exits_first(ids, n);
	before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
	if (fi_activate_how(ids, n, watch_call, FI_KEEPS_VECTORS) < 0)
		account.refused++;
	account.turning_on += (clock_seconds(CLOCK_THREAD_CPUTIME_ID) - before) * per_second;
	account.toggles += n;
	now = watch_clock();
	for (size_t i = 0; i < n; i++) {
		struct book *book = &books[ids[i]];

		if (book->opened)
			calls += learn_rate(ids[i], now);
		book->opened = true;
		book->start = now;
		prepare_window(ids[i], reopen->windows[i]);
		rest_function(ids[i]);
	}
	now = watch_clock();
	for (size_t i = 0; i < n; i++) {
		/* What was called while the first windows were prepared is not known at all. */
		if (!(books[ids[i]].estimate.known > 0))
			books[ids[i]].start = now;
		start_window(ids[i], now);
	}
	return calls;
}

/* --- An epoch -------------------------------------------------------------------------------- */

static double visit_function(uint32_t id, struct reopen *reopen, uint64_t now)
{
	uint64_t state = atomic_load_explicit(&watches[id].state, memory_order_acquire);
	double calls;

	read_epoch(id, state, now);
	if ((state & WATCH_BITS) != WATCH_OPEN) {
		add_reopen(reopen, id);
		return 0;
	}
	calls = go_on(id, state, now);
	/* One may have turned itself off just when the entry was turned on. */
	exits_first(&id, 1);
	rest_function(id);
	return calls;
}

static void merge_moments(void)
{
	for (unsigned i = 0; i < MOMENTS / 2; i++) {
		struct moment *one = &account.moment[2 * i], *two = one + 1;

		account.moment[i] = (struct moment){ .start = one->start,
						     .length = one->length + two->length,
						     .calls = one->calls + two->calls,
						     .cost = one->cost + two->cost };
	}
	account.moments = MOMENTS / 2;
	account.merged *= 2;
}

static void add_moment(uint64_t start, uint64_t end, double calls, double cost)
{
	struct moment *last;

	if (account.moments == MOMENTS && account.epochs % account.merged == 0)
		merge_moments();
	if (account.epochs % account.merged == 0)
		account.moment[account.moments++] =
			(struct moment){ .start = (double)(start - account.began) };
	last = &account.moment[account.moments - 1];
	last->length = (double)(end - account.began) - last->start;
	last->calls += calls;
	last->cost += cost;
}

static void drain_rings(void)
{
	for (struct ring *ring = ring_list(); ring; ring = ring->next) {
		uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
		uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

		for (; tail < head; tail++)
			account.lost += !callers_count(&ring->caller[tail % RING]);
		atomic_store_explicit(&ring->tail, tail, memory_order_release);
		account.lost += atomic_exchange_explicit(&ring->lost, 0, memory_order_relaxed);
	}
}

/* Ticks that the profile has cost: this thread, what turned probes off, calls of the probe
 * function. */
static double spent(void)
{
	return account.start + clock_seconds(watch_common.own) * per_second +
	       (double)atomic_load_explicit(&watch_common.spent, memory_order_relaxed) +
	       calls_run * watch_common.price;
}

static bool is_closed(uint32_t id)
{
	return atomic_load_explicit(&watches[id].state, memory_order_relaxed) & WATCH_BITS;
}

/*
 * Of probes that are off, only so many are turned on in an epoch that those together do not slow
 * the program by more than a fifth while they are on: what they see is corrected for it, but not
 * well.
 */
static bool its_turn(void)
{
	double turns = dear / SLOWED_MOST;

	return turns <= 1 || (double)(random_next(&pace.random) >> 40) * turns < 16777216.0;
}

static void look_at_all(struct reopen *reopen, double *calls)
{
	uint64_t now = watch_clock();
	double rates = 0;

	for (uint32_t id = 0; id < known; id++) {
		/* What was rare and turned itself off is not. */
		if (rests[id] && !is_closed(id)) {
			rests[id]--;
			continue;
		}
		if (!books[id].watched)
			continue;
		if (books[id].window != WINDOW_WHOLE)
			rates += books[id].estimate.expected;
		if (!is_closed(id) || its_turn())
			*calls += visit_function(id, reopen, now);
	}
	dear = rates * watch_common.price;
}

static void run_epoch(void)
{
	struct reopen reopen = { .ids = calloc(known + 1, sizeof(uint32_t)),
				 .windows = calloc(known + 1, sizeof(uint64_t)) };
	uint64_t start = account.last ? account.last : account.began;
	double calls = 0;

	if (reopen.ids && reopen.windows) {
		look_at_all(&reopen, &calls);
		if (reopen.n)
			calls += activate(&reopen);
	}
	free(reopen.ids);
	free(reopen.windows);
	drain_rings();
	account.last = ticks();
	add_moment(start, account.last, calls, spent() - account.spent);
	account.epochs++;
}

/* --- Which probes ---------------------------------------------------------------------------- */

/* Of an object, where its probes are. */
struct range {
	const char *object;
	uintptr_t from, to;
};

static void note_range(struct range *range, const struct fi_probe *probe)
{
	uintptr_t at = (uintptr_t)probe->address;

	if (range->object != probe->object) {
		pages_open(range->from, range->to);
		*range = (struct range){ probe->object, at, at + 8 };
	}
	range->from = at < range->from ? at : range->from;
	range->to = at + 8 > range->to ? at + 8 : range->to;
}

static void take_function(uint32_t id, struct reopen *reopen, struct range *range)
{
	struct fi_probe probe;

	if (id < known || books[id].watched || fi_get(id, &probe) < 0 || probe.kind != FI_ENTRY ||
	    price_is_own(probe.address) || (options.visits && pin_object(probe.address) < 0))
		return;
	note_range(range, &probe);
	books[id].watched = true;
	reopen->windows[reopen->n] = WINDOW_WHOLE;
	reopen->ids[reopen->n++] = id;
}

static void take_pattern(const char *pattern, uint32_t *found, uint32_t n, struct reopen *reopen,
			 struct range *range)
{
	long matches = fi_find(pattern, found, n);

	for (long i = 0; i < matches && i < (long)n; i++)
		take_function(found[i], reopen, range);
}

/* Turned on and off with their entries. */
static void take_exits(const struct reopen *reopen)
{
	long functions = options.no_times ? 0 : exits_take(reopen->ids, reopen->n, known);

	if (functions > 0)
		account.with_exits += (uint64_t)functions;
}

static void watch_new(uint32_t n)
{
	struct reopen reopen = { .ids = calloc(n + 1, sizeof(uint32_t)),
				 .windows = calloc(n + 1, sizeof(uint64_t)) };
	uint32_t *found = calloc(n + 1, sizeof(*found));
	char *copy = strdup(options.functions), *rest_of = copy, *pattern;
	struct range range = { 0 };

	if (reopen.ids && reopen.windows && found && copy) {
		while ((pattern = strsep(&rest_of, " ")))
			if (*pattern)
				take_pattern(pattern, found, n, &reopen, &range);
		pages_open(range.from, range.to);
		take_exits(&reopen);
		if (reopen.n)
			activate(&reopen);
	}
	known = n;
	free(copy);
	free(found);
	free(reopen.ids);
	free(reopen.windows);
}

void epochs_scan(void)
{
	uint32_t n;

	fi_scan();
	n = fi_probes();
	for (uint32_t id = 0; id < known; id++) {
		struct fi_probe probe;

		if (books[id].watched && !fi_get(id, &probe) && probe.state == FI_GONE)
			books[id].watched = false;
	}
	if (n > known)
		watch_new(n);
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
		epochs_scan();
	before = now;
}

/* --- The thread ------------------------------------------------------------------------------ */

/* A program that waits for a CPU is not the less parallel. */
static void measure_parallel(void)
{
	static uint64_t own_before, wall_before;
	uint64_t own = watch_clock(), wall = ticks();

	if (wall_before && own > own_before && wall > wall_before) {
		double now = (double)(own - own_before) / (double)(wall - wall_before);

		parallel += (now - parallel) / 16;
		if (parallel < 1)
			parallel = 1;
	}
	own_before = own;
	wall_before = wall;
}

/* What was spent and used until now, also behind the last epoch. */
static void settle(void)
{
	double now = spent();

	account.spent = now > account.spent ? now : account.spent;
	account.used = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) * per_second - account.used_at_start;
}

static uint64_t tick_epoch(void)
{
	double used_before = account.used;
	double last = account.spent, toggling_before = toggling();
	uint64_t next;

	measure_parallel();
	scan_if_loaded();
	run_epoch();
	settle();
	next = pace_next(&pace, (uint64_t)(account.spent - last),
			 (uint64_t)(toggling() - toggling_before),
			 account.used > used_before ? (uint64_t)(account.used - used_before) : 0);
	return next;
}

static bool is_session(const void *data)
{
	return (unsigned)(uintptr_t)data == atomic_load_explicit(&session, memory_order_relaxed);
}

/* That count as the tool's: one that is to end may sleep still when the next begins. */
static atomic_uint counted_in;

/* None of them is in a child. */
void epochs_count_out(void)
{
	while (atomic_load_explicit(&counted_in, memory_order_relaxed)) {
		atomic_fetch_sub_explicit(&counted_in, 1, memory_order_relaxed);
		fi_own_thread(-1);
	}
}

static void *thread(void *data)
{
	uint64_t next = pace.length;

	fi_own_thread(1);
	atomic_fetch_add_explicit(&counted_in, 1, memory_order_relaxed);
	while (is_session(data) && !agent_alone()) {
		sleep_ticks(next);
		if (pthread_mutex_lock(&lock))
			break;
		if (is_session(data))
			next = tick_epoch();
		pthread_mutex_unlock(&lock);
	}
	atomic_fetch_sub_explicit(&counted_in, 1, memory_order_relaxed);
	fi_own_thread(-1);
	return NULL;
}

/* With all signals blocked but the one of patches. */
static int start_thread(void)
{
	sigset_t all, before;
	pthread_t id;
	int ret;

	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&id, NULL, thread,
			     (void *)(uintptr_t)atomic_fetch_add(&session, 1) + 1);
	if (!ret) {
		pthread_getcpuclockid(id, &watch_common.own);
		pthread_detach(id);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -ret;
}

static double since_start(void)
{
	return clock_seconds(CLOCK_THREAD_CPUTIME_ID) - options.before;
}

static void begin_epochs(void)
{
	account.began = ticks();
	account.began_at = clock_seconds(CLOCK_MONOTONIC);
	account.used_at_start =
		(clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - since_start()) * per_second;
	atomic_store_explicit(&watch_common.spent, 0, memory_order_relaxed);
	atomic_store_explicit(&watch_common.offs, 0, memory_order_relaxed);
	atomic_store_explicit(&watch_common.off_ticks, 0, memory_order_relaxed);
	account.merged = 1;
	pace = (struct pace){ .budget = options.budget,
			      .shortest = (uint64_t)(options.epoch * per_second),
			      .longest = (uint64_t)(LONGEST_EPOCH * per_second),
			      .random = account.began ^ (uint64_t)getpid() };
	if (pace.longest < pace.shortest)
		pace.longest = pace.shortest;
	pace.length = pace.shortest;
}

static int prepare_epochs(const struct options *wish)
{
	void *all = mmap(NULL, FI_PROBES_MAX * sizeof(struct book), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int ret;

	if (all == MAP_FAILED)
		return -ENOMEM;
	books = all;
	per_second = measure_ticks();
	watch_common.per_second = per_second;
	lock_start();
	ret = watch_start();
	if (!ret)
		ret = ring_start();
	if (ret)
		return ret;
	watch_common.callers = wish->samples;
	watch_common.ticks_per_4s = (uint64_t)(per_second * 4294967296e-9);
	watch_common.recent = (uint64_t)(RECENT * per_second);
	watch_common.overlong = (uint64_t)(OVERLONG * per_second);
	price_measure();
	return 0;
}

static void reset(uint32_t id);
static int turn_all_off(void);

/* As if it were the first time. */
static void forget_functions(void)
{
	for (uint32_t id = 0; id < known; id++) {
		reset(id);
		books[id] = (struct book){ 0 };
		watches[id].group = NULL;
		rests[id] = 0;
	}
	exits_forget();
	ring_forget();
	known = 0;
	calls_run = 0;
	account = (struct account){ 0 };
	callers_forget();
}

/*
 * What could not be stopped before is now. What executors note behind the last report would be the
 * next one's: so all leave the probe functions before it is forgotten.
 */
static int end_last(void)
{
	int ret;

	turn_all_off();
	pages_close();
	ret = fi_synchronize();
	if (ret != -ETIMEDOUT)
		forget_functions();
	return ret == -ETIMEDOUT ? ret : 0;
}

int epochs_start(const struct options *wish)
{
	bool again = books;
	int ret = again ? 0 : prepare_epochs(wish);

	if (!ret)
		ret = epochs_lock();
	if (ret)
		return ret;
	ret = again ? end_last() : 0;
	if (ret) {
		epochs_unlock();
		return ret;
	}
	options = *wish;
	watch_common.callers = options.samples;
	begin_epochs();
	ret = start_thread();
	if (!ret)
		watch_new(fi_probes());
	account.start = account.spent = pace.spent = since_start() * per_second;
	epochs_unlock();
	return ret;
}

/* What comes late sees that no window is open. */
static int turn_all_off(void)
{
	uint32_t *ids = calloc(known + 1, sizeof(*ids));
	size_t n = 0;
	int ret, exits;

	if (!ids)
		return -ENOMEM;
	for (uint32_t id = 0; id < known; id++) {
		if (!books[id].opened)
			continue;
		atomic_fetch_or(&watches[id].state, WATCH_OVER);
		ids[n++] = id;
	}
	ret = fi_deactivate_batch(ids, n);
	exits = exits_off();
	free(ids);
	return ret < 0 ? ret : exits;
}

int epochs_stop(void)
{
	int ret = epochs_lock();

	if (ret)
		return ret;
	atomic_fetch_add(&session, 1);
	ret = turn_all_off();
	if (!ret)
		ret = pages_close();
	epochs_unlock();
	if (!ret)
		ret = fi_synchronize();
	if (ret)
		return ret;
	/* Nothing runs or changes their code any more, and they may go. */
	for (uint32_t id = 0; id < known; id++)
		books[id].opened = false;
	pins_drop();
	return 0;
}

/* Threads of the parent that were turning probes off are not here to finish it. */
static void reset(uint32_t id)
{
	struct watch *watch = &watches[id];
	uint64_t state = atomic_load_explicit(&watch->state, memory_order_relaxed);

	books[id] = (struct book){ .watched = true };
	/* A frame that another session has left belongs to no call of this one. */
	atomic_store_explicit(&watch->pending,
			      (uint64_t)(PENDING_CUTS(atomic_load_explicit(&watch->pending,
									   memory_order_relaxed)) +
					 1)
				      << 32,
			      memory_order_relaxed);
	atomic_store_explicit(&watch->torn, 0, memory_order_relaxed);
	atomic_store_explicit(&watch->cut, 0, memory_order_relaxed);
	atomic_store_explicit(&watch->timed, 0, memory_order_relaxed);
	atomic_store_explicit(&watch->time, 0, memory_order_relaxed);
	atomic_store_explicit(&watch->wall, 0, memory_order_relaxed);
	atomic_store_explicit(&watch->taken, 0, memory_order_relaxed);
	atomic_store_explicit(&watch->calls, 0, memory_order_relaxed);
	atomic_store_explicit(&watch->late, 0, memory_order_relaxed);
	atomic_store_explicit(&watch->from, NEVER, memory_order_relaxed);
	atomic_store_explicit(&watch->state, (state & ~(uint64_t)WATCH_LOW) | WATCH_OVER,
			      memory_order_relaxed);
}

/* All of them, before the child runs on. */
static void open_again(void)
{
	struct reopen reopen = { .ids = calloc(known + 1, sizeof(uint32_t)),
				 .windows = calloc(known + 1, sizeof(uint64_t)) };

	for (uint32_t id = 0; id < known; id++) {
		if (!books[id].watched)
			continue;
		reset(id);
		if (reopen.ids && reopen.windows)
			add_reopen(&reopen, id);
	}
	if (reopen.n)
		activate(&reopen);
	free(reopen.ids);
	free(reopen.windows);
}

void epochs_forked(bool again)
{
	uint64_t with_exits = account.with_exits;

	lock_start();
	ring_forked();
	exits_forked();
	account = (struct account){ .with_exits = with_exits };
	calls_run = 0;
	callers_forget();
	options.before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
	begin_epochs();
	if (!again) {
		turn_all_off();
		pages_close();
		return;
	}
	if (epochs_lock() || start_thread())
		return;
	open_again();
	epochs_unlock();
}

void epochs_finish(void)
{
	uint64_t now = watch_clock();

	atomic_fetch_add(&session, 1);
	for (uint32_t id = 0; id < known; id++) {
		uint64_t state = atomic_load_explicit(&watches[id].state, memory_order_relaxed);

		if (!books[id].opened)
			continue;
		read_epoch(id, state, now);
		learn_rate(id, now);
	}
	drain_rings();
	settle();
}
