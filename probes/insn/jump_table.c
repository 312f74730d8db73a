/* SPDX-License-Identifier: MIT */
/*
 * Each round takes the known tables for all that there are, and finds the tables that the jumps
 * then go by. When a round finds the tables that it began with, there are no others: the first
 * thread that a jump led elsewhere would have come to that jump along known ways.
 */
#include "probes/insn/insn.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "probes/insn/zydis.h"

#define INSTRUCTIONS_MAX (1u << 18)
#define ROUNDS		 8

struct follow {
	const struct branches *branches;
	uint32_t index; /* of the function */
	struct function_code *code;
	struct jump_table *table;
	uint32_t tables;
	struct constants constants;
	struct state **saved; /* of instructions that are reached by one branch alone */
};

/* Jumps by the GOT leave the function. Instructions that other code may jump to are open. */
static void mark_insns(struct follow *follow)
{
	for (uint32_t i = 0; i < follow->code->n; i++) {
		struct insn *insn = &follow->code->insn[i];

		insn->open = branches_enter(follow->branches, follow->index, insn->at);
		if (insn->flow != FLOW_INDIRECT)
			continue;
		if (insn->memory && elf_in_section(follow->branches->elf, insn->memory, ".got"))
			insn->flow = FLOW_END;
		else
			insn->table = follow->tables++;
	}
}

/* --- One line after another ------------------------------------------------------------------- */

/* Keep the state for an instruction that is reached by one branch alone. */
static int save_state(struct follow *follow, const struct insn *from, const struct decoded *decoded,
		      const struct state *state)
{
	const struct insn *to = &follow->code->insn[from->to];
	struct state *saved;

	if (to->into != 1 || to->open || follow->saved[from->to])
		return 0;
	saved = malloc(sizeof(*saved));
	if (!saved)
		return -ENOMEM;
	*saved = *state;
	if (from->flow == FLOW_BRANCH)
		state_branch(saved, decoded, true);
	follow->saved[from->to] = saved;
	return 0;
}

static void begin_path(const struct follow *follow, uint32_t index, bool goes_on,
		       struct state *state)
{
	const struct insn *insn = &follow->code->insn[index];
	uint64_t address[INSN_REGISTERS];

	if (goes_on && !insn->into && !insn->open)
		return;
	if (!goes_on && follow->saved[index]) {
		uint32_t ids = state->ids;

		*state = *follow->saved[index];
		state->ids = ids;
		return;
	}
	for (int i = 0; i < INSN_REGISTERS; i++) {
		const struct constant *constant = constants_at(&follow->constants, index, i);

		address[i] = constant ? constant->at : 0;
	}
	state_begin(state, address);
}

/* The table that each reached jump is proven to use; n is 0 where it is none. */
static int walk_lines(struct follow *follow, struct jump_table *found)
{
	const struct function_code *code = follow->code;
	struct state state = { 0 };
	struct decoded decoded;
	bool goes_on = false;
	int ret = 0;

	for (uint32_t i = 0; i < code->n && !ret; i++) {
		const struct insn *insn = &code->insn[i];

		if (!insn->seen) {
			goes_on = false;
			continue;
		}
		begin_path(follow, i, goes_on, &state);
		if (!insn_decode(&decoded, code->bytes + (insn->at - code->addr), insn->len))
			return -ENOEXEC;
		if (insn->flow == FLOW_INDIRECT) {
			found[insn->table] = state_jump(&state, &decoded);
			found[insn->table].is_reached = true;
		} else if (insn->to != INSN_NONE) {
			ret = save_state(follow, insn, &decoded, &state);
		}
		if (insn->flow == FLOW_BRANCH)
			state_branch(&state, &decoded, false);
		else if (insn->flow <= FLOW_CALL)
			state_step(&state, &decoded, insn);
		goes_on = insn->flow <= FLOW_BRANCH;
	}
	for (uint32_t i = 0; i < code->n; i++) {
		free(follow->saved[i]);
		follow->saved[i] = NULL;
	}
	return ret;
}

/* --- Tables ----------------------------------------------------------------------------------- */

static uint64_t read_entry(const struct jump_table *table, const uint8_t *bytes, uint32_t i)
{
	int32_t distance;
	uint64_t address;

	if (table->size == sizeof(address)) {
		memcpy(&address, bytes + i * sizeof(address), sizeof(address));
		return address;
	}
	memcpy(&distance, bytes + i * sizeof(distance), sizeof(distance));
	return table->at + (uint64_t)(int64_t)distance;
}

/* Whether a function, or a part of one, begins there. */
static bool begins_function(const struct branches *branches, uint64_t at)
{
	uint32_t index = branches_function(branches, at);

	return index != INSN_NONE && branches->function[index].decoded &&
	       branches->function[index].addr == at;
}

