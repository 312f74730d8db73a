/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stress/cell/cell.h"
#include "stress/cell/code.h"

static void names_round_trip(void **state)
{
	(void)state;
	for (int i = 0; i < CROSSING_COUNT; i++)
		assert_int_equal(crossing_parse(crossing_name((enum crossing)i)), i);
	for (int i = 0; i < PAIR_COUNT; i++)
		assert_int_equal(pair_parse(pair_name((enum code_pair)i)), i);
	for (int i = 0; i < PROTOCOL_COUNT; i++)
		assert_int_equal(protocol_parse(protocol_name((enum protocol)i)), i);
	for (int i = 0; i < ORACLE_KINDS; i++)
		assert_int_equal(oracle_parse(oracle_name((enum oracle)i)), i);
	for (int i = 0; i < OUTCOME_COUNT; i++)
		assert_int_equal(outcome_parse(outcome_name((enum outcome)i)), i);
	for (int i = 0; i < TEAR_KINDS; i++)
		assert_int_equal(tear_kind_parse(tear_kind_name((enum tear_kind)i)), i);
	assert_int_equal(tear_kind_parse("back"), -EINVAL);
	assert_int_equal(pair_parse("call"), -EINVAL);
	assert_int_equal(pair_parse(""), -EINVAL);
}

static void every_set_of_provokers_round_trips(void **state)
{
	char names[PROVOKERS_MAX];

	(void)state;
	for (unsigned set = 0; set <= PROVOKERS_ALL; set++) {
		assert_ptr_equal(provokers_name(set, names), names);
		assert_true(strlen(names) < PROVOKERS_MAX);
		assert_int_equal(provokers_parse(names), set);
	}
	for (int i = 0; i < PROVOKER_COUNT; i++)
		assert_int_equal(provokers_parse(provoker_name((enum provoker)i)), 1u << i);
	assert_string_equal(provokers_name(0, names), "none");
	assert_string_equal(provokers_name(1u << PROVOKER_COLD_BACK | 1u << PROVOKER_LOAD, names),
			    "cold-back+load");
	assert_int_equal(provokers_parse("load+cold-back"),
			 1u << PROVOKER_COLD_BACK | 1u << PROVOKER_LOAD);
}

static void bad_lists_of_provokers_are_refused(void **state)
{
	static const char *const bad[] = {
		"",	     "+",     "load+", "+load",		 "load++wide",
		"load+load", "Load",  "load ", "none+load",	 "load+none",
		"loa",	     "loadd", "cold",  "cold-back,load",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(provokers_parse(bad[i]), -EINVAL);
}

static int check(const struct cell *cell)
{
	char reason[160] = "";
	int ret = cell_check(cell, reason, sizeof(reason));

	assert_true((ret < 0) == (reason[0] != '\0'));
	return ret;
}

static void absurd_cells_are_refused(void **state)
{
	struct cell cell;

	(void)state;
	cell_defaults(&cell);
	assert_int_equal(check(&cell), 0);

#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		cell_defaults(&cell);                                                              \
		cell.field = value;                                                                \
		assert_int_equal(check(&cell), -EINVAL);                                           \
	} while (0)
	REFUSED(split, 0);
	REFUSED(split, 5);
	REFUSED(executors, 0);
	REFUSED(executors, PLACEMENT_EXECUTORS_MAX + 1);
	REFUSED(waits.first, CELL_WAIT_MAX + 1);
	REFUSED(waits.second, UINT64_MAX);
	REFUSED(rest, CELL_WAIT_MAX + 1);
	REFUSED(waits.stretch, CELL_STRETCH_MAX + 1);
	REFUSED(provokers, PROVOKERS_ALL + 1);
	REFUSED(loop, CELL_LOOP_MAX + 1);
	REFUSED(toggles, 0);
	REFUSED(toggles, CELL_TOGGLES_MAX + 1);
	REFUSED(seconds, -1);
	REFUSED(seconds, 1e9);
	REFUSED(seconds, 0.0 / 0.0);
	REFUSED(crossing, CROSSING_NONE);
	REFUSED(protocol, PROTOCOL_ATOMIC);
	REFUSED(place, UINT64_MAX);
	cell_defaults(&cell);
	cell.placement = PLACEMENT_KIND_UP;
	assert_int_equal(check(&cell), 0);
	cell.swap = true;
	assert_int_equal(check(&cell), -EINVAL);
	cell_defaults(&cell);
	cell.split = 1;
	assert_int_equal(check(&cell), -EINVAL);
	cell.pair = PAIR_WORD;
	assert_int_equal(check(&cell), -EINVAL);
	cell.pair = PAIR_CALL_NOP;
	assert_int_equal(check(&cell), 0);
	cell_defaults(&cell);
	cell.pair = PAIR_WORD;
	cell.oracle = ORACLE_CRASH;
	assert_int_equal(check(&cell), -EINVAL);
}

static void waits_round_trip(void **state)
{
	static const struct {
		struct waits waits;
		const char *text, *list;
	} cases[] = { { { 1600, 1600, 4 }, "1600 x4", "1600,1600,4" },
		      { { 0, 0, 0 }, "0", "0,0,0" },
		      { { 300, 900, 4 }, "300+900 x4", "300,900,4" },
		      { { 1000000000, 7, 64 }, "1000000000+7 x64", "1000000000,7,64" } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct waits listed = { 0 };

		assert_string_equal(WAITS(&cases[i].waits), cases[i].text);
		assert_int_equal(waits_parse(cases[i].list, &listed), 0);
		assert_true(waits_same(&listed, &cases[i].waits));
	}
}

