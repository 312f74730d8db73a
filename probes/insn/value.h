/* SPDX-License-Identifier: MIT */
/*
 * What registers hold while instructions are run in one line: numbers that were checked, addresses,
 * entries of tables.
 */
#ifndef PROBES_INSN_VALUE_H
#define PROBES_INSN_VALUE_H

#include "probes/insn/insn.h"
#include "probes/insn/zydis.h"

#define ENTRIES_MAX 4096 /* of a table */
#define FACTS	    4

/* A number is the low bits of something that has an id; the bits above are 0. */
struct value {
	enum {
		NUMBER,
		ADDRESS, /* at */
		ENTRY,	 /* distance in the table at "at"; the number picks it */
		TARGET,	 /* what that leads to */
	} kind;
	uint8_t bits;
	uint8_t size; /* TARGET: of an entry */
	uint32_t id;
	uint64_t at;
};

/* Numbers up to max. */
struct fact {
	uint32_t id;
	uint8_t bits;
	uint64_t max;
};

/* The memory that was compared or written last. */
struct cell {
	bool known;
	ZydisDecodedOperandMem operand;
	struct value base, index;
	uint32_t id;
	uint8_t bits;
	uint8_t low; /* of them, the others are 0 */
};

struct state {
	struct value reg[INSN_REGISTERS];
	struct fact fact[FACTS];
	uint8_t facts; /* the next to be forgotten */
	bool compared; /* flags are of a comparison of this number with max */
	struct fact comparison;
	struct cell cell;
	uint32_t ids;
};

/* state_begin - forget all but the addresses in registers; 0: the register is unknown, too. */
void state_begin(struct state *state, const uint64_t *address);

/* state_step - after an instruction that leads on to the next. */
void state_step(struct state *state, const struct decoded *decoded, const struct insn *insn);

/* state_branch - after a conditional branch that is taken, or not. */
void state_branch(struct state *state, const struct decoded *decoded, bool taken);

/* state_jump - the table that an indirect jump uses; n is 0 if it is unknown. */
struct jump_table state_jump(const struct state *state, const struct decoded *decoded);

#endif
