/* SPDX-License-Identifier: MIT */
/*
 * What a call looks like, what may stand in its place, and the stub of its own. Private.
 */
#ifndef PATCHCORE_CALL_CALL_FORM_H
#define PATCHCORE_CALL_CALL_FORM_H

#include "patchcore/call.h"
#include "patchcore/call/stub.h"
#include "patchcore/site/table.h"

#define CALL_WINDOW 8u /* bytes, AMD APM vol. 2, 7.6.1 */
#define CALL_MAX    6u /* bytes of the longest form */

enum call_form {
	CALL_NEAR,	/* E8 */
	CALL_ADDR32,	/* 67 E8 */
	CALL_SLOT,	/* FF 15 */
	CALL_TAIL,	/* E9 */
	CALL_TAIL_SLOT, /* FF 25 */
	CALL_FORMS
};

struct call_shape {
	uint8_t len;
	uint8_t opcode; /* bytes; the displacement is the other four */
	uint8_t code[2];
	bool slot; /* the displacement leads to the target's address, not to the target */
	bool tail;
};

extern const struct call_shape call_shapes[CALL_FORMS];

/* call_split - bytes before an 8-byte boundary that the call crosses, or 0. */
unsigned call_split(const void *addr, unsigned len);

/* call_encode - the instruction, with that displacement. Returns its length. */
size_t call_encode(uint8_t code[CALL_MAX], enum call_form form, int32_t displacement);

/* call_encode_off - put what stands for off by FRONT or TAIL into the first bytes of code. */
void call_encode_off(uint8_t code[CALL_MAX], enum call_form form);

/* call_first - the first bytes of code as a number: two, or one of a tail call. */
uint16_t call_first(const uint8_t *code, enum pc_call_way way);

/* --- Of one call --------------------------------------------------------------------------------
 */

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
 * call_own_get - its own stub, allocated if need be. -ENOSPC: there is no room, or
 * the system allows no new code. -ENOMEM.
 */
int call_own_get(struct pc_call *call, struct stub **own);

/* --- Places ------------------------------------------------------------------------------------
 */

/*
 * Which calls are under a pc_call: one each at most, since two would not know of each other's stubs
 * and moves. Nothing here is async-signal-safe.
 */

/* The address of a call. */
struct call_place {
	struct entry entry;
	/*
	 * 0: free. CALL_PLACE_TAKING and a thread_id(): that thread gets it ready. Else the
	 * number of the pc_call that it is under, which is never used again: so one that was
	 * forgotten is not taken for one that came later. Release, acquire.
	 */
	_Atomic(uint64_t) user;
	_Atomic(unsigned) len; /* bytes of the call, 0 while not known */
	struct stub *own;      /* the user's: the stub that it was left with, or NULL */
};

#define CALL_PLACE_TAKING (UINT64_C(1) << 63)

/*
 * call_place_take - for one pc_call.
 * -EBUSY: another has it. -ENOMEM.
 */
int call_place_take(struct call_place **place, const void *addr);

/* call_place_claim - it has len bytes. -EBUSY: another place that is not free has some of them. */
int call_place_claim(struct call_place *place, unsigned len);

/* call_places_forget - the code of [start, end) is no more: its places are free. */
void call_places_forget(uintptr_t start, uintptr_t end);

#endif
