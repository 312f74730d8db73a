/* SPDX-License-Identifier: MIT */
#include "stress/provoke/provoker.h"

#include <emmintrin.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "stress/provoke/provoker_work.h"

struct provokers {
	unsigned set;
	const uint8_t *front; /* of the site */
	const uint8_t *back;
	unsigned cpu; /* of the threads */
	struct worker shootdown, bandwidth, sibling;
	pid_t load[PLACEMENT_EXECUTORS_MAX];
	unsigned loads;
	struct evict evict;
	uint64_t flushes; /* by the patcher */
	_Atomic(uint64_t) bursts __attribute__((aligned(128)));
	_Atomic(uint64_t) evicted; /* lines */
};

static bool has_provoker(const struct provokers *p, enum provoker which)
{
	return p->set & 1u << which;
}

static bool is_executors(const struct seating *seating, unsigned cpu, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (seating->executor[i] == cpu)
			return true;
	return false;
}

static bool is_seat(const struct seating *seating, unsigned cpu)
{
	return cpu == seating->patcher || is_executors(seating, cpu, seating->executors);
}

static unsigned free_cpu(hwloc_topology_t topology, const struct seating *seating)
{
	hwloc_obj_t pu = NULL;

	while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)))
		if (!is_seat(seating, pu->os_index))
			return pu->os_index;
	return seating->patcher;
}

/* A CPU of the same core as the first executor's that is in no seat, or below 0. */
static int sibling_cpu(hwloc_topology_t topology, const struct seating *seating)
{
	return placement_beside(topology, seating, PLACEMENT_SAME_CORE);
}

int provoker_possible(enum provoker p, hwloc_topology_t topology, const struct seating *seating,
		      char *reason, size_t size)
{
	if (p == PROVOKER_SIBLING && sibling_cpu(topology, seating) < 0) {
		snprintf(reason, size, "CPU %u has no SMT sibling that is free",
			 seating->executor[0]);
		return -ENOTSUP;
	}
	if (p == PROVOKER_WIDE && !wide_possible()) {
		snprintf(reason, size, "the CPU has no AVX2 with FMA");
		return -ENOTSUP;
	}
	if (p == PROVOKER_EVICT && !evict_possible()) {
		snprintf(reason, size, "the kernel tells only root where pages are");
		return -ENOTSUP;
	}
	return 0;
}

int provokers_possible(const struct cell *cell, hwloc_topology_t topology,
		       const struct seating *seating, char *reason, size_t size)
{
	int ret = 0;

	for (int i = 0; i < PROVOKER_COUNT && ret == 0; i++)
		if (cell->provokers & 1u << i)
			ret = provoker_possible((enum provoker)i, topology, seating, reason, size);
	return ret;
}

int provokers_start(struct provokers **provokers, const struct cell *cell,
		    hwloc_topology_t topology, const struct seating *seating, const uint8_t *site)
{
	struct provokers *p;
	char reason[128];
	int ret = provokers_possible(cell, topology, seating, reason, sizeof(reason));

	*provokers = NULL;
	if (ret < 0)
		return ret;
	p = aligned_alloc(128, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct provokers){
		.set = cell->provokers,
		.front = site,
		.back = site + cell->split,
		.cpu = free_cpu(topology, seating),
		.shootdown = { .work = work_shootdown, .size = SHOOTDOWN_SIZE },
		.bandwidth = { .work = work_bandwidth, .size = bandwidth_size(topology) },
		.sibling = { .work = work_sibling },
	};
	/* A process for each CPU that has executors. */
	for (unsigned i = 0; ret == 0 && has_provoker(p, PROVOKER_LOAD) && i < seating->executors;
	     i++) {
		if (is_executors(seating, seating->executor[i], i))
			continue;
		p->load[p->loads] = load_start(topology, seating->executor[i]);
		if (p->load[p->loads] < 0)
			ret = p->load[p->loads];
		else
			p->loads++;
	}
	if (ret == 0 && has_provoker(p, PROVOKER_EVICT))
		ret = evict_start(&p->evict, p->front, p->back);
	if (ret == 0 && has_provoker(p, PROVOKER_SHOOTDOWN))
		ret = worker_start(&p->shootdown, topology, p->cpu);
	if (ret == 0 && has_provoker(p, PROVOKER_BANDWIDTH))
		ret = worker_start(&p->bandwidth, topology, p->cpu);
	if (ret == 0 && has_provoker(p, PROVOKER_SIBLING))
		ret = worker_start(&p->sibling, topology, (unsigned)sibling_cpu(topology, seating));
	if (ret < 0)
		provokers_stop(p);
	else
		*provokers = p;
	return ret;
}

void provokers_stop(struct provokers *p)
{
	if (!p)
		return;
	worker_stop(&p->shootdown);
	worker_stop(&p->bandwidth);
	worker_stop(&p->sibling);
	for (unsigned i = 0; i < p->loads; i++)
		load_stop(p->load[i]);
	evict_stop(&p->evict);
	free(p);
}

static void flush_line(struct provokers *p, const uint8_t *line)
{
	_mm_clflush(line);
	p->flushes++;
}

static void evict_now(struct provokers *p)
{
	atomic_fetch_add_explicit(&p->evicted, evict_lines(&p->evict), memory_order_relaxed);
}

void provoke_toggle(struct provokers *p)
{
	if (has_provoker(p, PROVOKER_EVICT))
		evict_now(p);
	if (has_provoker(p, PROVOKER_COLD_BACK))
		flush_line(p, p->back);
	if (has_provoker(p, PROVOKER_COLD_FRONT))
		flush_line(p, p->front);
	/* The toggle must not begin before the lines are gone. */
	if (has_provoker(p, PROVOKER_COLD_BACK) || has_provoker(p, PROVOKER_COLD_FRONT))
		_mm_mfence();
}

void provoke_round(struct provokers *p)
{
	if (has_provoker(p, PROVOKER_EVICT))
		evict_now(p);
	if (!has_provoker(p, PROVOKER_WIDE))
		return;
	wide_burst();
	atomic_fetch_add_explicit(&p->bursts, 1, memory_order_relaxed);
}

void provokers_count(const struct provokers *p, struct provoker_counts *counts)
{
	*counts = (struct provoker_counts){
		.flushes = p->flushes,
		.shootdowns = atomic_load_explicit(&p->shootdown.done, memory_order_relaxed),
		.streamed = atomic_load_explicit(&p->bandwidth.done, memory_order_relaxed),
		.sibling = atomic_load_explicit(&p->sibling.done, memory_order_relaxed),
		.wide = atomic_load_explicit(&p->bursts, memory_order_relaxed),
		.evicted = atomic_load_explicit(&p->evicted, memory_order_relaxed),
		.processes = p->loads,
		.cpu = p->cpu,
	};
}
