/* SPDX-License-Identifier: MIT */
/* Every provoker does what its name says, where it says, and nothing is left of it afterwards. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "stress/placement/placement.h"
#include "stress/run/provoker.c"
#include "stress/tests/provoker_place.h"
#include "stress/tests/synthetic.h"

#define PATIENCE 20000 /* looks, 1 ms apart: for what must come, however slow the machine */

static unsigned threads_now(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned threads = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Threads: %u", &threads) == 1)
			break;
	if (file)
		fclose(file);
	return threads;
}

/* --- cold lines ------------------------------------------------------------------- */

static uint8_t *forbidden; /* touching it is what is expected */

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	_exit((uint8_t *)info->si_addr == forbidden ? 1 : 2);
}

/* clflush of a page that may not be read faults: so the fault tells which line was meant. */
static int flush_without(unsigned provokers, uint8_t *page, uint8_t *line)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	struct provokers *p = start(provokers);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		forbidden = line;
		sigaction(SIGSEGV, &action, NULL);
		mprotect(page, PAGE, PROT_NONE);
		provoke_toggle(p);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	provokers_stop(p);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void the_right_line_is_flushed(void **state)
{
	uint8_t *boundary = site + 3; /* the default split, on a page boundary here */

	(void)state;
	assert_int_equal((uintptr_t)boundary % PAGE, 0);
	assert_int_equal(flush_without(1u << PROVOKER_COLD_BACK, boundary, boundary), 1);
	assert_int_equal(flush_without(1u << PROVOKER_COLD_BACK, boundary - PAGE, NULL), 0);
	assert_int_equal(flush_without(1u << PROVOKER_COLD_FRONT, boundary - PAGE, site), 1);
	assert_int_equal(flush_without(1u << PROVOKER_COLD_FRONT, boundary, NULL), 0);
	assert_int_equal(flush_without(0, boundary, NULL), 0);
}

static uint64_t flushes_of(const struct provokers *p)
{
	return provokers_done(p, PROVOKER_COLD_BACK) + provokers_done(p, PROVOKER_COLD_FRONT);
}

static void every_toggle_is_preceded_by_a_flush(void **state)
{
	struct provokers *p = start(1u << PROVOKER_COLD_BACK);

	(void)state;
	assert_int_equal(flushes_of(p), 0);
	for (unsigned i = 0; i < 10; i++)
		provoke_toggle(p);
	assert_int_equal(flushes_of(p), 10);
	provokers_stop(p);
	p = start(1u << PROVOKER_COLD_BACK | 1u << PROVOKER_COLD_FRONT);
	provoke_toggle(p);
	assert_int_equal(flushes_of(p), 2);
	provokers_stop(p);
}

/* --- threads ----------------------------------------------------------------------- */

static long minor_faults(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_minflt;
}

/* A dropped page that is touched again is a fault, and that is counted by the kernel. */
static void shootdown_changes_pages(void **state)
{
	long before = minor_faults();
	unsigned threads = threads_now();
	struct provokers *p = start(1u << PROVOKER_SHOOTDOWN);
	unsigned looks = 0;

	(void)state;
	assert_int_equal(threads_now(), threads + 1);
	while (provokers_done(p, PROVOKER_SHOOTDOWN) < 1000 && looks++ < PATIENCE)
		usleep(1000);
	assert_true(provokers_done(p, PROVOKER_SHOOTDOWN) >= 1000);
	/* Two changes a time, of which one costs a fault. */
	assert_true(minor_faults() - before >= 400);
	provokers_stop(p);
	/* A thread that was joined may still be listed for a moment. */
	for (looks = 0; threads_now() != threads && looks < PATIENCE; looks++)
		usleep(1000);
	assert_int_equal(threads_now(), threads);
}

static void bandwidth_outruns_the_caches(void **state)
{
	long before = minor_faults();
	struct provokers *p = start(1u << PROVOKER_BANDWIDTH);
	hwloc_obj_t l3 = hwloc_get_obj_by_type(how.topology, HWLOC_OBJ_L3CACHE, 0);
	uint64_t enough = l3 ? 2 * l3->attr->cache.size : 64u << 20;
	unsigned looks = 0;

	(void)state;
	/* More than once around, and no smaller a buffer than that: its pages were all new. */
	while (provokers_done(p, PROVOKER_BANDWIDTH) < 3 * enough && looks++ < PATIENCE)
		usleep(1000);
	assert_true(provokers_done(p, PROVOKER_BANDWIDTH) >= 3 * enough);
	provokers_stop(p);
	/* Huge pages, if the kernel gave any. */
	assert_true(minor_faults() - before >= (long)(enough >> 21));
}

