/* SPDX-License-Identifier: MIT */
/* Patchers, executors, and what is counted. */
#include "patchcore/tests/storm/storm.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/mapping.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define ROUND	     200u /* executions between two looks at what to run */
#define EXECUTORS    2u
#define PATCHERS_MAX 6u
#define WAIT_TICKS   20000u
#define TEAR_RATE    2e-6 /* per toggle */
#define CHANCE	     1e-8
#define TOGGLES_MIN  50
#define PATIENCE_NS  UINT64_C(5000000000)
#define SLICE_NS     500000
#define PAUSE_TICKS  2000u

struct storm_now storm_now;

uint32_t storm_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

uint64_t storm_torn(const struct storm_result *result)
{
	return result->torn[0] + result->torn[1];
}

uint64_t storm_tears_allowed(const struct storm *storm, uint64_t toggles)
{
	double expected = TEAR_RATE * (double)toggles, term = exp(-expected), more = 1 - term;
	uint64_t allowed = 0;

	if (storm->policy != PC_POLICY_WAIT || !storm->way->syncs)
		return 0;
	while (more > CHANCE) {
		term *= expected / (double)++allowed;
		more -= term;
	}
	return allowed;
}

void storm_add(const struct storm_result *some)
{
	const uint64_t *from = (const uint64_t *)some;
	uint64_t *to = (uint64_t *)storm_now.total;

	for (size_t i = 0; i < sizeof(*some) / sizeof(*from); i++)
		if (from[i])
			__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
}

/* --- The program's own SIGTRAP ------------------------------------------------------------ */

/* The handler of the foreign INT3, which was there before the library. */
static void on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	struct storm_result seen = { 0 };

	(void)signal;
	(void)info;
	if ((uint8_t *)*rip == storm_arena.foreign + 1) {
		seen.foreign[1] = 1;
	} else {
		seen.stray = 1;
		/* An INT3 that no thread will take away must not keep the executor for ever. */
		*rip += atomic_load(&storm_now.stop) ? (greg_t)CODE_LEN - 1 : -1;
	}
	storm_add(&seen);
}

struct sigaction storm_own_trap(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	/* SIGTRAP is blocked in it: a handler on top of it must not run a site. */
	sigfillset(&action.sa_mask);
	return action;
}

static void own_traps(void)
{
	struct sigaction action = storm_own_trap();

	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
}

static void run_foreign(struct storm_result *seen)
{
	void (*foreign)(void) = (void (*)(void))(uintptr_t)storm_arena.foreign;

	seen->foreign[0]++;
	foreign();
}

/* --- Threads ------------------------------------------------------------------------------ */

static bool stopped(void)
{
	return atomic_load_explicit(&storm_now.stop, memory_order_relaxed);
}

static const struct storm_place *place_now(void)
{
	return &storm_arena.place[atomic_load_explicit(&storm_now.place, memory_order_relaxed)];
}

