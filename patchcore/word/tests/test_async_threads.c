/* SPDX-License-Identifier: MIT */
/* Changes in flight, by many threads: starters, finishers, drains, executors. */
#define _GNU_SOURCE /* memfd_create(), sched_setaffinity() */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/site/site.h"
#include "patchcore/tests/flights.h"

#define PAGES 40
#define SITES (PAGES * CODE_PAGE / FLIGHT_LINE - 1)

#define WAIT 2000 /* ticks */

static uint8_t *pages;
static uint8_t codes[2][CODE_LEN];
static atomic_bool done;

static void map(int prot)
{
	code_load(codes[0], CODE_OLD);
	code_load(codes[1], CODE_NEW);
	pages = flights_map(PAGES, prot, SITES);
	done = false;
}

static void map_open(void)
{
	map(RX);
	MUST(pc_text_open(pages, PAGES * CODE_PAGE) == 0);
}

/* A child's rounds, times this where there is time for more. */
static unsigned times(void)
{
	const char *more = getenv("PATCHCORE_TEST_TIMES");

	return more ? (unsigned)atoi(more) : 1;
}

/* Runs them all in turn: each is the one or the other, whichever thread is at it. */
static void *execute(void *unused)
{
	while (!done) {
		for (size_t i = 0; i < SITES && !done; i++) {
			uint32_t number = code_run(flight_site(pages, i));

			MUST(number == CODE_OLD || number == CODE_NEW);
		}
	}
	return unused;
}

struct patcher {
	pthread_t thread;
	size_t first; /* its sites are this and every fourth from there */
	unsigned rounds;
};

#define PATCHERS 4

static void run_all(void *(*fn)(void *), unsigned rounds)
{
	struct patcher patchers[PATCHERS];
	pthread_t executor;

	MUST(pthread_create(&executor, NULL, execute, NULL) == 0);
	for (size_t i = 0; i < PATCHERS; i++) {
		patchers[i].first = i;
		patchers[i].rounds = rounds * times();
		MUST(pthread_create(&patchers[i].thread, NULL, fn, &patchers[i]) == 0);
	}
	for (size_t i = 0; i < PATCHERS; i++)
		pthread_join(patchers[i].thread, NULL);
	done = true;
	pthread_join(executor, NULL);
}

/* --- Thousands in flight ---------------------------------------------------------------------- */

/* All of its own are started before the first is finished, and half are left to others. */
static void *start_and_finish(void *arg)
{
	struct patcher *p = arg;

	for (unsigned round = 0; round < p->rounds; round++) {
		const uint8_t *code = codes[(round + 1) % 2];

		for (size_t i = p->first; i < SITES; i += PATCHERS)
			while (pc_start_patch(flight_site(pages, i), code, CODE_LEN) == -EAGAIN)
				pc_finish_patch(flight_site(pages, i));
		for (size_t i = p->first ^ 1; i < SITES; i += PATCHERS)
			pc_finish_patch(flight_site(pages, i));
		for (size_t i = p->first; i < SITES; i += 2 * PATCHERS)
			while (pc_finish_patch(flight_site(pages, i)) != PC_FINISHED)
				;
	}
	return NULL;
}

/* Each site's last change is what stands there, whichever thread has finished it. */
static void thousands(const void *arg)
{
	(void)arg;
	flights_use_wait(WAIT, WAIT);
	map_open();
	run_all(start_and_finish, 5);
	MUST(pc_drain() == 0);
	for (size_t i = 0; i < SITES; i++) {
		MUST(flight_look(flight_site(pages, i)) == (times() % 2 ? FLIGHT_NEW : FLIGHT_OLD));
		MUST(site_turn(site_find((uintptr_t)flight_site(pages, i))) % 2 == 0);
	}
	MUST(pc_text_close(pages, PAGES * CODE_PAGE) == 0 && pc_fini() == 0);
}

static void *finish_all(void *arg)
{
	for (size_t i = 0; i < 100; i++)
		while (pc_finish_patch(flight_site(pages, i)) != PC_FINISHED)
			;
	return arg;
}

static void by_another(const void *arg)
{
	pthread_t thread;

	(void)arg;
	flights_use_wait(WAIT, WAIT);
	map(RX);
	for (size_t i = 0; i < 100; i++)
		MUST(pc_start_patch(flight_site(pages, i), codes[1], CODE_LEN) == 0);
	MUST(pthread_create(&thread, NULL, finish_all, NULL) == 0);
	pthread_join(thread, NULL);
	for (size_t i = 0; i < 100; i++)
		MUST(flight_look(flight_site(pages, i)) == FLIGHT_NEW);
	MUST(code_prot(pages) == RX && pc_fini() == 0);
}

