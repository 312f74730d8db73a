/* SPDX-License-Identifier: MIT */
#include "patchcore/call/call_form.h"

#include <errno.h>
#include <string.h>

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

static bool begins(const uint8_t *code, size_t len, const uint8_t *with, size_t count,
		   enum call_form form)
{
	return len >= call_shapes[form].len && memcmp(code, with, count) == 0;
}

int call_recognise(struct call_found *found, const uint8_t *code, size_t len)
{
	*found = (struct call_found){ 0 };
	for (unsigned form = 0; form < CALL_FORMS; form++) {
		const struct call_shape *shape = &call_shapes[form];

		if (!begins(code, len, shape->code, shape->opcode, form))
			continue;
		found->form = form;
		memcpy(&found->displacement, code + shape->opcode, DISPLACEMENT);
		return 0;
	}
	for (size_t i = 0; i < sizeof(offs) / sizeof(*offs); i++) {
		if (!begins(code, len, offs[i].code, offs[i].compared, offs[i].form))
			continue;
		found->form = offs[i].form;
		found->off = true;
		return 0;
	}
	return -ENOENT;
}

unsigned call_split(const void *addr, unsigned len)
{
	unsigned before = CALL_WINDOW - ((uintptr_t)addr & (CALL_WINDOW - 1));

	return before < len ? before : 0;
}

enum pc_call_way call_way(enum call_form form, unsigned split)
{
	if (call_shapes[form].tail)
		return PC_CALL_TAIL;
	return split <= call_shapes[form].opcode ? PC_CALL_DISPLACEMENT : PC_CALL_FRONT;
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