/* To the n-th CPU that there is, if the storm is tight. */
static void take_cpu(unsigned n)
{
	cpu_set_t all, one;

	if (!storm_now.storm->tight || sched_getaffinity(0, sizeof(all), &all) < 0 ||
	    (unsigned)CPU_COUNT(&all) <= n)
		return;
	CPU_ZERO(&one);
	for (unsigned cpu = 0, seen = 0; seen <= n; cpu++)
		if (CPU_ISSET(cpu, &all) && seen++ == n)
			CPU_SET(cpu, &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

static void *executor(void *unused)
{
	take_cpu(1);
	storm_thread_begin();
	while (!stopped()) {
		struct storm_result seen = { 0 };

		storm_execute(place_now(), storm_now.storm->way->shape, ROUND, &seen);
		if (storm_now.storm->noise & STORM_FOREIGN)
			run_foreign(&seen);
		storm_add(&seen);
	}
	storm_thread_end();
	return unused;
}

/* Does each patcher have sites of its own? */
static bool has_own_sites(void)
{
	return !(storm_now.storm->noise & (STORM_CONTENTION | STORM_THREADS));
}

void storm_change(unsigned column, unsigned code, struct storm_result *seen)
{
	const struct storm_way *way = storm_now.storm->way;
	unsigned focus = atomic_load_explicit(&storm_now.place, memory_order_relaxed);
	struct storm_site *sites[STORM_PLACES];
	size_t n = 0;
	int ret;

	for (unsigned i = way->many ? 1 : focus; i < (way->many ? STORM_PLACES : focus + 1); i++)
		sites[n++] = &storm_arena.place[i].site[column];
	ret = way->change(sites, n, code);
	MUST(ret == 0 || ret == -EAGAIN);
	if (ret < 0) {
		seen->refused++;
		return;
	}
	seen->toggles += n;
	for (size_t i = 0; i < n && way->lasts && has_own_sites(); i++)
		seen->lost += !storm_holds(sites[i], way->shape, code);
}

/* The executors shall be on the site when the next change comes, at any point of it. */
static void pause_a_little(uint32_t *random)
{
	uint64_t until = __rdtsc() + storm_random(random) % PAUSE_TICKS;

	while (__rdtsc() < until)
		;
}

static void *patcher(void *arg)
{
	unsigned column = (unsigned)(uintptr_t)arg % storm_columns(storm_now.storm->way->shape);
	uint32_t random = (uint32_t)(uintptr_t)arg + 1;
	unsigned codes = storm_now.storm->way->shape == STORM_CALLS ? 3 : 2;

	take_cpu(0);
	storm_thread_begin();
	while (!stopped()) {
		struct storm_result seen = { 0 };

		storm_change(column, storm_random(&random) % codes, &seen);
		storm_add(&seen);
		pause_a_little(&random);
	}
	storm_thread_end();
	return NULL;
}

static unsigned patchers(const struct storm *storm)
{
	unsigned n = storm->noise & STORM_NEIGHBOURS ? storm_columns(storm->way->shape) : 1;

	return storm->noise & STORM_CONTENTION ? 2 * n : n;
}

/* --- One storm ------------------------------------------------------------------------------ */

static void hold_pages(const struct storm *storm)
{
	size_t size = STORM_PAGES * CODE_PAGE;

	if (storm->raw || storm->mapping == STORM_CLOSED)
		return;
	if (storm->mapping == STORM_OPEN)
		MUST(pc_text_open(storm_arena.code, size) == 0);
	else if (pc_text_alias(storm_arena.code, size) < 0)
		child_skip("no alias of code to be had here");
}

static void begin_library(const struct storm *storm)
{
	struct machine_conf conf = conf_here();

	conf.level[0].waits.first = conf.level[0].waits.second = WAIT_TICKS;
	conf_use(&conf);
	own_traps();
	MUST(pc_init() == 0);
	if (!storm->raw && pc_set_policy(storm->policy) < 0)
		child_skip("the policy is not to be had here");
	if (storm->begun)
		storm->begun();
	hold_pages(storm);
	for (unsigned i = 0; storm->way->shape == STORM_CALLS && i < STORM_PLACES; i++)
		for (unsigned j = 0; j < STORM_SITES; j++) {
			struct storm_site *site = &storm_arena.place[i].site[j];

			MUST(pc_call_init(&site->call, site->at) == 0);
		}
}

/* Nothing is left behind: no change, no INT3, no page. */
static void end_library(const struct storm *storm)
{
	if (storm->raw)
		return;
	MUST(pc_drain() == 0);
	if (storm->mapping != STORM_CLOSED)
		MUST(pc_text_close(storm_arena.code, STORM_PAGES * CODE_PAGE) == 0);
	storm_arena_check(storm);
	MUST(pc_fini() == 0);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static bool has_seen_enough(const struct storm *storm)
{
	const struct storm_result *r = storm_now.total;
	uint64_t wrong = __atomic_load_n(&r->torn[0], __ATOMIC_RELAXED) +
			 __atomic_load_n(&r->torn[1], __ATOMIC_RELAXED) +
			 __atomic_load_n(&r->lost, __ATOMIC_RELAXED) +
			 __atomic_load_n(&r->stray, __ATOMIC_RELAXED);

	return storm->stop_tears && wrong >= storm->stop_tears;
}

/* A busy machine may leave the patchers no time. */
static bool has_seen_little(uint64_t passed)
{
	uint64_t toggles = __atomic_load_n(&storm_now.total->toggles, __ATOMIC_RELAXED);

	return toggles < TOGGLES_MIN && passed < PATIENCE_NS;
}

/* From place to place: the last four of even number lie on pages, and straddle. */
static unsigned place_of(const struct storm *storm, unsigned turn)
{
	return storm->tight ? 4 + turn % 4 * 2 : 1 + turn % (STORM_PLACES - 1);
}

static void blow_storm(const struct storm *storm)
{
	uint64_t begun = now_ns(), length = storm->ms * UINT64_C(1000000), passed = 0;
	const struct timespec slice = { .tv_nsec = SLICE_NS };

	while ((passed < length || has_seen_little(passed)) && !has_seen_enough(storm)) {
		unsigned turn = (unsigned)(passed * 3 * (STORM_PLACES - 1) / length);

		atomic_store(&storm_now.place, place_of(storm, turn));
		nanosleep(&slice, NULL);
		passed = now_ns() - begun;
	}
	atomic_store(&storm_now.stop, true);
}

void storm_run(const struct storm *storm, struct storm_result *result)
{
	pthread_t thread[EXECUTORS + PATCHERS_MAX];
	unsigned n = 0;

	*result = (struct storm_result){ 0 };
	storm_now.storm = storm;
	storm_now.total = result;
	atomic_store(&storm_now.place, place_of(storm, 0));
	storm_arena_build(storm);
	begin_library(storm);
	for (unsigned i = 0; i < (storm->tight ? 1 : EXECUTORS); i++)
		MUST(pthread_create(&thread[n++], NULL, executor, NULL) == 0);
	for (uintptr_t i = 0; i < patchers(storm); i++)
		MUST(pthread_create(&thread[n++], NULL, patcher, (void *)i) == 0);
	storm_noise_begin();
	blow_storm(storm);
	storm_noise_end();
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	end_library(storm);
}