static bool runs_on_a_seat(unsigned cpu, const struct seating *seating)
{
	for (unsigned i = 0; i < seating->executors; i++)
		if (seating->executor[i] == cpu)
			return true;
	return cpu == seating->patcher;
}

/* Where each of our threads but the first may run, by the kernel's own account. */
static unsigned cpu_of_the_other_thread(void)
{
	char command[128];
	unsigned cpu = ~0u;
	FILE *list;

	snprintf(command, sizeof(command),
		 "for t in /proc/%d/task/*; do [ ${t##*/} = %d ] || "
		 "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' $t/status; done",
		 (int)getpid(), (int)getpid());
	list = popen(command, "r");
	assert_non_null(list);
	assert_int_equal(fscanf(list, "%u", &cpu), 1);
	assert_int_equal(fgetc(list), '\n'); /* one CPU, no list of them */
	pclose(list);
	return cpu;
}

/* Beside the seats if there is room, else with the patcher: never with an executor. */
static void threads_keep_off_the_executors(void **state)
{
	struct provokers *p = start(1u << PROVOKER_SHOOTDOWN);
	struct seating seating;
	struct cell cell;
	unsigned cpu = p->cpu;

	(void)state;
	seat(&cell, &seating, 0);
	assert_int_equal(cpu_of_the_other_thread(), cpu);
	if (hwloc_get_nbobjs_by_type(how.topology, HWLOC_OBJ_PU) > 2)
		assert_false(runs_on_a_seat(cpu, &seating));
	else
		assert_int_equal(cpu, seating.patcher);
	provokers_stop(p);
}

/* --- load -------------------------------------------------------------------------- */

static pid_t first_child(void)
{
	char path[64];
	int pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
	file = fopen(path, "r");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &pid) != 1)
		pid = 0;
	fclose(file);
	return pid;
}

static bool is_bound_to(pid_t pid, unsigned cpu)
{
	cpu_set_t set;

	if (sched_getaffinity(pid, sizeof(set), &set) < 0)
		return false;
	return CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set);
}

/* To any single CPU: no process is forked like that where there are several. */
static bool is_bound(pid_t pid)
{
	cpu_set_t set;

	return sched_getaffinity(pid, sizeof(set), &set) == 0 && CPU_COUNT(&set) == 1;
}

static void load_is_a_process_on_the_executors_cpu(void **state)
{
	struct provokers *p;
	struct seating seating;
	struct cell cell;
	unsigned looks = 0;
	pid_t pid;

	(void)state;
	if (first_child() < 0)
		skip();
	assert_int_equal(first_child(), 0);
	seat(&cell, &seating, 0);
	p = start(1u << PROVOKER_LOAD);
	assert_int_equal(provokers_done(p, PROVOKER_LOAD), 1);
	pid = first_child();
	assert_true(pid > 0);
	while (!is_bound_to(pid, seating.executor[0]) && looks++ < PATIENCE)
		usleep(1000);
	assert_true(is_bound_to(pid, seating.executor[0]));
	assert_int_equal(kill(pid, 0), 0);
	provokers_stop(p);
	assert_int_equal(first_child(), 0);
}

/* Several executors on one CPU share the process that takes it from them. */
static void one_load_for_each_cpu(void **state)
{
	struct provokers *p;
	struct seating seating;
	struct cell cell;

	(void)state;
	seat(&cell, &seating, 1u << PROVOKER_LOAD);
	seating.executors = 3;
	seating.executor[1] = seating.executor[2] = seating.executor[0];
	assert_int_equal(provokers_start(&p, &cell, how.topology, &seating, site), 0);
	assert_int_equal(provokers_done(p, PROVOKER_LOAD), 1);
	provokers_stop(p);
}

