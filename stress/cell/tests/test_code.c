/* SPDX-License-Identifier: MIT */
/*
 * The generated code, run by one thread with every mix standing in memory: each
 * is counted where it belongs, in any loop.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/machine/wait.h"
#include "stress/cell/code.h"

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
	memcpy(code->site[0].at, code->site[0].bytes[front], split);
	memcpy(code->site[0].at + split, code->site[0].bytes[back] + split, CODE_LENGTH - split);
}

static struct cell_result run_mix(const struct code *code, struct code_slots *slots,
				  uint64_t direction)
{
	struct cell_result r = { 0 };

	memset(slots, 0, sizeof(*slots));
	/* A thread that wrote code has to serialise before it runs that code. */
	__asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx", "memory");
	code_run(code, EXECUTIONS, slots, &direction);
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
	assert_int_equal(slots->torn, 1);
	assert_int_equal(code_mark_toggle(&mark), direction);
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
		for (int pair = 0; pair < PAIR_COUNT && crossing != CROSSING_INSIDE; pair++) {
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

/* Every mix at every site, while the others run whole codes, also those of the next toggle. */
static void sites_inside_are_counted_apart(void **state)
{
	static struct code_slots slots[CELL_INSIDE];

	(void)state;
	for (unsigned i = 0; i < 3 * 3 * 3 * CELL_INSIDE; i++) {
		unsigned split = 2 + i % 3, front = i / 3 % 3, back = i / 9 % 3, at = i / 27;
		bool mix = front != back;
		struct cell_result r = { 0 };
		uint64_t toggle = front;
		struct cell cell;
		struct code code;

		cell_defaults(&cell);
		cell.crossing = CROSSING_INSIDE;
		cell.split = split;
		cell.place = i;
		build(&code, &cell, &additions[i % ADDITIONS]);
		assert_int_equal(code.sites, CELL_INSIDE);
		for (unsigned site = 0; site < CELL_INSIDE; site++) {
			uint8_t *bytes = code.site[site].at;
			unsigned last = site == at ? back : front;

			assert_int_equal(((uintptr_t)bytes + split) % LINE, 8u << site);
			memcpy(bytes, code.site[site].bytes[front], split);
			memcpy(bytes + split, code.site[site].bytes[last] + split,
			       CODE_LENGTH - split);
		}
		memset(slots, 0, sizeof(slots));
		/* A thread that runs what it wrote serialises in between. */
		__asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx", "memory");
		code_run(&code, EXECUTIONS, slots, &toggle);
		code_collect(&code, slots, EXECUTIONS, &r);
		assert_int_equal(r.executions, CELL_INSIDE * EXECUTIONS);
		assert_int_equal(cell_result_tears(&r), mix ? EXECUTIONS : 0);
		assert_int_equal(r.tears[TEAR_OTHER], 0);
		assert_int_equal(code_tears(&code, slots), mix ? EXECUTIONS : 0);
		for (unsigned site = 0; site < CELL_INSIDE; site++) {
			assert_int_equal(slots[site].torn, mix && site == at);
			assert_int_equal(slots[site].marks, mix && site == at ? EXECUTIONS : 0);
			assert_int_equal(slots[site].seen, !mix || site != at);
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
		before = code.site[0].at + CODE_LENGTH - 1;
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
	memcpy(before, code.site[0].at, sizeof(before));
	code_stir(&code, 2);
	for (unsigned i = 0; i < CODE_EXTRA; i++) {
		size_t at = (size_t)(code.extra[i] - code.site[0].at);

		for (unsigned byte = 3; byte <= 4; byte++) {
			assert_int_not_equal(before[at + byte], code.extra[i][byte]);
			before[at + byte] = code.extra[i][byte];
		}
	}
	assert_memory_equal(before, code.site[0].at, sizeof(before));

	build(&code, &cell, &none);
	assert_null(code.extra[0]);
	memcpy(before, code.site[0].at, sizeof(before));
	code_stir(&code, 3);
	assert_memory_equal(before, code.site[0].at, sizeof(before));
}

/*
 * Toggles with one executor that runs the site only before some of them: exposed are
 * just those. One that is parked sees none.
 */
static uint64_t exposed_of(enum code_pair pair, uint64_t toggles, unsigned parked)
{
	static struct code_slots slots;
	struct code code;
	struct cell cell;

	cell_defaults(&cell);
	cell.pair = pair;
	build(&code, &cell, &additions[0]);
	memset(&slots, 0, sizeof(slots));
	for (uint64_t i = 0; i <= toggles; i++) {
		unsigned standing = (unsigned)(i % code.codes);

		write_mix(&code, standing, standing, cell.split);
		__asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx", "memory");
		if (parked & 1u << i % 32)
			continue;
		code_run(&code, EXECUTIONS, &slots, &i);
		code_run(&code, EXECUTIONS, &slots, &i);
	}
	return code_exposed(&code, &slots, toggles);
}

static void only_what_was_run_is_exposed(void **state)
{
	static const enum code_pair pairs[] = { PAIR_CALL_CALL, PAIR_WORD, PAIR_CALL_NOP,
						PAIR_JMP_NOP };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(exposed_of(pairs[i], 100, ~0u), 0);
		assert_int_equal(exposed_of(pairs[i], 0, 0), 0);
		assert_int_equal(exposed_of(pairs[i], 0, ~0u), 0);
		assert_int_equal(exposed_of(pairs[i], 100, 0), 100);
		assert_int_equal(exposed_of(pairs[i], 101, 0), 101);
		/* Every other code is slept through: 0 to 100 even are run, 100 is not replaced. */
		if (i < 2)
			assert_int_equal(exposed_of(pairs[i], 100, 0xaaaaaaaa), 50);
		/* That is a whole rotation of two codes: it takes all calls for one. */
		else
			assert_int_equal(exposed_of(pairs[i], 100, 0xaaaaaaaa), 0);
		assert_in_range(exposed_of(pairs[i], 31, 0xffff0000), i < 2 ? 16 : 14, 16);
		/* It runs the last one alone: nothing replaces that. */
		assert_int_equal(exposed_of(pairs[i], 31, 0x7fffffff), 0);
	}
}

/* However often it is run, a mix tears one toggle; with another number it is another one. */
static void torn_toggles_are_counted_once(void **state)
{
	static const uint64_t numbers[] = { 0, 0, 4, 4, UINT64_C(1) << 40, 9 };
	static const uint64_t torn[] = { 1, 1, 2, 2, 3, 4 };

	(void)state;
	for (int pair = 0; pair < PAIR_COUNT; pair++) {
		static struct code_slots slots;
		struct code_mark mark;
		struct code code;
		struct cell cell;

		cell_defaults(&cell);
		cell.pair = (enum code_pair)pair;
		build(&code, &cell, &additions[0]);
		memset(&slots, 0, sizeof(slots));
		for (unsigned i = 0; i < 6; i++) {
			write_mix(&code, i % 2, !(i % 2), cell.split);
			__asm__ volatile("cpuid" : : "a"(0), "c"(0) : "rbx", "rdx", "memory");
			code_run(&code, EXECUTIONS, &slots, &numbers[i]);
			assert_int_equal(slots.torn, torn[i]);
			assert_true(code_mark(&slots, (i + 1) * EXECUTIONS - 1, &mark));
			assert_int_equal(code_mark_toggle(&mark), numbers[i]);
		}
	}
}

/* In toggle 1, B -> C, an A is two changes old: with a C it is not taken for C -> A. */
static void what_is_two_changes_old_blames_nobody(void **state)
{
	const struct code code = { .codes = 3, .pair = PAIR_CALL_CALL };
	const struct {
		unsigned front, back;
		enum tear_kind kind;
	} mixes[] = {
		{ 1, 2, TEAR_OLD_FRONT }, { 2, 1, TEAR_NEW_FRONT }, { 0, 2, TEAR_OTHER },
		{ 2, 0, TEAR_OTHER },	  { 0, 1, TEAR_OLD_FRONT }, { 1, 0, TEAR_NEW_FRONT },
	};

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		uint64_t slot = mixes[i].front * 3 + mixes[i].back;
		struct code_mark mark = { .where = UINT64_C(301) << 8 | slot };

		assert_int_equal(code_mark_kind(&code, &mark), mixes[i].kind);
	}
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
	code_run(&code, made, &slots, &direction);
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
	for (const uint8_t *at = code.site[0].at; at < code.site[0].at + CELL_LOOP_MAX * 4 + 1024;
	     at++) {
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
		cmocka_unit_test(sites_inside_are_counted_apart),
		cmocka_unit_test(extra_sites_are_harmless),
		cmocka_unit_test(extra_sites_straddle_lines_of_their_own),
		cmocka_unit_test(stirring_changes_the_extra_sites_alone),
		cmocka_unit_test(only_what_was_run_is_exposed),
		cmocka_unit_test(torn_toggles_are_counted_once),
		cmocka_unit_test(what_is_two_changes_old_blames_nobody),
		cmocka_unit_test(old_marks_are_lost),
		cmocka_unit_test(additions_make_the_loop_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
