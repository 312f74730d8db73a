/* SPDX-License-Identifier: MIT */
/* For tests of levels: a config of some, in use under policy wait. */
#ifndef PATCHCORE_MACHINE_TESTS_LEVELS_H
#define PATCHCORE_MACHINE_TESTS_LEVELS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/machine/policy.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define AUTO PC_POLICY_AUTO
#define WAIT PC_POLICY_WAIT
#define MB   PC_POLICY_MEMBARRIER
#define NONE PC_POLICY_AUTO

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static inline void use_levels(const struct machine_conf *conf)
{
	if (!conf->identity.tsc_invariant)
		child_skip("this machine has no invariant TSC");
	conf_use(conf);
	MUST(pc_init() == 0);
	if (pc_set_policy(PC_POLICY_WAIT) < 0)
		child_skip("policy wait is not to be had here");
}

static inline struct pc_status status_now(void)
{
	struct pc_status status;

	MUST(pc_get_status(&status) == 0);
	return status;
}

static inline const struct sync *sync_at(const uint8_t *site)
{
	return site_find((uintptr_t)site)->word.sync;
}

#define SHORT	 1000	 /* ticks, of level 1 */
#define LONG	 3000000 /* of level 2 */
#define LINE_P	 1e-10	 /* of both */
#define PAGE_P	 1e-6	 /* of level 1 */
#define SAFE_P	 1e-12	 /* of level 2 */
#define MIDDLE_P 1e-9

static inline struct machine_conf two_levels(double safe_p)
{
	struct machine_conf conf = conf_here();

	conf.level[0].waits.first = conf.level[0].waits.second = SHORT;
	conf.level[0].line.upper_p = LINE_P;
	conf.level[0].page.upper_p = PAGE_P;
	conf_add_level(&conf, LONG, LINE_P, safe_p);
	return conf;
}

#endif
