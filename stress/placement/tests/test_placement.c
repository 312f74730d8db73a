/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "stress/placement/placement.h"
#include "stress/tests/synthetic.h"

#define SMT8   "pack:2 l3:1 l2:4 core:1 pu:2"
#define REASON 128

static hwloc_bitmap_t list(const char *cpus)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	assert_non_null(set);
	assert_int_equal(hwloc_bitmap_list_sscanf(set, cpus), 0);
	return set;
}

static void restrict_to(hwloc_topology_t t, const char *cpus)
{
	hwloc_bitmap_t set = list(cpus);

	assert_int_equal(hwloc_topology_restrict(t, set, 0), 0);
	hwloc_bitmap_free(set);
}

static unsigned most(hwloc_topology_t t, enum placement p)
{
	char reason[REASON] = "untouched";
	unsigned n = placement_max(t, p, reason, sizeof(reason));

	assert_int_equal(n == 0, reason[0] != '\0');
	return n;
}

/* The relation by the smallest object around both CPUs. */
static enum placement relation(hwloc_topology_t t, unsigned a, unsigned b)
{
	hwloc_obj_t around = hwloc_get_common_ancestor_obj(t, hwloc_get_pu_obj_by_os_index(t, a),
							   hwloc_get_pu_obj_by_os_index(t, b));

	switch (around->type) {
	case HWLOC_OBJ_CORE:
		return PLACEMENT_SAME_CORE;
	case HWLOC_OBJ_L2CACHE:
		return PLACEMENT_SAME_L2;
	case HWLOC_OBJ_L3CACHE:
		return PLACEMENT_SAME_L3;
	case HWLOC_OBJ_PACKAGE:
		return PLACEMENT_SAME_SOCKET;
	default:
		assert_int_equal(around->type, HWLOC_OBJ_MACHINE);
		return hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE) > 0 ? PLACEMENT_CROSS_SOCKET
									  : PLACEMENT_SAME_SOCKET;
	}
}

static unsigned count_related(hwloc_topology_t t, enum placement p, unsigned patcher)
{
	unsigned n = 0, cpu;

	hwloc_bitmap_foreach_begin(cpu, hwloc_topology_get_topology_cpuset(t))
	{
		n += cpu != patcher && (p == PLACEMENT_SPREAD || relation(t, patcher, cpu) == p);
	}
	hwloc_bitmap_foreach_end();
	return n;
}

/* Each executor on a CPU of its own, not the patcher's, in the right relation. */
static void assert_seated(hwloc_topology_t t, const struct seating *s, enum placement p, unsigned n)
{
	hwloc_const_cpuset_t cpus = hwloc_topology_get_topology_cpuset(t);
	hwloc_bitmap_t taken = hwloc_bitmap_alloc();

	assert_int_equal(s->placement, p);
	assert_int_equal(s->executors, n);
	assert_true(hwloc_bitmap_isset(cpus, s->patcher));
	for (unsigned i = 0; i < n; i++) {
		assert_true(hwloc_bitmap_isset(cpus, s->executor[i]));
		assert_false(hwloc_bitmap_isset(taken, s->executor[i]));
		assert_int_not_equal(s->executor[i], s->patcher);
		hwloc_bitmap_set(taken, s->executor[i]);
		if (p <= PLACEMENT_CROSS_SOCKET)
			assert_int_equal(relation(t, s->patcher, s->executor[i]), p);
	}
	hwloc_bitmap_free(taken);
}

static void assert_lowest_patcher(hwloc_topology_t t, const struct seating *s)
{
	unsigned cpu;

	hwloc_bitmap_foreach_begin(cpu, hwloc_topology_get_topology_cpuset(t))
	{
		if (cpu < s->patcher)
			assert_true(count_related(t, s->placement, cpu) < s->executors);
	}
	hwloc_bitmap_foreach_end();
}

