/* SPDX-License-Identifier: MIT */
#include "probes/keeps/keeps.h"

#include <Zydis/Zydis.h>
#include <string.h>

#define INSTRUCTION_MAX 15
#define PAGE		4096u
#define SITE		5 /* bytes of a call, and of what takes its place */
#define CALL_OFF	3 /* the short jump over the rest of a call that is off */

/* What is decoded: [0, end) has been reached so far, starts of it are marked. */
struct look {
	const uint8_t *code;
	ZydisDecoder decoder;
	bool seen[KEEPS_BYTES];
	uint8_t ahead[KEEPS_BYTES];
	unsigned left;
	size_t end;
};

static bool look_at(struct look *look, int64_t at)
{
	if (at < 0 || at >= KEEPS_BYTES)
		return false;
	if (!look->seen[at])
		look->ahead[look->left++] = (uint8_t)at;
	look->seen[at] = true;
	return true;
}

static bool is_general(ZydisRegister reg)
{
	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
	case ZYDIS_REGCLASS_FLAGS:
	case ZYDIS_REGCLASS_IP:
		return true;
	default:
		return false;
	}
}

/* What extension it belongs to: XRSTOR names no register that it loads. */
static bool is_of_integers(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands)
{
	switch (insn->meta.isa_ext) {
	case ZYDIS_ISA_EXT_BASE:
	case ZYDIS_ISA_EXT_BMI1:
	case ZYDIS_ISA_EXT_BMI2:
	case ZYDIS_ISA_EXT_CET:
	case ZYDIS_ISA_EXT_LONGMODE:
	case ZYDIS_ISA_EXT_LZCNT:
	case ZYDIS_ISA_EXT_MOVBE:
	case ZYDIS_ISA_EXT_RDTSCP:
		break;
	default:
		return false;
	}
	for (unsigned i = 0; i < insn->operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    !is_general(operands[i].reg.value))
			return false;
	return true;
}

/* Where it goes on from @at; false: not to be told. */
static bool follow(struct look *look, size_t at, const ZydisDecodedInstruction *insn,
		   const ZydisDecodedOperand *operands)
{
	int64_t next = (int64_t)at + insn->length;

	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_RET:
		return insn->mnemonic == ZYDIS_MNEMONIC_RET;
	case ZYDIS_CATEGORY_COND_BR:
		return look_at(look, next) && look_at(look, next + operands[0].imm.value.s);
	case ZYDIS_CATEGORY_UNCOND_BR:
		return operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && insn->length < SITE &&
		       operands[0].imm.value.s != CALL_OFF &&
		       look_at(look, next + operands[0].imm.value.s);
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSRET:
		return false;
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
		return insn->length != SITE && look_at(look, next);
	default:
		return look_at(look, next);
	}
}

/* Not beyond the page: what is there may be no memory. */
static size_t readable(const uint8_t *code)
{
	size_t left = PAGE - (uintptr_t)code % PAGE;

	return left < INSTRUCTION_MAX ? left : INSTRUCTION_MAX;
}

static bool decode_all(struct look *look)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;

	while (look->left) {
		size_t at = look->ahead[--look->left];
		const uint8_t *code = look->code + at;

		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&look->decoder, code, readable(code), &insn,
						       operands)) ||
		    !is_of_integers(&insn, operands) || !follow(look, at, &insn, operands))
			return false;
		if (at + insn.length > look->end)
			look->end = at + insn.length;
	}
	return look->end <= KEEPS_BYTES;
}

bool keeps_vectors(uintptr_t function)
{
	static struct {
		uintptr_t function;
		uint8_t bytes[KEEPS_BYTES];
		size_t len;
	} last;
	struct look look = { .code = (const uint8_t *)function };

	if (last.len && last.function == function && !memcmp(last.bytes, look.code, last.len))
		return true;
	last.len = 0;
	if (ZYAN_FAILED(ZydisDecoderInit(&look.decoder, ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64)))
		return false;
	look_at(&look, 0);
	if (!decode_all(&look))
		return false;
	last.function = function;
	last.len = look.end;
	memcpy(last.bytes, look.code, look.end);
	return true;
}
