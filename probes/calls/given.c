/* SPDX-License-Identifier: MIT */
/*
 * Back from the call by all ways that lead to it, to where rdi is set, or the register that it is
 * copied from: LEA of an address, MOV of a number, or MOV from a slot that the loader fills in.
 * All of them must agree: compilers also make one call of two with different arguments. No way may
 * come from where the function begins.
 *
 * A call that never returns seems to lead to what stands behind it. If something else leads there,
 * too, they agree, or it is not told. If nothing does it is never run, unless it is a handler of
 * exceptions, to which the unwinder comes. So where there may be such, calls are passed only by a
 * register that is set to one value in all of the function.
 *
 * Nor are all ways branches: an indirect jump may lead to any place in its function, other parts of
 * the function lead to places, too, and what nothing is seen to lead to is come to by what is not
 * seen. These are passed by such a register as well, if there is no other part that may set it.
 */
#include "probes/calls/given.h"
#include "probes/elf/sorted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#define REGISTERS 16
#define RDI	  7
#define CLOBBERED 0x0fc7 /* by a call: rax, rcx, rdx, rsi, rdi, r8 to r11 */
#define RESTORED  0xf028 /* by a function, before it ends: rbx, rbp, r12 to r15 */
#define NONE	  UINT32_MAX

struct given_step {
	size_t at;
	uint64_t target; /* of a branch within the function, relative to its start; 0: none */
	uint32_t came;	 /* the first branch that leads here */
	uint32_t next;	 /* the next one that leads where this one does */
	uint16_t changed;
	uint16_t seen;	/* of these registers, on the way back */
	int8_t set;	/* register that is set plainly, or -1 */
	int8_t copy_of; /* from this register; -1: to value */
	bool ends;	/* nothing runs on from here */
	bool is_call;
	bool is_hook;
	bool is_nop;
	bool restores; /* a register of the caller's */
	bool entered;  /* also by what is not seen */
	struct given_value value;
};

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
};

/* 0 to 15, or -1: no general register. */
static int8_t number_of(const ZydisDecodedOperand *operand)
{
	ZydisRegister whole;

	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return -1;
	whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value);
	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return -1;
	return (int8_t)(whole - ZYDIS_REGISTER_RAX);
}

static bool same_value(const struct given_value *a, const struct given_value *b)
{
	return a->at == b->at && a->kind == b->kind;
}

/* --- Forward: what each instruction does --------------------------------------------------------
 */

static bool by_rip(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       operand->mem.base == ZYDIS_REGISTER_RIP;
}

/* Of 64 bits, or of 32 with zeros above. */
static void note_set(struct given_step *step, const struct decoded *decoded, uintptr_t next)
{
	const ZydisDecodedInstruction *insn = &decoded->insn;
	const ZydisDecodedOperand *to = &decoded->operand[0], *from = &decoded->operand[1];
	uintptr_t address = next + (uintptr_t)insn->raw.disp.value;
	int8_t reg = number_of(to);

	if (reg < 0 || to->size < 32)
		return;
	if (insn->mnemonic == ZYDIS_MNEMONIC_LEA && to->size == 64 && by_rip(from)) {
		step->value.at = address;
	} else if (insn->mnemonic != ZYDIS_MNEMONIC_MOV) {
		return;
	} else if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		step->value.kind = GIVEN_NUMBER;
		step->value.at = to->size == 64 ? from->imm.value.u : (uint32_t)from->imm.value.u;
	} else if (by_rip(from) && to->size == 64 && from->mem.segment != ZYDIS_REGISTER_FS) {
		step->value = (struct given_value){ .kind = GIVEN_SLOT, .at = address };
	} else if (from->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		step->copy_of = number_of(from);
		if (step->copy_of < 0)
			return;
	} else {
		return;
	}
	step->set = reg;
}

