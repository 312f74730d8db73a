/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program that knows nothing of it: finds the calls that the
 * program makes most often, and from a thread of its own changes them to and
 * fro between two forms of the same meaning for as long as the program works.
 *
 * PC_REAL_REPORT  file to write at the end; without it nothing is done
 * PC_REAL_OBJECT  part of the name of a shared library, for its calls
 * PC_REAL_POLICY  auto (the default), membarrier or wait
 * PC_REAL_RATE    changes per second, 10000 by default
 * PC_REAL_BREAK   what to do wrong: "skip" (the other form does not make the
 *                 call), "torn" (the bytes are written in two goes with a pause
 *                 between them, without INT3) or "bytewise" (without a pause)
 */
#define _GNU_SOURCE /* CPU_COUNT() */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "patchcore/patchcore.h"
#include "patchcore/site/site.h"
#include "patchcore/tests/real/sites.h"

#define HOT_MAX	  64u
#define HEAT_MIN  8u
#define LOOK	  20000000 /* ns between two looks at the counts */
#define LOOKS_MAX 10u	   /* then some are hot, or it goes on waiting for one */
#define PAUSE	  20000	   /* ns with half an instruction */
#define SECOND	  INT64_C(1000000000)

struct run {
	struct sites sites;
	struct site_call *hot[HOT_MAX];
	unsigned hots;
	int rate;
	bool alone; /* on one CPU with the program */
	const char *broken;
	int error; /* the first of pc_patch() other than -EAGAIN */
	uint64_t toggles, window_toggles, line_toggles, held;
	uint64_t through; /* calls through a stub since the toggling began */
	double seconds;
	struct pc_status status;
	pid_t pid;
	pthread_t thread;
};

static struct run run;
static atomic_bool stop;

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static void sleep_for(int64_t ns)
{
	nanosleep(&(struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND }, NULL);
}

/* --- Changes -------------------------------------------------------------------------- */

static int set_form(struct site_call *site, bool stub)
{
	int ret;

	do {
		ret = pc_patch(site->addr, site->form[stub], CALL_LEN);
	} while (ret == -EAGAIN && ++run.held);
	if (ret == 0)
		site->is_stub = stub;
	return ret;
}

/* What must not be done. */
static int set_form_wrongly(struct site_call *site, bool stub)
{
	volatile uint8_t *at = site->addr;

	for (unsigned i = 1; i < CALL_LEN; i++) {
		at[i] = site->form[stub][i];
		if (i == 2 && strcmp(run.broken, "torn") == 0)
			sleep_for(PAUSE);
	}
	site->is_stub = stub;
	return 0;
}

static bool is_written_wrongly(void)
{
	return strcmp(run.broken, "torn") == 0 || strcmp(run.broken, "bytewise") == 0;
}

static void toggle_call(struct site_call *site)
{
	int ret = is_written_wrongly() ? set_form_wrongly(site, !site->is_stub)
				       : set_form(site, !site->is_stub);

	if (ret < 0 && run.error == 0)
		run.error = ret;
	if (ret < 0)
		return;
	run.toggles++;
	run.window_toggles += site->straddles_window;
	run.line_toggles += site->straddles_line;
}

/* --- The hot ones --------------------------------------------------------------------- */

static int by_heat(const void *a, const void *b)
{
	uint64_t left = ((const struct site_call *)a)->heat;
	uint64_t right = ((const struct site_call *)b)->heat;

	return left < right ? 1 : left > right ? -1 : 0;
}

static bool is_chosen(const struct site_call *site)
{
	for (unsigned i = 0; i < run.hots; i++)
		if (run.hot[i] == site)
			return true;
	return false;
}

/* The hottest, as far as there is room for `most`: of those in question. */
static void choose_calls(unsigned most, bool window, bool line)
{
	for (size_t i = 0; i < run.sites.count && run.hots < most; i++) {
		struct site_call *site = &run.sites.list[i];

		if (site->heat >= HEAT_MIN && !is_chosen(site) &&
		    (!window || site->straddles_window) && (!line || site->straddles_line))
			run.hot[run.hots++] = site;
	}
}

static void choose_hot(void)
{
	for (size_t i = 0; i < run.sites.count; i++)
		run.sites.list[i].heat = atomic_load(run.sites.list[i].count);
	qsort(run.sites.list, run.sites.count, sizeof(*run.sites.list), by_heat);
	run.hots = 0;
	choose_calls(HOT_MAX / 8, true, true);
	choose_calls(HOT_MAX / 2, true, false);
	choose_calls(HOT_MAX, false, false);
}

static void find_hot(void)
{
	unsigned looks = 0;

	do {
		sleep_for(LOOK);
		choose_hot();
	} while (!atomic_load(&stop) &&
		 (run.hots == 0 || (run.hots < HOT_MAX && ++looks < LOOKS_MAX)));
}

