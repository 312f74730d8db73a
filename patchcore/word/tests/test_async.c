/* SPDX-License-Identifier: MIT */
/*
 * Changes in flight, by one thread: how far they are, what stands there then,
 * and which thread may touch the site meanwhile.
 */
#define _GNU_SOURCE /* memfd_create(), sched_setaffinity() */
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>
#include <x86intrin.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/site/site.h"
#include "patchcore/tests/flights.h"
#include "patchcore/tests/step.h"

/* Ticks: long enough to be looked at, and as good as never ending. */
#define LONG_FIRST  3000000
#define LONG_SECOND 5000000
#define MOST	    1000000000 /* that a config may say */
#define FAR	    (UINT64_C(1) << 50)

static uint8_t *pages, *site;
static uint8_t old_code[CODE_LEN], new_code[CODE_LEN];

static void map(int prot)
{
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	pages = flights_map(1, prot, 32);
	site = flight_site(pages, 10);
}

static void start_waiting(uint64_t first, uint64_t second)
{
	flights_use_wait(first, second);
	map(RWX);
}

static void start_it(void)
{
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	MUST(flight_look(site) == FLIGHT_INT3_OLD);
}

static uint64_t asked_at; /* ticks, before the last step */

/* Ask until it is so far. What stands there is always what was told. */
static void finish_until(int progress)
{
	static const enum flight_bytes bytes[] = {
		[PC_FINISHED] = FLIGHT_NEW,
		[PC_FIRST_WAIT] = FLIGHT_INT3_OLD,
		[PC_SECOND_WAIT] = FLIGHT_INT3_NEW,
	};
	int now;

	do {
		asked_at = __rdtsc();
		now = pc_finish_patch(site);
		MUST(now >= 0 && flight_look(site) == bytes[now]);
	} while (now != progress);
}

/* --- The states, and the waits ------------------------------------------------------------- */

static uint64_t seen_at[FLIGHT_MIXED]; /* ticks, when each was first seen */
static enum flight_bytes seen;

static bool look_on(void)
{
	enum flight_bytes now = flight_look(site);

	MUST(now != FLIGHT_MIXED && (now == seen || now == seen + 1));
	if (now != seen)
		seen_at[now] = __rdtsc();
	seen = now;
	return true;
}

static void start_and_finish(void)
{
	int progress;

	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	do {
		progress = pc_finish_patch(site);
		MUST(progress >= 0);
	} while (progress != PC_FINISHED);
}

/* After each instruction. What is seen between two stores lies between them in time. */
static void in_order(const void *arg)
{
	(void)arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer takes no steps");
	flights_pin(0);
	step_install();
	start_waiting(LONG_FIRST, LONG_SECOND);
	MUST(pc_text_open(pages, CODE_PAGE) == 0);
	step_run(start_and_finish, look_on);
	MUST(seen == FLIGHT_NEW && code_run(site) == CODE_NEW);
	MUST(seen_at[FLIGHT_INT3_NEW] - seen_at[FLIGHT_INT3_OLD] >= LONG_FIRST);
	MUST(seen_at[FLIGHT_NEW] - seen_at[FLIGHT_INT3_NEW] >= LONG_SECOND);
}

/* Never two steps at once, and what it says is what stands there. */
static void told(const void *arg)
{
	(void)arg;
	flights_pin(0);
	start_waiting(MOST, 1);
	start_it();
	MUST(pc_finish_patch(site) == PC_FIRST_WAIT && flight_look(site) == FLIGHT_INT3_OLD);
	site_find((uintptr_t)site)->word.since.ticks -= FAR;
	MUST(pc_finish_patch(site) == PC_SECOND_WAIT && flight_look(site) == FLIGHT_INT3_NEW);
	finish_until(PC_FINISHED);
	MUST(pc_finish_patch(site) == PC_FINISHED && code_run(site) == CODE_NEW);
}

static uint64_t raw_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Two TSC are never compared: the wait counts anew, by a clock that both share. */
static void other_cpu(const void *arg)
{
	uint64_t start;

	(void)arg;
	flights_pin(1);
	flights_pin(0);
	start_waiting(LONG_FIRST, LONG_SECOND);
	start_it();
	/* As if the one CPU's TSC were far behind the other's. */
	site_find((uintptr_t)site)->word.since.ticks -= FAR;
	flights_pin(1);
	start = raw_ns();
	finish_until(PC_SECOND_WAIT);
	MUST(raw_ns() - start >= 2 * LONG_FIRST);
	site_find((uintptr_t)site)->word.since.ticks -= FAR;
	flights_pin(0);
	start = raw_ns();
	finish_until(PC_FINISHED);
	MUST(raw_ns() - start >= 2 * LONG_SECOND);
}

