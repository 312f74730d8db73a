/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "base/exit_status.h"
#include "base/number.h"
#include "stress/placement/placement.h"

/* The name of each, and what is missing where it has no seats. */
static const struct {
	const char *name;
	const char *missing;
} placements[PLACEMENT_COUNT] = {
	[PLACEMENT_SAME_CORE] = { "same-core", "no two usable CPUs are threads of one core" },
	[PLACEMENT_SAME_L2] = { "same-l2", "no two usable cores are known to share an L2" },
	[PLACEMENT_SAME_L3] = { "same-l3",
				"no two usable cores with an L2 each are known to share an L3" },
	[PLACEMENT_SAME_SOCKET] = { "same-socket",
				    "no usable package has CPUs that share no cache" },
	[PLACEMENT_CROSS_SOCKET] = { "cross-socket",
				     "no two packages are known among the usable CPUs" },
	[PLACEMENT_KIND_UP] = { "kind-up",
				"no two ranked kinds of core are known among the usable CPUs" },
	[PLACEMENT_KIND_DOWN] = { "kind-down",
				  "no two ranked kinds of core are known among the usable CPUs" },
	[PLACEMENT_SPREAD] = { "spread", "only one CPU is usable" },
	[PLACEMENT_OVERSUBSCRIBED] = { "oversubscribed",
				       "more CPUs are usable than executors can be seated" },
};

const char *placement_name(enum placement p)
{
	return (unsigned)p < PLACEMENT_COUNT ? placements[p].name : "unknown";
}

int placement_parse(const char *name)
{
	for (int p = 0; name && p < PLACEMENT_COUNT; p++)
		if (strcmp(name, placements[p].name) == 0)
			return p;
	return -EINVAL;
}

/*
 * IS_THISSYSTEM is what RESTRICT_TO_CPUBINDING requires. It does not claim a described machine for
 * this one: the environment wins, hwloc then reports another system and restricts nothing. A
 * topology set by a call would be claimed, and cut down to the CPUs of this machine.
 */
int topology_open(hwloc_topology_t *topology, int *foreign)
{
	unsigned long flags =
		HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING;
	const char *synthetic = getenv("HWLOC_SYNTHETIC"), *xml = getenv("HWLOC_XMLFILE");
	bool described =
		((synthetic && *synthetic) || (xml && *xml)) && !getenv("HWLOC_THISSYSTEM");
	hwloc_bitmap_t set;
	int ret = 0;

	if (hwloc_topology_init(topology) < 0)
		return -ENOMEM;
	errno = 0;
	if (hwloc_topology_set_flags(*topology, flags) < 0 || hwloc_topology_load(*topology) < 0)
		ret = errno ? -errno : -EIO;
	*foreign = ret == 0 && !hwloc_topology_is_thissystem(*topology);
	/* A description that hwloc could not read has silently become this machine. */
	if (ret == 0 && !*foreign && described)
		ret = -EINVAL;
	/* hwloc gives up where threads are bound differently: take the union. */
	set = ret == 0 && !*foreign ? hwloc_bitmap_alloc() : NULL;
	if (set && hwloc_get_cpubind(*topology, set, HWLOC_CPUBIND_PROCESS) == 0 &&
	    hwloc_topology_restrict(*topology, set, 0) < 0)
		ret = -errno;
	if (ret == 0 && !*foreign && !set)
		ret = -ENOMEM;
	hwloc_bitmap_free(set);
	if (ret < 0)
		hwloc_topology_destroy(*topology);
	return ret;
}

/* CPUs no farther from this one than the relation says; NULL if that is not known. */
static hwloc_const_cpuset_t cpus_within(hwloc_topology_t topology, int relation, unsigned cpu)
{
	static const hwloc_obj_type_t types[] = { HWLOC_OBJ_CORE, HWLOC_OBJ_L2CACHE,
						  HWLOC_OBJ_L3CACHE, HWLOC_OBJ_PACKAGE };
	hwloc_obj_t obj;

	if (relation == PLACEMENT_CROSS_SOCKET)
		return hwloc_topology_get_topology_cpuset(topology);
	obj = hwloc_get_ancestor_obj_by_type(topology, types[relation],
					     hwloc_get_pu_obj_by_os_index(topology, cpu));
	if (obj)
		return obj->cpuset;
	/* Without packages, nothing is known to lie in another one. */
	return relation == PLACEMENT_SAME_SOCKET ? hwloc_topology_get_topology_cpuset(topology)
						 : NULL;
}

/* CPUs of the weakest or the strongest kind; none if hwloc cannot rank them (-1). */
static void find_kind(hwloc_topology_t topology, hwloc_bitmap_t set, bool strongest)
{
	int kinds = hwloc_cpukinds_get_nr(topology, 0), efficiency = -1;

	if (kinds < 2 || hwloc_cpukinds_get_info(topology, strongest ? (unsigned)kinds - 1 : 0, set,
						 &efficiency, NULL, NULL, 0) < 0)
		efficiency = -1;
	if (efficiency < 0)
		hwloc_bitmap_zero(set);
}

