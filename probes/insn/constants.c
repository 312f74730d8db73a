/* SPDX-License-Identifier: MIT */
/*
 * Constants are followed forward along all branches, until nothing changes. A register holds the
 * constant of an instruction, by its index; where two ways meet with different ones it is unknown.
 */
#include "probes/insn/insn.h"

#include <errno.h>
#include <stdlib.h>

#define UNKNOWN UINT32_MAX
#define UNSET	(UINT32_MAX - 1) /* another way into the instruction decides */

static bool is_equal(const struct constant *a, const struct constant *b)
{
	return a->at == b->at && a->kind == b->kind;
}

int constants_open(struct constants *constants, struct function_code *code)
{
	*constants = (struct constants){
		.code = code,
		.in = calloc(code->n + 1, sizeof(*constants->in)),
		.queue = calloc(code->n + 1, sizeof(*constants->queue)),
	};
	return constants->in && constants->queue ? 0 : -ENOMEM;
}

void constants_close(struct constants *constants)
{
	free(constants->in);
	free(constants->queue);
}

/* The constant of a register where two paths meet. */
static uint32_t join_constants(const struct function_code *code, uint32_t a, uint32_t b)
{
	if (a == b || b == UNSET)
		return a;
	if (a == UNSET)
		return b;
	if (a == UNKNOWN || b == UNKNOWN ||
	    !is_equal(&code->insn[a].constant, &code->insn[b].constant))
		return UNKNOWN;
	return a;
}

static void join_into(struct constants *constants, uint32_t index, const uint32_t *out)
{
	struct insn *insn = &constants->code->insn[index];
	uint32_t *in = constants->in[index];
	bool changed = !insn->seen;

	for (int i = 0; i < INSN_REGISTERS; i++) {
		uint32_t joined =
			insn->seen ? join_constants(constants->code, in[i], out[i]) : out[i];

		changed |= in[i] != joined;
		in[i] = joined;
	}
	insn->seen = true;
	if (changed && !insn->queued) {
		insn->queued = true;
		constants->queue[constants->queued++] = index;
	}
}

static void run_insn(const struct constants *constants, uint32_t index, uint32_t *out)
{
	const struct insn *insn = &constants->code->insn[index];
	const uint32_t *in = constants->in[index];
	uint16_t lost = insn->writes;

	if (insn->flow == FLOW_CALL)
		lost |= INSN_CLOBBERED | (insn->returns ? 0 : (uint16_t)~constants->over_calls);
	for (int i = 0; i < INSN_REGISTERS; i++)
		out[i] = lost >> i & 1 ? UNKNOWN : in[i];
	if (insn->sets < 0)
		return;
	if (insn->copies < 0 && (!constants->addresses || insn->constant.kind == CONSTANT_ADDRESS))
		out[insn->sets] = index;
	else if (insn->copies >= 0 && !constants->addresses)
		out[insn->sets] = in[insn->copies];
}

static void follow_insn(struct constants *constants, uint32_t index)
{
	const struct insn *insn = &constants->code->insn[index];
	const struct jump_table *table = constants->table && insn->table != INSN_NONE
						 ? &constants->table[insn->table]
						 : NULL;
	uint32_t out[INSN_REGISTERS];

	run_insn(constants, index, out);
	if (insn->to != INSN_NONE)
		join_into(constants, insn->to, out);
	for (uint32_t i = 0; table && i < table->n; i++)
		if (table->to[i].index != INSN_NONE)
			join_into(constants, table->to[i].index, out);
	if (insn->flow <= FLOW_BRANCH && index + 1 < constants->code->n)
		join_into(constants, index + 1, out);
}

static void follow_queue(struct constants *constants)
{
	while (constants->queued) {
		uint32_t index = constants->queue[--constants->queued];

		constants->code->insn[index].queued = false;
		follow_insn(constants, index);
	}
}

void constants_find(struct constants *constants)
{
	struct function_code *code = constants->code;
	uint32_t nothing[INSN_REGISTERS], outside[INSN_REGISTERS];

	for (int i = 0; i < INSN_REGISTERS; i++) {
		nothing[i] = UNKNOWN;
		outside[i] = constants->over_open >> i & 1 ? UNSET : UNKNOWN;
	}
	for (uint32_t i = 0; i < code->n; i++)
		code->insn[i].seen = false;
	for (uint32_t i = 0; i < code->n; i++)
		if (!i || code->insn[i].open)
			join_into(constants, i, i ? outside : nothing);
	follow_queue(constants);
	/* Handlers of exceptions, to which the unwinder comes. */
	for (uint32_t i = 0; i < code->n && constants->all; i++) {
		if (code->insn[i].seen || code->insn[i].fills)
			continue;
		join_into(constants, i, outside);
		follow_queue(constants);
	}
}

const struct constant *constants_at(const struct constants *constants, uint32_t index, int reg)
{
	uint32_t from = constants->in[index][reg];

	if (!constants->code->insn[index].seen || from == UNKNOWN || from == UNSET)
		return NULL;
	return &constants->code->insn[from].constant;
}

/* --- The first argument of calls ------------------------------------------------------------- */

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
#define RDI 7

/* The registers to which all instructions that write them assign the same constant. */
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
		if (with & bit && !is_equal(values[insn->sets], &insn->constant))
			without |= bit;
		values[insn->sets] = &insn->constant;
		with |= bit;
	}
	return with & (uint16_t)~without;
}

/* Instructions without a known predecessor are open, but for NOPs between blocks. */
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