/* A TSC that went back makes the wait neither shorter nor endless. */
static void step_back(const void *arg)
{
	uint64_t start;

	(void)arg;
	flights_pin(0);
	start_waiting(LONG_FIRST, 1);
	start_it();
	site_find((uintptr_t)site)->word.since.ticks += FAR;
	start = __rdtsc();
	MUST(pc_finish_patch(site) == PC_FIRST_WAIT);
	finish_until(PC_SECOND_WAIT);
	MUST(__rdtsc() - start >= LONG_FIRST);
}

/* Where the stores took long, so do the waits. */
static void slow_line(const void *arg)
{
	struct machine_conf conf = conf_here();
	uint64_t start;

	(void)arg;
	flights_pin(0);
	start_waiting(1, 1);
	MUST(pc_fini() == 0);
	conf.level[0].waits.first = conf.level[0].waits.second = 1;
	conf.level[0].waits.stretch = 50;
	conf_use(&conf);
	MUST(pc_init() == 0 && pc_set_policy(PC_POLICY_WAIT) == 0);
	start = __rdtsc();
	start_it();
	site_find((uintptr_t)site)->word.latency = 100000;
	finish_until(PC_SECOND_WAIT);
	MUST(__rdtsc() - start >= 50 * 100000);
	start = asked_at;
	finish_until(PC_FINISHED);
	MUST(__rdtsc() - start >= 50 * 100000);
}

/* One for each step, and no step without. */
static void by_membarrier(const void *arg)
{
	(void)arg;
	flights_use_membarrier();
	map(RWX);
	start_it();
	MUST(pc_finish_patch(site) == PC_SECOND_WAIT && flight_look(site) == FLIGHT_INT3_NEW);
	MUST(pc_finish_patch(site) == PC_FINISHED && flight_look(site) == FLIGHT_NEW);
	flight_put(site, CODE_OLD);
	start_it();
	flights_filter_membarrier(SECCOMP_RET_ERRNO | ENOMEM);
	MUST(pc_finish_patch(site) == PC_FIRST_WAIT && flight_look(site) == FLIGHT_INT3_OLD);
	MUST(pc_drain() == -ENOMEM && flight_look(site) == FLIGHT_INT3_OLD);
	MUST(pc_drain() == -ENOMEM && flight_look(site) == FLIGHT_INT3_OLD);
}

/* --- Sites that are in flight, and those that are not ----------------------------------------- */

static void must_refuse(uint8_t *at)
{
	struct pc_op op = { .addr = at, .bytes = old_code, .len = CODE_LEN };
	uint8_t before[CODE_LEN];

	memcpy(before, at, sizeof(before));
	MUST(pc_patch(at, old_code, CODE_LEN) == -EAGAIN);
	MUST(pc_patch_starts(at, old_code, CODE_LEN, 1) == -EAGAIN);
	MUST(pc_start_patch(at, old_code, CODE_LEN) == -EAGAIN);
	MUST(pc_patch_batch(&op, 1) == -EAGAIN && op.result == -EAGAIN);
	MUST(memcmp(at, before, sizeof(before)) == 0);
}

/*
 * A change in flight, in either state, keeps other patchers off its site, and not off its
 * neighbours.
 */
static void twice(const void *arg)
{
	(void)arg;
	flights_pin(0);
	start_waiting(MOST, MOST);
	start_it();
	must_refuse(site);
	site_find((uintptr_t)site)->word.since.ticks -= FAR;
	MUST(pc_finish_patch(site) == PC_SECOND_WAIT);
	must_refuse(site);
	MUST(pc_patch(site - 1, "\x90", 1) == 0 && pc_patch(site + CODE_LEN, "\xc3", 1) == 0);
	site_find((uintptr_t)site)->word.since.ticks -= FAR;
	MUST(pc_finish_patch(site) == PC_FINISHED && code_run(site) == CODE_NEW);
	MUST(pc_start_patch(site, old_code, CODE_LEN) == 0);
	must_refuse(site);
}

/* Inside the window there is nothing to wait for. The bytes are the library's by then. */
static void at_once(const void *arg)
{
	uint8_t code[CODE_LEN];

	(void)arg;
	start_waiting(MOST, MOST);
	code_put(pages + 8, CODE_OLD);
	MUST(pc_start_patch(pages + 8, new_code, CODE_LEN) == 0);
	MUST(code_run(pages + 8) == CODE_NEW && pc_finish_patch(pages + 8) == PC_FINISHED);
	MUST(pc_finish_patch(site) == PC_FINISHED && pc_finish_patch(NULL) == PC_FINISHED);
	MUST(pc_start_patch(site, NULL, CODE_LEN) == -EINVAL);
	MUST(pc_start_patch(site, new_code, 0) == -EINVAL);
	MUST(pc_start_patch(NULL, new_code, CODE_LEN) == -EFAULT);
	MUST(flight_look(site) == FLIGHT_OLD && pc_drain() == 0 && pc_fini() == 0);
	start_waiting(1, 1);
	memcpy(code, new_code, sizeof(code));
	MUST(pc_start_patch(site, code, sizeof(code)) == 0);
	memset(code, 0, sizeof(code));
	MUST(pc_drain() == 0 && flight_look(site) == FLIGHT_NEW);
}