/* In as many turns as there are CPUs, each that has so many executors is the patcher's. */
static void check_turns(hwloc_topology_t t, enum placement p, unsigned n)
{
	hwloc_const_cpuset_t cpus = hwloc_topology_get_topology_cpuset(t);
	hwloc_bitmap_t patchers = hwloc_bitmap_alloc();
	struct seating s;
	char reason[REASON];
	unsigned cpu;

	for (int turn = 0; turn < hwloc_bitmap_weight(cpus); turn++) {
		assert_int_equal(placement_seat(t, p, n, (unsigned)turn, &s, reason, REASON), 0);
		if (p < PLACEMENT_OVERSUBSCRIBED)
			assert_seated(t, &s, p, n);
		hwloc_bitmap_set(patchers, s.patcher);
	}
	hwloc_bitmap_foreach_begin(cpu, cpus)
	{
		assert_int_equal(hwloc_bitmap_isset(patchers, cpu),
				 p == PLACEMENT_OVERSUBSCRIBED || count_related(t, p, cpu) >= n);
	}
	hwloc_bitmap_foreach_end();
	hwloc_bitmap_free(patchers);
}

static void check_placement(hwloc_topology_t t, enum placement p, unsigned expected)
{
	const unsigned numbers[] = { 1, (expected + 1) / 2, expected };
	struct seating s, again;
	char reason[REASON] = "";

	assert_int_equal(most(t, p), expected);
	for (size_t i = 0; expected && i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_int_equal(placement_seat(t, p, numbers[i], 0, &s, reason, sizeof(reason)),
				 0);
		assert_seated(t, &s, p, numbers[i]);
		assert_lowest_patcher(t, &s);
		assert_int_equal(
			placement_seat(t, p, numbers[i], 0, &again, reason, sizeof(reason)), 0);
		assert_memory_equal(&s, &again, sizeof(s));
		check_turns(t, p, numbers[i]);
	}
	assert_int_equal(placement_seat(t, p, expected + 1, 0, &s, reason, sizeof(reason)),
			 -ENOENT);
	assert_true(reason[0] != '\0');
}

/* Expected: how many executors each relation seats, and spread. */
struct machine {
	const char *description;
	const char *cpuset; /* NULL: all of it */
	unsigned core, l2, l3, socket, cross, spread;
};

static const struct machine machines[] = {
	{ "pu:1", NULL, 0, 0, 0, 0, 0, 0 },
	{ "pu:4", NULL, 0, 0, 0, 3, 0, 3 },
	{ "pack:1 core:2 pu:1", NULL, 0, 0, 0, 1, 0, 1 },
	{ "pack:1 l3:1 l2:2 core:1 pu:1", NULL, 0, 0, 1, 0, 0, 1 },
	/* L2 shared by four cores, no SMT; no L2 known; no L3 known */
	{ "pack:1 l3:1 l2:2 core:4 pu:1", NULL, 0, 3, 4, 0, 0, 7 },
	{ "pack:1 l3:1 core:4 pu:2", NULL, 1, 0, 6, 0, 0, 7 },
	{ "pack:1 l2:4 core:1 pu:2", NULL, 1, 0, 0, 6, 0, 7 },
	/* two sockets of 100 CPUs with SMT */
	{ "pack:2 l3:1 l2:50 core:1 pu:2", NULL, 1, 0, 98, 0, 100, 199 },
	/* several L3 in a package */
	{ "pack:2 l3:4 l2:8 core:1 pu:2", NULL, 1, 0, 14, 48, 64, 127 },
	/* every vCPU a package; the same with one L3 around them all */
	{ "pack:4 core:1 pu:1", NULL, 0, 0, 0, 0, 3, 3 },
	{ "l3:1 pack:4 core:1 pu:1", NULL, 0, 0, 3, 0, 0, 3 },
	/* threads numbered as Linux does: first all cores, then all siblings */
	{ "pack:2 l3:1 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)", NULL, 1, 0, 2, 0, 4, 7 },
	/* cpusets: one thread per core; two packages, one CPU each; uneven; one CPU */
	{ SMT8, "0,2,4,6", 0, 0, 3, 0, 0, 3 },
	{ SMT8, "3,12", 0, 0, 0, 0, 1, 1 },
	{ SMT8, "1,8-15", 1, 0, 6, 0, 8, 8 },
	{ SMT8, "5", 0, 0, 0, 0, 0, 0 },
};

