/* SPDX-License-Identifier: MIT */
/*
 * Which calls are under a pc_call: one each at most, since two would not know of each
 * other's stubs and moves. Private. Nothing here is async-signal-safe.
 */
#ifndef PATCHCORE_CALL_CALL_PLACE_H
#define PATCHCORE_CALL_CALL_PLACE_H

#include "patchcore/call/stub.h"
#include "patchcore/site/table.h"

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
 * call_place_take - for one pc_call. Then call_place_ready() or call_place_leave().
 * -EBUSY: another has it. -ENOMEM.
 */
int call_place_take(struct call_place **place, const void *addr);

/* call_place_claim - it has len bytes. -EBUSY: another place that is not free has some of them. */
int call_place_claim(struct call_place *place, unsigned len);

/* call_place_ready - it is under a pc_call from now on, the number of which is returned. */
uint64_t call_place_ready(struct call_place *place);

/* call_place_leave - it is free. The stub is kept for the next pc_call there, and may be NULL. */
void call_place_leave(struct call_place *place, struct stub *own);

/* call_place_of - that of a pc_call with that number. NULL: it was forgotten. */
struct call_place *call_place_of(const void *addr, uint64_t number);

/* call_places_forget - the code of [start, end) is no more: its places are free. */
void call_places_forget(uintptr_t start, uintptr_t end);

#endif