/* --- Drains
 * ----------------------------------------------------------------------------------------- */

#define FEW 3

/* A thread may just be looking whether there is anything to do at it. */
static void start_own(uint8_t *at, const uint8_t *code)
{
	int ret;

	while ((ret = pc_start_patch(at, code, CODE_LEN)) == -EAGAIN)
		MUST(site_turn(site_find((uintptr_t)at)) % 2 == 0);
	MUST(ret == 0);
}

static void must_be_made(uint8_t *at, const uint8_t *code)
{
	MUST(memcmp(at, code, CODE_LEN) == 0 && site_turn(site_find((uintptr_t)at)) % 2 == 0);
}

/*
 * What a thread has started is made when its own drain is over, whichever other
 * is just at it: other drains, askers, executors.
 */
static void *start_and_drain(void *arg)
{
	struct patcher *p = arg;

	for (unsigned round = 0; round < p->rounds; round++) {
		const uint8_t *code = codes[(round + 1) % 2];

		for (size_t i = 0; i < FEW; i++)
			start_own(flight_site(pages, PATCHERS * i + p->first), code);
		MUST(pc_drain() == 0);
		for (size_t i = 0; i < FEW; i++)
			must_be_made(flight_site(pages, PATCHERS * i + p->first), code);
	}
	return NULL;
}

static void *ask_all(void *unused)
{
	while (!done)
		for (size_t i = 0; i < FEW * PATCHERS && !done; i++) {
			pc_finish_patch(flight_site(pages, i));
			code_run(flight_site(pages, i));
		}
	return unused;
}

static void drains(const void *arg)
{
	const bool *closed = arg;
	pthread_t asker;

	flights_use_wait(20 * WAIT, 20 * WAIT);
	if (*closed)
		map(RX);
	else
		map_open();
	MUST(pthread_create(&asker, NULL, ask_all, NULL) == 0);
	run_all(start_and_drain, *closed ? 100 : 500);
	pthread_join(asker, NULL);
	MUST(pc_drain() == 0 && code_prot(pages) == (*closed ? RX : RWX));
	MUST(pc_fini() == 0);
}

static void test_drains(void **state)
{
	bool closed = false;

	(void)state;
	child_must_pass(drains, &closed);
	closed = true;
	child_must_pass(drains, &closed);
}

static atomic_bool go, gone;

static void *own_for_a_while(void *at)
{
	struct site *site = site_find((uintptr_t)at);

	MUST(site_try_own(site, thread_id()));
	go = true;
	usleep(20000);
	MUST(flight_look(at) == FLIGHT_INT3_OLD);
	gone = true;
	site_disown(site);
	return NULL;
}

/* A site that a thread has for a moment is not passed over. */
static void busy(const void *arg)
{
	pthread_t thread;
	uint8_t *at;

	(void)arg;
	flights_use_wait(WAIT, WAIT);
	map_open();
	at = flight_site(pages, 0);
	MUST(pc_start_patch(at, codes[1], CODE_LEN) == 0);
	MUST(pthread_create(&thread, NULL, own_for_a_while, at) == 0);
	while (!go)
		;
	MUST(pc_drain() == 0 && gone && flight_look(at) == FLIGHT_NEW);
	pthread_join(thread, NULL);
}

static void *fork_as_owner(void *at)
{
	struct site *site = site_find((uintptr_t)at);
	int status;
	pid_t pid;

	MUST(site_try_own(site, thread_id()));
	go = true;
	usleep(20000);
	/* As in a signal handler that has come just now. */
	pid = fork();
	if (pid == 0)
		_exit(0);
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	site_disown(site);
	return NULL;
}

/* A thread that waits for it has no lock that it needs to fork. */
static void busy_forking(const void *arg)
{
	pthread_t thread;
	uint8_t *at;

	(void)arg;
	flights_use_wait(WAIT, WAIT);
	map_open();
	at = flight_site(pages, 0);
	MUST(pc_start_patch(at, codes[1], CODE_LEN) == 0);
	MUST(pthread_create(&thread, NULL, fork_as_owner, at) == 0);
	while (!go)
		;
	MUST(pc_drain() == 0 && flight_look(at) == FLIGHT_NEW);
	pthread_join(thread, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(thousands),    child_unit_test(by_another),
		cmocka_unit_test(test_drains), child_unit_test(busy),
		child_unit_test(busy_forking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
