/* SPDX-License-Identifier: MIT */
/*
 * All paths of a small function are decoded, from its entry on. The first instruction that is not
 * known to be harmless ends that, with nothing said of the function.
 */
#include "probes/insn/insn.h"

#include <string.h>

#include "probes/insn/zydis.h"

#define INSTRUCTION_MAX 15
#define PAGE		4096u
#define SITE		5 /* bytes of a call, and of the code in its place */
#define CALL_OFF	3 /* the short jump over the rest of a call that is off */

/* A walk through a function: it has reached [0, end), and marked the instructions in it. */
struct walk {
	const uint8_t *code;
	bool seen[EFFECTS_BYTES];
	uint8_t ahead[EFFECTS_BYTES];
	unsigned left;
	size_t end;
	unsigned returns;
	size_t last_return;
	struct effects effects; /* of what was decoded so far */
};

static bool queue_path(struct walk *walk, int64_t at)
{
	if (at < 0 || at >= EFFECTS_BYTES)
		return false;
	if (!walk->seen[at])
		walk->ahead[walk->left++] = (uint8_t)at;
	walk->seen[at] = true;
	return true;
}

/* --- Vectors ---------------------------------------------------------------------------------- */

static bool loads_state(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_LDMXCSR || mnemonic == ZYDIS_MNEMONIC_FXRSTOR ||
	       mnemonic == ZYDIS_MNEMONIC_FXRSTOR64;
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

/* XRSTOR and the like name no register that they load: so their instruction set is looked at. */
static enum clobbers clobbers_by_set(const ZydisDecodedInstruction *insn)
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
		return CLOBBERS_NONE;
	case ZYDIS_ISA_EXT_SSE:
	case ZYDIS_ISA_EXT_SSE2:
	case ZYDIS_ISA_EXT_SSE3:
	case ZYDIS_ISA_EXT_SSSE3:
	case ZYDIS_ISA_EXT_SSE4:
		if (loads_state(insn->mnemonic))
			return CLOBBERS_ANY;
		return keeps_flags(insn->mnemonic) ? CLOBBERS_LOWER : CLOBBERS_LOWER_FLAGS;
	default:
		return CLOBBERS_ANY;
	}
}

static bool is_general(ZydisRegister reg)
{
	ZydisRegisterClass class = ZydisRegisterGetClass(reg);

	return register_number(reg) >= 0 || class == ZYDIS_REGCLASS_FLAGS ||
	       class == ZYDIS_REGCLASS_IP;
}

static enum clobbers find_clobbers(const struct decoded *decoded)
{
	enum clobbers clobbers = clobbers_by_set(&decoded->insn);

	for (unsigned i = 0; i < decoded->insn.operand_count; i++) {
		ZydisRegister reg = decoded->operand[i].reg.value;

		if (decoded->operand[i].type != ZYDIS_OPERAND_TYPE_REGISTER || is_general(reg) ||
		    (reg == ZYDIS_REGISTER_MXCSR && clobbers == CLOBBERS_LOWER_FLAGS))
			continue;
		if (clobbers > CLOBBERS_LOWER || reg < ZYDIS_REGISTER_XMM0 ||
		    reg >= ZYDIS_REGISTER_XMM0 + EFFECTS_XMM)
			return CLOBBERS_ANY;
	}
	return clobbers;
}

/* --- A copy elsewhere ------------------------------------------------------------------------- */

static bool note_distance(struct walk *walk, size_t at, const ZydisDecodedInstruction *insn,
			  ZydisRegister base)
{
	struct effects *effects = &walk->effects;

	if (base == ZYDIS_REGISTER_EIP || insn->raw.disp.size != 32 ||
	    effects->relatives == EFFECTS_RELATIVE)
		return false;
	effects->relative[effects->relatives++] = (uint8_t)(at + insn->raw.disp.offset);
	return true;
}

/*
 * False: it may not stand in a copy, which has no return address, and other things on the stack. A
 * NOP of one byte may become a part of a site, whose calls are to be counted.
 */
