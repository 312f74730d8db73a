/* SPDX-License-Identifier: MIT */
/*
 * The patcher written by hand: every execution is one of the old code or one of the new. What
 * leaves its INT3 out is caught by the same counts. TMAX_STRESS_SCALE lengthens it.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "bench/method/hot.h"
#include "bench/peers/ways.c"
#include "patchcore/machine/wait.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/scale.h"
#include "stress/cell/code.h"

#define TOGGLES 200
#define ROUND	50

static hwloc_topology_t topology;
static struct seating seating;
static struct hot *hot;
static bool alone; /* one CPU: nothing ever runs at the same time */

static unsigned toggles(void)
{
	return (unsigned)(TOGGLES * test_scale());
}

/* --- Which peer synchronises when ------------------------------------------------------------- */

#define SYNCS_MAX 8

/* What stood at the site that is watched, at each membarrier. */
static struct {
	const uint8_t *site; /* NULL: none */
	uint8_t seen[SYNCS_MAX][LOOP_SITE_BYTES];
	unsigned syncs;
} watch;

static void note_sync(void)
{
	if (watch.site && watch.syncs < SYNCS_MAX)
		memcpy(watch.seen[watch.syncs++], watch.site, LOOP_SITE_BYTES);
}

/* In place of libc's. */
long syscall(long number, ...)
{
	long arg[4], ret;
	va_list ap;

	va_start(ap, number);
	for (unsigned i = 0; i < 4; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (number == __NR_membarrier && (int)arg[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE)
		note_sync();
	__asm__ volatile("movq %5, %%r10; syscall"
			 : "=a"(ret)
			 : "0"(number), "D"(arg[0]), "S"(arg[1]), "d"(arg[2]), "r"(arg[3])
			 : "rcx", "r10", "r11", "memory");
	if (ret >= 0 || ret < -4095)
		return ret;
	errno = (int)-ret;
	return -1;
}

/* Behind the INT3, behind the tail, behind the first byte; and that is all. */
static void each_step_is_followed_by_a_sync(void **state)
{
	static uint8_t site[16] = { 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x77 };
	static const uint8_t call[] = { 0xe8, 1, 2, 3, 4 };
	static const uint8_t steps[3][LOOP_SITE_BYTES] = {
		{ 0xcc, 0x1f, 0x44, 0x00, 0x00 },
		{ 0xcc, 1, 2, 3, 4 },
		{ 0xe8, 1, 2, 3, 4 },
	};

	(void)state;
	assert_int_equal(hand_open(), 0);
	watch.site = site;
	watch.syncs = 0;
	assert_int_equal(hand_patch(site, call, sizeof(call)), 0);
	watch.site = NULL;
	assert_int_equal(watch.syncs, 3);
	assert_memory_equal(watch.seen, steps, sizeof(steps));
	assert_int_equal(site[5], 0x77);
	hand_close();
}

/* --- The oracle of tmax stress --------------------------------------------------------------- */

struct trial {
	struct code code;
	struct code_slots slots;
	uint64_t executed;
};

static void run_oracle(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	static const uint64_t direction;
	struct trial *o = work->arg;

	(void)executor;
	code_run(&o->code, ROUND, &o->slots, &direction);
	o->executed += ROUND;
	atomic_fetch_add_explicit(&counts->executed, ROUND, memory_order_relaxed);
}

/* The same without INT3: what the first byte's last store leaves is a mix, for a while. */
static int patch_without_int3(uint8_t *site, const uint8_t *code, size_t len)
{
	memcpy(site + 1, code + 1, len - 1);
	ticks_wait(20000);
	__atomic_store_n(site, code[0], __ATOMIC_SEQ_CST);
	ticks_wait(20000);
	return 0;
}

typedef int patch_fn(uint8_t *site, const uint8_t *code, size_t len);

static struct cell_result toggle_oracle(patch_fn *patch, enum code_pair pair, unsigned split)
{
	struct trial *o = aligned_alloc(64, (sizeof(*o) + 63) & ~(size_t)63);
	struct hot_work work = { run_oracle, o };
	struct cell_result r = { 0 };
	struct cell cell;

	assert_non_null(o);
	memset(o, 0, sizeof(*o));
	cell_defaults(&cell);
	cell.pair = pair;
	cell.split = split;
	assert_int_equal(code_build(&o->code, &cell), 0);
	hot_aim(hot, &work, 1);
	for (unsigned i = 1; i <= toggles(); i++) {
		hot_cool(hot);
		assert_int_equal(patch(o->code.site[0].at, o->code.site[0].bytes[i % o->code.codes],
				       CODE_LENGTH),
				 0);
	}
	hot_sleep(hot);
	code_collect(&o->code, &o->slots, o->executed, &r);
	assert_true(r.executions == o->executed && o->executed > 0);
	free(o);
	return r;
}

static void no_execution_is_torn(void **state)
{
	(void)state;
	assert_int_equal(hand_open(), 0);
	for (unsigned pair = 0; pair < PAIR_COUNT; pair++) {
		for (unsigned split = 1; split <= 4; split++) {
			struct cell_result r =
				toggle_oracle(hand_patch, (enum code_pair)pair, split);

			assert_int_equal(cell_result_tears(&r), 0);
			assert_int_equal(r.old_new[0] + r.old_new[1], r.executions);
			assert_true(r.old_new[0] > 0 && r.old_new[1] > 0);
		}
	}
	hand_close();
}

/* The mix of split 1, for which the oracle has somewhere to land. */
static void without_int3_it_is_caught(void **state)
{
	struct cell_result r;

	(void)state;
	if (alone)
		skip();
	r = toggle_oracle(patch_without_int3, PAIR_CALL_NOP, 1);
	assert_true(cell_result_tears(&r) > 0);
}

/* --- Counting calls --------------------------------------------------------------------------- */

static void every_call_is_counted(void **state)
{
	struct loop_spec spec = { .kind = LOOP_SITE, .target = LOOP_COUNT, .split = 3 };
	struct hot_sum before = hot_count(hot), after;
	struct loop loop;
	struct hot_work work = { hot_loop, &loop };

	(void)state;
	assert_int_equal(loop_build(&loop, &spec), 0);
	assert_int_equal(hand_open(), 0);
	hot_aim(hot, &work, 1);
	for (unsigned i = 1; i <= toggles(); i++) {
		hot_cool(hot);
		assert_int_equal(hand_patch(loop.site, loop.bytes[i % 2], LOOP_SITE_BYTES), 0);
	}
	hot_sleep(hot);
	hand_close();
	after = hot_count(hot);
	assert_int_equal(after.executed - before.executed,
			 after.calls[0] - before.calls[0] + after.calls[1] - before.calls[1]);
	assert_true(after.calls[0] > before.calls[0] && after.calls[1] > before.calls[1]);
	loop_free(&loop);
}

/* Off is off, on is on, and the loop behind the site is as it was. */
static void what_is_asked_for_stands_there(void **state)
{
	struct loop_spec spec = { .kind = LOOP_SITE, .target = LOOP_COUNT };
	uint8_t expected[32];

	(void)state;
	assert_int_equal(hand_open(), 0);
	for (spec.split = 0; spec.split <= 4; spec.split++) {
		uint64_t counts[2] = { 0, 0 };
		struct loop loop;

		assert_int_equal(loop_build(&loop, &spec), 0);
		memcpy(expected, loop.site - 8, sizeof(expected));
		memcpy(expected + 8, loop.bytes[LOOP_NOP], LOOP_SITE_BYTES);
		assert_int_equal(hand_patch(loop.site, loop.bytes[LOOP_NOP], LOOP_SITE_BYTES), 0);
		assert_memory_equal(loop.site - 8, expected, sizeof(expected));
		loop.run(100, counts);
		assert_int_equal(counts[0] + counts[1], 0);
		assert_int_equal(hand_patch(loop.site, loop.bytes[LOOP_CALL_1], LOOP_SITE_BYTES),
				 0);
		loop.run(100, counts);
		assert_int_equal(counts[0], 0);
		assert_int_equal(counts[1], 100);
		loop_free(&loop);
	}
	hand_close();
}

/* The paper's, likewise: a word, a call by its first two bytes, and a start, whose end it awaits.
 */
static void the_papers_code_stands_there(void **state)
{
	struct loop_spec spec = { .kind = LOOP_SITE, .target = LOOP_COUNT };
	static const unsigned splits[] = { 0, 2, 3, 4 };
	struct loop loop;

	(void)state;
	assert_int_equal(hand_open(), 0);
	for (unsigned i = 0; i < 4; i++) {
		uint8_t behind[3];

		spec.split = splits[i];
		assert_int_equal(loop_build(&loop, &spec), 0);
		memcpy(behind, loop.site + LOOP_SITE_BYTES, sizeof(behind));
		assert_int_equal(paper_call(loop.site, loop.bytes[LOOP_NOP], 1), 0);
		assert_memory_equal(loop.site,
				    spec.split ? (uint8_t *)"\xeb\x03" : loop.bytes[LOOP_NOP], 2);
		assert_int_equal(paper_call(loop.site, loop.bytes[LOOP_CALL_0], 0), 0);
		assert_memory_equal(loop.site, loop.bytes[LOOP_CALL_0], LOOP_SITE_BYTES);
		assert_int_equal(paper_start(loop.site, loop.bytes[LOOP_CALL_1]), 0);
		if (spec.split) {
			assert_int_equal(loop.site[0], INT3);
			assert_int_equal(paper_start(loop.site, loop.bytes[LOOP_NOP]), -EAGAIN);
			assert_int_equal(paper_finish(), 0);
		}
		assert_memory_equal(loop.site, loop.bytes[LOOP_CALL_1], LOOP_SITE_BYTES);
		assert_memory_equal(loop.site + LOOP_SITE_BYTES, behind, sizeof(behind));
		loop_free(&loop);
	}
	hand_close();
}

/* --- SIGTRAP ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t others;

static void count_other(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	others++;
}

static void (*handler_of(int signal))(int, siginfo_t *, void *)
{
	struct sigaction now;

	assert_int_equal(sigaction(signal, NULL, &now), 0);
	return now.sa_sigaction;
}

static void other_traps_go_where_they_went(void **state)
{
	struct sigaction mine = { .sa_sigaction = count_other, .sa_flags = SA_SIGINFO }, library;

	(void)state;
	assert_int_equal(sigaction(SIGTRAP, &mine, &library), 0);
	others = 0;
	assert_int_equal(hand_open(), 0);
	assert_ptr_not_equal(handler_of(SIGTRAP), count_other);
	raise(SIGTRAP);
	__asm__ volatile("int3");
	assert_int_equal(others, 2);
	hand_close();
	assert_ptr_equal(handler_of(SIGTRAP), count_other);
	hand_close();
	assert_ptr_equal(handler_of(SIGTRAP), count_other);
	assert_int_equal(sigaction(SIGTRAP, &library, NULL), 0);
}

/* And the library has its traps again. */
static void the_library_goes_on_afterwards(void **state)
{
	struct loop_spec spec = { .kind = LOOP_SITE, .target = LOOP_COUNT, .split = 2 };
	struct loop loop;
	struct hot_work work = { hot_loop, &loop };

	(void)state;
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		skip();
	assert_int_equal(loop_build(&loop, &spec), 0);
	assert_int_equal(hand_open(), 0);
	hand_close();
	hot_aim(hot, &work, 1);
	for (unsigned i = 1; i <= 50; i++) {
		hot_cool(hot);
		assert_int_equal(pc_patch(loop.site, loop.bytes[i % 2], LOOP_SITE_BYTES), 0);
	}
	hot_sleep(hot);
	loop_free(&loop);
	pc_set_policy(PC_POLICY_AUTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_step_is_followed_by_a_sync),
		cmocka_unit_test(no_execution_is_torn),
		cmocka_unit_test(without_int3_it_is_caught),
		cmocka_unit_test(every_call_is_counted),
		cmocka_unit_test(what_is_asked_for_stands_there),
		cmocka_unit_test(the_papers_code_stands_there),
		cmocka_unit_test(other_traps_go_where_they_went),
		cmocka_unit_test(the_library_goes_on_afterwards),
	};
	char reason[160];
	int foreign, ret;

	if (topology_open(&topology, &foreign) < 0 || foreign || pc_init() < 0)
		return 77;
	if (hand_open() < 0) {
		fprintf(stderr, "no membarrier SYNC_CORE here\n");
		return 77;
	}
	hand_close();
	alone = placement_max(topology, PLACEMENT_SPREAD, reason, sizeof(reason)) == 0;
	if (placement_seat(topology, alone ? PLACEMENT_OVERSUBSCRIBED : PLACEMENT_SPREAD, 1, 0,
			   &seating, reason, sizeof(reason)) < 0 ||
	    pin_this_thread(topology, seating.patcher) < 0 ||
	    hot_start(&hot, topology, &seating) < 0)
		return 77;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	hot_stop(hot);
	hwloc_topology_destroy(topology);
	return ret;
}
