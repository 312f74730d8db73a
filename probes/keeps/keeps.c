/* SPDX-License-Identifier: MIT */
#include "probes/keeps/keeps.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>
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
	unsigned returns;
	size_t last_return;
	struct leaf leaf; /* by what was decoded so far */
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

static bool loads_state(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_LDMXCSR || mnemonic == ZYDIS_MNEMONIC_FXRSTOR ||
	       mnemonic == ZYDIS_MNEMONIC_FXRSTOR64;
}

/* XRSTOR and the like name no register that they load: so it is asked what it belongs to. */
static enum keeps keeps_by_set(const ZydisDecodedInstruction *insn)
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
		return KEEPS_ALL;
	case ZYDIS_ISA_EXT_SSE:
	case ZYDIS_ISA_EXT_SSE2:
	case ZYDIS_ISA_EXT_SSE3:
	case ZYDIS_ISA_EXT_SSSE3:
	case ZYDIS_ISA_EXT_SSE4:
		return loads_state(insn->mnemonic) ? KEEPS_UNKNOWN : KEEPS_FLAGS;
	default:
		return KEEPS_UNKNOWN;
	}
}

/* Does it move, or compute with integers or bits? Others may set flags in MXCSR. */
static bool keeps_flags(ZydisMnemonic mnemonic)
{
	static const char *const beginnings[] = { "mov", "p", "and", "or", "xor", "shuf", "unpck" };
	const char *name = ZydisMnemonicGetString(mnemonic);

	for (size_t i = 0; name && i < sizeof(beginnings) / sizeof(*beginnings); i++)
		if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

static enum keeps keeps_by_registers(const ZydisDecodedInstruction *insn,
				     const ZydisDecodedOperand *operands)
{
	enum keeps keeps = keeps_by_set(insn);

	if (keeps == KEEPS_FLAGS && !keeps_flags(insn->mnemonic))
		keeps = KEEPS_UPPER;
	for (unsigned i = 0; i < insn->operand_count; i++) {
		ZydisRegister reg = operands[i].reg.value;

		if (operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER || is_general(reg) ||
		    (reg == ZYDIS_REGISTER_MXCSR && keeps == KEEPS_UPPER))
			continue;
		if (keeps > KEEPS_FLAGS || reg < ZYDIS_REGISTER_XMM0 ||
		    reg >= ZYDIS_REGISTER_XMM0 + KEEPS_XMM)
			return KEEPS_UNKNOWN;
	}
	return keeps;
}

/* --- Elsewhere -------------------------------------------------------------------------------- */

static unsigned number_of(ZydisRegister reg)
{
	return (unsigned)ZydisRegisterGetId(
		ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg));
}

static uint16_t bit_of(ZydisRegister reg)
{
	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
		return (uint16_t)(1u << number_of(reg));
	default:
		return 0;
	}
}

static void note_registers(struct leaf *leaf, const ZydisDecodedOperand *operand)
{
	if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		leaf->reads |= bit_of(operand->mem.base) | bit_of(operand->mem.index);
		return;
	}
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		leaf->reads |= bit_of(operand->reg.value);
	if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		leaf->writes |= bit_of(operand->reg.value);
}

static bool note_distance(struct look *look, size_t at, const ZydisDecodedInstruction *insn,
			  ZydisRegister base)
{
	struct leaf *leaf = &look->leaf;

	if (base == ZYDIS_REGISTER_EIP || insn->raw.disp.size != 32 ||
	    leaf->relatives == KEEPS_RELATIVE)
		return false;
	leaf->relative[leaf->relatives++] = (uint8_t)(at + insn->raw.disp.offset);
	return true;
}

static bool is_return(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_RET;
}

/*
 * The copy has no return address, and other things on the stack. A NOP of one byte may become a
 * part of a site, whose calls are to be counted.
 */
static bool note(struct look *look, size_t at, const ZydisDecodedInstruction *insn,
		 const ZydisDecodedOperand *operands)
{
	if (is_return(insn)) {
		look->returns++;
		look->last_return = at;
		return insn->length <= 2; /* RET, REP RET */
	}
	for (unsigned i = 0; i < insn->operand_count; i++) {
		const ZydisDecodedOperand *one = &operands[i];
		ZydisRegister base = one->mem.base;

		note_registers(&look->leaf, one);
		if (one->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (base == ZYDIS_REGISTER_RIP || base == ZYDIS_REGISTER_EIP) &&
		    !note_distance(look, at, insn, base))
			return false;
	}
	return insn->mnemonic != ZYDIS_MNEMONIC_NOP || insn->length > 1;
}

static bool moves(const struct look *look)
{
	uint16_t stack = (uint16_t)(1u << number_of(ZYDIS_REGISTER_RSP));

	return look->leaf.moves && look->leaf.keeps == KEEPS_ALL && look->returns == 1 &&
	       look->last_return + 2 >= look->end &&
	       !((look->leaf.reads | look->leaf.writes) & stack);
}

/* --- All paths -------------------------------------------------------------------------------- */

/* Where it goes on from @at; false: not to be told. */
static bool follow_jump(struct look *look, size_t at, const ZydisDecodedInstruction *insn,
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
	enum keeps keeps;

	while (look->left) {
		size_t at = look->ahead[--look->left];
		const uint8_t *code = look->code + at;

		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&look->decoder, code, readable(code), &insn,
						       operands))) {
			look->end = 0;
			return false;
		}
		if (at + insn.length > look->end)
			look->end = at + insn.length;
		keeps = keeps_by_registers(&insn, operands);
		if (!keeps || !follow_jump(look, at, &insn, operands))
			return false;
		if (keeps < look->leaf.keeps)
			look->leaf.keeps = keeps;
		look->leaf.moves &= note(look, at, &insn, operands);
	}
	return look->end <= KEEPS_BYTES;
}

static struct leaf look_anew(struct look *look)
{
	if (ZYAN_FAILED(ZydisDecoderInit(&look->decoder, ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64)))
		return (struct leaf){ 0 };
	look_at(look, 0);
	if (!decode_all(look))
		return (struct leaf){ 0 };
	look->leaf.moves = moves(look);
	look->leaf.size = (uint8_t)look->last_return;
	return look->leaf;
}

struct leaf keeps_look(uintptr_t function)
{
	static struct {
		uintptr_t function;
		uint8_t bytes[KEEPS_BYTES];
		size_t len;
		struct leaf leaf;
	} last;
	struct look look = {
		.code = (const uint8_t *)function,
		.leaf = { .keeps = KEEPS_ALL, .moves = true },
	};

	if (last.len && last.function == function && !memcmp(last.bytes, look.code, last.len))
		return last.leaf;
	last.len = 0;
	last.leaf = look_anew(&look);
	/* What a function was refused for lies in these bytes, too. */
	if (look.end > KEEPS_BYTES)
		return last.leaf;
	last.function = function;
	last.len = look.end;
	memcpy(last.bytes, look.code, look.end);
	return last.leaf;
}