static void bad_waits_are_refused(void **state)
{
	static const char *const bad[] = { "",	     "5",	"-1,1",	 "+1,1",
					   "1 ",     "1 x",	"1 x65", "1000000001",
					   "1,1,65", "1,2,3,4", "1,,4",	 "1+",
					   "1 x-1",  "0x10",	"1 2",	 "18446744073709551617" };
	struct waits waits = { 1, 2, 3 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(waits_parse(bad[i], &waits), -EINVAL);
	assert_true(waits_same(&waits, &(struct waits){ 1, 2, 3 }));
	assert_int_equal(waits_parse("5,6", &waits), 0);
	assert_true(waits_same(&waits, &(struct waits){ 5, 6, 3 }));
}

static void command_names_every_parameter(void **state)
{
	struct cell cell;
	char command[512];
	int len;

	(void)state;
	cell_defaults(&cell);
	cell.split = 2;
	cell.waits.first = 12345;
	cell.seed = 678;
	len = cell_command(&cell, command, sizeof(command));
	assert_in_range(len, 1, sizeof(command) - 1);
	assert_non_null(strstr(command, "--split 2 "));
	assert_non_null(strstr(command, "--first-wait 12345 "));
	assert_non_null(strstr(command, "--seed 678"));
	assert_int_equal(strncmp(command, "tmax stress ", 12), 0);

	cell.waits.stretch = 4;
	cell.loop = 77;
	cell.provokers = PROVOKERS_ALL;
	cell.waits.first = cell.waits.second = cell.rest = CELL_WAIT_MAX;
	cell.toggles = CELL_TOGGLES_MAX;
	cell.stop_tears = cell.seed = INT64_MAX;
	cell.placement = PLACEMENT_OVERSUBSCRIBED;
	cell.protocol = PROTOCOL_FRONT_FIRST;
	cell.executors = PLACEMENT_EXECUTORS_MAX;
	cell.seconds = 1234567.89;
	cell.place = INT64_MAX;
	cell.swap = true;
	/* A program that prints one has room for 512. */
	len = cell_command(&cell, command, sizeof(command));
	assert_in_range(len, 1, sizeof(command) - 1);
	assert_non_null(strstr(command, "--stretch 4 "));
	assert_non_null(strstr(command, "--loop 77 "));
	assert_non_null(strstr(command, "--place 9223372036854775807 --swap"));
	assert_non_null(strstr(command, "--provoker cold-back+cold-front+shootdown+"));
}

/* Every byte behind the split, and in front where the opcodes differ, changes. */
static void codes_differ_where_it_counts(void **state)
{
	(void)state;
	for (int pair = 0; pair < PAIR_COUNT; pair++) {
		for (unsigned split = 1; split <= 4; split++) {
			struct code code;
			struct cell cell;

			cell_defaults(&cell);
			cell.pair = (enum code_pair)pair;
			cell.split = split;
			assert_int_equal(code_build(&code, &cell), 0);
			assert_int_equal(
				memcmp(code.site[0].at, code.site[0].bytes[0], CODE_LENGTH), 0);
			for (unsigned k = 0; k < code.codes; k++)
				for (unsigned i = 1; i < CODE_LENGTH; i++)
					assert_int_not_equal(
						code.site[0].bytes[k][i],
						code.site[0].bytes[(k + 1) % code.codes][i]);
		}
	}
}

static void site_straddles_just_what_it_should(void **state)
{
	(void)state;
	for (int crossing = CROSSING_8; crossing < CROSSING_COUNT; crossing++) {
		for (uint64_t seed = 0; seed < 48; seed++) {
			struct code code;
			struct cell cell;
			uintptr_t boundary;
			unsigned bytes = crossing_bytes((enum crossing)crossing);

			cell_defaults(&cell);
			cell.pair = PAIR_WORD;
			cell.crossing = (enum crossing)crossing;
			cell.split = (unsigned)(seed % 4) + 1;
			cell.seed = seed;
			cell.place = seed < 16 ? 0 : seed;
			assert_int_equal(code_build(&code, &cell), 0);
			boundary = (uintptr_t)code.site[0].at + cell.split;
			assert_int_equal(boundary % bytes, 0);
			if (crossing < CROSSING_LINE)
				assert_int_not_equal(boundary % (bytes * 2), 0);
			if (crossing == CROSSING_LINE)
				assert_int_not_equal(boundary % 4096, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_round_trip),
		cmocka_unit_test(every_set_of_provokers_round_trips),
		cmocka_unit_test(bad_lists_of_provokers_are_refused),
		cmocka_unit_test(absurd_cells_are_refused),
		cmocka_unit_test(waits_round_trip),
		cmocka_unit_test(bad_waits_are_refused),
		cmocka_unit_test(command_names_every_parameter),
		cmocka_unit_test(codes_differ_where_it_counts),
		cmocka_unit_test(site_straddles_just_what_it_should),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
