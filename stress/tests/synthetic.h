/* SPDX-License-Identifier: MIT */
/* For tests: a machine that hwloc makes up. Behind cmocka.h. */
#ifndef STRESS_TESTS_SYNTHETIC_H
#define STRESS_TESTS_SYNTHETIC_H

#include <hwloc.h>

static inline hwloc_topology_t synthetic(const char *description)
{
	hwloc_topology_t topology;

	assert_int_equal(hwloc_topology_init(&topology), 0);
	assert_int_equal(hwloc_topology_set_synthetic(topology, description), 0);
	assert_int_equal(hwloc_topology_load(topology), 0);
	return topology;
}

#endif