static void every_relation_on_every_machine(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		const struct machine *m = &machines[i];
		hwloc_topology_t t = synthetic(m->description);

		if (m->cpuset)
			restrict_to(t, m->cpuset);
		check_placement(t, PLACEMENT_SAME_CORE, m->core);
		check_placement(t, PLACEMENT_SAME_L2, m->l2);
		check_placement(t, PLACEMENT_SAME_L3, m->l3);
		check_placement(t, PLACEMENT_SAME_SOCKET, m->socket);
		check_placement(t, PLACEMENT_CROSS_SOCKET, m->cross);
		check_placement(t, PLACEMENT_SPREAD, m->spread);
		assert_int_equal(most(t, PLACEMENT_KIND_UP), 0);
		assert_int_equal(most(t, PLACEMENT_KIND_DOWN), 0);
		hwloc_topology_destroy(t);
	}
}

/* Only CPU 8 and above have so many CPUs in the other package. */
static void the_lowest_patcher_that_allows_it(void **state)
{
	hwloc_topology_t t = synthetic(SMT8);
	char reason[REASON];
	struct seating s;

	(void)state;
	restrict_to(t, "1-5,8");
	assert_int_equal(placement_seat(t, PLACEMENT_CROSS_SOCKET, 1, 0, &s, reason, REASON), 0);
	assert_int_equal(s.patcher, 1);
	assert_int_equal(s.executor[0], 8);
	assert_int_equal(placement_seat(t, PLACEMENT_CROSS_SOCKET, 5, 0, &s, reason, REASON), 0);
	assert_int_equal(s.patcher, 8);
	assert_int_equal(placement_seat(t, PLACEMENT_SAME_CORE, 1, 0, &s, reason, REASON), 0);
	assert_int_equal(s.patcher, 2);
	hwloc_topology_destroy(t);
}

static void executors_share_cores_last(void **state)
{
	static const char *const numberings[] = {
		"pack:1 l3:1 core:4 pu:2",
		"pack:1 l3:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)",
	};
	char reason[REASON];
	struct seating s;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		hwloc_topology_t t = synthetic(numberings[i]);

		assert_int_equal(placement_seat(t, PLACEMENT_SAME_L3, 3, 0, &s, reason, REASON), 0);
		for (unsigned e = 0; e < 3; e++)
			assert_int_equal(relation(t, s.executor[e], s.executor[(e + 1) % 3]),
					 PLACEMENT_SAME_L3);
		hwloc_topology_destroy(t);
	}
}

static void a_few_spread_executors_reach_both_sockets(void **state)
{
	hwloc_topology_t t = synthetic(SMT8);
	char reason[REASON];
	struct seating s;

	(void)state;
	assert_int_equal(placement_seat(t, PLACEMENT_SPREAD, 2, 0, &s, reason, REASON), 0);
	assert_int_equal(relation(t, s.executor[0], s.executor[1]), PLACEMENT_CROSS_SOCKET);
	hwloc_topology_destroy(t);
}

static void oversubscribed_deals_round_robin(void **state)
{
	static const unsigned cpus[] = { 9, 12, 3, 9, 12, 3, 9 };
	hwloc_topology_t t = synthetic(SMT8);
	char reason[REASON];
	struct seating s;

	(void)state;
	restrict_to(t, "3,9,12");
	assert_int_equal(most(t, PLACEMENT_OVERSUBSCRIBED), PLACEMENT_EXECUTORS_MAX);
	assert_int_equal(placement_seat(t, PLACEMENT_OVERSUBSCRIBED, 7, 0, &s, reason, REASON), 0);
	assert_int_equal(s.placement, PLACEMENT_OVERSUBSCRIBED);
	assert_int_equal(s.patcher, 3);
	assert_int_equal(s.executors, 7);
	assert_memory_equal(s.executor, cpus, sizeof(cpus));
	check_turns(t, PLACEMENT_OVERSUBSCRIBED, 7);
	assert_int_equal(placement_seat(t, PLACEMENT_OVERSUBSCRIBED, 7, 4, &s, reason, REASON), 0);
	assert_int_equal(s.patcher, 9);
	assert_memory_equal(s.executor, cpus + 1, 6 * sizeof(cpus[0]));

	assert_int_equal(placement_seat(t, PLACEMENT_OVERSUBSCRIBED, 3, 0, &s, reason, REASON), 0);
	assert_int_equal(placement_seat(t, PLACEMENT_OVERSUBSCRIBED, 2, 0, &s, reason, REASON),
			 -ENOENT);
	assert_true(reason[0] != '\0');
	hwloc_topology_destroy(t);
}

