/* SPDX-License-Identifier: MIT */
/*
 * Getting a call ready: what stands there, how it will be turned on and off, and
 * what that takes. All that is allocated is allocated here, so that turning it on
 * and off may be done in a signal handler.
 */
#include <errno.h>
#include <string.h>

#include "patchcore/call/call_form.h"
#include "patchcore/call/call_place.h"
#include "patchcore/machine/policy.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/site.h"
#include "patchcore/text/objects.h"
#include "patchcore/text/text.h"

/* What is there, and whether loads from it may fault. */
struct looked {
	struct call_found found;
	uint8_t code[CALL_MAX];
	bool hidden;
};

static int recognise_call(struct looked *looked, const uint8_t *addr, size_t len)
{
	int ret = text_read(looked->code, addr, len);

	if (ret < 0)
		return ret;
	looked->hidden = ret;
	return call_recognise(&looked->found, looked->code, len);
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
	bool slot = call_shape(call)->slot;
	struct stub_ret found;
	int ret = stub_ret_get(&found, call_end(call));
	uintptr_t to;

	if (ret < 0 && ret != -ENOSPC && ret != -EACCES)
		return ret;
	if (ret == 0)
		to = slot ? found.slot : found.code;
	else
		to = slot ? 0 : stub_find_ret(call_end(call));
	if (to)
		call->off = call_displacement(call, (void *)to);
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

static void start_on(struct pc_call *call, const struct looked *looked)
{
	int32_t displacement = looked->found.displacement;
	uintptr_t target = call_end(call) + (uintptr_t)displacement;
	const struct stub *own = call_own(call);

	call->on = call_first(looked->code, call->way);
	/* Turned off by us, through a pc_call that gave it up. */
	if (call->way == PC_CALL_DISPLACEMENT && stub_is_ret(target)) {
		call->off = displacement;
		return;
	}
	if (own && displacement == call_to_own(call, own)) {
		call->moved = 1;
		if (!call_shape(call)->slot)
			target = (uintptr_t)atomic_load(&own->target);
	}
	call->original = (void *)target;
}

static int init_at(struct pc_call *call, struct call_place *place)
{
	uint8_t *addr = (uint8_t *)place->entry.addr;
	struct stub *own = place->own;
	struct looked looked;
	unsigned len;
	int ret = look_at_code(&looked, addr), low;

	if (ret < 0)
		return ret;
	len = call_shapes[looked.found.form].len;
	ret = call_place_claim(place, len);
	if (ret < 0)
		return ret;
	*call = (struct pc_call){
		.addr = addr,
		.form = looked.found.form,
		.way = call_way(looked.found.form, call_split(addr, len)),
		.hidden = looked.hidden,
	};
	if (!looked.found.off)
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
	if (looked.found.off)
		return turn_into_off(call, looked.code);
	start_on(call, &looked);
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
			call_place_leave(place, place->own);
		} else {
			ready.number = call_place_ready(place);
			*call = ready;
		}
	}
	fork_leave(self);
	return ret;
}

/* Where it cannot be told, it may. */
static bool may_be_run(const struct pc_call *call, const struct stub *own)
{
	int32_t displacement;

	return call->way == PC_CALL_DISPLACEMENT || call->moved || call->moving ||
	       text_read(&displacement, call_operand(call), sizeof(displacement)) < 0 ||
	       displacement == call_to_own(call, own);
}

int pc_call_fini(struct pc_call *call)
{
	struct call_place *place;
	struct thread *self;
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
	place = call_place_of(call->addr, call->number);
	if (place) {
		own = call_own(call);
		/* The code has never led there: the patch that was to change that failed. */
		if (own && !may_be_run(call, own)) {
			stub_put(own);
			own = NULL;
		}
		*call = (struct pc_call){ 0 };
		call_place_leave(place, own);
	} else {
		ret = -ENOENT;
	}
	fork_leave(self);
	return ret;
}