/* Where executors may sit when the patcher sits on this CPU. */
static void find_candidates(hwloc_topology_t topology, hwloc_bitmap_t set, enum placement p,
			    unsigned patcher)
{
	hwloc_const_cpuset_t cpus;

	switch (p) {
	case PLACEMENT_KIND_UP:
	case PLACEMENT_KIND_DOWN:
		find_kind(topology, set, p == PLACEMENT_KIND_DOWN);
		if (hwloc_bitmap_isset(set, patcher))
			find_kind(topology, set, p == PLACEMENT_KIND_UP);
		else
			hwloc_bitmap_zero(set);
		break;
	case PLACEMENT_SPREAD:
		hwloc_bitmap_copy(set, hwloc_topology_get_topology_cpuset(topology));
		hwloc_bitmap_clr(set, patcher);
		break;
	default:
		/*
		 * Without every closer level: a virtual machine may have one L3 around its
		 * packages.
		 */
		hwloc_bitmap_zero(set);
		cpus = cpus_within(topology, (int)p, patcher);
		if (!cpus)
			break;
		hwloc_bitmap_copy(set, cpus);
		for (int closer = PLACEMENT_SAME_CORE; closer < (int)p; closer++) {
			cpus = cpus_within(topology, closer, patcher);
			if (cpus)
				hwloc_bitmap_andnot(set, set, cpus);
		}
		hwloc_bitmap_clr(set, patcher);
	}
}

/*
 * The patcher of that turn among the CPUs with n candidates, which are left in set. Returns how
 * many they are; without such a CPU, the most that any has.
 */
static unsigned find_patcher(hwloc_topology_t topology, hwloc_bitmap_t set, enum placement p,
			     unsigned n, uint32_t turn, unsigned *patcher)
{
	hwloc_const_cpuset_t cpus = hwloc_topology_get_topology_cpuset(topology);
	unsigned most = 0, able = 0, cpu;

	hwloc_bitmap_foreach_begin(cpu, cpus)
	{
		unsigned found;

		find_candidates(topology, set, p, cpu);
		found = (unsigned)hwloc_bitmap_weight(set);
		most = found > most ? found : most;
		able += found >= n;
	}
	hwloc_bitmap_foreach_end();
	if (!able)
		return most;
	turn %= able;
	hwloc_bitmap_foreach_begin(cpu, cpus)
	{
		find_candidates(topology, set, p, cpu);
		*patcher = cpu;
		if ((unsigned)hwloc_bitmap_weight(set) >= n && turn-- == 0)
			break;
	}
	hwloc_bitmap_foreach_end();
	return (unsigned)hwloc_bitmap_weight(set);
}

unsigned placement_max(hwloc_topology_t topology, enum placement p, char *reason, size_t size)
{
	hwloc_const_cpuset_t cpus = hwloc_topology_get_topology_cpuset(topology);
	/* Large enough for every CPU, so that nothing that is put into it allocates. */
	hwloc_bitmap_t set = hwloc_bitmap_dup(cpus);
	unsigned most = 0, patcher;

	snprintf(reason, size, "%s", "");
	if ((unsigned)p >= PLACEMENT_COUNT)
		snprintf(reason, size, "no such placement");
	else if (!set)
		snprintf(reason, size, "out of memory");
	else if (p != PLACEMENT_OVERSUBSCRIBED)
		most = find_patcher(topology, set, p, PLACEMENT_EXECUTORS_MAX, 0, &patcher);
	else if (hwloc_bitmap_weight(cpus) <= PLACEMENT_EXECUTORS_MAX)
		most = PLACEMENT_EXECUTORS_MAX;
	if (most == 0 && !reason[0])
		snprintf(reason, size, "%s", placements[p].missing);
	hwloc_bitmap_free(set);
	return most < PLACEMENT_EXECUTORS_MAX ? most : PLACEMENT_EXECUTORS_MAX;
}

int placement_seat(hwloc_topology_t topology, enum placement p, unsigned n, uint32_t turn,
		   struct seating *seating, char *reason, size_t size)
{
	hwloc_const_cpuset_t cpus = hwloc_topology_get_topology_cpuset(topology);
	int cpu = -1;
	unsigned most, seen = 0, taken = 0;
	hwloc_obj_t pu = NULL;
	hwloc_bitmap_t set;
	uint64_t all;

