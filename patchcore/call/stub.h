/* SPDX-License-Identifier: MIT */
/*
 * Pieces of code of our own, near the calls that need them: jumps whose target
 * is data, and rets. Private.
 *
 * They are made a page at a time, never written again, and never freed: a thread
 * may be inside whenever one looks. None of this is async-signal-safe.
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
};

/* What a call that is off does. */
struct stub_ret {
	uintptr_t code;
	uintptr_t slot; /* holds the address of such code, for an indirect call; 0: none */
};

#define STUB_ANY (-1)

/* stub_in_reach - can a displacement that counts from end lead to addr? */
static inline bool stub_in_reach(uintptr_t end, uintptr_t addr)
{
	int64_t distance = (int64_t)(addr - end);

	return distance == (int32_t)distance;
}

/*
 * stub_get - one whose code and target can be reached from end. low: the lowest
 * byte that its code's address must have, or STUB_ANY. 0, -ENOSPC: there is no
 * room for any more, -EACCES: the system allows no new code, -ENOMEM.
 */
int stub_get(struct stub **stub, uintptr_t end, int low);

/* stub_put - it was got, and never used. */
void stub_put(struct stub *stub);

/* stub_ret_get - the shared ret in reach of end. Errors as stub_get(). */
int stub_ret_get(struct stub_ret *ret, uintptr_t end);

/* stub_is_ret - is that the code of such a ret, or such a slot? */
bool stub_is_ret(uintptr_t addr);

#endif
