/* SPDX-License-Identifier: MIT */
#include "probes/profile/epochs/cost.h"

#include "probes/profile/epochs/books.h"
#include "probes/profile/epochs/clocks.h"
#include "probes/profile/sample/meter.h"
#include "probes/profile/sample/watch.h"

double cost_of_start(void)
{
	return clocks_seconds(CLOCK_THREAD_CPUTIME_ID) - asked.before;
}

double cost_toggling(void)
{
	return (double)load_relaxed(&watch_common.off_ticks) + account.turning_on;
}

double cost_spent(void)
{
	return account.start + clocks_seconds(watch_common.own) * watch_common.per_second +
	       (double)load_relaxed(&watch_common.spent) +
	       (double)(ring_run() - account.run_at_start) * meter_price();
}

void cost_settle(void)
{
	double now = cost_spent();

	account.spent = now > account.spent ? now : account.spent;
	account.used = clocks_seconds(CLOCK_PROCESS_CPUTIME_ID) * watch_common.per_second -
		       account.used_at_start;
}

static void merge_moments(void)
{
	for (unsigned i = 0; i < MOMENTS / 2; i++) {
		struct moment *one = &account.moment[2 * i], *two = one + 1;

		account.moment[i] = (struct moment){ .start = one->start,
						     .length = one->length + two->length,
						     .calls = one->calls + two->calls,
						     .cost = one->cost + two->cost };
	}
	account.moments = MOMENTS / 2;
	account.merged *= 2;
}

void cost_moment(uint64_t start, uint64_t end, double calls, double cost)
{
	struct moment *last;

	if (account.moments == MOMENTS && account.epochs % account.merged == 0)
		merge_moments();
	if (account.epochs % account.merged == 0)
		account.moment[account.moments++] =
			(struct moment){ .start = (double)(start - account.began) };
	last = &account.moment[account.moments - 1];
	last->length = (double)(end - account.began) - last->start;
	last->calls += calls;
	/* Less by now than it was: the price of calls has fallen. */
	last->cost += cost > 0 ? cost : 0;
}

double cost_share(void)
{
	return account.used > 0 ? account.spent / account.used : 0;
}

double cost_toggling_share(void)
{
	return account.used > 0 ? cost_toggling() / account.used : 0;
}
