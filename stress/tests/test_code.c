/* SPDX-License-Identifier: MIT */
/*
 * The generated code, run by one thread with every mix standing in memory: each
 * is counted where it belongs, by whatever loop it is in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/wait.h"
#include "stress/code.h"

#define LINE	   64u
#define EXECUTIONS 10

/* What a cell can add to the loop: provokers, and filler instructions. */
static const struct addition {
	unsigned provokers, loop;
} additions[] = {
	{ 0, 0 },
	{ 0, 1 },
	{ 0, CELL_LOOP_MAX },
	{ 1u << PROVOKER_CHAIN, 0 },
	{ 1u << PROVOKER_SITES, 0 },
	{ 1u << PROVOKER_CHAIN | 1u << PROVOKER_SITES, CELL_LOOP_MAX },
};

#define ADDITIONS (sizeof(additions) / sizeof(*additions))

static void build(struct code *code, struct cell *cell, const struct addition *addition)
{
	cell->provokers = addition->provokers;
	cell->loop = addition->loop;
	assert_int_equal(code_build(code, cell), 0);
}

/* Front of one code, back of another. */
static void write_mix(const struct code *code, unsigned front, unsigned back, unsigned split)
{
	memcpy(code->site, code->bytes[front], split);
	memcpy(code->site + split, code->bytes[back] + split, CODE_LENGTH - split);
}

static struct cell_result run_mix(const struct code *code, struct code_slots *slots,
				  uint64_t direction)
{
	struct cell_result r = { 0 };

	memset(slots, 0, sizeof(*slots));
	/* Whoever wrote code and runs it has to serialise in between. */
	__asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx", "memory");
	code->loop(EXECUTIONS, slots, &direction);
	code_collect(code, slots, EXECUTIONS, &r);
	assert_int_equal(r.executions, EXECUTIONS);
	return r;
}

static void expect_whole(const struct code *code, struct code_slots *slots, unsigned k)
{
	struct cell_result r = run_mix(code, slots, k);

	assert_int_equal(cell_result_tears(&r), 0);
	assert_int_equal(r.old_new[k != 0], EXECUTIONS);
	assert_int_equal(slots->marks, 0);
}

/* The direction that goes from code `old` to code `new`. */
static void expect_mix(const struct code *code, struct code_slots *slots, uint64_t direction,
		       enum tear_kind kind)
{
	uint64_t before = ticks_now();
	struct cell_result r = run_mix(code, slots, direction);
	uint64_t after = ticks_now();
	struct code_mark mark;

	assert_int_equal(r.tears[kind], EXECUTIONS);
	assert_int_equal(cell_result_tears(&r), EXECUTIONS);
	assert_int_equal(slots->marks, EXECUTIONS);
	for (unsigned i = 0; i < EXECUTIONS; i++) {
		assert_true(code_mark(slots, i, &mark));
		assert_int_equal(code_mark_kind(code, &mark), kind);
		assert_true(mark.tsc >= before && mark.tsc <= after);
		before = mark.tsc;
	}
	assert_false(code_mark(slots, EXECUTIONS, &mark));
	assert_int_equal(code_tears(code, slots), EXECUTIONS);
}

static bool has_mix(const struct cell *cell)
{
	return cell->split > 1 || cell->pair == PAIR_CALL_NOP || cell->pair == PAIR_JMP_NOP;
}

static void check_cell(struct cell *cell, const struct addition *addition)
{
	static struct code_slots slots;
	struct code code;

	build(&code, cell, addition);
	for (unsigned old = 0; old < code.codes; old++) {
		unsigned new = (old + 1) % code.codes;

		write_mix(&code, old, old, cell->split);
		expect_whole(&code, &slots, old);
		if (!has_mix(cell))
			continue;
		write_mix(&code, old, new, cell->split);
		expect_mix(&code, &slots, old, TEAR_OLD_FRONT);
		write_mix(&code, new, old, cell->split);
		expect_mix(&code, &slots, old, TEAR_NEW_FRONT);
	}
}

static void every_mix_is_counted_and_marked(void **state)
{
	struct cell cell;

	(void)state;
	for (int crossing = 0; crossing < CROSSING_COUNT; crossing++) {
		for (int pair = 0; pair < PAIR_COUNT; pair++) {
			for (unsigned i = 0; i < 4 * ADDITIONS; i++) {
				cell_defaults(&cell);
				cell.crossing = (enum crossing)crossing;
				cell.pair = (enum code_pair)pair;
				cell.split = 1 + i % 4;
				cell.seed = i;
				check_cell(&cell, &additions[i / 4]);
			}
		}
	}
}