static void one_cpu_can_only_be_oversubscribed(void **state)
{
	hwloc_topology_t t = synthetic("pu:1");
	char reason[REASON];
	struct seating s;

	(void)state;
	for (int p = 0; p < PLACEMENT_OVERSUBSCRIBED; p++)
		assert_int_equal(most(t, (enum placement)p), 0);
	assert_int_equal(placement_seat(t, PLACEMENT_OVERSUBSCRIBED, 2, 0, &s, reason, REASON), 0);
	assert_int_equal(s.patcher, 0);
	assert_int_equal(s.executor[0], 0);
	assert_int_equal(s.executor[1], 0);
	hwloc_topology_destroy(t);
}

static void a_huge_machine_is_clamped(void **state)
{
	hwloc_topology_t t = synthetic("pack:1 core:1026 pu:1");
	static struct seating s;
	char reason[REASON];

	(void)state;
	assert_int_equal(most(t, PLACEMENT_SPREAD), PLACEMENT_EXECUTORS_MAX);
	assert_int_equal(placement_seat(t, PLACEMENT_SPREAD, 1024, 0, &s, reason, REASON), 0);
	assert_seated(t, &s, PLACEMENT_SPREAD, 1024);
	assert_int_equal(placement_seat(t, PLACEMENT_SPREAD, 1025, 0, &s, reason, REASON), -ENOENT);
	assert_int_equal(most(t, PLACEMENT_OVERSUBSCRIBED), 0);
	assert_int_equal(placement_seat(t, PLACEMENT_OVERSUBSCRIBED, 1024, 0, &s, reason, REASON),
			 -ENOENT);
	hwloc_topology_destroy(t);
}

static void add_kind(hwloc_topology_t t, const char *cpus, int efficiency)
{
	hwloc_bitmap_t set = list(cpus);

	assert_int_equal(hwloc_cpukinds_register(t, set, efficiency, 0, NULL, 0), 0);
	hwloc_bitmap_free(set);
}

static void assert_kinds(hwloc_topology_t t, enum placement p, const char *from, const char *to)
{
	hwloc_bitmap_t patchers = list(from), executors = list(to);
	unsigned n = (unsigned)hwloc_bitmap_weight(executors);
	char reason[REASON];
	struct seating s;

	assert_int_equal(most(t, p), n);
	assert_int_equal(placement_seat(t, p, n, 0, &s, reason, sizeof(reason)), 0);
	assert_seated(t, &s, p, n);
	assert_int_equal(s.patcher, hwloc_bitmap_first(patchers));
	for (unsigned i = 0; i < n; i++)
		assert_true(hwloc_bitmap_isset(executors, s.executor[i]));
	assert_int_equal(placement_seat(t, p, n + 1, 0, &s, reason, sizeof(reason)), -ENOENT);
	hwloc_bitmap_free(patchers);
	hwloc_bitmap_free(executors);
}

static void hybrid_kinds_are_told_apart(void **state)
{
	hwloc_topology_t t = synthetic("pack:1 l3:1 core:12 pu:1");

	(void)state;
	add_kind(t, "0-5", 30);
	assert_int_equal(most(t, PLACEMENT_KIND_UP), 0);
	add_kind(t, "6-9", 20);
	assert_kinds(t, PLACEMENT_KIND_UP, "6-9", "0-5");
	assert_kinds(t, PLACEMENT_KIND_DOWN, "0-5", "6-9");
	add_kind(t, "10-11", 10);
	assert_kinds(t, PLACEMENT_KIND_UP, "10-11", "0-5");
	assert_kinds(t, PLACEMENT_KIND_DOWN, "0-5", "10-11");
	restrict_to(t, "3-7");
	assert_kinds(t, PLACEMENT_KIND_UP, "6-7", "3-5");
	restrict_to(t, "3-5");
	assert_int_equal(most(t, PLACEMENT_KIND_UP), 0);
	assert_int_equal(most(t, PLACEMENT_KIND_DOWN), 0);
	hwloc_topology_destroy(t);
}

static void unranked_kinds_are_a_gap(void **state)
{
	hwloc_topology_t t = synthetic("pack:1 core:4 pu:1");
	char reason[REASON];
	struct seating s;

	(void)state;
	add_kind(t, "0-1", -1);
	add_kind(t, "2-3", -1);
	assert_int_equal(hwloc_cpukinds_get_nr(t, 0), 2);
	assert_int_equal(most(t, PLACEMENT_KIND_UP), 0);
	assert_int_equal(placement_seat(t, PLACEMENT_KIND_DOWN, 1, 0, &s, reason, REASON), -ENOENT);
	assert_true(reason[0] != '\0');
	hwloc_topology_destroy(t);
}

