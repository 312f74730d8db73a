/* SPDX-License-Identifier: MIT */
/*
 * A whole cell whose back parts a third thread stores, on machines that have no third CPU, too:
 * there patcher and executor share one, which no run of the program does. So nothing is measured
 * here; what is tested is that a cell with such a thread goes its whole way.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "stress/run/child.h"

#define TOGGLES 50 /* each may cost a few time slices */

static hwloc_topology_t topology;

static struct cell beside_cell(void)
{
	struct cell cell;

	cell_defaults(&cell);
	cell.protocol = PROTOCOL_BESIDE;
	cell.waits = (struct waits){ 1000, 1000, 0 };
	cell.toggles = TOGGLES;
	cell.rest = 0;
	return cell;
}

static void expect_whole(const struct cell *cell, const struct cell_result *r)
{
	assert_int_equal(r->error, 0);
	assert_int_equal(r->outcome, OUTCOME_DONE);
	assert_int_equal(r->toggles, cell->toggles);
	assert_int_equal(r->old_new[0] + r->old_new[1] + cell_result_tears(r), r->executions);
}

static unsigned first_cpu(void)
{
	return (unsigned)hwloc_bitmap_first(hwloc_topology_get_topology_cpuset(topology));
}

/* As a cell's child does all of it, with patcher and executor on one CPU. */
static void the_inside_goes_its_whole_way(void **state)
{
	size_t size = sizeof(struct shared) + sizeof(struct executor_counts);
	struct shared *shared =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct cell cell = beside_cell();
	int status;
	pid_t pid;

	(void)state;
	assert_ptr_not_equal(shared, MAP_FAILED);
	shared->result.seating = (struct seating){
		.placement = PLACEMENT_OVERSUBSCRIBED,
		.patcher = first_cpu(),
		.executors = 1,
		.executor = { first_cpu() },
	};
	if (cell_beside(topology, &shared->result.seating) < 0) {
		munmap(shared, size);
		skip();
	}
	shared->cell = &cell;
	shared->options = &(struct run_options){ .topology = topology };
	pid = fork();
	if (pid == 0) {
		child_run(shared);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_whole(&cell, &shared->result);
	munmap(shared, size);
}

/* And as the program runs it where there is a third CPU; elsewhere it is refused. */
static void the_program_runs_it_or_refuses(void **state)
{
	const struct run_options how = { .topology = topology };
	struct cell cell = beside_cell();
	struct seating seating;
	struct cell_result r;
	char reason[160];

	(void)state;
	cell.placement = PLACEMENT_SAME_L3;
	if (cell_seat(&cell, topology, &seating, reason, sizeof(reason)) == 0) {
		assert_int_equal(cell_run(&cell, &how, &r), 0);
		expect_whole(&cell, &r);
	} else {
		assert_int_equal(cell_run(&cell, &how, &r), -ENOENT);
	}
}

static void seat_on(const char *machine, int expected)
{
	struct cell cell = beside_cell();
	hwloc_topology_t described;
	struct seating seating;
	char reason[160];

	cell.placement = PLACEMENT_SAME_L3;
	assert_int_equal(hwloc_topology_init(&described), 0);
	assert_int_equal(hwloc_topology_set_synthetic(described, machine), 0);
	assert_int_equal(hwloc_topology_load(described), 0);
	assert_int_equal(cell_seat(&cell, described, &seating, reason, sizeof(reason)), expected);
	hwloc_topology_destroy(described);
}

/* With two CPUs the thread would have to share one: refused. With a third it is seated. */
static void a_third_cpu_is_needed(void **state)
{
	(void)state;
	seat_on("l3:1 l2:2 core:1 pu:1", -ENOENT);
	seat_on("l3:1 l2:3 core:1 pu:1", 0);
}

static int begin(void **state)
{
	int foreign;

	(void)state;
	return topology_open(&topology, &foreign);
}

static int end(void **state)
{
	(void)state;
	hwloc_topology_destroy(topology);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_inside_goes_its_whole_way),
		cmocka_unit_test(the_program_runs_it_or_refuses),
		cmocka_unit_test(a_third_cpu_is_needed),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
