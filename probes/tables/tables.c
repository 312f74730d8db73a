/* SPDX-License-Identifier: MIT */
/*
 * In rounds: what is proven of the jumps, if the tables that are known are all that there are? When
 * a round proves those that it began with, there are no others: a thread that were the first to be
 * led elsewhere would have come along known ways until then, of which that is not true.
 */
#include "probes/tables/tables.h"
#include "probes/elf/sorted.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/tables/tables_value.h"

#define TABLES_INSTRUCTIONS (1u << 18)
#define ROUNDS		    8
#define NONE		    UINT32_MAX

enum way {
	ON,	/* to the next instruction */
	CALLS,	/* the same, and what a function may change is changed */
	BRANCH, /* there, or on */
	JUMP,	/* there */
	AWAY,	/* to no place in this function */
	TABLE,
};

struct insn {
	uint64_t at;
	uint64_t address;  /* that the register "holds" has from here on */
	uint64_t leads_to; /* of BRANCH and JUMP */
	uint32_t to;	   /* of BRANCH and JUMP: index of an instruction, or NONE */
	uint32_t into;	   /* branches and entries of tables that lead here */
	uint32_t table;	   /* of TABLE: index of what is known of it, or NONE */
	uint16_t changed;  /* registers */
	uint8_t holds;
	uint8_t way;
	bool open; /* others may lead here */
	bool seen; /* in[] is filled in */
	bool queued;
	bool fills;
};

struct target {
	uint64_t at;
	uint32_t index; /* of the instruction; NONE: it is no place in this function */
};

struct known {
	struct table table;
	struct target *to;
};

struct follow {
	const struct tables_function *function;
	struct insn *insn;
	uint32_t n, room;
	struct known *known;
	uint32_t tables;
	uint64_t (*in)[REGISTERS]; /* addresses that registers hold before each; 0: unknown */
	uint32_t *queue;
	uint32_t queued;
	struct state **saved; /* what is known where one branch alone leads to */
};

/* --- Instructions ----------------------------------------------------------------------------- */

static uint32_t index_of(const struct follow *follow, uint64_t at)
{
	size_t i = SORTED_FROM(follow->insn, follow->n, at, at);

	return i < follow->n && follow->insn[i].at == at ? (uint32_t)i : NONE;
}

static enum way way_of(const struct tables_function *function, const ZydisDecodedInstruction *insn,
		       uint64_t next)
{
	if (insn->mnemonic == ZYDIS_MNEMONIC_CALL)
		return CALLS;
	if (insn->raw.imm[0].is_relative)
		return insn->mnemonic == ZYDIS_MNEMONIC_JMP ? JUMP : BRANCH;
	if (insn->mnemonic == ZYDIS_MNEMONIC_JMP)
		return function->leaves(function->data, insn, next) ? AWAY : TABLE;
	if (insn->mnemonic == ZYDIS_MNEMONIC_RET || insn->mnemonic == ZYDIS_MNEMONIC_UD2 ||
	    insn->mnemonic == ZYDIS_MNEMONIC_HLT)
		return AWAY;
	return ON;
}

static bool decode_at(const struct follow *follow, uint64_t at, struct decoded *decoded)
{
	const struct tables_function *function = follow->function;

	return !ZYAN_FAILED(
		ZydisDecoderDecodeFull(function->decoder, function->bytes + (at - function->addr),
				       function->end - at, &decoded->insn, decoded->operand));
}

static struct insn *room_for_one(struct follow *follow)
{
	uint32_t room = follow->room ? 2 * follow->room : 256;
	struct insn *more;

	if (follow->n < follow->room)
		return &follow->insn[follow->n];
	more = realloc(follow->insn, room * sizeof(*more));
	if (!more)
		return NULL;
	follow->insn = more;
	follow->room = room;
	return &follow->insn[follow->n];
}

static void read_one(struct follow *follow, struct insn *insn, const struct decoded *decoded,
		     uint64_t at)
{
	const struct tables_function *function = follow->function;
	uint64_t next = at + decoded->insn.length;

	*insn = (struct insn){
		.at = at,
		.leads_to = next + decoded->insn.raw.imm[0].value.u,
		.to = NONE,
		.table = NONE,
		.way = (uint8_t)way_of(function, &decoded->insn, next),
		.changed = value_changed(decoded),
		.open = function->entered(function->data, at),
		.fills = value_fills(decoded),
	};
	insn->address = value_address(decoded, at, &insn->holds);
	if (insn->way == TABLE)
		insn->table = follow->tables++;
	follow->n++;
}

/* 0: not all of them are instructions, or they are too many. */
static int read_all(struct follow *follow)
{
	const struct tables_function *function = follow->function;
	struct decoded decoded;

	for (uint64_t at = function->addr; at < function->end; at += decoded.insn.length) {
		struct insn *insn = room_for_one(follow);

		if (!insn)
			return -ENOMEM;
		if (follow->n == TABLES_INSTRUCTIONS || !decode_at(follow, at, &decoded))
			return 0;
		read_one(follow, insn, &decoded, at);
	}
	return follow->n > 0;
}

