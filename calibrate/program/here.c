/* SPDX-License-Identifier: MIT */
#include "calibrate/program/here.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/program/exit_status.h"
#include "stress/placement/placement.h"

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

void cpus_here(hwloc_topology_t topology, struct cpus *cpus)
{
	hwloc_const_cpuset_t set = hwloc_topology_get_topology_cpuset(topology);
	char *list = NULL;

	*cpus = (struct cpus){ 0 };
	if (hwloc_bitmap_list_asprintf(&list, set) > 0)
		cpus_parse(cpus, list, strlen(list));
	free(list);
}
