/* SPDX-License-Identifier: MIT */
/*
 * What may happen to a process, at each step of each protocol.
 *
 * With --table: what is expected, as the table in docs/guarantees.md. With --only TEXT: the
 * cells in whose names it is. In the environment, LIFE_VERBOSE: what each cell took; and
 * LIFE_POINT: one step, as a failure names it.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/life/tests/life_cell.h"

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void test_cell(void **state)
{
	const struct cell *cell = *state;
	double start = seconds();
	struct report report;
	enum outcome outcome = cell_try(cell, &report);

	if (outcome == CELL_SKIPPED)
		skip();
	if (getenv("LIFE_VERBOSE"))
		print_message("# %s: %u visits, %u met, %u points, %u states, %.2f s\n", cell->name,
			      report.visits, report.met, report.points, report.states,
			      seconds() - start);
	if (outcome == CELL_FAILED)
		fail_msg("%s: %s", cell->name, report.what);
}

static int run(const char *only)
{
	unsigned events = life_events(), count = 0;
	struct cell *cells = calloc(events * protocol_count, sizeof(*cells));
	struct CMUnitTest *tests = calloc(events * protocol_count, sizeof(*tests));

	for (unsigned i = 0; i < events * protocol_count; i++) {
		struct cell *cell = &cells[count];

		cell_name(cell, &protocols[i / events], life_event(i % events));
		if (only && !strstr(cell->name, only))
			continue;
		tests[count].name = cell->name;
		tests[count].test_func = test_cell;
		tests[count].initial_state = cell;
		count++;
	}
	return _cmocka_run_group_tests("life", tests, count, NULL, NULL);
}

int main(int argc, char **argv)
{
	const char *first = argc > 1 ? argv[1] : "";

	/* What is executed in place of a process says so by that. */
	if (strcmp(first, "--passed") == 0)
		return 0;
	if (strcmp(first, "--table") == 0) {
		expected_print();
		return 0;
	}
	cells_start();
	return run(strcmp(first, "--only") == 0 ? argv[2] : NULL);
}
