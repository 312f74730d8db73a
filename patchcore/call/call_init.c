/* SPDX-License-Identifier: MIT */
/*
 * Getting a call ready: what stands there, how it will be turned on and off, and what that takes.
 * All that is allocated is allocated here, so that turning it on and off may be done in a signal
 * handler.
 */
#include <errno.h>
#include <string.h>

#include "patchcore/call/call_form.h"
#include "patchcore/machine/policy.h"
#include "patchcore/pages/text.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/site.h"
#include "patchcore/site/table.h"
#include "patchcore/word/flight.h"

#define DISPLACEMENT 4 /* bytes */

const struct call_shape call_shapes[CALL_FORMS] = {
	/* off: EB, a jump over the rest, or C3, a ret. */
	[CALL_NEAR] = { .len = 5, .opcode = 1, .code = { 0xe8 }, .off = 0x03eb },
	[CALL_ADDR32] = { .len = 6, .opcode = 2, .code = { 0x67, 0xe8 }, .off = 0x04eb },
	[CALL_SLOT] = { 6, .opcode = 2, .code = { 0xff, 0x15 }, .slot = true, .off = 0x04eb },
	[CALL_TAIL] = { .len = 5, .opcode = 1, .code = { 0xe9 }, .tail = true, .off = 0xc3 },
	[CALL_TAIL_SLOT] = { 6, 2, { 0xff, 0x25 }, .slot = true, .tail = true, .off = 0xc3 },
};

