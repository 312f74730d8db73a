/* SPDX-License-Identifier: MIT */
#include "calibrate/here.h"

#include <stdio.h>

#include "calibrate/exit_status.h"
#include "stress/placement.h"

int topology_here(hwloc_topology_t *topology)
{
	int foreign;

	if (topology_open(topology, &foreign) < 0) {
		fprintf(stderr, "tmax: cannot read the topology\n");
		return EXIT_MISSING;
	}
	if (!foreign)
		return EXIT_PASS;
	hwloc_topology_destroy(*topology);
	fprintf(stderr, "tmax: HWLOC_* names another machine: nothing to measure there\n");
	return EXIT_MISSING;
}
