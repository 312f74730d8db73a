/* SPDX-License-Identifier: MIT */
/*
 * What pc_call_init() and the rest of the call functions share. Private.
 */
#ifndef PATCHCORE_CALL_CALL_OWN_H
#define PATCHCORE_CALL_CALL_OWN_H

#include "patchcore/call/call_form.h"
#include "patchcore/call/stub.h"

static inline const struct call_shape *call_shape(const struct pc_call *call)
{
	return &call_shapes[call->form];
}

/* Displacements count from there. */
static inline uintptr_t call_end(const struct pc_call *call)
{
	return (uintptr_t)call->addr + call_shape(call)->len;
}

/* Where its displacement stands. */
static inline uint8_t *call_operand(const struct pc_call *call)
{
	return call->addr + call_shape(call)->opcode;
}

/* The one that leads to addr, which is in reach. */
static inline int32_t call_displacement(const struct pc_call *call, const void *addr)
{
	return (int32_t)((uintptr_t)addr - call_end(call));
}

static inline void *call_original(const struct pc_call *call)
{
	return __atomic_load_n(&call->original, __ATOMIC_ACQUIRE);
}

/* Its own stub, NULL if it has none yet. */
static inline struct stub *call_own(const struct pc_call *call)
{
	/* Acquire: pairs with the exchange in call_own_get(). */
	return (struct stub *)__atomic_load_n(&call->own, __ATOMIC_ACQUIRE);
}

/* The displacement that leads through it. */
static inline int32_t call_to_own(const struct pc_call *call, const struct stub *own)
{
	return call_displacement(call, call_shape(call)->slot ? (const void *)own : own->code);
}

/*
 * call_go_on - a word patch of the call is under way. It may be one that a thread has left
 * behind, and then no other goes on with it.
 */
void call_go_on(const void *addr);

/* The lowest byte of a stub's address that keeps d0 (see call.c), or STUB_ANY. */
static inline int call_low(const struct pc_call *call)
{
	if (call->way != PC_CALL_FRONT || call_shape(call)->opcode != 1 || !call->on)
		return STUB_ANY;
	return (uint8_t)(call_end(call) + (call->on >> 8));
}

/*
 * call_own_get - the same, allocated if need be. -ENOSPC: there is no room, or
 * the system allows no new code. -ENOMEM.
 */
int call_own_get(struct pc_call *call, struct stub **own);

#endif
