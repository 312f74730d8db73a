/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "stress/run/run.h"
#include "stress/witness/witness.c"

typedef uint64_t (*reader_fn)(FILE *, hwloc_const_bitmap_t);

static hwloc_bitmap_t cpus_from(const char *list)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();

	assert_int_equal(hwloc_bitmap_list_sscanf(cpus, list), 0);
	return cpus;
}

static uint64_t read_stream(FILE *stream, reader_fn reader, const char *list)
{
	hwloc_bitmap_t cpus = cpus_from(list);
	uint64_t value;

	assert_non_null(stream);
	value = reader(stream, cpus);
	hwloc_bitmap_free(cpus);
	fclose(stream);
	return value;
}

static uint64_t read_text(const char *text, reader_fn reader, const char *list)
{
	return read_stream(fmemopen((void *)(uintptr_t)text, strlen(text), "r"), reader, list);
}

static uint64_t read_fixture(const char *name, reader_fn reader, const char *list)
{
	const char *top = getenv("srcdir");
	char path[4096];

	snprintf(path, sizeof(path), "%s/stress/tests/fixtures/%s", top ? top : ".", name);
	return read_stream(fopen(path, "r"), reader, list);
}

/* --- /proc/interrupts --- */

/* The sums are awk's. */
static void recorded_interrupts_are_added_up(void **state)
{
	(void)state;
	assert_int_equal(read_fixture("interrupts", proc_interrupts, "0"), 3321643);
	assert_int_equal(read_fixture("interrupts", proc_interrupts, "1"), 6164289);
	assert_int_equal(read_fixture("interrupts", proc_interrupts, "0-1"), 3321643 + 6164289);
	assert_int_equal(read_fixture("interrupts", proc_interrupts, "0,7"), 3321643);
}

static void an_offline_cpu_shifts_the_columns(void **state)
{
	static const char text[] =
		"           CPU0       CPU3       CPU12\n"
		"  8:          1         20        300  IO-APIC 8-edge rtc0\n"
		"LOC:       4000      50000     600000  Local timer interrupts\n";

	(void)state;
	assert_int_equal(read_text(text, proc_interrupts, "0"), 4001);
	assert_int_equal(read_text(text, proc_interrupts, "3"), 50020);
	assert_int_equal(read_text(text, proc_interrupts, "12"), 600300);
	assert_int_equal(read_text(text, proc_interrupts, "1-2"), WITNESS_UNKNOWN);
}

/* With one CPU a row without CPUs looks like any other. */
static void what_belongs_to_no_cpu_is_left_out(void **state)
{
	static const char text[] = "           CPU0\n"
				   "LOC:         10  Local timer interrupts\n"
				   "ERR:        100\n"
				   "MIS:       1000\n";

	(void)state;
	assert_int_equal(read_text(text, proc_interrupts, "0"), 10);
}

/* A row may end before its last column, and its name may begin with a number. */
static void words_are_no_counts(void **state)
{
	static const char text[] = "           CPU0       CPU1\n"
				   "  1:          7 2-edge 5\n"
				   "  2:          1          2 40 50\n"
				   "no colon      6          6\n";

	(void)state;
	assert_int_equal(read_text(text, proc_interrupts, "0"), 8);
	assert_int_equal(read_text(text, proc_interrupts, "1"), 2);
}

#define MANY 200
#define ROWS 40

static char *many_cpus(void)
{
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	for (unsigned cpu = 0; cpu < MANY; cpu++)
		fprintf(stream, "       CPU%u", 2 * cpu);
	for (unsigned row = 0; row < ROWS; row++) {
		fprintf(stream, "\n%4u:", row);
		for (unsigned cpu = 0; cpu < MANY; cpu++)
			fprintf(stream, " %10u", 1000 * row + cpu);
		fprintf(stream, "  PCI-MSI %u-edge nvme%u", row, row);
	}
	fputc('\n', stream);
	fclose(stream);
	return text;
}

