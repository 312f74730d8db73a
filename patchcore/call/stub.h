/* SPDX-License-Identifier: MIT */
/*
 * Pieces of code of our own, near the calls that need them: jumps whose target is data, and rets.
 * Private.
 *
 * The code is made many stubs at a time, and never written or unmapped again: a thread may be
 * inside whenever one looks. None of this is async-signal-safe.
 */
#ifndef PATCHCORE_CALL_STUB_H
#define PATCHCORE_CALL_STUB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A jump to wherever target says. Data, apart from the code. */
struct stub {
	_Atomic(void *) target; /* read by the jump with a plain load */
	void *code;
	/* Under the lock of stub.c. */
	struct stub *next; /* of the stubs of one holder, that share a bucket, or are free */
	unsigned users;	   /* holders that share it; 0: it is a holder's own, or free */
};

/* The stubs of one place, which keeps them until stubs_put(): threads may be inside. */
struct stubs {
	struct stub *shared; /* NULL, or one whose target never changes */
	struct stub *own;    /* a list */
};

#define STUB_ANY (-1)

/* stub_in_reach - can a displacement that counts from end lead to addr? */
static inline bool stub_in_reach(uintptr_t end, uintptr_t addr)
{
	int64_t distance = (int64_t)(addr - end);

	return distance == (int32_t)distance;
}

/* stub_fits - is its code's lowest byte the one that is asked for? low: or STUB_ANY. */
static inline bool stub_fits(const struct stub *stub, int low)
{
	return low == STUB_ANY || (uint8_t)(uintptr_t)stub->code == low;
}

/*
 * stub_get - the first own one that fits, added if need be; it leads where it did, or goes back.
 * Code and target can be reached from end. shared_by: with nothing of one's own yet, rather the
 * one that leads to that target, also for others who want that. 0, -ENOSPC: there is no room for
 * any more, or the system allows no new code, -ENOMEM.
 */
int stub_get(struct stub **stub, struct stubs *stubs, uintptr_t end, int low, void *shared_by);

/* stubs_put - no thread is inside, or will be. */
void stubs_put(struct stubs *stubs);

/* stub_ret_get - a ret in reach of end, or the slot that holds its address. As stub_get(). */
int stub_ret_get(void **ret, uintptr_t end, bool slot);

#endif