static void start_and_drain(const uint8_t *code, enum flight_bytes then)
{
	uint8_t second = site[1];

	MUST(pc_start_patch(site, code, CODE_LEN) == 0);
	MUST(site[0] == CODE_INT3 && site[1] == second);
	MUST(load_relaxed(&site_find((uintptr_t)site)->needs_help));
	must_refuse(site);
	MUST(pc_drain() == 0 && flight_look(site) == then);
}

/* A start like the one before takes a short way: what is not like it is seen all the same. */
static void started_again(const void *arg)
{
	const uint8_t int3_code[CODE_LEN] = { CODE_INT3, 1, 2, 3, 4 };
	const struct site *known;

	(void)arg;
	flights_use_membarrier();
	map(RX);
	MUST(pc_text_open(pages, CODE_PAGE) == 0);
	start_and_drain(new_code, FLIGHT_NEW);
	start_and_drain(old_code, FLIGHT_OLD);
	known = site_find((uintptr_t)site);
	/* What is refused leaves all as it was. */
	MUST(pc_start_patch(site, int3_code, CODE_LEN) == -EINVAL);
	site[0] = CODE_INT3;
	MUST(pc_start_patch(site, new_code, CODE_LEN) == -EAGAIN && site[0] == CODE_INT3);
	site[0] = site[1] = 0x90;
	MUST(pc_start_patch(site, new_code, CODE_LEN) == -EILSEQ && site[0] == 0x90);
	MUST(!load_relaxed(&known->owner) && load_relaxed(&known->turn) % 2 == 0);
	flight_put(site, CODE_OLD);
	/* Fewer bytes, closed pages, an alias. */
	MUST(pc_start_patch(site, new_code, CODE_LEN - 2) == 0 && pc_drain() == 0);
	MUST(memcmp(site, new_code, CODE_LEN - 2) == 0);
	MUST(memcmp(site + CODE_LEN - 2, old_code + CODE_LEN - 2, 2) == 0);
	start_and_drain(new_code, FLIGHT_NEW);
	MUST(pc_text_close(pages, CODE_PAGE) == 0);
	MUST(pc_start_patch(site, old_code, CODE_LEN) == 0 && code_prot(site) == RWX);
	MUST(pc_drain() == 0 && flight_look(site) == FLIGHT_OLD && code_prot(site) == RX);
	MUST(pc_text_alias(pages, CODE_PAGE) == 0);
	start_and_drain(new_code, FLIGHT_NEW);
	start_and_drain(old_code, FLIGHT_OLD);
	MUST(code_prot(site) == RX && pc_text_close(pages, CODE_PAGE) == 0);
	MUST(pc_text_open(pages, CODE_PAGE) == 0);
	start_and_drain(new_code, FLIGHT_NEW);
	/* As two instructions: the INT3 of the second is one more. */
	MUST(pc_patch_how(site, old_code, CODE_LEN,
			  &(struct pc_how){ .flags = PC_LATER, .starts = 3 }) == 0);
	MUST(site[0] == CODE_INT3 && site[1] == CODE_INT3 && pc_drain() == 0);
	start_and_drain(new_code, FLIGHT_NEW);
	start_and_drain(old_code, FLIGHT_OLD);
	MUST(pc_fini() == 0);
}

/* --- Executors, pages, the end ---------------------------------------------------------------- */

/* An executor that runs into it makes the steps itself, and waits as long. */
static void never_finished(const void *arg)
{
	uint64_t start;

	(void)arg;
	flights_pin(0);
	start_waiting(LONG_FIRST, LONG_SECOND);
	MUST(pc_text_open(pages, CODE_PAGE) == 0);
	start = __rdtsc();
	start_it();
	MUST(code_run(site) == CODE_NEW);
	MUST(__rdtsc() - start >= LONG_FIRST + LONG_SECOND);
	/* The pages were open: nothing is left to be given back. */
	MUST(pc_patch(site, old_code, CODE_LEN) == 0 && flight_look(site) == FLIGHT_OLD);
	MUST(pc_fini() == 0);
}

static void must_help_closed(void)
{
	MUST(pc_patch(site, old_code, CODE_LEN) == 0 && code_prot(site) == RX);
	start_it();
	MUST(code_run(site) == CODE_NEW && code_prot(site) == RWX);
	MUST(code_run(site) == CODE_NEW && code_prot(site) == RWX);
}