static void two_hundred_cpus_have_long_lines(void **state)
{
	uint64_t rows = 1000 * (ROWS * (ROWS - 1) / 2);
	char *text = many_cpus();

	(void)state;
	assert_int_equal(read_text(text, proc_interrupts, "0"), rows);
	assert_int_equal(read_text(text, proc_interrupts, "398"), rows + ROWS * 199);
	assert_int_equal(read_text(text, proc_interrupts, "0-399"),
			 MANY * rows + ROWS * (MANY * (MANY - 1) / 2));
	free(text);
}

static void garbage_tells_nothing_of_interrupts(void **state)
{
	static const char *const unknown[] = {
		" ",
		"\n\n",
		"           CPU0\n",
		"LOC: 1 2 3\n",
		"CPU\nLOC: 1\n",
		"CPUx\nLOC: 1\n",
		"CPU-1\nLOC: 1\n",
		"CPU4294967296\nLOC: 1\n",
		"CPU0\nLOC: -1\n",
		"CPU0\nLOC: 99999999999999999999\n",
		"CPU0\nLOC: 9223372036854775808\n",
		"CPU0\nLOC:\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		assert_int_equal(read_text(unknown[i], proc_interrupts, "0"), WITNESS_UNKNOWN);
	/* Never past what a journal can hold. */
	assert_int_equal(read_text("CPU0\na: 9223372036854775807\nb: 9223372036854775807\n",
				   proc_interrupts, "0"),
			 INT64_MAX);
}

/* --- /proc/stat --- */

static void recorded_steal_is_of_these_cpus(void **state)
{
	(void)state;
	assert_int_equal(read_fixture("stat", proc_steal, "0"), 696);
	assert_int_equal(read_fixture("stat", proc_steal, "1"), 644);
	assert_int_equal(read_fixture("stat", proc_steal, "0-1"), 1340);
	assert_int_equal(read_fixture("stat", proc_steal, "2-9"), WITNESS_UNKNOWN);
}

static void other_lines_tell_nothing_of_steal(void **state)
{
	static const char text[] = "cpu  1 2 3 4 5 6 7 8 9 10\n"
				   "cpu11 1 2 3 4 5 6 7 80 9 10\n"
				   "intr 1 2 3 4 5 6 7 8 9 10\n"
				   "cpufreq 1 2 3 4 5 6 7 8 9 10\n"
				   "cpu13 1 2 3 4 5 6 7\n"
				   "cpu14 1 2 3 4 5 6 7 -1\n"
				   "cpu15 1 2 x 4 5 6 7 8\n"
				   "cpu4294967307 1 2 3 4 5 6 7 8\n"
				   "cpu16 1 2 3 4 5 6 7 800";

	(void)state;
	assert_int_equal(read_text(text, proc_steal, "0-99"), 880);
	assert_int_equal(read_text(text, proc_steal, "0-10,12-15"), WITNESS_UNKNOWN);
}

/* --- single numbers --- */

static double runnable(const char *text)
{
	FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	double value;

	assert_non_null(stream);
	value = proc_runnable(stream);
	fclose(stream);
	return value;
}

static void the_load_is_what_is_runnable_now(void **state)
{
	(void)state;
	assert_true(runnable("0.64 0.35 0.63 2/101 2841\n") == 2);
	assert_true(runnable("210.00 190.11 3.00 1234/99999 28410\n") == 1234);
	assert_true(runnable("\n") < 0);
	assert_true(runnable("0.64 0.35 0.63 2\n") < 0);
	assert_true(runnable("0.64 0.35 0.63 /101\n") < 0);
	assert_true(runnable("0.64 0.35 0.63 2/\n") < 0);
	assert_true(runnable("/1\n") < 0);
}

static uint64_t count(const char *text)
{
	FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	uint64_t value;

	assert_non_null(stream);
	value = proc_count(stream, NULL);
	fclose(stream);
	return value;
}

static void a_count_is_one_number(void **state)
{
	(void)state;
	assert_int_equal(count("17\n"), 17);
	assert_int_equal(count("0"), 0);
	assert_int_equal(count("\n"), WITNESS_UNKNOWN);
	assert_int_equal(count("-3\n"), WITNESS_UNKNOWN);
	assert_int_equal(count("3.5\n"), WITNESS_UNKNOWN);
	assert_int_equal(count("99999999999999999999\n"), WITNESS_UNKNOWN);
}

/* --- files of the machine --- */

static void put(const char *root, const char *name, const char *text)
{
	char path[256], *slash;
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	stream = fopen(path, "w");
	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
}

static uint64_t throttles(const char *root, const char *list)
{
	hwloc_bitmap_t cpus = cpus_from(list);
	uint64_t value = witness_throttles(root, cpus);

	hwloc_bitmap_free(cpus);
	return value;
}

static void throttling_is_added_over_the_cpus(void **state)
{
	char root[] = "/tmp/test_witness.XXXXXX", command[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	put(root, "cpu0/thermal_throttle/core_throttle_count", "1\n");
	put(root, "cpu0/thermal_throttle/package_throttle_count", "20\n");
	put(root, "cpu130/thermal_throttle/core_throttle_count", "300\n");
	put(root, "cpu2/thermal_throttle/core_throttle_count", "?\n");
	assert_int_equal(throttles(root, "0"), 21);
	assert_int_equal(throttles(root, "0,130"), 321);
	assert_int_equal(throttles(root, "1-2"), WITNESS_UNKNOWN);
	assert_int_equal(throttles(root, "1-2,130"), 300);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void smis_are_read_from_the_register(void **state)
{
	const uint64_t msr = UINT64_C(0xdead00000000002a);
	int fd = memfd_create("msr", MFD_CLOEXEC);
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(witness_smis(path), WITNESS_UNKNOWN);
	assert_int_equal(pwrite(fd, &msr, sizeof(msr), 0x34), sizeof(msr));
	assert_int_equal(witness_smis(path), 42);
	close(fd);
	assert_int_equal(witness_smis("/nonexistent/msr"), WITNESS_UNKNOWN);
}

/* --- putting it together --- */

static const struct seating two = { .patcher = 4, .executors = 3, .executor = { 5, 5, 4 } };

static void a_witness_is_the_difference_of_two_marks(void **state)
{
	const struct witness_mark before = { 100, 1000, 7, 3 };
	const struct witness_mark after = { 350, 1050, 9, 3 };
	double hz = (double)sysconf(_SC_CLK_TCK);
	struct witness w;

	(void)state;
	witness_clear(&w);
	fill_between(&w, &two, &before, &after, 2.5);
	assert_int_equal(w.interrupts, 250);
	assert_int_equal(w.throttles, 2);
	assert_int_equal(w.smis, 0);
	/* Two CPUs, however many threads sit on them. */
	assert_true(w.steal == 50 / hz / 2.5 / 2);
}

static void what_was_not_read_twice_is_unknown(void **state)
{
	const struct witness_mark known = { 9, 9, 9, 9 };
	const struct witness_mark none = { WITNESS_UNKNOWN, WITNESS_UNKNOWN, WITNESS_UNKNOWN,
					   WITNESS_UNKNOWN };
	const struct witness_mark wrapped = { 5, 5, 5, 5 };
	const struct witness_mark *pairs[][2] = { { &known, &none },
						  { &none, &known },
						  { &known, &wrapped } };
	struct witness w;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		witness_clear(&w);
		fill_between(&w, &two, pairs[i][0], pairs[i][1], 1);
		assert_int_equal(w.interrupts, WITNESS_UNKNOWN);
		assert_int_equal(w.throttles, WITNESS_UNKNOWN);
		assert_int_equal(w.smis, WITNESS_UNKNOWN);
		assert_true(w.steal < 0);
	}
	fill_between(&w, &two, &known, &known, 0);
	assert_true(w.steal < 0);
}

static void a_cleared_witness_knows_nothing(void **state)
{
	struct witness w;

	(void)state;
	memset(&w, 0x55, sizeof(w));
	witness_clear(&w);
	assert_int_equal(w.interrupts, WITNESS_UNKNOWN);
	assert_int_equal(w.smis, WITNESS_UNKNOWN);
	assert_int_equal(w.throttles, WITNESS_UNKNOWN);
	assert_int_equal(w.offset_error, WITNESS_UNKNOWN);
	assert_true(w.clock[0] < 0 && w.clock[1] < 0 && w.steal < 0 && w.load < 0);
	assert_int_equal(w.involuntary | w.voluntary | w.minor_faults | w.major_faults, 0);
	assert_int_equal(w.tsc_jumps | w.longest_step, 0);
	witness_threads_lost(&w);
	assert_int_equal(w.involuntary, WITNESS_UNKNOWN);
	assert_int_equal(w.voluntary, WITNESS_UNKNOWN);
	assert_int_equal(w.minor_faults, WITNESS_UNKNOWN);
	assert_int_equal(w.major_faults, WITNESS_UNKNOWN);
}

static void steps_are_kept_and_jumps_counted(void **state)
{
	struct witness w;

	(void)state;
	witness_clear(&w);
	witness_step(&w, 300);
	witness_step(&w, 40);
	assert_int_equal(w.longest_step, 300);
	witness_step(&w, WITNESS_STEP_ALLOWED);
	assert_int_equal(w.tsc_jumps, 0);
	witness_step(&w, WITNESS_STEP_ALLOWED + 1);
	assert_int_equal(w.tsc_jumps, 1);
	witness_step(&w, (uint64_t)-26);
	assert_int_equal(w.tsc_jumps, 2);
	assert_int_equal(w.longest_step, WITNESS_BACKWARDS);
}

#define PAGES  64
#define SLEEPS 20

static void touch_and_sleep(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct timespec pause = { .tv_nsec = 100000 };
	char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	assert_true(memory != MAP_FAILED);
	madvise(memory, PAGES * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < PAGES; i++)
		((volatile char *)memory)[i * page] = 1;
	munmap(memory, PAGES * page);
	for (unsigned i = 0; i < SLEEPS; i++)
		nanosleep(&pause, NULL);
}

static void *thread_main(void *arg)
{
	struct rusage begin;

	touch_and_sleep(); /* before: is not counted */
	getrusage(RUSAGE_THREAD, &begin);
	touch_and_sleep();
	witness_add_usage(arg, RUSAGE_THREAD, &begin);
	return NULL;
}

static void each_thread_adds_its_own(void **state)
{
	struct witness w;
	pthread_t thread[2];

	(void)state;
	witness_clear(&w);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, thread_main, &w), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	/* A thread that loses its CPU on its way to sleep may find its time over. */
	assert_true(w.voluntary > SLEEPS + SLEEPS / 2 && w.voluntary < 4 * SLEEPS);
	assert_true(w.minor_faults >= 2 * PAGES && w.minor_faults < 4 * PAGES);
}

/* --- this machine --- */

static unsigned first_cpu(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			return cpu;
	fail();
	return 0;
}

static void this_machine_is_read(void **state)
{
	struct seating seating = { .patcher = first_cpu(), .executors = 0 };
	struct witness_mark before, after;
	struct witness w;
	double load = load_now();

	(void)state;
	witness_clear(&w);
	witness_mark(&seating, &before);
	clock_rate();
	witness_mark(&seating, &after);
	fill_between(&w, &seating, &before, &after, 1);
	if (before.interrupts != WITNESS_UNKNOWN)
		assert_true(after.interrupts >= before.interrupts);
	if (access("/proc/loadavg", R_OK) == 0)
		assert_true(load >= 1);
	if (access("/proc/stat", R_OK) == 0)
		assert_true(w.steal >= 0);
}

/* No x86 runs an order of magnitude ahead of its TSC; emulated ones are far behind. */
static void the_clock_rate_is_plausible(void **state)
{
	double rate = clock_rate();

	(void)state;
	assert_true(rate > 0.001 && rate < 10);
}

/* On any machine: as many executors as there are CPUs, besides the patcher. */
static void run_cell(struct cell *cell, struct cell_result *result)
{
	struct run_options options = { 0 };
	int foreign;

	assert_int_equal(topology_open(&options.topology, &foreign), 0);
	cell->placement = PLACEMENT_OVERSUBSCRIBED;
	cell->executors = (unsigned)hwloc_get_nbobjs_by_type(options.topology, HWLOC_OBJ_PU);
	cell->seed = 1;
	assert_int_equal(cell_run(cell, &options, result), 0);
	hwloc_topology_destroy(options.topology);
}

static void a_cell_fills_in_its_witness(void **state)
{
	struct cell_result result;
	const struct witness *w = &result.witness;
	struct cell cell;

	(void)state;
	cell_defaults(&cell);
	cell.toggles = 20000;
	cell.seconds = 0.2;
	run_cell(&cell, &result);
	assert_string_equal(outcome_name(result.outcome), "done");
	assert_true(w->clock[0] > 0 && w->clock[1] > 0);
	assert_true(w->steal >= 0 && w->load >= 1);
	/* One CPU alone knows its offset to itself. */
	if (cell.executors > 1) {
		assert_true(w->offset_error != WITNESS_UNKNOWN && w->offset_error > 0);
		assert_true(w->error_after != WITNESS_UNKNOWN && w->error_after > 0);
	}
	/* Patcher and executors had to take turns. */
	assert_true(w->voluntary + w->involuntary > 0);
	assert_true(w->involuntary != WITNESS_UNKNOWN && w->minor_faults != WITNESS_UNKNOWN);
}

/* Far at either end is far. Broken: by the beginning alone the third would be near. */
static void distance_is_of_both_ends(void **state)
{
	static const struct {
		uint64_t before, after;
		enum distance whole, at_end;
	} cases[] = {
		{ 150, 299, DISTANCE_NEAR, DISTANCE_NEAR },
		{ 300, 150, DISTANCE_FAR, DISTANCE_NEAR },
		{ 150, 300, DISTANCE_FAR, DISTANCE_FAR },
		{ 150, WITNESS_UNKNOWN, DISTANCE_NEAR, DISTANCES },
		{ 400, WITNESS_UNKNOWN, DISTANCE_FAR, DISTANCES },
		{ 0, 0, DISTANCES, DISTANCES },
		{ WITNESS_UNKNOWN, WITNESS_UNKNOWN, DISTANCES, DISTANCES },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct witness w = { .offset_error = cases[i].before,
				     .error_after = cases[i].after };

		assert_int_equal(witness_distance(&w), cases[i].whole);
		assert_int_equal(witness_distance_after(&w), cases[i].at_end);
	}
}

static void threads_that_died_leave_no_counts(void **state)
{
	struct cell_result result;
	const struct witness *w = &result.witness;
	struct cell cell;

	(void)state;
	cell_defaults(&cell);
	cell.protocol = PROTOCOL_NO_INT3;
	cell.oracle = ORACLE_CRASH;
	cell.waits.first = 2000000;
	cell.toggles = 100000;
	cell.seconds = 20;
	run_cell(&cell, &result);
	assert_string_equal(outcome_name(result.outcome), "crash");
	assert_int_equal(w->involuntary, WITNESS_UNKNOWN);
	assert_true(w->clock[0] > 0 && w->clock[1] < 0);
	assert_true(w->steal >= 0 && w->load >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_interrupts_are_added_up),
		cmocka_unit_test(an_offline_cpu_shifts_the_columns),
		cmocka_unit_test(what_belongs_to_no_cpu_is_left_out),
		cmocka_unit_test(words_are_no_counts),
		cmocka_unit_test(two_hundred_cpus_have_long_lines),
		cmocka_unit_test(garbage_tells_nothing_of_interrupts),
		cmocka_unit_test(recorded_steal_is_of_these_cpus),
		cmocka_unit_test(other_lines_tell_nothing_of_steal),
		cmocka_unit_test(the_load_is_what_is_runnable_now),
		cmocka_unit_test(a_count_is_one_number),
		cmocka_unit_test(throttling_is_added_over_the_cpus),
		cmocka_unit_test(smis_are_read_from_the_register),
		cmocka_unit_test(a_witness_is_the_difference_of_two_marks),
		cmocka_unit_test(what_was_not_read_twice_is_unknown),
		cmocka_unit_test(a_cleared_witness_knows_nothing),
		cmocka_unit_test(steps_are_kept_and_jumps_counted),
		cmocka_unit_test(each_thread_adds_its_own),
		cmocka_unit_test(this_machine_is_read),
		cmocka_unit_test(the_clock_rate_is_plausible),
		cmocka_unit_test(a_cell_fills_in_its_witness),
		cmocka_unit_test(distance_is_of_both_ends),
		cmocka_unit_test(threads_that_died_leave_no_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
