/* SPDX-License-Identifier: MIT */
#include "bench/method/policy.h"

#include <stdio.h>

#include "bench/method/result.h"

void bench_policy_refused(enum pc_policy policy, char *why)
{
	struct pc_status status = { 0 };

	pc_get_status(&status);
	snprintf(why, BENCH_WHY, "refused by the library: %.120s",
		 policy == PC_POLICY_MEMBARRIER ? "no membarrier SYNC_CORE" : status.reason);
}

int bench_set_policy(enum pc_policy policy, char *why)
{
	int ret = pc_set_policy(policy);

	if (ret == 0 || policy == PC_POLICY_AUTO)
		return 0;
	bench_policy_refused(policy, why);
	return ret;
}
