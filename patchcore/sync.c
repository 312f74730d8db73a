/* SPDX-License-Identifier: MIT */
#include "patchcore/sync.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

int membarrier_register(void)
{
	/* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE */
	return syscall(SYS_membarrier, 1 << 6, 0, 0) < 0 ? -ENOTSUP : 0;
}

int membarrier_sync(void)
{
	/* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE */
	return syscall(SYS_membarrier, 1 << 5, 0, 0) < 0 ? -errno : 0;
}

/* Relaxed, and a lost update does not matter: it is an estimate. */
static _Atomic(uint64_t) costs[PC_POLICY_MEMBARRIER + 1];

uint64_t sync_cost(enum pc_policy policy)
{
	return atomic_load_explicit(&costs[policy], memory_order_relaxed);
}

void sync_note_cost(enum pc_policy policy, uint64_t ticks)
{
	uint64_t cost = sync_cost(policy);

	/* An eighth of what is new: one stall changes little, eight threads more do. */
	cost = cost ? cost - cost / 8 + ticks / 8 : ticks;
	atomic_store_explicit(&costs[policy], cost, memory_order_relaxed);
}

/* What is known beforehand of one that was never used. */
static uint64_t cost_of(const struct sync *sync)
{
	uint64_t cost = sync_cost(sync->policy);

	return cost ? cost : sync->first_wait + sync->second_wait;
}

const struct sync *sync_pick(const struct sync *sync)
{
	if (!sync->other || cost_of(sync) <= cost_of(sync->other))
		return sync;
	return sync->other;
}
