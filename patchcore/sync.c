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

/* So many picks of the one take the other's cost to some third. */
#define FORGET 1024

/* Relaxed, and a lost update does not matter: it is an estimate. */
static _Atomic(uint64_t) costs[PC_POLICY_MEMBARRIER + 1];

uint64_t sync_cost(enum pc_policy policy)
{
	return atomic_load_explicit(&costs[policy], memory_order_relaxed);
}

/*
 * An eighth of what is new, and of no more than eight times what is known: one
 * stall, of a patcher that lost its CPU, changes little, and eight threads more do.
 */
void sync_note_cost(enum pc_policy policy, uint64_t ticks)
{
	uint64_t cost = sync_cost(policy);

	if (cost && ticks / 8 > cost)
		ticks = 8 * cost;
	cost = cost ? cost - cost / 8 + ticks / 8 : ticks;
	atomic_store_explicit(&costs[policy], cost, memory_order_relaxed);
}

/* No less than what the wait is known to take; that is all, if it was never used. */
static uint64_t cost_of(const struct sync *sync)
{
	uint64_t cost = sync_cost(sync->policy), least = sync->first_wait + sync->second_wait;

	return cost > least ? cost : least;
}

/* What is not used gets cheaper, and so is tried again some time: it may well be. */
static void forget_cost(enum pc_policy policy)
{
	uint64_t cost = sync_cost(policy);

	atomic_store_explicit(&costs[policy], cost - cost / FORGET, memory_order_relaxed);
}

const struct sync *sync_pick(const struct sync *sync)
{
	const struct sync *one = sync, *other = sync->other;

	if (!other)
		return sync;
	if (cost_of(other) < cost_of(one)) {
		one = other;
		other = sync;
	}
	forget_cost(other->policy);
	return one;
}
