/* SPDX-License-Identifier: MIT */
#include "stress/run/run.h"

int cell_seat(const struct cell *cell, hwloc_topology_t topology, struct seating *seating,
	      char *reason, size_t size)
{
	int ret = placement_seat(topology, cell->placement, cell->executors, seating, reason, size);
	unsigned patcher = seating->patcher;

	if (ret < 0 || !cell->swap)
		return ret;
	seating->patcher = seating->executor[0];
	seating->executor[0] = patcher;
	return 0;
}
