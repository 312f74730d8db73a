/* SPDX-License-Identifier: MIT */
/*
 * What a call looks like, and what may stand in its place. Private.
 */
#ifndef PATCHCORE_CALL_CALL_FORM_H
#define PATCHCORE_CALL_CALL_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patchcore/call.h"

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

/* What was found. */
struct call_found {
	enum call_form form;
	bool off; /* has no target, and is not yet of our making */
	int32_t displacement;
};

/*
 * call_recognise - what stands in the first len bytes of code. 0, or -ENOENT.
 */
int call_recognise(struct call_found *found, const uint8_t *code, size_t len);

/* call_split - bytes before an 8-byte boundary that the call crosses, or 0. */
unsigned call_split(const void *addr, unsigned len);

/* call_way - how a call of that form is turned on and off there. */
enum pc_call_way call_way(enum call_form form, unsigned split);

/* call_encode - the instruction, with that displacement. Returns its length. */
size_t call_encode(uint8_t code[CALL_MAX], enum call_form form, int32_t displacement);

/* call_encode_off - put what stands for off by FRONT or TAIL into the first bytes of code. */
void call_encode_off(uint8_t code[CALL_MAX], enum call_form form);

/* call_first - the first bytes of code as a number: two, or one of a tail call. */
uint16_t call_first(const uint8_t *code, enum pc_call_way way);

#endif
