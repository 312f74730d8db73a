/* SPDX-License-Identifier: MIT */
/*
 * Getting a call ready: what stands there, how it will be turned on and off, and
 * what that takes. All that is allocated is allocated here, so that turning it on
 * and off may be done in a signal handler.
 */
#include <errno.h>
#include <string.h>

#include "patchcore/call_own.h"
#include "patchcore/library.h"
#include "patchcore/patchcore.h"
#include "patchcore/stub_place.h"
#include "patchcore/text.h"

/* The lowest byte of a stub's address that keeps d0 (see call.c). */
static int low_of(const struct pc_call *call)
{
	if (call->way != PC_CALL_FRONT || call_shape(call)->opcode != 1 || !call->on)
		return STUB_ANY;
	return (uint8_t)(call_end(call) + (call->on >> 8));
}

int call_own_get(struct pc_call *call, struct stub **own)
{
	struct stub *made;
	void *none = NULL;
	int ret;

	*own = call_own(call);
	if (*own)
		return 0;
	ret = stub_get(&made, call_end(call), low_of(call));
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

static int recognise(struct call_found *found, uint8_t code[CALL_MAX], uint8_t *addr, size_t len)
{
	struct text_span span;
	int ret = text_begin(&span, addr, len);

	if (ret < 0)
		return ret;
	memcpy(code, addr, len);
	text_end(&span);
	return call_recognise(found, code, len);
}

/* No more bytes are read than the call has: it may end where the mapping ends. */
static int look(struct call_found *found, uint8_t code[CALL_MAX], uint8_t *addr)
{
	int ret = recognise(found, code, addr, CALL_MAX - 1);

	if (ret != -ENOENT)
		return ret;
	ret = recognise(found, code, addr, CALL_MAX);
	return ret == -EFAULT ? -ENOENT : ret;
}

/* Turned off by us, through a pc_call that is no more. */
static bool is_off(const struct pc_call *call, const struct call_found *found)
{
	return call->way == PC_CALL_DISPLACEMENT && !found->off &&
	       stub_is_ret(call_end(call) + (uintptr_t)found->displacement);
}

/* Two bytes of front where there is nothing for the displacement to lead to. */
static int fall_back(struct pc_call *call)
{
	if (call_split(call->addr, call_shape(call)->len) == 1)
		return -ENOSPC;
	call->way = PC_CALL_FRONT;
	return 0;
}

static int find_ret(struct pc_call *call)
{
	struct stub_ret found;
	int ret = stub_ret_get(&found, call_end(call));

	if (ret == 0) {
		uintptr_t to = call_shape(call)->slot ? found.slot : found.code;

		call->off = call_displacement(call, (void *)to);
		return 0;
	}
	if (ret != -ENOSPC && ret != -EACCES)
		return ret;
	found.code = call_shape(call)->slot ? 0 : stub_find_ret(call_end(call));
	if (!found.code)
		return fall_back(call);
	call->off = call_displacement(call, (void *)found.code);
	return 0;
}

/* As pc_patch(), which need not be told of a change that is none. */
static int patch(const struct pc_call *call, const uint8_t code[CALL_MAX], size_t len,
		 const uint8_t *there)
{
	return memcmp(code, there, len) == 0 ? 0 : pc_patch(call->addr, code, len);
}

/* Put our off form where there was some other one. */
static int turn_into_off(struct pc_call *call, const uint8_t *there)
{
	uint8_t code[CALL_MAX];
	struct stub *own;
	size_t len;
	int ret;

	if (call->way == PC_CALL_DISPLACEMENT) {
		len = call_encode(code, call->form, call->off);
		return patch(call, code, len, there);
	}
	ret = call_own_get(call, &own);
	if (ret < 0)
		return ret;
	len = call_encode(code, call->form, call_to_own(call, own));
	call->on = call_first(code, call->way);
	call->moved = 1;
	call_encode_off(code, call->form);
	ret = patch(call, code, len, there);
	if (ret < 0)
		stub_put(own);
	return ret;
}

static int set_up(struct pc_call *call, const uint8_t *code, const struct call_found *found)
{
	uintptr_t target = call_end(call) + (uintptr_t)found->displacement;
	int ret = call->way == PC_CALL_DISPLACEMENT ? find_ret(call) : 0;

	if (ret < 0)
		return ret;
	if (found->off)
		return turn_into_off(call, code);
	call->on = call_first(code, call->way);
	if (is_off(call, found))
		call->off = found->displacement;
	else
		call->original = (void *)target;
	return 0;
}

int pc_call_init(struct pc_call *call, void *addr)
{
	struct pc_call ready = { .addr = addr };
	struct call_found found;
	uint8_t code[CALL_MAX];
	int ret;

	if (!call || !addr)
		return -EINVAL;
	if (!library_sync())
		return -ESHUTDOWN;
	ret = look(&found, code, addr);
	if (ret < 0)
		return ret;
	ready.form = found.form;
	ready.way = call_way(found.form, call_split(addr, call_shapes[found.form].len));
	ret = set_up(&ready, code, &found);
	if (ret == 0)
		*call = ready;
	return ret;
}
