/* SPDX-License-Identifier: MIT */
/* A decoded instruction with its operands, and what is known of values while it is run. */
#ifndef PROBES_INSN_ZYDIS_H
#define PROBES_INSN_ZYDIS_H

#include <stdbool.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

#include "probes/insn/insn.h"

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
};

/* insn_decode - with operands; those that the instruction has not are zero. */
bool insn_decode(struct decoded *decoded, const uint8_t *code, uint64_t len);

/* register_number - 0 to 15; -1: no general register. */
int register_number(ZydisRegister reg);

/*
 * find_registers - a bit for each general register that is read, those of addresses too, or written
 * (ZYDIS_OPERAND_ACTION_MASK_READ, ZYDIS_OPERAND_ACTION_MASK_WRITE).
 */
uint16_t find_registers(const struct decoded *decoded, uint8_t actions);

/* low_register - of an operand that is a register whose low bits are meant; else -1. */
int low_register(const ZydisDecodedOperand *operand);

/* --- Values ----------------------------------------------------------------------------------- */

/*
 * What registers hold while instructions are run in one line: numbers that were checked, addresses,
 * entries of tables.
 */
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
struct memory_cell {
	bool known;
	ZydisDecodedOperandMem operand;
	struct value base, index;
	struct value value; /* a number */
	uint8_t bits;
};

struct state {
	struct value reg[INSN_REGISTERS];
	struct fact fact[FACTS];
	uint8_t facts; /* the next to be forgotten */
	bool compared; /* flags are of a comparison of this number with max */
	struct fact comparison;
	struct memory_cell cell;
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