	snprintf(reason, size, "%s", "");
	if ((unsigned)p >= PLACEMENT_COUNT || n == 0) {
		snprintf(reason, size, n ? "no such placement" : "no executors to seat");
		return -EINVAL;
	}
	if (n > PLACEMENT_EXECUTORS_MAX) {
		snprintf(reason, size, "more than %d executors", PLACEMENT_EXECUTORS_MAX);
		return -ENOENT;
	}
	*seating = (struct seating){ .placement = p, .executors = n };
	if (p == PLACEMENT_OVERSUBSCRIBED) {
		most = (unsigned)hwloc_bitmap_weight(cpus);
		if (n < most) {
			snprintf(reason, size,
				 "oversubscribed needs more threads than CPUs: %u executor%s", most,
				 S(most));
			return -ENOENT;
		}
		for (unsigned i = 0; i <= n + turn % most; i++) {
			cpu = hwloc_bitmap_next(cpus, cpu);
			if (cpu < 0)
				cpu = hwloc_bitmap_first(cpus);
			if (i > turn % most)
				seating->executor[i - turn % most - 1] = (unsigned)cpu;
			else
				seating->patcher = (unsigned)cpu;
		}
		return 0;
	}
	set = hwloc_bitmap_dup(cpus);
	if (!set) {
		snprintf(reason, size, "out of memory");
		return -ENOMEM;
	}
	most = find_patcher(topology, set, p, n, turn, &seating->patcher);
	/*
	 * Evenly apart in hwloc's order: they share a core only if there are more of them than
	 * cores.
	 */
	all = (uint64_t)hwloc_bitmap_weight(set);
	while (most >= n && taken < n &&
	       (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)))
		if (hwloc_bitmap_isset(set, pu->os_index) && seen++ == taken * all / n)
			seating->executor[taken++] = pu->os_index;
	if (most && most < n)
		snprintf(reason, size, "%s seats %u executor%s at most", placements[p].name, most,
			 S(most));
	else if (!most)
		snprintf(reason, size, "%s", placements[p].missing);
	hwloc_bitmap_free(set);
	return most >= n ? 0 : -ENOENT;
}

int placement_sibling(hwloc_topology_t topology, const struct seating *seating)
{
	hwloc_const_cpuset_t cpus =
		cpus_within(topology, PLACEMENT_SAME_CORE, seating->executor[0]);
	hwloc_bitmap_t seats = seating_cpus(seating), set = hwloc_bitmap_alloc();
	int cpu = -1;

	if (seats && set && cpus && hwloc_bitmap_andnot(set, cpus, seats) == 0)
		cpu = hwloc_bitmap_first(set);
	hwloc_bitmap_free(seats);
	hwloc_bitmap_free(set);
	return cpu < 0 ? -ENOENT : cpu;
}

hwloc_bitmap_t seating_cpus(const struct seating *seating)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();

	if (!cpus)
		return NULL;
	hwloc_bitmap_set(cpus, seating->patcher);
	for (unsigned i = 0; i < seating->executors; i++)
		hwloc_bitmap_set(cpus, seating->executor[i]);
	return cpus;
}

bool seating_is_same(const struct seating *a, const struct seating *b)
{
	return a->patcher == b->patcher && a->executors == b->executors &&
	       memcmp(a->executor, b->executor, a->executors * sizeof(a->executor[0])) == 0;
}

int pin_this_thread(hwloc_topology_t topology, unsigned cpu)
{
	hwloc_bitmap_t set;
	int ret = 0;

	/* hwloc takes a binding on another machine, does nothing and says it is done. */
	if (!hwloc_topology_is_thissystem(topology))
		return -ENOTSUP;
	set = hwloc_bitmap_alloc();
	if (!set)
		return -ENOMEM;
	if (hwloc_bitmap_only(set, cpu) < 0 ||
	    hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_THREAD | HWLOC_CPUBIND_STRICT) < 0)
		ret = -errno;
	hwloc_bitmap_free(set);
	return ret;
}

int topology_here(hwloc_topology_t *topology)
{
	int foreign;

	if (topology_open(topology, &foreign) < 0)
		return complain(EXIT_MISSING, 0, "cannot read the topology of this machine");
	if (!foreign)
		return EXIT_PASS;
	hwloc_topology_destroy(*topology);
	return complain(EXIT_MISSING, 0,
			"HWLOC_* names another machine: nothing to measure there; unset it");
}

int machine_here(struct identity *id)
{
	int ret = identity_read(id);

	return ret == 0 ? EXIT_PASS
			: complain(EXIT_MISSING, ret, "cannot tell what machine this is");
}

void cpus_here(hwloc_topology_t topology, struct cpus *cpus)
{
	hwloc_const_cpuset_t set = hwloc_topology_get_topology_cpuset(topology);
	char *list = NULL;

	*cpus = (struct cpus){ 0 };
	if (hwloc_bitmap_list_asprintf(&list, set) > 0)
		cpus_parse(cpus, list, strlen(list));
	free(list);
}
