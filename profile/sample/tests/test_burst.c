/* SPDX-License-Identifier: MIT */
/*
 * To which address the time between two events counts, in a burst and after its end. Ticks are the
 * test's: what reads them is compiled into it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static uint64_t ticks_now;
#define __builtin_ia32_rdtsc() ticks_now
#include "profile/sample/burst.c"
#include "profile/sample/ring.c"
#include "profile/sample/watch.c"

enum {
	OUTER = 1,
	INNER,
	OUTER_EXIT,
	INNER_EXIT,
	PROBES
};

#define CALLS_OUTER 0x1000 /* behind the call, in what calls it */
#define CALLS_INNER 0x2000 /* in OUTER */
#define SITE(exit)  (0x3000 + (exit))

static struct group groups[] = { { OUTER, OUTER_EXIT }, { INNER, INNER_EXIT } };
static unsigned offs[PROBES];

/* In place of the library's. */
int fi_deactivate(uint32_t id)
{
	offs[id]++;
	return 0;
}

static int setup(void **state)
{
	struct ring *ring = ring_here() ? ring_here() : ring_make();

	(void)state;
	watch_common = (struct watch_common){ .recent = INT64_MAX };
	memset(watches, 0, PROBES * sizeof(*watches));
	memset(offs, 0, sizeof(offs));
	memset(&ring->burst, 0, sizeof(ring->burst));
	for (uint32_t id = OUTER; id < PROBES; id++) {
		watches[id].group = &groups[(id - OUTER) % 2];
		watches[id].next = NO_PROBE;
		watches[id].entry = (id - OUTER) % 2 + OUTER;
		watches[id].state = WATCH_OVER;
	}
	return 0;
}

static void enter(uint64_t time, uint32_t id, uint64_t from)
{
	struct fi_regs regs = { .rsp = (uint64_t)&from };

	ticks_now = time;
	watch_call(id, NULL, &regs, NULL);
}

static void leave(uint64_t time, uint32_t id)
{
	uint64_t from = 0;
	struct fi_regs regs = { .rsp = (uint64_t)&from };

	ticks_now = time;
	watch_exit(id, (void *)(uintptr_t)SITE(id), &regs, NULL);
}

static uint64_t ticks_at(uint64_t at)
{
	const struct burst *burst = &ring_here()->burst;

	for (unsigned i = 0; i < BURST_SLOTS; i++)
		if (burst->slot[i].at == at)
			return burst->slot[i].ticks;
	return 0;
}

static void run(uint64_t start)
{
	enter(start, OUTER, CALLS_OUTER);
	enter(start + 100, INNER, CALLS_INNER);
	leave(start + 130, INNER_EXIT);
	leave(start + 180, OUTER_EXIT);
}

static void test_each_has_its_own(void **state)
{
	(void)state;
	burst_start();
	run(1000);
	enter(1400, OUTER, CALLS_OUTER);
	assert_int_equal(ticks_at(CALLS_OUTER), 220);
	assert_int_equal(ticks_at(CALLS_INNER), 100);
	assert_int_equal(ticks_at(SITE(INNER_EXIT)), 30);
	assert_int_equal(ticks_at(SITE(OUTER_EXIT)), 50);
	assert_int_equal(ring_here()->burst.used, 400);
	burst_close();
}

static void test_start_is_known(void **state)
{
	(void)state;
	burst_start();
	ring_here()->burst.start = 700;
	run(1000);
	assert_int_equal(ticks_at(CALLS_OUTER), 300);
	burst_close();
}

static void test_without_what_probes_took(void **state)
{
	(void)state;
	watch_common.between = 40;
	burst_start();
	run(1000);
	assert_int_equal(ticks_at(CALLS_INNER), 60);
	assert_int_equal(ticks_at(SITE(INNER_EXIT)), 0);
	assert_int_equal(ticks_at(SITE(OUTER_EXIT)), 10);
	assert_int_equal(ring_here()->burst.used, 180);
	burst_close();
}

/* The next event tells where the thread was at the end, however late that event comes. */
static void test_until_the_end(void **state)
{
	(void)state;
	burst_start();
	enter(1000, OUTER, CALLS_OUTER);
	ticks_now = 1500;
	burst_end();
	assert_false(has_seen_end(ring_here()));
	leave(9000, OUTER_EXIT);
	assert_true(has_seen_end(ring_here()));
	assert_int_equal(ticks_at(SITE(OUTER_EXIT)), 500);
	run(9100);
	assert_int_equal(ticks_at(CALLS_INNER), 0);
	assert_int_equal(ring_here()->burst.used, 500);
	burst_close();
}

static void test_no_burst(void **state)
{
	(void)state;
	run(1000);
	assert_int_equal(ring_here()->burst.used, 0);
	burst_start();
	burst_close();
	run(2000);
	assert_int_equal(ring_here()->burst.used, 0);
}

/* Its entry is off, so it would turn itself off. */
static void test_exits_stay_on(void **state)
{
	(void)state;
	watches[OUTER_EXIT].state = WATCH_OPEN;
	burst_start();
	run(1000);
	assert_int_equal(offs[OUTER_EXIT], 0);
	burst_close();
	run(2000);
	assert_int_equal(offs[OUTER_EXIT], 1);
}

/* Its price is in no other's time. */
static void test_no_room(void **state)
{
	uint64_t sum = 0;

	(void)state;
	burst_start();
	enter(0, OUTER, 1);
	for (uint64_t i = 1; i <= 2 * BURST_SLOTS; i++)
		enter(10 * i, OUTER, 1 + i);
	for (unsigned i = 0; i < BURST_SLOTS; i++)
		sum += ring_here()->burst.slot[i].ticks;
	assert_true(ring_here()->burst.beyond > 0);
	assert_int_equal(sum + ring_here()->burst.beyond, 20 * BURST_SLOTS);
	burst_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_each_has_its_own, setup),
		cmocka_unit_test_setup(test_start_is_known, setup),
		cmocka_unit_test_setup(test_without_what_probes_took, setup),
		cmocka_unit_test_setup(test_until_the_end, setup),
		cmocka_unit_test_setup(test_no_burst, setup),
		cmocka_unit_test_setup(test_exits_stay_on, setup),
		cmocka_unit_test_setup(test_no_room, setup),
	};

	/* Without it ring_make() takes a key that is another's. */
	if (ring_start())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
