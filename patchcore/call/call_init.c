/* SPDX-License-Identifier: MIT */
/*
 * Getting a call ready: what stands there, how it will be turned on and off, and
 * what that takes. All that is allocated is allocated here, so that turning it on
 * and off may be done in a signal handler.
 */
#include <errno.h>
#include <string.h>

#include "patchcore/call/call_form.h"
#include "patchcore/machine/policy.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/site.h"
#include "patchcore/text/objects.h"
#include "patchcore/text/text.h"
#include "patchcore/word/flight.h"

#define DISPLACEMENT 4 /* bytes */

const struct call_shape call_shapes[CALL_FORMS] = {
	[CALL_NEAR] = { .len = 5, .opcode = 1, .code = { 0xe8 } },
	[CALL_ADDR32] = { .len = 6, .opcode = 2, .code = { 0x67, 0xe8 } },
	[CALL_SLOT] = { .len = 6, .opcode = 2, .code = { 0xff, 0x15 }, .slot = true },
	[CALL_TAIL] = { .len = 5, .opcode = 1, .code = { 0xe9 }, .tail = true },
	[CALL_TAIL_SLOT] = { .len = 6,
			     .opcode = 2,
			     .code = { 0xff, 0x25 },
			     .slot = true,
			     .tail = true },
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

unsigned call_split(const void *addr, unsigned len)
{
	unsigned before = CALL_WINDOW - ((uintptr_t)addr & (CALL_WINDOW - 1));

	return before < len ? before : 0;
}

size_t call_encode(uint8_t code[CALL_MAX], enum call_form form, int32_t displacement)
{
	const struct call_shape *shape = &call_shapes[form];

	memcpy(code, shape->code, shape->opcode);
	memcpy(code + shape->opcode, &displacement, DISPLACEMENT);
	return shape->len;
}

void call_encode_off(uint8_t code[CALL_MAX], enum call_form form)
{
	if (call_shapes[form].tail) {
		code[0] = 0xc3; /* ret */
		return;
	}
	code[0] = 0xeb; /* jmp */
	code[1] = (uint8_t)(call_shapes[form].len - 2);
}

uint16_t call_first(const uint8_t *code, enum pc_call_way way)
{
	return way == PC_CALL_TAIL ? code[0] : (uint16_t)(code[0] | code[1] << 8);
}

void call_go_on(const void *addr)
{
	struct site *site = site_find((uintptr_t)addr);

	if (site)
		flight_step(site);
}

int call_own_get(struct pc_call *call, struct stub **own)
{
	struct stub *made;
	void *none = NULL;
	int ret;

	*own = call_own(call);
	if (*own)
		return 0;
	ret = stub_get(&made, call_end(call), call_low(call));
	if (ret < 0)
		return ret == -EACCES ? -ENOSPC : ret;
	*own = made;
	if (__atomic_compare_exchange_n(&call->own, &none, made, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return 0;
	/* Another thread was faster. */
	stub_put(made);
	*own = none;
	return 0;
}

/* --- Which calls are under a pc_call -----------------------------------------------------------
 */

static struct table places = TABLE_INIT(struct call_place, 6, NULL);
static _Atomic(uint64_t) numbers; /* relaxed: only to be different */

static uint64_t user_of(const struct call_place *place)
{
	return atomic_load_explicit(&place->user, memory_order_acquire);
}

/* By a thread that ended, or stayed behind in a fork, before it was ready. */
static bool is_abandoned(uint64_t user)
{
	uint64_t taker = user & ~CALL_PLACE_TAKING;

	return taker != user && thread_is_gone(taker);
}

int call_place_take(struct call_place **taken, const void *addr)
{
	struct call_place *place = (struct call_place *)table_get(&places, (uintptr_t)addr);
	uint64_t seen;

	if (!place)
		return -ENOMEM;
	seen = user_of(place);
	if (seen && !is_abandoned(seen))
		return -EBUSY;
	if (!atomic_compare_exchange_strong_explicit(&place->user, &seen,
						     CALL_PLACE_TAKING | thread_id(),
						     memory_order_acquire, memory_order_relaxed))
		return -EBUSY;
	*taken = place;
	return 0;
}

/* Does a call that begins at from, and is not at a free place, have the byte at addr? */
static bool has_byte(uintptr_t from, uintptr_t addr)
{
	const struct call_place *place = (void *)table_find(&places, from);

	return place && from + atomic_load(&place->len) > addr && user_of(place) &&
	       !is_abandoned(user_of(place));
}

/* Sequentially consistent: of two that overlap, one at least sees the other's length. */
int call_place_claim(struct call_place *place, unsigned len)
{
	uintptr_t addr = place->entry.addr;

	atomic_store(&place->len, len);
	for (uintptr_t i = 1; i < CALL_MAX; i++)
		if (has_byte(addr - i, addr) || (i < len && has_byte(addr + i, addr + i)))
			return -EBUSY;
	return 0;
}

static void leave_place(struct call_place *place, struct stub *own)
{
	place->own = own;
	atomic_store_explicit(&place->len, 0, memory_order_relaxed);
	atomic_store_explicit(&place->user, 0, memory_order_release);
}

struct range {
	uintptr_t start;
	uintptr_t end;
};

static int forget_place(struct entry *entry, void *arg)
{
	const struct range *range = arg;

	if (entry->addr >= range->start && entry->addr < range->end)
		leave_place((struct call_place *)entry, NULL);
	return 0;
}

void call_places_forget(uintptr_t start, uintptr_t end)
{
	struct range range = { start, end };

	table_each(&places, forget_place, &range);
}

/* --- A look at it ----------------------------------------------------------------------------- */

/* What is there, and whether loads from it may fault. */
struct looked {
	enum call_form form;
	bool off; /* has no target, and is not yet of our making */
	int32_t displacement;
	uint8_t code[CALL_MAX];
	bool hidden;
};

/* What stands in the first len bytes. -ENOENT: no call. */
static int recognise_call(struct looked *looked, const uint8_t *addr, size_t len)
{
	const uint8_t *code = looked->code;
	int ret = text_read(looked->code, addr, len);

	if (ret < 0)
		return ret;
	looked->hidden = ret;
	looked->off = false;
	for (unsigned form = 0; form < CALL_FORMS; form++) {
		const struct call_shape *shape = &call_shapes[form];

		looked->form = form;
		memcpy(&looked->displacement, code + shape->opcode, DISPLACEMENT);
		if (len >= shape->len && memcmp(code, shape->code, shape->opcode) == 0)
			return 0;
	}
	looked->off = true;
	for (size_t i = 0; i < sizeof(offs) / sizeof(*offs); i++) {
		looked->form = offs[i].form;
		if (len >= call_shapes[looked->form].len &&
		    memcmp(code, offs[i].code, offs[i].compared) == 0)
			return 0;
	}
	return -ENOENT;
}

/* No more bytes are read than the call has: it may end where the mapping ends. */
static int look_at_code(struct looked *looked, const uint8_t *addr)
{
	struct site *site = NULL;
	int ret = recognise_call(looked, addr, CALL_MAX - 1);

	if (ret != -ENOENT)
		return ret;
	/* An INT3 where a change is under way, or was left by a thread that is no more. */
	if (looked->code[0] == WORD_INT3)
		site = site_find((uintptr_t)addr);
	if (site && site_turn(site) % 2) {
		call_go_on(addr);
		return -EAGAIN;
	}
	ret = recognise_call(looked, addr, CALL_MAX);
	return ret == -EFAULT ? -ENOENT : ret;
}

/* Where off leads; two bytes of front, where there is nothing for the displacement to lead to. */
static int find_ret(struct pc_call *call)
{
	struct stub_ret found;
	int ret = stub_ret_get(&found, call_end(call));

	if (ret < 0 && ret != -ENOSPC && ret != -EACCES)
		return ret;
	if (ret == 0)
		call->off = call_displacement(
			call, (void *)(call_shape(call)->slot ? found.slot : found.code));
	else if (call_split(call->addr, call_shape(call)->len) == 1)
		return -ENOSPC;
	else
		call->way = PC_CALL_FRONT;
	return 0;
}

/* As pc_patch(), which need not be told of a change that is none. */
static int patch_call(const struct pc_call *call, const uint8_t code[CALL_MAX], size_t len,
		      const uint8_t *there)
{
	return memcmp(code, there, len) == 0 ? 0 : pc_patch(call->addr, code, len);
}

/* Put our off form where there was some other one. */
static int turn_into_off(struct pc_call *call, const uint8_t *there)
{
	struct stub *had = call_own(call), *own;
	uint8_t code[CALL_MAX];
	size_t len;
	int ret;

	if (call->way == PC_CALL_DISPLACEMENT) {
		len = call_encode(code, call->form, call->off);
		return patch_call(call, code, len, there);
	}
	ret = call_own_get(call, &own);
	if (ret < 0)
		return ret;
	len = call_encode(code, call->form, call_to_own(call, own));
	call->on = call_first(code, call->way);
	call->moved = 1;
	call_encode_off(code, call->form);
	ret = patch_call(call, code, len, there);
	if (ret < 0 && !had)
		stub_put(own);
	return ret;
}

static int init_at(struct pc_call *call, struct call_place *place)
{
	uint8_t *addr = (uint8_t *)place->entry.addr;
	struct stub *own = place->own;
	struct looked looked;
	uintptr_t target;
	unsigned len;
	int ret = look_at_code(&looked, addr), low;

	if (ret < 0)
		return ret;
	len = call_shapes[looked.form].len;
	ret = call_place_claim(place, len);
	if (ret < 0)
		return ret;
	*call = (struct pc_call){
		.addr = addr,
		.form = looked.form,
		.way = PC_CALL_FRONT,
		.hidden = looked.hidden,
	};
	if (call_shape(call)->tail)
		call->way = PC_CALL_TAIL;
	else if (call_split(addr, len) <= call_shape(call)->opcode)
		call->way = PC_CALL_DISPLACEMENT;
	if (!looked.off)
		call->on = call_first(looked.code, call->way);
	/*
	 * The stub that an earlier pc_call had here is kept, if the code is still such that it will
	 * do: the code may lead through it, and a thread may be inside.
	 */
	low = call_low(call);
	if (own && (low == STUB_ANY || (uint8_t)(uintptr_t)own->code == low))
		call->own = own;
	if (call->way == PC_CALL_DISPLACEMENT)
		ret = find_ret(call);
	if (ret < 0)
		return ret;
	if (looked.off)
		return turn_into_off(call, looked.code);
	target = call_end(call) + (uintptr_t)looked.displacement;
	own = call_own(call);
	/* Turned off by us, through a pc_call that gave it up. */
	if (call->way == PC_CALL_DISPLACEMENT && stub_is_ret(target)) {
		call->off = looked.displacement;
		return 0;
	}
	if (own && looked.displacement == call_to_own(call, own)) {
		call->moved = 1;
		if (!call_shape(call)->slot)
			target = (uintptr_t)atomic_load(&own->target);
	}
	call->original = (void *)target;
	return 0;
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
	if (!choice_sync())
		return -ESHUTDOWN;
	ret = fork_enter(&self);
	if (ret < 0)
		return ret;
	forget_gone();
	ret = call_place_take(&place, addr);
	if (ret == 0) {
		ret = init_at(&ready, place);
		if (ret < 0) {
			leave_place(place, place->own);
		} else {
			ready.number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
			atomic_store_explicit(&place->user, ++ready.number, memory_order_release);
			*call = ready;
		}
	}
	fork_leave(self);
	return ret;
}

int pc_call_fini(struct pc_call *call)
{
	struct call_place *place;
	struct thread *self;
	int32_t displacement;
	struct stub *own;
	int ret;

	if (!call || !call->addr)
		return -EINVAL;
	if (!choice_sync())
		return -ESHUTDOWN;
	ret = fork_enter(&self);
	if (ret < 0)
		return ret;
	forget_gone();
	place = (struct call_place *)table_find(&places, (uintptr_t)call->addr);
	if (place && user_of(place) == call->number) {
		own = call_own(call);
		/* The code has never led there: the patch that was to change that failed. */
		if (own && call->way != PC_CALL_DISPLACEMENT && !call->moved && !call->moving &&
		    text_read(&displacement, call_operand(call), sizeof(displacement)) >= 0 &&
		    displacement != call_to_own(call, own)) {
			stub_put(own);
			own = NULL;
		}
		*call = (struct pc_call){ 0 };
		leave_place(place, own);
	} else {
		ret = -ENOENT;
	}
	fork_leave(self);
	return ret;
}
