/* SPDX-License-Identifier: MIT */
/* Choose how straddlers are patched, and tell what the library made of it. */
#include "example.h"

static const char *const names[] = {
	[PC_POLICY_AUTO] = "auto",
	[PC_POLICY_WAIT] = "wait",
	[PC_POLICY_MEMBARRIER] = "membarrier",
	[PC_POLICY_QUIET] = "quiet",
};

/* What this machine cannot do is no failure: the policy stays as it was. */
static int ask(enum pc_policy policy)
{
	struct pc_status s;
	int ret = pc_set_policy(policy);

	if (ret == -ENOTSUP)
		printf("%s is not to be had here\n", names[policy]);
	if (ret == 0 || ret == -ENOTSUP)
		ret = pc_get_status(&s);
	if (ret < 0)
		return ret;
	printf("asked for %s, in use %s\n  %s\n", names[s.asked],
	       s.in_use == PC_POLICY_AUTO ? "none" : names[s.in_use], s.reason);
	if (s.in_use == PC_POLICY_WAIT)
		printf("  waits of %llu and %llu ticks by %s\n", (unsigned long long)s.first_wait,
		       (unsigned long long)s.second_wait, s.conf_path);
	return 0;
}

int main(void)
{
	int ret = pc_init();

	/*
	 * For a program that patches a thousand times a day, one in a million is rare. If it ever
	 * patches a thousand times a second, no more than one tear in 100 hours is risked: then it
	 * takes membarrier.
	 */
	if (ret == 0)
		ret = pc_set_accept_p(1e-6);
	if (ret == 0)
		ret = pc_set_accept_rate(0.01);
	for (unsigned policy = PC_POLICY_AUTO; ret == 0 && policy <= PC_POLICY_QUIET; policy++)
		ret = ask(policy);
	if (ret < 0)
		fprintf(stderr, "patchcore: %s\n", pc_strerror(ret));
	return ret < 0 ? 1 : 0;
}