/* The page stays writable until a thread comes by that may take a lock. */
static void helped_closed(const void *arg)
{
	struct pc_op op;

	(void)arg;
	flights_use_wait(1, 1);
	map(RX);
	op = (struct pc_op){ .addr = site, .bytes = old_code, .len = CODE_LEN };
	must_help_closed();
	MUST(pc_drain() == 0 && code_prot(site) == RX);
	must_help_closed();
	MUST(pc_finish_patch(site) == PC_FINISHED && code_prot(site) == RX);
	must_help_closed();
	MUST(pc_patch(site, old_code, CODE_LEN) == 0 && code_prot(site) == RX);
	must_help_closed();
	MUST(pc_patch_batch(&op, 1) == 0 && code_prot(site) == RX);
	must_help_closed();
	MUST(pc_start_patch(site, old_code, CODE_LEN) == 0 && code_prot(site) == RWX);
	MUST(code_run(site) == CODE_OLD && pc_fini() == 0 && code_prot(site) == RX);
}

/* Each page until the last change on it is finished. */
static void pages_are_closed_at_the_end(const void *arg)
{
	uint8_t *across;

	(void)arg;
	flights_pin(0);
	flights_use_wait(1, 1);
	pages = code_map(2, RWX);
	across = site = pages + CODE_PAGE - FLIGHT_FRONT;
	flight_put(site, CODE_OLD);
	MUST(mprotect(pages, 2 * CODE_PAGE, RX) == 0);
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	start_it();
	MUST(code_prot(pages) == RWX && code_prot(pages + CODE_PAGE) == RWX);
	site = flight_site(pages, 3);
	MUST(pc_patch(site, old_code, CODE_LEN) == 0);
	start_it();
	finish_until(PC_FINISHED);
	MUST(code_prot(pages) == RWX && code_prot(pages + CODE_PAGE) == RWX);
	site = across;
	finish_until(PC_FINISHED);
	MUST(code_prot(pages) == RX && code_prot(pages + CODE_PAGE) == RX);
}

/* It finishes what was started, or leaves all as it is. */
static void the_end(const void *arg)
{
	(void)arg;
	flights_use_membarrier();
	map(RX);
	start_it();
	MUST(pc_fini() == 0 && flight_look(site) == FLIGHT_NEW && code_prot(site) == RX);
	MUST(pc_start_patch(site, old_code, CODE_LEN) == -ESHUTDOWN);
	MUST(pc_finish_patch(site) == -ESHUTDOWN && pc_drain() == -ESHUTDOWN);
	MUST(pc_init() == 0 && pc_patch(site, old_code, CODE_LEN) == 0);
	start_it();
	flights_filter_membarrier(SECCOMP_RET_ERRNO | ENOMEM);
	MUST(pc_fini() == -EBUSY && flight_look(site) == FLIGHT_INT3_OLD);
	MUST(pc_start_patch(site, old_code, CODE_LEN) == -EAGAIN);
}

#define MANY_PAGES 40
#define MANY	   (MANY_PAGES * CODE_PAGE / FLIGHT_LINE - 1)

static void many(const void *arg)
{
	const bool *by_wait = arg;

	if (*by_wait)
		flights_use_wait(1000, 1000);
	else
		flights_use_membarrier();
	map(RX);
	pages = flights_map(MANY_PAGES, RX, MANY);
	MUST(pc_text_open(pages, MANY_PAGES * CODE_PAGE) == 0);
	for (size_t i = 0; i < MANY; i++)
		MUST(pc_start_patch(flight_site(pages, i), new_code, CODE_LEN) == 0);
	/* Some are finished before, and are started again. */
	for (size_t i = 0; i < MANY; i += 7)
		while (pc_finish_patch(flight_site(pages, i)) != PC_FINISHED)
			;
	for (size_t i = 0; i < MANY; i += 14)
		MUST(pc_start_patch(flight_site(pages, i), new_code, CODE_LEN) == 0);
	MUST(pc_drain() == 0);
	for (size_t i = 0; i < MANY; i++)
		MUST(flight_look(flight_site(pages, i)) == FLIGHT_NEW);
	MUST(pc_text_close(pages, MANY_PAGES * CODE_PAGE) == 0);
	MUST(code_prot(pages) == RX && pc_fini() == 0);
}

static void test_many(void **state)
{
	bool by_wait = true;

	(void)state;
	child_must_pass(many, &by_wait);
	by_wait = false;
	child_must_pass(many, &by_wait);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(in_order),	child_unit_test(told),
		child_unit_test(other_cpu),	child_unit_test(step_back),
		child_unit_test(slow_line),	child_unit_test(by_membarrier),
		child_unit_test(twice),		child_unit_test(at_once),
		child_unit_test(started_again), child_unit_test(never_finished),
		child_unit_test(helped_closed), child_unit_test(pages_are_closed_at_the_end),
		child_unit_test(the_end),	cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