/* 0: it is no table, or an entry leads out of the function to where none begins. */
static int read_table(const struct follow *follow, struct jump_table *table)
{
	const struct function_code *code = follow->code;
	const struct elf *elf = follow->branches->elf;
	const uint8_t *bytes =
		table->n ? elf_constant(elf, table->at, (uint64_t)table->n * table->size) : NULL;

	/* In a file that may be loaded anywhere, addresses are relocations: not a jump table. */
	if (!bytes || (table->size == 8 && elf->type != ET_EXEC))
		return 0;
	table->to = calloc(table->n, sizeof(*table->to));
	if (!table->to)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->n; i++) {
		uint64_t at = read_entry(table, bytes, i);

		table->to[i] = (struct jump_target){ at, function_index(code, at) };
		if (table->to[i].index == INSN_NONE && ((at >= code->addr && at < code->end) ||
							!begins_function(follow->branches, at)))
			return 0;
	}
	return 1;
}

/* An instruction counts as reached once for each entry of the table. */
static void count_into(struct follow *follow, const struct jump_table *table, uint32_t by)
{
	for (uint32_t i = 0; i < table->n; i++)
		if (table->to[i].index != INSN_NONE)
			follow->code->insn[table->to[i].index].into += by;
}

static void forget_table(struct follow *follow, struct jump_table *table)
{
	count_into(follow, table, UINT32_MAX);
	free(table->to);
	*table = (struct jump_table){ 0 };
}

/* 1: known is what was found; 0: the jump is by no table. */
static int learn_table(struct follow *follow, struct jump_table *found, struct jump_table *known)
{
	int ret = read_table(follow, found);

	if (ret <= 0) {
		free(found->to);
		return ret;
	}
	forget_table(follow, known);
	*known = *found;
	count_into(follow, known, 1);
	return 1;
}

/* 2: nothing new. */
static int prove_round(struct follow *follow, struct jump_table *found)
{
	int ret;

	memset(found, 0, follow->tables * sizeof(*found));
	constants_find(&follow->constants);
	ret = walk_lines(follow, found) ? -ENOMEM : 2;
	for (uint32_t i = 0; i < follow->tables && ret > 0; i++) {
		const struct jump_table *old = &follow->table[i];

		if (!found[i].is_reached || (found[i].n && found[i].at == old->at &&
					     found[i].n == old->n && found[i].size == old->size))
			continue;
		ret = learn_table(follow, &found[i], &follow->table[i]);
	}
	return ret;
}

/*
 * While tables are unknown, only instructions that known ways lead to are looked at. Once they are
 * known, all others start with nothing known, as landing pads do.
 */
static int prove_tables(struct follow *follow)
{
	struct jump_table *found = calloc(follow->tables + 1, sizeof(*found));
	bool proven = false;
	int ret = found ? 1 : -ENOMEM;

	for (uint32_t i = 0; i < follow->tables + ROUNDS && ret > 0 && !proven; i++) {
		ret = prove_round(follow, found);
		proven = ret == 2 && follow->constants.all;
		follow->constants.all |= ret == 2;
	}
	free(found);
	return ret < 0 ? ret : proven;
}

static int list_targets(struct follow *follow)
{
	struct function_code *code = follow->code;

	for (uint32_t i = 0; i < follow->tables; i++)
		for (uint32_t k = 0; k < follow->table[i].n; k++)
			if (ARRAY_ADD(code->target, code->targets, follow->table[i].to[k].at))
				return -ENOMEM;
	return 1;
}

int jumps_follow(const struct branches *branches, uint32_t index, struct function_code *code)
{
	struct follow follow = { .branches = branches, .index = index, .code = code };
	int ret;

	if (!code->n || code->n > INSTRUCTIONS_MAX || code->overlaps)
		return 0;
	mark_insns(&follow);
	ret = constants_open(&follow.constants, code);
	follow.table = calloc(follow.tables + 1, sizeof(*follow.table));
	follow.saved = calloc(code->n + 1, sizeof(*follow.saved));
	follow.constants.table = follow.table;
	follow.constants.addresses = true;
	follow.constants.over_calls = UINT16_MAX;
	if (!ret)
		ret = follow.table && follow.saved ? prove_tables(&follow) : -ENOMEM;
	if (ret > 0)
		ret = list_targets(&follow);
	for (uint32_t i = 0; follow.table && i < follow.tables; i++)
		forget_table(&follow, &follow.table[i]);
	constants_close(&follow.constants);
	free(follow.table);
	free(follow.saved);
	return ret;
}
