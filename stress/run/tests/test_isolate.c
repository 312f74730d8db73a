/* SPDX-License-Identifier: MIT */
/*
 * The parent of a cell takes no CPU from the threads that are measured, where there are others. A
 * child that gets no CPU is not taken for one that hangs.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "stress/run/run.h"

#define SEATS_MAX 1024
#define LASTS	  2500000 /* us */

static struct run_options how;

/* What the parent sees of itself. */
struct looks {
	unsigned count;
	unsigned on_measured; /* of the CPUs that it may be on */
	const struct seating *seating;
};

static void sleep_inside(void *arg)
{
	(void)arg;
	usleep(LASTS);
}

static bool is_measured(const struct seating *seating, unsigned cpu)
{
	bool is = cpu == seating->patcher;

	for (unsigned i = 0; i < seating->executors; i++)
		is |= cpu == seating->executor[i];
	return is;
}

static void look(void *arg, const struct cell_result *so_far)
{
	struct looks *looks = arg;
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	unsigned cpu;

	(void)so_far;
	looks->count++;
	hwloc_get_cpubind(how.topology, cpus, HWLOC_CPUBIND_THREAD);
	hwloc_bitmap_foreach_begin(cpu, cpus) looks->on_measured +=
		is_measured(looks->seating, cpu);
	hwloc_bitmap_foreach_end();
	hwloc_bitmap_free(cpus);
}

static struct looks run(const struct seating *seating)
{
	struct looks looks = { .seating = seating };
	struct leash leash = { .finished = 0 };
	const struct isolated what = {
		.inside = sleep_inside,
		.parts = 1,
		.leash = &leash,
		.options = &how,
		.seating = seating,
	};
	hwloc_bitmap_t before = hwloc_bitmap_alloc(), after = hwloc_bitmap_alloc();
	struct ending ending;

	how.progress = look;
	how.arg = &looks;
	hwloc_get_cpubind(how.topology, before, HWLOC_CPUBIND_THREAD);
	assert_int_equal(isolate(&what, &ending), 0);
	assert_int_equal(ending.signal, 0);
	hwloc_get_cpubind(how.topology, after, HWLOC_CPUBIND_THREAD);
	assert_true(hwloc_bitmap_isequal(before, after));
	hwloc_bitmap_free(before);
	hwloc_bitmap_free(after);
	return looks;
}

/* The CPU that we are on right now is the one that it would stay on. */
static void the_parent_keeps_off_what_is_measured(void **state)
{
	struct seating seating = { .executors = 1 };
	struct looks looks;

	(void)state;
	if (hwloc_get_nbobjs_by_type(how.topology, HWLOC_OBJ_PU) < 2)
		skip();
	seating.patcher = seating.executor[0] = (unsigned)sched_getcpu();
	looks = run(&seating);
	assert_in_range(looks.count, 4, 20);
	assert_int_equal(looks.on_measured, 0);
}

static void where_all_is_measured_it_looks_rarely(void **state)
{
	static struct seating seating;
	hwloc_obj_t pu = NULL;

	(void)state;
	while ((pu = hwloc_get_next_obj_by_type(how.topology, HWLOC_OBJ_PU, pu)) &&
	       seating.executors < SEATS_MAX)
		seating.executor[seating.executors++] = pu->os_index;
	seating.patcher = seating.executor[0];
	assert_in_range(run(&seating).count, 1, 3);
}

static void stay_on(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void spin_inside(void *arg)
{
	(void)arg;
	for (;;)
		;
}

/* Gets what others leave of the CPU, until it is ended later than one that hangs. */
static void spin_when_idle(void *arg)
{
	const unsigned *cpu = arg;
	struct sched_param none = { 0 };

	stay_on(*cpu);
	sched_setscheduler(0, SCHED_IDLE, &none);
	alarm(3);
	spin_inside(NULL);
}

static struct ending end_of(void (*inside)(void *), void *arg)
{
	struct leash leash = { .finished = 0 };
	struct isolated what = {
		.inside = inside, .arg = arg, .parts = 1, .leash = &leash, .options = &how
	};
	struct ending ending;

	how.progress = NULL;
	how.hang_seconds = 1;
	assert_int_equal(isolate(&what, &ending), 0);
	how.hang_seconds = 0;
	return ending;
}

static void one_without_a_cpu_does_not_hang(void **state)
{
	unsigned cpu = (unsigned)sched_getcpu();
	pid_t busy[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		busy[i] = fork();
		if (busy[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			stay_on(cpu);
			spin_inside(NULL);
		}
	}
	assert_int_equal(end_of(spin_when_idle, &cpu).signal, SIGALRM);
	for (int i = 0; i < 2; i++) {
		kill(busy[i], SIGKILL);
		waitpid(busy[i], NULL, 0);
	}
}

static void one_that_spins_hangs(void **state)
{
	(void)state;
	assert_int_equal(end_of(spin_inside, NULL).outcome, OUTCOME_HANG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_parent_keeps_off_what_is_measured),
		cmocka_unit_test(where_all_is_measured_it_looks_rarely),
		cmocka_unit_test(one_without_a_cpu_does_not_hang),
		cmocka_unit_test(one_that_spins_hangs),
	};
	int foreign;

	if (topology_open(&how.topology, &foreign) < 0 || foreign) {
		fprintf(stderr, "the topology cannot be read\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
