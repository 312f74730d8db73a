/* SPDX-License-Identifier: MIT */
/*
 * What an instruction does, by Zydis. A branch with an operand-size prefix is none: AMD takes two
 * bytes of distance behind it, Intel four. With REX.W, too, the prefix means nothing: so compilers
 * call __tls_get_addr().
 */
#include "probes/insn/insn.h"

#include "probes/insn/zydis.h"

/* --- Where it leads ------------------------------------------------------------------------- */

static bool depends_on_vendor(const ZydisDecodedInstruction *insn)
{
	return insn->raw.imm[0].is_relative && insn->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE &&
	       !insn->raw.rex.W;
}

static enum insn_flow find_flow(const ZydisDecodedInstruction *insn)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		return FLOW_CALL;
	case ZYDIS_MNEMONIC_JMP:
		return insn->raw.imm[0].is_relative ? FLOW_JUMP : FLOW_INDIRECT;
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return FLOW_END;
	default:
		return insn->raw.imm[0].is_relative ? FLOW_BRANCH : FLOW_ON;
	}
}

/* JRCXZ, LOOP and XBEGIN, and what a prefix makes another instruction of. */
static bool is_only_short(const ZydisDecodedInstruction *insn)
{
	return insn->raw.imm[0].is_relative &&
	       (insn->raw.prefix_count ||
		(insn->mnemonic != ZYDIS_MNEMONIC_JMP &&
		 insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && insn->opcode >> 4 != 7));
}

static void note_insn(struct insn *insn, const ZydisDecodedInstruction *decoded, uint64_t at)
{
	uint64_t next = at + decoded->length;

	*insn = (struct insn){
		.at = at,
		.len = decoded->length,
		.flow = (uint8_t)find_flow(decoded),
		.condition = decoded->opcode & 0xf,
		.traps = decoded->meta.category == ZYDIS_CATEGORY_SYSCALL ||
			 decoded->meta.category == ZYDIS_CATEGORY_INTERRUPT,
		.only_short = is_only_short(decoded),
		.is_nop = decoded->mnemonic == ZYDIS_MNEMONIC_NOP ||
			  decoded->mnemonic == ZYDIS_MNEMONIC_INT3,
		.sets = -1,
		.copies = -1,
		.to = INSN_NONE,
		.table = INSN_NONE,
	};
	if (decoded->raw.imm[0].is_relative)
		insn->target = next + decoded->raw.imm[0].value.u;
	if (decoded->attributes & ZYDIS_ATTRIB_HAS_MODRM && decoded->raw.modrm.mod == 0 &&
	    decoded->raw.modrm.rm == 5) {
		insn->memory = next + (uint64_t)decoded->raw.disp.value;
		insn->distance = decoded->raw.disp.offset;
	}
}

/* --- Registers -------------------------------------------------------------------------------- */

static bool is_relative_operand(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       operand->mem.base == ZYDIS_REGISTER_RIP;
}

/* A constant or copy of 64 bits, or of 32 with zeros above. */
static void note_constant(struct insn *insn, const struct decoded *decoded)
{
	const ZydisDecodedOperand *to = &decoded->operand[0], *from = &decoded->operand[1];
	int reg = low_register(to);

	if (reg < 0 || to->size < 32)
		return;
	if (decoded->insn.mnemonic == ZYDIS_MNEMONIC_LEA) {
		if (to->size != 64 || !is_relative_operand(from))
			return;
		insn->constant = (struct constant){ CONSTANT_ADDRESS, insn->memory };
	} else if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		insn->constant = (struct constant){ CONSTANT_NUMBER,
						    to->size == 64 ? from->imm.value.u
								   : (uint32_t)from->imm.value.u };
	} else if (is_relative_operand(from) && to->size == 64 &&
		   from->mem.segment != ZYDIS_REGISTER_FS) {
		insn->constant = (struct constant){ CONSTANT_SLOT, insn->memory };
	} else {
		insn->copies = (int8_t)low_register(from);
		if (insn->copies < 0)
			return;
	}
	insn->sets = (int8_t)reg;
}

static bool is_xchg_ax(const struct decoded *decoded)
{
	return decoded->insn.mnemonic == ZYDIS_MNEMONIC_XCHG &&
	       !low_register(&decoded->operand[0]) && !low_register(&decoded->operand[1]);
}

bool insn_read(struct insn *insn, const uint8_t *code, uint64_t len, uint64_t at)
{
	struct decoded decoded;

	if (!insn_decode(&decoded, code, len) || depends_on_vendor(&decoded.insn))
		return false;
	note_insn(insn, &decoded.insn, at);
	insn->writes = find_registers(&decoded, ZYDIS_OPERAND_ACTION_MASK_WRITE);
	insn->pops = decoded.insn.mnemonic == ZYDIS_MNEMONIC_POP;
	insn->fills = insn->is_nop || is_xchg_ax(&decoded);
	if (decoded.insn.mnemonic == ZYDIS_MNEMONIC_LEA ||
	    decoded.insn.mnemonic == ZYDIS_MNEMONIC_MOV)
		note_constant(insn, &decoded);
	return true;
}
