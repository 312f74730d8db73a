/* SPDX-License-Identifier: MIT */
/* Another thread stores the back part. Cells with executors are in stress/run/tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/word/word.h"
#include "stress/cell/code.h"
#include "stress/cell/toggle.c"
#include "stress/cell/toggle.h"

#define CHANGES 20 /* each may cost a time slice or two where the threads share a CPU */

static unsigned last_cpu(hwloc_topology_t topology)
{
	return (unsigned)hwloc_bitmap_last(hwloc_topology_get_topology_cpuset(topology));
}

/* And each is told to the trace, with all of its three stores. */
static void changes_are_whole(void **state)
{
	struct word_trace trace;
	hwloc_topology_t topology;
	struct cell cell;
	struct code code;
	int foreign;

	(void)state;
	assert_int_equal(topology_open(&topology, &foreign), 0);
	cell_defaults(&cell);
	cell.protocol = PROTOCOL_BESIDE;
	cell.waits = (struct waits){ 1000, 1000, 0 };
	assert_int_equal(code_build(&code, &cell), 0);
	assert_int_equal(beside_start(topology, last_cpu(topology)), 0);
	for (unsigned i = 1; i <= CHANGES; i++) {
		const uint8_t *bytes = code.site[0].bytes[i % code.codes];
		struct sync sync = toggle_sync(&cell);

		trace = (struct word_trace){ 0 };
		sync.trace = &trace;
		assert_int_equal(toggle(cell.protocol, code.site[0].at, bytes, &sync), 0);
		assert_memory_equal(code.site[0].at, bytes, CODE_LENGTH);
		assert_true(trace.visible[WORD_PART_BACK] >= trace.visible[WORD_PART_INT3] + 1000);
		assert_true(trace.visible[WORD_PART_FRONT] >= trace.visible[WORD_PART_BACK] + 1000);
	}
	hwloc_topology_destroy(topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(changes_are_whole) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