/* Byte by byte as well: an executor may fetch the extra sites at any moment, too. */
static void extra_sites_are_harmless(void **state)
{
	static const struct addition sites = { 1u << PROVOKER_SITES, 0 };
	static struct code_slots slots;
	struct code code;
	struct cell cell;

	(void)state;
	cell_defaults(&cell);
	cell.pair = PAIR_CALL_NOP;
	build(&code, &cell, &sites);
	for (unsigned value = 0; value < 0x10000; value += 17) {
		for (unsigned i = 0; i < CODE_EXTRA; i++) {
			code.extra[i][3] = (uint8_t)value;
			code.extra[i][4] = (uint8_t)(value >> 8);
		}
		expect_whole(&code, &slots, 0);
	}
}

static uintptr_t line_of(const uint8_t *at)
{
	return (uintptr_t)at / LINE;
}

static void extra_sites_straddle_lines_of_their_own(void **state)
{
	static const struct addition sites = { 1u << PROVOKER_SITES, 0 };
	struct code code;
	struct cell cell;

	(void)state;
	for (unsigned seed = 0; seed < 8; seed++) {
		const uint8_t *before;

		cell_defaults(&cell);
		cell.seed = seed;
		build(&code, &cell, &sites);
		before = code.site + CODE_LENGTH - 1;
		for (unsigned i = 0; i < CODE_EXTRA; i++) {
			assert_int_equal(line_of(code.extra[i] + 4),
					 line_of(code.extra[i] + 3) + 1);
			assert_true(line_of(code.extra[i]) > line_of(before));
			before = code.extra[i] + 4;
		}
	}
}

/* Both bytes of every extra site change, and nothing else does. */
static void stirring_changes_the_extra_sites_alone(void **state)
{
	static const struct addition sites = { 1u << PROVOKER_SITES, 0 }, none;
	uint8_t before[1024];
	struct code code;
	struct cell cell;

	(void)state;
	cell_defaults(&cell);
	build(&code, &cell, &sites);
	code_stir(&code, 1);
	memcpy(before, code.site, sizeof(before));
	code_stir(&code, 2);
	for (unsigned i = 0; i < CODE_EXTRA; i++) {
		size_t at = (size_t)(code.extra[i] - code.site);

		for (unsigned byte = 3; byte <= 4; byte++) {
			assert_int_not_equal(before[at + byte], code.extra[i][byte]);
			before[at + byte] = code.extra[i][byte];
		}
	}
	assert_memory_equal(before, code.site, sizeof(before));

	build(&code, &cell, &none);
	assert_null(code.extra[0]);
	memcpy(before, code.site, sizeof(before));
	code_stir(&code, 3);
	assert_memory_equal(before, code.site, sizeof(before));
}

/* Marks that the ring has lost are told to be lost, not given wrongly. */
static void old_marks_are_lost(void **state)
{
	static struct code_slots slots;
	const uint64_t direction = 0, made = 1000;
	struct code_mark mark;
	struct code code;
	struct cell cell;

	(void)state;
	cell_defaults(&cell);
	build(&code, &cell, &additions[0]);
	write_mix(&code, 0, 1, cell.split);
	__asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx", "memory");
	memset(&slots, 0, sizeof(slots));
	code.loop(made, &slots, &direction);
	assert_int_equal(slots.marks, made);
	assert_false(code_mark(&slots, made, &mark));
	assert_true(code_mark(&slots, made - 1, &mark));
	assert_true(code_mark(&slots, made - CODE_MARKS + 1, &mark));
	/* The next one would be written there. */
	assert_false(code_mark(&slots, made - CODE_MARKS, &mark));
	assert_false(code_mark(&slots, 0, &mark));
}

/* The direct way to see that the additions are there at all. */
static void additions_make_the_loop_longer(void **state)
{
	const struct addition *most = &additions[ADDITIONS - 1];
	struct code code;
	struct cell cell;
	unsigned leas = 0, multiplications = 0;

	(void)state;
	cell_defaults(&cell);
	build(&code, &cell, most);
	for (const uint8_t *at = code.site; at < code.site + CELL_LOOP_MAX * 4 + 1024; at++) {
		leas += memcmp(at, "\x48\x8d\x52\x01", 4) == 0;
		multiplications += memcmp(at, "\x48\x0f\xaf\xd2", 4) == 0;
	}
	assert_int_equal(leas, CELL_LOOP_MAX);
	assert_int_equal(multiplications, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_mix_is_counted_and_marked),
		cmocka_unit_test(extra_sites_are_harmless),
		cmocka_unit_test(extra_sites_straddle_lines_of_their_own),
		cmocka_unit_test(stirring_changes_the_extra_sites_alone),
		cmocka_unit_test(old_marks_are_lost),
		cmocka_unit_test(additions_make_the_loop_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
