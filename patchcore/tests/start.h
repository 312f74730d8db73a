/* SPDX-License-Identifier: MIT */
/* The library as most tests use it, in a child: see child.h. */
#ifndef PATCHCORE_TESTS_START_H
#define PATCHCORE_TESTS_START_H

#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"

/* By membarrier, and without a config. */
static inline void start_by_membarrier(void)
{
	conf_use_none();
	MUST(pc_init() == 0);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
}

#endif
