/* SPDX-License-Identifier: MIT */
#include "probes/profile/epochs/epochs.h"

double cost_of_start(void)
{
	return clock_seconds(CLOCK_THREAD_CPUTIME_ID) - asked.before;
}

double cost_toggling(void)
{
	return (double)load_relaxed(&watch_common.off_ticks) + account.turning_on;
}

void cost_turned_on(double since)
{
	account.turning_on +=
		(clock_seconds(CLOCK_THREAD_CPUTIME_ID) - since) * watch_common.per_second;
}

double cost_spent(void)
{
	return account.start + clock_seconds(watch_common.own) * watch_common.per_second +
	       (double)load_relaxed(&watch_common.spent) +
	       (double)(ring_run() - account.run_at_start) * ring_price();
}

void cost_settle(void)
{
	double now = cost_spent();

	account.spent = now > account.spent ? now : account.spent;
	account.used = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) * watch_common.per_second -
		       account.used_at_start;
}

double cost_share(void)
{
	return account.used > 0 ? account.spent / account.used : 0;
}

double cost_toggling_share(void)
{
	return account.used > 0 ? cost_toggling() / account.used : 0;
}
