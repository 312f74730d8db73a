/* SPDX-License-Identifier: MIT */
/*
 * Static calls: sixteen aligned bytes to which all callers of one name call.
 *
 *	FF 25 rel32	jmp *slot(%rip), as it is compiled
 *	E9 rel32	jmp target, where that is in reach
 *
 * Both lie in one aligned word: either replaces the other by one store. pc_call_init() takes FF 25,
 * too, but keeps the load of the slot, which is saved here.
 *
 * The slot is written first: while the code is FF 25 that is the change, and with E9 nothing reads
 * the slot.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <patchcore/patchcore.h>

#include "probes/elf/array.h"
#include "probes/include/fastinst/branch.h"
#include "probes/providers/branch.h"

#define DIRECT_LEN 5
#define SLOT_LEN   6
#define JMP_REL32  0xe9

struct static_call {
	const char *name;
	const struct object *object;
	uint8_t *at; /* NULL: not found since the object was loaded again */
	void **slot;
	bool direct;
};

static struct static_call *calls;
static size_t calls_n;

/* The jump that the compiler has put there. */
static void encode_slot_jump(const struct static_call *call, uint8_t code[SLOT_LEN])
{
	int32_t rel = (int32_t)((uint8_t *)call->slot - (call->at + SLOT_LEN));

	memcpy(code, (const uint8_t[]){ 0xff, 0x25 }, 2);
	memcpy(code + 2, &rel, sizeof(rel));
}

static int point_call(struct static_call *call, void *target)
{
	void *old = __atomic_load_n(call->slot, __ATOMIC_RELAXED);
	uint8_t code[SLOT_LEN];
	bool direct = !site_rel32(code, JMP_REL32, call->at, target);
	int ret = 0;

	__atomic_store_n(call->slot, target, __ATOMIC_RELEASE);
	if (!direct)
		encode_slot_jump(call, code);
	if (direct || call->direct)
		ret = pc_patch(call->at, code, direct ? DIRECT_LEN : SLOT_LEN);
	if (!ret)
		call->direct = direct;
	else
		__atomic_store_n(call->slot, old, __ATOMIC_RELEASE);
	return ret;
}

static bool is_call(const struct static_call *call)
{
	uint8_t code[SLOT_LEN];

	encode_slot_jump(call, code);
	return (uintptr_t)call->at % 16 == 0 && (uintptr_t)call->slot % sizeof(void *) == 0 &&
	       object_covers(call->object, (uintptr_t)call->at, 16, PF_X | PF_R) &&
	       object_covers(call->object, (uintptr_t)call->slot, sizeof(void *), PF_R | PF_W) &&
	       memcmp(call->at, code, sizeof(code)) == 0;
}

/* The call that the object had when it was loaded before, as names stay valid, or a new one. */
static struct static_call *get_call(const struct object *object, const char *name)
{
	struct static_call call = { .object = object };

	for (size_t i = 0; i < calls_n; i++)
		if (calls[i].object == object && !calls[i].at && !strcmp(calls[i].name, name))
			return &calls[i];
	call.name = strdup(name);
	if (!call.name || ARRAY_ADD(calls, calls_n, call)) {
		free((char *)call.name);
		return NULL;
	}
	return &calls[calls_n - 1];
}

int call_add(const struct entry *entry, void *data)
{
	const struct object *object = data;
	struct static_call *call, now = {
		.object = object,
		.at = (uint8_t *)(object->base + entry->site),
		.slot = (void **)(object->base + entry->other),
	};

	/* The file is damaged; the call stays as compiled. */
	if (!is_call(&now))
		return 0;
	call = get_call(object, entry->name);
	if (!call)
		return -ENOMEM;
	now.name = call->name;
	*call = now;
	/* If that fails, the slot serves. */
	point_call(call, *call->slot);
	return 0;
}

void call_forget(const struct object *object)
{
	for (size_t i = 0; i < calls_n; i++)
		if (calls[i].object == object) {
			calls[i].at = NULL;
			calls[i].direct = false;
		}
}

bool has_its_calls(const struct object *object)
{
	for (size_t i = 0; i < calls_n; i++)
		if (calls[i].object == object && calls[i].direct && *calls[i].at != JMP_REL32)
			return false;
	return true;
}

/* An order to change a call. */
struct wish {
	void *at;
	void *function;
};

static int retarget_held(void *data)
{
	const struct wish *wish = data;

	for (size_t i = 0; i < calls_n; i++)
		if (calls[i].at == wish->at && !calls[i].object->gone)
			return point_call(&calls[i], wish->function);
	return -ENOENT;
}

int fi_call_retarget(void *at, void *function)
{
	if (!at || !function)
		return -EINVAL;
	return objects_lock_hold(retarget_held, &(struct wish){ at, function });
}

static int describe_calls(void *data)
{
	struct branch_list *list = data;
	struct fi_call_state *states = list->states;

	for (size_t i = 0; i < calls_n; i++)
		if (calls[i].at && !calls[i].object->gone && list->n++ < list->max)
			states[list->n - 1] = (struct fi_call_state){ .name = calls[i].name,
								      .target = *calls[i].slot,
								      .direct = calls[i].direct };
	return 0;
}

long fi_calls(struct fi_call_state *states, size_t max)
{
	return branch_describe(describe_calls, states, max);
}