static void nonsense_is_refused(void **state)
{
	hwloc_topology_t t = synthetic(SMT8);
	char reason[REASON] = "";
	struct seating s;

	(void)state;
	assert_int_equal(placement_max(t, PLACEMENT_COUNT, reason, REASON), 0);
	assert_true(reason[0] != '\0');
	assert_int_equal(placement_seat(t, PLACEMENT_COUNT, 1, 0, &s, reason, REASON), -EINVAL);
	assert_int_equal(placement_seat(t, (enum placement) - 1, 1, 0, &s, reason, REASON),
			 -EINVAL);
	assert_int_equal(placement_seat(t, PLACEMENT_SPREAD, 0, 0, &s, reason, REASON), -EINVAL);
	assert_true(reason[0] != '\0');
	hwloc_topology_destroy(t);
}

static void names_are_parsed(void **state)
{
	(void)state;
	for (int p = 0; p < PLACEMENT_COUNT; p++)
		assert_int_equal(placement_parse(placement_name((enum placement)p)), p);
	assert_string_equal(placement_name(PLACEMENT_CROSS_SOCKET), "cross-socket");
	assert_string_equal(placement_name(PLACEMENT_COUNT), "unknown");
	assert_int_equal(placement_parse("same-l"), -EINVAL);
	assert_int_equal(placement_parse("same-l22"), -EINVAL);
	assert_int_equal(placement_parse("unknown"), -EINVAL);
	assert_int_equal(placement_parse(""), -EINVAL);
	assert_int_equal(placement_parse(NULL), -EINVAL);
}

static int forget_environment(void **state)
{
	(void)state;
	return unsetenv("HWLOC_SYNTHETIC") || unsetenv("HWLOC_XMLFILE") ||
	       unsetenv("HWLOC_THISSYSTEM");
}

static void assert_foreign(unsigned cpus)
{
	hwloc_topology_t t;
	int foreign = 0;

	assert_int_equal(topology_open(&t, &foreign), 0);
	assert_true(foreign);
	assert_int_equal(hwloc_bitmap_weight(hwloc_topology_get_topology_cpuset(t)), cpus);
	assert_int_equal(pin_this_thread(t, 0), -ENOTSUP);
	hwloc_topology_destroy(t);
}

static void a_described_machine_is_foreign(void **state)
{
	char path[] = "/tmp/placement-XXXXXX";
	hwloc_topology_t t = synthetic("pack:3 core:5 pu:1");
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	setenv("HWLOC_SYNTHETIC", SMT8, 1);
	assert_foreign(16);
	unsetenv("HWLOC_SYNTHETIC");
	assert_int_equal(hwloc_topology_export_xml(t, path, 0), 0);
	setenv("HWLOC_XMLFILE", path, 1);
	assert_foreign(15);
	unlink(path);
	hwloc_topology_destroy(t);
}

static void a_bad_description_is_an_error(void **state)
{
	hwloc_topology_t t;
	int foreign;

	(void)state;
	setenv("HWLOC_SYNTHETIC", "nonsense", 1);
	assert_int_equal(topology_open(&t, &foreign), -EINVAL);
	unsetenv("HWLOC_SYNTHETIC");
	setenv("HWLOC_XMLFILE", "/nonexistent/machine.xml", 1);
	assert_int_equal(topology_open(&t, &foreign), -EINVAL);
	setenv("HWLOC_XMLFILE", "", 1);
	assert_int_equal(topology_open(&t, &foreign), 0);
	assert_false(foreign);
	hwloc_topology_destroy(t);
}

static int last_usable_cpu(void)
{
	cpu_set_t set;
	int cpu = CPU_SETSIZE - 1;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (cpu >= 0 && !CPU_ISSET(cpu, &set))
		cpu--;
	return cpu;
}

static int bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* What a process bound to these CPUs sees, as a bit mask. */
static int see(void)
{
	hwloc_topology_t t;
	int foreign, seen;

	if (topology_open(&t, &foreign) < 0 || foreign)
		return 0xff;
	seen = (int)hwloc_bitmap_to_ulong(hwloc_topology_get_topology_cpuset(t)) & 0xff;
	hwloc_topology_destroy(t);
	return seen;
}

