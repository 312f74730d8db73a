/* SPDX-License-Identifier: MIT */
/*
 * What is in rdi at a call. A call that never returns seems to lead on to the instruction behind
 * it. If a branch leads there, too, both agree, or the argument is unknown. If none does, the
 * instruction is never run, or it is a landing pad, to which the unwinder comes. So in an object
 * with landing pads a constant outlasts a call only in a register that is set to one value in all
 * of the function.
 *
 * Nor are all ways branches: an indirect jump may lead to any instruction of its function, other
 * parts of the function lead into it, and instructions that no branch leads to are come to in ways
 * that are not seen. There, too, a constant outlasts only in such a register, and only if no other
 * part of the function may set it.
 */
#include "probes/insn/argument.h"

#define RDI 7

/* The registers that are set plainly, to one value wherever they are, and not otherwise. */
static uint16_t find_one_value(const struct function_code *code)
{
	const struct constant *values[INSN_REGISTERS] = { NULL };
	uint16_t with = 0, without = 0;

	for (uint32_t i = 0; i < code->n; i++) {
		const struct insn *insn = &code->insn[i];
		uint16_t bit = (uint16_t)(1u << (insn->sets & 15));

		if (insn->sets < 0 || insn->copies >= 0) {
			without |= insn->pops && insn->writes & INSN_CALL_SAVED ? 0 : insn->writes;
			without |= insn->flow == FLOW_CALL ? INSN_CLOBBERED : 0;
			continue;
		}
		if (with & bit && !constant_equal(values[insn->sets], &insn->constant))
			without |= bit;
		values[insn->sets] = &insn->constant;
		with |= bit;
	}
	return with & (uint16_t)~without;
}

/* Nothing is seen to lead to it: it is open, or NOPs that fill up, which lead nowhere. */
static void find_unseen(struct function_code *code)
{
	for (uint32_t i = 1; i < code->n; i++) {
		struct insn *insn = &code->insn[i];

		if (insn[-1].flow <= FLOW_BRANCH || insn->into)
			continue;
		if (insn->is_nop)
			insn->flow = FLOW_END;
		insn->open = !insn->is_nop;
	}
}

int arguments_open(struct constants *constants, struct function_code *code, bool landing_pads)
{
	int ret = constants_open(constants, code);

	for (uint32_t i = 0; i < code->n; i++)
		code->insn[i].open = code->insn[i].returns = false;
	constants->all = true;
	constants->over_open = find_one_value(code);
	constants->over_calls = landing_pads ? constants->over_open : UINT16_MAX;
	find_unseen(code);
	return ret;
}

const struct constant *argument_at(const struct constants *constants, uint64_t at)
{
	uint32_t index = function_index(constants->code, at);

	return index == INSN_NONE ? NULL : constants_at(constants, index, RDI);
}