static bool note_insn(struct walk *walk, size_t at, const struct decoded *decoded)
{
	const ZydisDecodedInstruction *insn = &decoded->insn;

	if (insn->meta.category == ZYDIS_CATEGORY_RET) {
		walk->returns++;
		walk->last_return = at;
		return insn->length <= 2; /* RET, REP RET */
	}
	walk->effects.reads |= find_registers(decoded, ZYDIS_OPERAND_ACTION_MASK_READ);
	walk->effects.writes |= find_registers(decoded, ZYDIS_OPERAND_ACTION_MASK_WRITE);
	for (unsigned i = 0; i < insn->operand_count; i++) {
		ZydisRegister base = decoded->operand[i].mem.base;

		if (decoded->operand[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (base == ZYDIS_REGISTER_RIP || base == ZYDIS_REGISTER_EIP) &&
		    !note_distance(walk, at, insn, base))
			return false;
	}
	return insn->mnemonic != ZYDIS_MNEMONIC_NOP || insn->length > 1;
}

static bool can_move(const struct walk *walk)
{
	const struct effects *effects = &walk->effects;

	return effects->moves && effects->clobbers == CLOBBERS_NONE && walk->returns == 1 &&
	       walk->last_return + 2 >= walk->end &&
	       !((effects->reads | effects->writes) >> INSN_RSP & 1);
}

/* --- All paths -------------------------------------------------------------------------------- */

/* Queue the successors of the instruction at @at; false: they are not known. */
static bool queue_next(struct walk *walk, size_t at, const struct decoded *decoded)
{
	const ZydisDecodedInstruction *insn = &decoded->insn;
	const ZydisDecodedOperand *to = &decoded->operand[0];
	int64_t next = (int64_t)at + insn->length;

	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_RET:
		return insn->mnemonic == ZYDIS_MNEMONIC_RET;
	case ZYDIS_CATEGORY_COND_BR:
		return queue_path(walk, next) && queue_path(walk, next + to->imm.value.s);
	case ZYDIS_CATEGORY_UNCOND_BR:
		return to->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && insn->length < SITE &&
		       to->imm.value.s != CALL_OFF && queue_path(walk, next + to->imm.value.s);
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSRET:
		return false;
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
		return insn->length != SITE && queue_path(walk, next);
	default:
		return queue_path(walk, next);
	}
}

/* Not beyond the page: what is there may be no memory. */
static size_t count_readable(const uint8_t *code)
{
	size_t left = PAGE - (uintptr_t)code % PAGE;

	return left < INSTRUCTION_MAX ? left : INSTRUCTION_MAX;
}

static bool decode_paths(struct walk *walk)
{
	struct decoded decoded;
	enum clobbers clobbers;

	while (walk->left) {
		size_t at = walk->ahead[--walk->left];
		const uint8_t *code = walk->code + at;

		if (!insn_decode(&decoded, code, count_readable(code))) {
			walk->end = 0;
			return false;
		}
		if (at + decoded.insn.length > walk->end)
			walk->end = at + decoded.insn.length;
		clobbers = find_clobbers(&decoded);
		if (!clobbers || !queue_next(walk, at, &decoded))
			return false;
		if (clobbers < walk->effects.clobbers)
			walk->effects.clobbers = clobbers;
		walk->effects.moves &= note_insn(walk, at, &decoded);
	}
	return walk->end <= EFFECTS_BYTES;
}

struct effects effects_read(uintptr_t function)
{
	struct walk walk = {
		.code = (const uint8_t *)function,
		.effects = { .clobbers = CLOBBERS_NONE, .moves = true },
	};
	bool is_known;

	queue_path(&walk, 0);
	is_known = decode_paths(&walk);
	walk.effects.moves = can_move(&walk);
	walk.effects.size = (uint8_t)walk.last_return;
	if (!is_known)
		walk.effects = (struct effects){ 0 };
	/* The reason for a refusal lies in these bytes, too. */
	walk.effects.read = walk.end > EFFECTS_BYTES ? 0 : (uint8_t)walk.end;
	return walk.effects;
}