/* What may stand for a call that is off. */
static const struct {
	uint8_t code[CALL_MAX];
	uint8_t compared; /* bytes of it */
	uint8_t form;
} offs[] = {
	{ { 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 5, CALL_NEAR },
	{ { 0x0f, 0x1f, 0x44, 0x00, 0x08 }, 5, CALL_NEAR },
	{ { 0xeb, 0x03 }, 2, CALL_NEAR },
	{ { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 6, CALL_ADDR32 },
	{ { 0xeb, 0x04 }, 2, CALL_ADDR32 },
};

size_t call_encode(uint8_t code[CALL_MAX], enum call_form form, int32_t displacement)
{
	const struct call_shape *shape = &call_shapes[form];

	memcpy(code, shape->code, shape->opcode);
	memcpy(code + shape->opcode, &displacement, DISPLACEMENT);
	return shape->len;
}

/* --- Which calls are under a pc_call ---------------------------------------------------------- */

/*
 * The address of a call, which is under one pc_call at most, since two would not know of each
 * other's stubs and moves.
 */
struct call_place {
	struct entry entry;
	/*
	 * 0: free. Else the number of the pc_call that it is under, which is never used again:
	 * so one that was forgotten is not taken for one that came later.
	 */
	_Atomic(uint64_t) user;
	unsigned len;	    /* bytes of the call */
	struct stubs stubs; /* kept until the code is forgotten: threads may be inside */
	int32_t off;	    /* DISPLACEMENT: that of its ret, or 0 */
};

static struct table places = TABLE_INIT(struct call_place, 6, NULL);

/* Of who gets a call ready. A thread that ends in the middle of it has nothing of the place. */
static struct lock lock;
static uint64_t numbers; /* that were given to pc_calls; with the lock */

static int call_reaches(struct entry *entry, void *addr)
{
	const struct call_place *place = (const struct call_place *)entry;

	return atomic_load(&place->user) && entry->addr + place->len > *(uintptr_t *)addr;
}

/* Has another call some of its bytes? This one is under no pc_call yet. */
static bool has_overlap(uintptr_t addr, unsigned len)
{
	return table_each_in(&places, addr - CALL_MAX + 1, addr + len, call_reaches, &addr);
}

/* That the call has; NULL: its code was forgotten. */
static struct call_place *place_of(const struct pc_call *call)
{
	struct call_place *place = (void *)table_find(&places, (uintptr_t)call->addr);

	return place && atomic_load(&place->user) == call->number ? place : NULL;
}

bool call_is_forgotten(const struct pc_call *call)
{
	return !place_of(call);
}

/* The lowest byte of a stub's address that keeps d0 (see call.c), or STUB_ANY. */
static int call_low(const struct pc_call *call)
{
	if (call->way != PC_CALL_FRONT || call_shape(call)->opcode != 1 || !call->on)
		return STUB_ANY;
	return (uint8_t)(call_end(call) + (call->on >> 8));
}

int call_stub_get(struct pc_call *call, void *target, bool may_share, struct stub **stub)
{
	struct call_place *place = place_of(call);
	int ret;

	if (!place)
		return -ENOENT;
	ret = stub_get(stub, &place->stubs, call_end(call), call_low(call),
		       may_share ? target : NULL);
	if (ret == 0)
		__atomic_store_n(*stub == place->stubs.shared ? &call->shared : &call->own, *stub,
				 __ATOMIC_RELEASE);
	return ret;
}

static int forget_place(struct entry *entry, void *unused)
{
	struct call_place *place = (struct call_place *)entry;

	(void)unused;
	stubs_put(&place->stubs);
	atomic_store(&place->user, 0);
	table_remove(&places, entry);
	return 0;
}

void call_places_forget(uintptr_t start, uintptr_t end)
{
	table_each_in(&places, start, end, forget_place, NULL);
}

/* --- A look at it ----------------------------------------------------------------------------- */

/*
 * Its form, and whether loads from it may fault. 1: it is off, and not yet of our making. No more
 * bytes are needed than the call has: it may end where the mapping ends.
 */
static int look_at_code(struct pc_call *call, uint8_t code[CALL_MAX])
{
	unsigned len = CALL_MAX;
	int ret = text_read(code, call->addr, len);
	struct site *site;

	if (ret == -EFAULT)
		ret = text_read(code, call->addr, --len);
	if (ret < 0)
		return ret;
	call->hidden = (unsigned)ret;
	for (call->form = 0; call->form < CALL_FORMS; call->form++)
		if (len >= call_shape(call)->len &&
		    memcmp(code, call_shape(call)->code, call_shape(call)->opcode) == 0)
			return 0;
	for (size_t i = 0; i < sizeof(offs) / sizeof(*offs); i++) {
		call->form = offs[i].form;
		if (len >= call_shape(call)->len &&
		    memcmp(code, offs[i].code, offs[i].compared) == 0)
			return 1;
	}
	/* An INT3 where a change is under way, or was left by a thread that is no more. */
	site = code[0] == WORD_INT3 ? site_find((uintptr_t)call->addr) : NULL;
	if (!site || site_turn(site) % 2 == 0)
		return -ENOENT;
	flight_step(site);
	return -EAGAIN;
}

/* Where off leads; two bytes of front, where there is nothing for the displacement to lead to. */
static int find_ret(struct pc_call *call)
{
	void *found;
	int ret = stub_ret_get(&found, call_end(call), call_shape(call)->slot);

	if (ret == 0)
		call->off = call_displacement(call, found);
	if (ret != -ENOSPC || call_split(call) == 1)
		return ret;
	call->way = PC_CALL_FRONT;
	return 0;
}

/* Put our off form where there was some other one. */
static int turn_into_off(struct pc_call *call, struct call_place *place, const uint8_t *there)
{
	uint8_t code[CALL_MAX];
	size_t len = call_encode(code, call->form, call->off);
	struct stub *own;
	int ret;

	if (call->way != PC_CALL_DISPLACEMENT) {
		ret = stub_get(&own, &place->stubs, call_end(call), STUB_ANY, NULL);
		if (ret < 0)
			return ret;
		call_encode(code, call->form, call_to_stub(call, own));
		call->on = call_first(call, code);
		call->own = own;
		call->moved = CALL_OWN;
		memcpy(code, &call_shape(call)->off, sizeof(uint16_t));
	}
	place->off = call->off;
	return memcmp(code, there, len) == 0 ? 0 : pc_patch(call->addr, code, len);
}

static int init_at(struct pc_call *call, struct call_place *place)
{
	struct stub *stub, *own = place->stubs.own;
	uint8_t code[CALL_MAX];
	int32_t displacement;
	int is_off, ret = 0;

	*call = (struct pc_call){ .addr = (uint8_t *)place->entry.addr, .way = PC_CALL_FRONT };
	is_off = look_at_code(call, code);
	if (is_off < 0)
		return is_off;
	place->len = call_shape(call)->len;
	if (has_overlap(place->entry.addr, place->len))
		return -EBUSY;
	if (call_shape(call)->tail)
		call->way = PC_CALL_TAIL;
	else if (call_split(call) <= call_shape(call)->opcode)
		call->way = PC_CALL_DISPLACEMENT;
	if (!is_off)
		call->on = call_first(call, code);
	if (call->way == PC_CALL_DISPLACEMENT)
		ret = find_ret(call);
	if (ret < 0)
		return ret;
	if (is_off)
		return turn_into_off(call, place, code);
	memcpy(&displacement, code + call_shape(call)->opcode, DISPLACEMENT);
	/*
	 * The stubs that an earlier pc_call had here are kept, if the code is still such that they
	 * will do: the code may lead through one, and a thread may be inside.
	 */
	while (own && !stub_fits(own, call_low(call)))
		own = own->next;
	call->own = own;
	call->shared = place->stubs.shared;
	stub = call_stub_at(call, displacement);
	if (stub)
		call->moved = stub == own ? CALL_OWN : CALL_SHARED;
	if (call->way != PC_CALL_DISPLACEMENT && call->moved != CALL_SHARED)
		call->shared = NULL;
	/* Turned off by us, through a pc_call that gave it up. */
	if (call->off && place->off && displacement == place->off) {
		call->off = place->off;
		return 0;
	}
	place->off = call->off;
	call->original = stub && !call_shape(call)->slot
				 ? atomic_load(&stub->target)
				 : (void *)(call_end(call) + (uintptr_t)displacement);
	return 0;
}

static int enter_library(struct thread **self)
{
	int ret = choice_sync() ? fork_enter(self) : -ESHUTDOWN;

	if (ret == 0)
		forget_gone();
	return ret;
}

int pc_call_init(struct pc_call *call, void *addr)
{
	struct call_place *place;
	struct pc_call ready;
	struct thread *self;
	int ret;

	if (!call || !addr)
		return -EINVAL;
	if (own_overlaps(addr, CALL_MAX))
		return -EPERM;
	ret = enter_library(&self);
	if (ret < 0)
		return ret;
	lock_take(&lock);
	place = (struct call_place *)table_get(&places, (uintptr_t)addr);
	if (!place)
		ret = -ENOMEM;
	else
		ret = atomic_load(&place->user) ? -EBUSY : init_at(&ready, place);
	if (ret == 0) {
		ready.number = ++numbers;
		*call = ready;
		atomic_store(&place->user, ready.number);
	}
	lock_drop(&lock);
	fork_leave(self);
	return ret;
}

int pc_call_fini(struct pc_call *call)
{
	struct call_place *place;
	struct thread *self;
	int ret;

	if (!call || !call->addr)
		return -EINVAL;
	ret = enter_library(&self);
	if (ret < 0)
		return ret;
	place = place_of(call);
	if (place) {
		*call = (struct pc_call){ 0 };
		atomic_store(&place->user, 0);
	}
	fork_leave(self);
	return place ? 0 : -ENOENT;
}