static int in_child(int (*look)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(look());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int see_bound_to_the_last(void)
{
	return bind_to(last_usable_cpu()) < 0 ? 0xff : see();
}

static void the_binding_of_the_process_counts(void **state)
{
	int cpu = last_usable_cpu();

	(void)state;
	if (cpu == 0 || cpu > 6)
		skip();
	assert_int_equal(in_child(see_bound_to_the_last), 1 << cpu);
}

static pthread_barrier_t together;

static void *bound_to_1(void *arg)
{
	int *ret = arg;

	*ret = bind_to(1);
	pthread_barrier_wait(&together);
	pthread_barrier_wait(&together);
	return NULL;
}

static int see_with_threads_apart(void)
{
	pthread_t thread;
	int seen, ret;

	pthread_barrier_init(&together, NULL, 2);
	if (bind_to(0) < 0 || pthread_create(&thread, NULL, bound_to_1, &ret) != 0)
		return 0xff;
	pthread_barrier_wait(&together);
	seen = see();
	pthread_barrier_wait(&together);
	pthread_join(thread, NULL);
	return ret < 0 ? 0xff : seen;
}

/* It takes a third CPU to see a difference. */
static void threads_bound_apart_count_together(void **state)
{
	cpu_set_t set;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	if (CPU_COUNT(&set) < 3 || !CPU_ISSET(0, &set) || !CPU_ISSET(1, &set))
		skip();
	assert_int_equal(in_child(see_with_threads_apart), 3);
}

static void threads_are_pinned(void **state)
{
	hwloc_topology_t t;
	cpu_set_t before;
	int foreign, cpu, last = last_usable_cpu();

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(topology_open(&t, &foreign), 0);
	assert_false(foreign);
	hwloc_bitmap_foreach_begin(cpu, hwloc_topology_get_topology_cpuset(t))
	{
		assert_int_equal(pin_this_thread(t, (unsigned)cpu), 0);
		assert_int_equal(sched_getcpu(), cpu);
	}
	hwloc_bitmap_foreach_end();
	assert_int_equal(pin_this_thread(t, 99999), -EINVAL);
	cpu = hwloc_bitmap_first(hwloc_topology_get_topology_cpuset(t));
	hwloc_topology_restrict(t, hwloc_get_pu_obj_by_os_index(t, (unsigned)cpu)->cpuset, 0);
	assert_int_equal(pin_this_thread(t, (unsigned)last), last == cpu ? 0 : -EINVAL);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	hwloc_topology_destroy(t);
}

static int sibling(const char *machine, unsigned patcher, unsigned executor)
{
	struct seating seating = { .patcher = patcher, .executors = 1, .executor = { executor } };
	hwloc_topology_t t = synthetic(machine);
	int cpu = placement_sibling(t, &seating);

	hwloc_topology_destroy(t);
	return cpu;
}

static void a_sibling_has_the_core_of_the_executor(void **state)
{
	(void)state;
	assert_int_equal(sibling(SMT8, 0, 2), 3);
	assert_int_equal(sibling("l3:2 core:2 pu:2", 1, 0), -ENOENT);
	assert_int_equal(sibling("l3:1 core:2 pu:1", 0, 1), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_relation_on_every_machine),
		cmocka_unit_test(the_lowest_patcher_that_allows_it),
		cmocka_unit_test(executors_share_cores_last),
		cmocka_unit_test(a_few_spread_executors_reach_both_sockets),
		cmocka_unit_test(oversubscribed_deals_round_robin),
		cmocka_unit_test(one_cpu_can_only_be_oversubscribed),
		cmocka_unit_test(a_huge_machine_is_clamped),
		cmocka_unit_test(hybrid_kinds_are_told_apart),
		cmocka_unit_test(unranked_kinds_are_a_gap),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(names_are_parsed),
		cmocka_unit_test_teardown(a_described_machine_is_foreign, forget_environment),
		cmocka_unit_test_teardown(a_bad_description_is_an_error, forget_environment),
		cmocka_unit_test(the_binding_of_the_process_counts),
		cmocka_unit_test(threads_bound_apart_count_together),
		cmocka_unit_test(threads_are_pinned),
		cmocka_unit_test(a_sibling_has_the_core_of_the_executor),
	};

	if (forget_environment(NULL))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