static int all_to(bool stub)
{
	int ret = 0;

	for (size_t i = 0; i < run.sites.count && ret == 0; i++)
		if (run.sites.list[i].is_stub != stub)
			ret = set_form(&run.sites.list[i], stub);
	return ret;
}

/* --- The patcher ---------------------------------------------------------------------- */

static uint64_t count_through(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < run.hots; i++)
		sum += atomic_load(run.hot[i]->count);
	return sum;
}

/*
 * The change that is due next, and no sleep: a thread that sleeps is woken on the
 * CPU that it slept on, often that of an executor, which then never runs beside it.
 */
static void wait_until_due(int64_t begin)
{
	int64_t due = begin + (int64_t)run.toggles * SECOND / run.rate;

	while (now() < due && !atomic_load(&stop))
		if (run.alone)
			sched_yield();
		else
			__builtin_ia32_pause();
}

static void toggle_until_stopped(void)
{
	int64_t begin = now();
	uint64_t before = count_through();

	while (!atomic_load(&stop) && run.error == 0) {
		wait_until_due(begin);
		toggle_call(run.hot[run.toggles % run.hots]);
	}
	run.seconds = (double)(now() - begin) / SECOND;
	run.through = count_through() - before;
}

static void *run_patcher(void *unused)
{
	find_hot();
	if (run.hots == 0)
		return unused;
	run.error = all_to(false);
	for (unsigned i = 0; i < run.hots && strcmp(run.broken, "skip") == 0; i++)
		site_break_stub(run.hot[i]);
	toggle_until_stopped();
	if (run.error == 0)
		run.error = all_to(false);
	return unused;
}

/* The program's signals are for its own threads. */
static int start_thread(void)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&run.thread, NULL, run_patcher, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

/* --- Start and end -------------------------------------------------------------------- */

static const char *setting(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value ? value : otherwise;
}

static int cpus_allowed(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : CPU_COUNT(&set);
}

static int use_policy(const char *name)
{
	int ret = pc_init();

	if (ret == 0 && strcmp(name, "membarrier") == 0)
		ret = pc_set_policy(PC_POLICY_MEMBARRIER);
	if (ret == 0 && strcmp(name, "wait") == 0)
		ret = pc_set_policy(PC_POLICY_WAIT);
	return ret < 0 ? ret : pc_get_status(&run.status);
}

static int set_up(void)
{
	int ret = use_policy(setting("PC_REAL_POLICY", "auto"));

	if (ret == 0)
		ret = sites_find(&run.sites, setting("PC_REAL_OBJECT", ""),
				 run.status.atomic_window);
	if (ret == 0)
		ret = sites_add_stubs(&run.sites);
	if (ret == 0)
		ret = pc_text_open(run.sites.low, (size_t)(run.sites.high - run.sites.low));
	if (ret == 0)
		ret = all_to(true);
	return ret == 0 ? start_thread() : ret;
}

__attribute__((constructor)) static void begin(void)
{
	if (!getenv("PC_REAL_REPORT"))
		return;
	/* Not into the programs that this one starts. */
	unsetenv("LD_PRELOAD");
	run.rate = atoi(setting("PC_REAL_RATE", "10000"));
	run.alone = cpus_allowed() < 2;
	run.broken = setting("PC_REAL_BREAK", "");
	run.error = set_up();
	run.pid = run.error == 0 ? getpid() : 0;
}

static size_t straddlers(size_t count, bool hot)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += (hot ? run.hot[i] : &run.sites.list[i])->straddles_window;
	return n;
}

static void write_report(FILE *file)
{
	static const char *const policies[] = { "none", "wait", "membarrier" };

	fprintf(file, "error %d\npolicy %s\nwindow %u\n", run.error, policies[run.status.in_use],
		run.status.atomic_window);
	fprintf(file, "sites %zu\nstraddlers %zu\n", run.sites.count,
		straddlers(run.sites.count, false));
	fprintf(file, "hot %u\nhot_straddlers %zu\n", run.hots, straddlers(run.hots, true));
	fprintf(file, "toggles %lu\nstraddler_toggles %lu\nline_toggles %lu\nheld %lu\n",
		run.toggles, run.window_toggles, run.line_toggles, run.held);
	fprintf(file, "through %lu\ntraps %lu\n", run.through, sites_count().traps);
	fprintf(file, "seconds %.2f\nrate %.0f\n", run.seconds,
		run.seconds > 0 ? (double)run.toggles / run.seconds : 0);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("PC_REAL_REPORT");
	FILE *file;

	/* A child of the program has no patcher. */
	if (!path || (run.pid && run.pid != getpid()))
		return;
	atomic_store(&stop, true);
	if (run.pid)
		pthread_join(run.thread, NULL);
	file = fopen(path, "we");
	if (!file)
		return;
	write_report(file);
	fclose(file);
}