static void note_step(struct given_step *step, const struct decoded *decoded, uintptr_t code)
{
	const ZydisDecodedInstruction *insn = &decoded->insn;
	size_t next = step->at + insn->length;

	for (int i = 0; i < insn->operand_count; i++) {
		int8_t reg = number_of(&decoded->operand[i]);

		if (reg >= 0 && decoded->operand[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			step->changed |= (uint16_t)(1u << reg);
	}
	note_set(step, decoded, code + next);
	step->is_call = insn->mnemonic == ZYDIS_MNEMONIC_CALL;
	if (step->is_call)
		step->changed |= CLOBBERED;
	else if (insn->raw.imm[0].is_relative)
		step->target = next + insn->raw.imm[0].value.u;
	step->is_nop = insn->mnemonic == ZYDIS_MNEMONIC_NOP;
	step->restores = insn->mnemonic == ZYDIS_MNEMONIC_POP && step->changed & RESTORED;
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_UD2:
		step->ends = true;
		break;
	default:
		break;
	}
}

static bool jumps_anywhere(const struct decoded *decoded)
{
	return decoded->insn.mnemonic == ZYDIS_MNEMONIC_JMP &&
	       !decoded->insn.raw.imm[0].is_relative;
}

static struct given_step *step_at(const struct given *given, uint64_t at)
{
	size_t i = SORTED_FROM(given->step, given->n, at, at);

	return i < given->n && given->step[i].at == at ? &given->step[i] : NULL;
}

/* The registers that are set plainly, to one value wherever they are, and not otherwise. */
static uint16_t with_one_value(const struct given *given)
{
	const struct given_value *values[REGISTERS] = { NULL };
	uint16_t with = 0, without = 0;

	for (size_t i = 0; i < given->n; i++) {
		const struct given_step *step = &given->step[i];
		uint16_t bit = (uint16_t)(1u << (step->set & 15));

		if (step->set < 0 || step->copy_of >= 0) {
			without |= step->restores ? 0 : step->changed;
			continue;
		}
		if (with & bit && !same_value(values[step->set], &step->value))
			without |= bit;
		values[step->set] = &step->value;
		with |= bit;
	}
	return with & (uint16_t)~without;
}

static void link_branches(struct given *given)
{
	for (size_t i = 0; i < given->n; i++) {
		struct given_step *step = &given->step[i];
		struct given_step *to = step->target ? step_at(given, step->target) : NULL;

		if (!to)
			continue;
		step->next = to->came;
		to->came = (uint32_t)i;
	}
}

/* What nothing leads to, but NOPs that fill up. */
static void find_entered(struct given *given)
{
	for (size_t i = 1; i < given->n; i++) {
		struct given_step *step = &given->step[i];

		if (!step[-1].ends || step->came != NONE)
			continue;
		step->entered = !step->is_nop;
		step->ends |= step->is_nop;
	}
}

int given_open(struct given *given, const uint8_t *code, size_t len, bool pads)
{
	ZydisDecoder decoder;
	struct decoded decoded;

	*given = (struct given){ 0 };
	if (len >= NONE || ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
							ZYDIS_STACK_WIDTH_64)))
		return -ENOTSUP;
	given->step = calloc(len, sizeof(*given->step));
	if (!given->step)
		return -ENOMEM;
	for (size_t at = 0; at < len; at += decoded.insn.length) {
		struct given_step *step = &given->step[given->n++];

		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code + at, len - at, &decoded.insn,
						       decoded.operand)))
			return -ENOEXEC;
		*step = (struct given_step){
			.at = at, .came = NONE, .next = NONE, .set = -1, .copy_of = -1
		};
		note_step(step, &decoded, (uintptr_t)code);
		given->jumps |= jumps_anywhere(&decoded);
	}
	link_branches(given);
	find_entered(given);
	given->stays = with_one_value(given);
	given->passes = pads ? given->stays : UINT16_MAX;
	return 0;
}

void given_close(struct given *given)
{
	free(given->step);
	*given = (struct given){ 0 };
}

void given_hook(struct given *given, size_t at)
{
	struct given_step *step = step_at(given, at);

	if (step)
		step->is_hook = true;
}

void given_entered(struct given *given, size_t at)
{
	struct given_step *step = step_at(given, at);

	if (step)
		step->entered = true;
}

/* --- Back -------------------------------------------------------------------------------------
 */

/* What is known so far; it is over when not. */
struct search {
	struct given *given;
	struct given_value value;
	bool found;
	bool failed;
	struct way {
		uint32_t step;
		uint8_t reg;
	} * way; /* behind which steps a register is asked for */
	size_t n;
};

static void found(struct search *search, const struct given_value *value)
{
	if (search->found && !same_value(&search->value, value))
		search->failed = true;
	search->value = *value;
	search->found = true;
}

static void behind(struct search *search, uint32_t step, int reg)
{
	struct given_step *one = &search->given->step[step];
	uint16_t bit = (uint16_t)(1u << reg);

	if (one->seen & bit)
		return;
	one->seen |= bit;
	search->way[search->n++] = (struct way){ step, (uint8_t)reg };
}

/* All that may run before a step. */
static void before(struct search *search, uint32_t step, int reg)
{
	const struct given_step *steps = search->given->step;
	bool entered = search->given->jumps || steps[step].entered;

	if (!step || (entered && !(search->given->stays & 1u << reg)))
		search->failed = true;
	for (uint32_t came = steps[step].came; came != NONE; came = steps[came].next)
		behind(search, came, reg);
	if (step && !steps[step - 1].ends)
		behind(search, step - 1, reg);
}

static void go_back(struct search *search, const struct way *way)
{
	const struct given_step *step = &search->given->step[way->step];
	int reg = way->reg;

	if (step->set == reg && step->copy_of < 0) {
		found(search, &step->value);
		return;
	}
	if (step->set == reg)
		reg = step->copy_of;
	else if (step->changed & 1u << reg)
		search->failed = true;
	if (step->is_call && !step->is_hook && !(search->given->passes & 1u << reg))
		search->failed = true;
	if (!search->failed)
		before(search, way->step, reg);
}

bool given_find(struct given *given, size_t at, struct given_value *value)
{
	struct search search = { .given = given };
	const struct given_step *call = step_at(given, at);

	if (!call)
		return false;
	/* As many as are marked as seen, once each. */
	search.way = malloc(given->n * REGISTERS * sizeof(*search.way));
	if (!search.way)
		return false;
	for (size_t i = 0; i < given->n; i++)
		given->step[i].seen = 0;
	before(&search, (uint32_t)(call - given->step), RDI);
	while (search.n && !search.failed) {
		struct way way = search.way[--search.n];

		go_back(&search, &way);
	}
	free(search.way);
	*value = search.value;
	return search.found && !search.failed;
}