/* The program that started it may be killed: it must not run on for ever. */
static void load_dies_with_its_cell(void **state)
{
	int ends[2], status;
	pid_t pid, load = 0;

	(void)state;
	if (first_child() < 0 || alone)
		skip();
	/* Then what is left behind becomes our child, and its end can be waited for. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		struct provokers *p = start(1u << PROVOKER_LOAD);

		load = first_child();
		/* Then it has made its arrangements. */
		for (unsigned i = 0; i < PATIENCE && !is_bound(load); i++)
			usleep(1000);
		if (!p || write(ends[1], &load, sizeof(load)) != sizeof(load))
			_exit(1);
		raise(SIGKILL);
	}
	assert_int_equal(read(ends[0], &load, sizeof(load)), sizeof(load));
	close(ends[0]);
	close(ends[1]);
	assert_true(load > 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(waitpid(load, &status, 0), load);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* The parent of a cell waits for the end of a pipe that its child holds open. */
static void load_keeps_no_files_open(void **state)
{
	struct pollfd fd = { .events = POLLIN };
	struct provokers *p;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	p = start(1u << PROVOKER_LOAD);
	close(ends[1]);
	fd.fd = ends[0];
	assert_int_equal(poll(&fd, 1, PATIENCE), 1);
	assert_true(fd.revents & POLLHUP);
	close(ends[0]);
	provokers_stop(p);
}

/* --- sibling and wide --------------------------------------------------------------- */

static int sibling_possible(const char *description, unsigned patcher, unsigned executor)
{
	hwloc_topology_t topology = synthetic(description);
	struct seating seating = { .patcher = patcher, .executors = 1, .executor = { executor } };
	char reason[160] = "";
	int ret = provokers_possible(1u << PROVOKER_SIBLING, topology, &seating, reason,
				     sizeof(reason));

	assert_true((ret < 0) == (reason[0] != '\0'));
	hwloc_topology_destroy(topology);
	return ret;
}

static void a_sibling_must_be_there_and_free(void **state)
{
	(void)state;
	assert_int_equal(sibling_possible("core:2 pu:2", 0, 2), 0);
	assert_int_equal(sibling_possible("core:2 pu:2", 0, 1), -ENOTSUP);
	assert_int_equal(sibling_possible("core:2 pu:1", 0, 1), -ENOTSUP);
	assert_int_equal(sibling_possible("core:1 pu:4", 0, 1), 0);
}

static void what_is_not_possible_is_not_started(void **state)
{
	hwloc_topology_t topology = synthetic("core:2 pu:1");
	struct seating seating = { .patcher = 0, .executors = 1, .executor = { 1 } };
	unsigned threads = threads_now();
	struct provokers *p;
	struct cell cell;

	(void)state;
	cell_defaults(&cell);
	cell.provokers = 1u << PROVOKER_SIBLING | 1u << PROVOKER_SHOOTDOWN | 1u << PROVOKER_LOAD;
	assert_int_equal(provokers_start(&p, &cell, topology, &seating, site), -ENOTSUP);
	assert_null(p);
	assert_int_equal(threads_now(), threads);
	assert_true(first_child() <= 0);
	hwloc_topology_destroy(topology);
}

static void sibling_is_kept_busy(void **state)
{
	struct seating seating;
	struct provokers *p;
	struct cell cell;
	unsigned looks = 0;
	char reason[160];

	(void)state;
	seat(&cell, &seating, 1u << PROVOKER_SIBLING);
	if (provokers_possible(cell.provokers, how.topology, &seating, reason, sizeof(reason)) <
	    0) {
		print_message("# %s, skipped\n", reason);
		skip();
	}
	p = start(1u << PROVOKER_SIBLING);
	while (provokers_done(p, PROVOKER_SIBLING) < 100 && looks++ < PATIENCE)
		usleep(1000);
	assert_true(provokers_done(p, PROVOKER_SIBLING) >= 100);
	provokers_stop(p);
}

static void wide_work_is_done_by_the_round(void **state)
{
	struct seating seating;
	struct provokers *p;
	struct cell cell;
	char reason[160];

	(void)state;
	seat(&cell, &seating, 1u << PROVOKER_WIDE);
	if (provokers_possible(cell.provokers, how.topology, &seating, reason, sizeof(reason)) <
	    0) {
		print_message("# %s, skipped\n", reason);
		skip();
	}
	p = start(1u << PROVOKER_WIDE);
	for (unsigned i = 0; i < 5; i++)
		provoke_round(p);
	assert_int_equal(provokers_done(p, PROVOKER_WIDE), 5);
	provokers_stop(p);
	p = start(0);
	provoke_round(p);
	assert_int_equal(provokers_done(p, PROVOKER_WIDE), 0);
	provokers_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_line_is_flushed),
		cmocka_unit_test(every_toggle_is_preceded_by_a_flush),
		cmocka_unit_test(shootdown_changes_pages),
		cmocka_unit_test(bandwidth_outruns_the_caches),
		cmocka_unit_test(threads_keep_off_the_executors),
		cmocka_unit_test(load_is_a_process_on_the_executors_cpu),
		cmocka_unit_test(one_load_for_each_cpu),
		cmocka_unit_test(load_dies_with_its_cell),
		cmocka_unit_test(load_keeps_no_files_open),
		cmocka_unit_test(a_sibling_must_be_there_and_free),
		cmocka_unit_test(what_is_not_possible_is_not_started),
		cmocka_unit_test(sibling_is_kept_busy),
		cmocka_unit_test(wide_work_is_done_by_the_round),
	};

	return open_place() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
