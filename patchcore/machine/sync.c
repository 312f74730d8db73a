/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/sync.h"

#include <errno.h>
#include <linux/membarrier.h>

#include "patchcore/machine/wait.h"
#include "patchcore/syscall/sys.h"

int membarrier_register(void)
{
	const int command = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;

	return sys_call(SYS_membarrier, command, 0, 0) < 0 ? -ENOTSUP : 0;
}

NOPATCH int membarrier_sync(void)
{
	return (int)sys_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

NOPATCH void membarrier_sync_surely(void)
{
	for (unsigned i = 0; i < SYNC_TRIES; i++) {
		if (membarrier_sync() == 0)
			return;
		nap();
	}
	ticks_wait(SYNC_LAST_RESORT);
}

/* After so many picks of one sync the other's cost has decayed to about a third. */
#define FORGET 1024

/* Of each level, and of membarrier. Relaxed; a lost update does no harm: it is an estimate. */
static _Atomic(uint64_t) costs[SYNC_MEMBARRIER + 1];

NOPATCH static _Atomic(uint64_t) *cost_at(const struct sync *sync)
{
	return &costs[sync->policy == PC_POLICY_MEMBARRIER ? SYNC_MEMBARRIER : sync->level];
}

NOPATCH uint64_t sync_cost(const struct sync *sync)
{
	return load_relaxed(cost_at(sync));
}

/*
 * A new cost counts one eighth, and at most eight times the known cost: one patcher that lost its
 * CPU changes little, while eight more threads do show.
 */
NOPATCH void sync_note_cost(const struct sync *sync, uint64_t ticks)
{
	uint64_t cost = sync_cost(sync);

	if (cost && ticks / 8 > cost)
		ticks = 8 * cost;
	cost = cost ? cost - cost / 8 + ticks / 8 : ticks;
	store_relaxed(cost_at(sync), cost);
}

void sync_expect(unsigned level, uint64_t ticks)
{
	if (level != SYNC_MEMBARRIER || !load_relaxed(&costs[level]))
		store_relaxed(&costs[level], ticks);
}

/* At least the ticks of both waits. Of a sync that was never used nothing more is known. */
static uint64_t cost_of(const struct sync *sync)
{
	uint64_t cost = sync_cost(sync), least = sync->waits.first + sync->waits.second;

	return cost > least ? cost : least;
}

/* --- The rate of tears ------------------------------------------------------------------------ */

/*
 * A bucket of tears, in ticks of the TSC: when it will be full again tells how much is missing. A
 * TSC that stepped back (a guest that was moved) makes it look emptier, until that time comes.
 */
static _Atomic(double) tear_ticks;
static _Atomic(uint64_t) bucket_ticks, full_at;

void sync_limit_tears(double ticks, uint64_t most)
{
	store_relaxed(&bucket_ticks, most);
	store_relaxed(&tear_ticks, ticks);
}

const struct sync *sync_within_rate(const struct sync *sync)
{
	double price = sync->upper_p * load_relaxed(&tear_ticks);
	uint64_t most = load_relaxed(&bucket_ticks), full = load_relaxed(&full_at), now, next;

	if (!sync->instead || !(price > 0))
		return sync;
	if (price >= (double)most)
		return sync->instead;
	do {
		now = ticks_now();
		next = (full > now ? full : now) + (uint64_t)price + 1;
		if (next - now > most)
			return sync->instead;
	} while (!atomic_compare_exchange_weak_explicit(&full_at, &full, next, memory_order_relaxed,
							memory_order_relaxed));
	return sync;
}

/* --- The cheaper of two ----------------------------------------------------------------------- */

const struct sync *sync_pick(const struct sync *sync)
{
	const struct sync *one = sync, *other = sync->other;
	uint64_t cost;

	if (!other)
		return sync;
	if (cost_of(other) < cost_of(one)) {
		one = other;
		other = sync;
	}
	/* The cost of the sync that is not picked decays, so that it is tried again. */
	cost = sync_cost(other);
	store_relaxed(cost_at(other), cost - cost / FORGET);
	return one;
}
