/* SPDX-License-Identifier: MIT */
/* What a call looks like, what may stand in its place, and the stub of its own. Private. */
#ifndef PATCHCORE_CALL_CALL_FORM_H
#define PATCHCORE_CALL_CALL_FORM_H

#include "patchcore/call.h"
#include "patchcore/call/stub.h"

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
	uint16_t off; /* the first bytes of what stands for off by FRONT or TAIL, lowest first */
};

/* Through which stub the instruction leads: pc_call.moved. It only grows. */
enum call_stage {
	CALL_ORIGINAL, /* none */
	CALL_SHARED,
	CALL_OWN
};

extern const struct call_shape call_shapes[CALL_FORMS];

/* call_encode - the instruction, with that displacement. Returns its length. */
size_t call_encode(uint8_t code[CALL_MAX], enum call_form form, int32_t displacement);

/* --- Of one call ------------------------------------------------------------------------------ */

static inline const struct call_shape *call_shape(const struct pc_call *call)
{
	return &call_shapes[call->form];
}

/* Displacements count from there. */
static inline uintptr_t call_end(const struct pc_call *call)
{
	return (uintptr_t)call->addr + call_shape(call)->len;
}

/* Bytes before an 8-byte boundary that it crosses, or 0. */
static inline unsigned call_split(const struct pc_call *call)
{
	unsigned before = CALL_WINDOW - (uintptr_t)call->addr % CALL_WINDOW;

	return before < call_shape(call)->len ? before : 0;
}

/* The one that leads to addr, which is in reach. */
static inline int32_t call_displacement(const struct pc_call *call, const void *addr)
{
	return (int32_t)((uintptr_t)addr - call_end(call));
}

/*
 * The first bytes of code, two or one of a tail call, lowest first. At once, as they are in one
 * 8-byte word (AMD APM vol. 2, 7.3.2); in assembly, as C has no atomic access to unaligned memory.
 */
static inline uint16_t call_first(const struct pc_call *call, const uint8_t *code)
{
	uint16_t two;

	if (call->way == PC_CALL_TAIL)
		return __atomic_load_n(code, __ATOMIC_ACQUIRE);
	__asm__ volatile("movw %1, %0" : "=r"(two) : "m"(*(const uint8_t(*)[2])code) : "memory");
	return two;
}

static inline void *call_original(const struct pc_call *call)
{
	return __atomic_load_n(&call->original, __ATOMIC_ACQUIRE);
}

/* Its stubs, NULL if it has none yet. Acquire: pair with call_stub_get(). */
static inline struct stub *call_shared(const struct pc_call *call)
{
	return (struct stub *)__atomic_load_n(&call->shared, __ATOMIC_ACQUIRE);
}

static inline struct stub *call_own(const struct pc_call *call)
{
	return (struct stub *)__atomic_load_n(&call->own, __ATOMIC_ACQUIRE);
}

/* The displacement that leads through it. */
static inline int32_t call_to_stub(const struct pc_call *call, const struct stub *stub)
{
	return call_displacement(call, call_shape(call)->slot ? (const void *)stub : stub->code);
}

/* The one of its stubs that displacement leads through, or NULL. */
static inline struct stub *call_stub_at(const struct pc_call *call, int32_t displacement)
{
	struct stub *own = call_own(call), *shared = call_shared(call);

	if (own && displacement == call_to_stub(call, own))
		return own;
	return shared && displacement == call_to_stub(call, shared) ? shared : NULL;
}

/*
 * call_stub_get - the one that calls to target share, if it may, and the call has no other yet;
 * else its own, where a target can be stored. As stub_get(); -ENOENT: the call was forgotten.
 */
int call_stub_get(struct pc_call *call, void *target, bool may_share, struct stub **stub);

/* call_is_forgotten - was its code? Then its stubs may serve other calls. Async-signal-safe. */
bool call_is_forgotten(const struct pc_call *call);

/* call_places_forget - the code of [start, end) is no more: nothing is known of its calls. */
void call_places_forget(uintptr_t start, uintptr_t end);

#endif