/* False: a branch leads between two instructions. */
static bool link_branches(struct follow *follow)
{
	const struct tables_function *function = follow->function;

	for (uint32_t i = 0; i < follow->n; i++) {
		struct insn *insn = &follow->insn[i];

		if ((insn->way != BRANCH && insn->way != JUMP) || insn->leads_to < function->addr ||
		    insn->leads_to >= function->end)
			continue;
		insn->to = index_of(follow, insn->leads_to);
		if (insn->to == NONE)
			return false;
		follow->insn[insn->to].into++;
	}
	return true;
}

/* --- Which registers hold the address of a table ---------------------------------------------- */

static void meet(struct follow *follow, uint32_t index, const uint64_t *out)
{
	struct insn *insn = &follow->insn[index];
	bool changed = !insn->seen;

	for (int i = 0; i < REGISTERS; i++) {
		if (!insn->seen) {
			follow->in[index][i] = out[i];
		} else if (follow->in[index][i] && follow->in[index][i] != out[i]) {
			follow->in[index][i] = 0;
			changed = true;
		}
	}
	insn->seen = true;
	if (changed && !insn->queued) {
		insn->queued = true;
		follow->queue[follow->queued++] = index;
	}
}

static void pass_on(struct follow *follow, uint32_t index)
{
	const struct insn *insn = &follow->insn[index];
	uint64_t out[REGISTERS];

	for (int i = 0; i < REGISTERS; i++)
		out[i] = insn->changed >> i & 1 || (insn->way == CALLS && CALLS_CHANGE >> i & 1)
				 ? 0
				 : follow->in[index][i];
	if (insn->address)
		out[insn->holds] = insn->address;
	if (insn->to != NONE)
		meet(follow, insn->to, out);
	if (insn->way == TABLE)
		for (uint32_t i = 0; i < follow->known[insn->table].table.n; i++)
			if (follow->known[insn->table].to[i].index != NONE)
				meet(follow, follow->known[insn->table].to[i].index, out);
	if (insn->way <= BRANCH && index + 1 < follow->n)
		meet(follow, index + 1, out);
}

static void drain_paths(struct follow *follow)
{
	while (follow->queued) {
		uint32_t index = follow->queue[--follow->queued];

		follow->insn[index].queued = false;
		pass_on(follow, index);
	}
}

/*
 * What is not come to by known ways is come to with nothing known, as handlers of exceptions are;
 * but before all tables are known only by those that are.
 */
static void find_addresses(struct follow *follow, bool whole)
{
	static const uint64_t nothing[REGISTERS];

	for (uint32_t i = 0; i < follow->n; i++)
		follow->insn[i].seen = false;
	for (uint32_t i = 0; i < follow->n; i++)
		if (!i || follow->insn[i].open)
			meet(follow, i, nothing);
	drain_paths(follow);
	for (uint32_t i = 0; i < follow->n && whole; i++) {
		if (follow->insn[i].seen || follow->insn[i].fills)
			continue;
		meet(follow, i, nothing);
		drain_paths(follow);
	}
}

/* --- One line after another ------------------------------------------------------------------- */

static int save(struct follow *follow, uint32_t to, const struct state *state)
{
	if (follow->insn[to].into != 1 || follow->insn[to].open || follow->saved[to])
		return 0;
	follow->saved[to] = malloc(sizeof(*state));
	if (!follow->saved[to])
		return -ENOMEM;
	*follow->saved[to] = *state;
	return 0;
}

static void begin_path(const struct follow *follow, uint32_t index, bool goes_on,
		       struct state *state)
{
	const struct insn *insn = &follow->insn[index];

	if (goes_on && !insn->into && !insn->open)
		return;
	if (!goes_on && follow->saved[index]) {
		uint32_t ids = state->ids;

		*state = *follow->saved[index];
		state->ids = ids;
		return;
	}
	state_begin(state, follow->in[index]);
}

/* What the jump at each table is proven to be, with n = 0 where it is none. False: none leads
 * there.
 */
static int walk(struct follow *follow, struct table *found, bool *reached)
{
	struct state state = { 0 };
	struct decoded decoded;
	bool goes_on = false;
	int ret = 0;

	for (uint32_t i = 0; i < follow->n && !ret; i++) {
		const struct insn *insn = &follow->insn[i];

		if (!insn->seen) {
			goes_on = false;
			continue;
		}
		begin_path(follow, i, goes_on, &state);
		if (!decode_at(follow, insn->at, &decoded))
			return -ENOEXEC;
		if (insn->way == TABLE) {
			found[insn->table] = state_jump(&state, &decoded);
			reached[insn->table] = true;
		} else if (insn->way == BRANCH && insn->to != NONE) {
			struct state there = state;

			state_branch(&there, &decoded, true);
			ret = save(follow, insn->to, &there);
			state_branch(&state, &decoded, false);
		} else if (insn->way == JUMP && insn->to != NONE)
			ret = save(follow, insn->to, &state);
		else if (insn->way == BRANCH)
			state_branch(&state, &decoded, false);
		else
			state_step(&state, &decoded, insn->at);
		goes_on = insn->way <= BRANCH;
	}
	for (uint32_t i = 0; i < follow->n; i++) {
		free(follow->saved[i]);
		follow->saved[i] = NULL;
	}
	return ret;
}

/* --- Tables ----------------------------------------------------------------------------------- */

static uint64_t entry_of(const struct table *table, const uint8_t *bytes, uint32_t i)
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

/* 0: it is none, or leads elsewhere. */
static int read_table(const struct follow *follow, const struct table *table, struct known *known)
{
	const struct tables_function *function = follow->function;
	const uint8_t *bytes =
		table->n ? elf_constant(function->elf, table->at, (uint64_t)table->n * table->size)
			 : NULL;

	/* Addresses in a file that may be loaded anywhere are none. */
	if (!bytes || (table->size == 8 && function->elf->type != ET_EXEC))
		return 0;
	known->to = calloc(table->n, sizeof(*known->to));
	if (!known->to)
		return -ENOMEM;
	known->table = *table;
	for (uint32_t i = 0; i < table->n; i++) {
		uint64_t at = entry_of(table, bytes, i);

		known->to[i] = (struct target){ at, index_of(follow, at) };
		if (known->to[i].index == NONE && ((at >= function->addr && at < function->end) ||
						   !function->begins(function->data, at)))
			return 0;
	}
	return 1;
}

/* As often as the table has them. */
static void count_into(struct follow *follow, const struct known *known, uint32_t by)
{
	for (uint32_t i = 0; i < known->table.n; i++)
		if (known->to[i].index != NONE)
			follow->insn[known->to[i].index].into += by;
}

static void forget_table(struct follow *follow, struct known *known)
{
	count_into(follow, known, UINT32_MAX);
	free(known->to);
	*known = (struct known){ 0 };
}

/* 1: known is what was found; 0: the jump is by no table. */
static int learn_table(struct follow *follow, const struct table *found, struct known *known)
{
	struct known now = { 0 };
	int ret = read_table(follow, found, &now);

	if (ret <= 0) {
		free(now.to);
		return ret;
	}
	forget_table(follow, known);
	*known = now;
	count_into(follow, known, 1);
	return 1;
}

/* 2: nothing new. */
static int prove_round(struct follow *follow, bool whole, struct table *found, bool *reached)
{
	int ret;

	memset(reached, 0, follow->tables * sizeof(*reached));
	find_addresses(follow, whole);
	ret = walk(follow, found, reached) ? -ENOMEM : 2;
	for (uint32_t i = 0; i < follow->tables && ret > 0; i++) {
		const struct table *old = &follow->known[i].table;

		if (!reached[i] || (found[i].n && found[i].at == old->at && found[i].n == old->n &&
				    found[i].size == old->size))
			continue;
		ret = learn_table(follow, &found[i], &follow->known[i]);
	}
	return ret;
}

static int prove(struct follow *follow)
{
	struct table *found = calloc(follow->tables + 1, sizeof(*found));
	bool *reached = calloc(follow->tables + 1, sizeof(*reached));
	bool whole = false, proven = false;
	int ret = found && reached ? 1 : -ENOMEM;

	for (uint32_t i = 0; i < follow->tables + ROUNDS && ret > 0 && !proven; i++) {
		ret = prove_round(follow, whole, found, reached);
		proven = ret == 2 && whole;
		whole = whole || ret == 2;
	}
	free(found);
	free(reached);
	return ret < 0 ? ret : proven;
}

static int tell_targets(const struct follow *follow, struct tables_targets *targets)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < follow->tables; i++)
		n += follow->known[i].table.n;
	targets->to = calloc(n + 1, sizeof(*targets->to));
	if (!targets->to)
		return -ENOMEM;
	for (uint32_t i = 0; i < follow->tables; i++)
		for (uint32_t k = 0; k < follow->known[i].table.n; k++)
			targets->to[targets->n++] = follow->known[i].to[k].at;
	return 1;
}

static int follow_all(struct follow *follow, struct tables_targets *targets)
{
	int ret;

	follow->known = calloc(follow->tables + 1, sizeof(*follow->known));
	follow->in = calloc(follow->n, sizeof(*follow->in));
	follow->queue = calloc(follow->n, sizeof(*follow->queue));
	follow->saved = calloc(follow->n, sizeof(*follow->saved));
	if (!follow->known || !follow->in || !follow->queue || !follow->saved)
		return -ENOMEM;
	ret = prove(follow);
	if (ret > 0)
		ret = tell_targets(follow, targets);
	for (uint32_t i = 0; i < follow->tables; i++)
		forget_table(follow, &follow->known[i]);
	return ret;
}

int tables_follow(const struct tables_function *function, struct tables_targets *targets)
{
	struct follow follow = { .function = function };
	int ret = read_all(&follow);

	*targets = (struct tables_targets){ 0 };
	if (ret > 0)
		ret = link_branches(&follow) ? follow_all(&follow, targets) : 0;
	free(follow.known);
	free(follow.insn);
	free(follow.in);
	free(follow.queue);
	free(follow.saved);
	return ret;
}
