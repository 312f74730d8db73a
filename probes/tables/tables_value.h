/* SPDX-License-Identifier: MIT */
/*
 * What registers hold while instructions are run in one line: numbers that were checked, addresses,
 * entries of tables.
 */
#ifndef PROBES_TABLES_TABLES_VALUE_H
#define PROBES_TABLES_TABLES_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

#define REGISTERS      16
#define CALLS_CHANGE   0x0fc7 /* rax, rcx, rdx, rsi, rdi, r8 to r11, by the ABI */
#define TABLES_ENTRIES 4096
#define FACTS	       4

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
};

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

/* What was read from memory last and compared, or stored there. */
struct cell {
	bool known;
	ZydisDecodedOperandMem operand;
	struct value base, index;
	uint32_t id;
	uint8_t bits;
	uint8_t low; /* of them, the others are 0 */
};

struct state {
	struct value reg[REGISTERS];
	struct fact fact[FACTS];
	uint8_t facts; /* the next to be forgotten */
	bool compared; /* flags are of a comparison of this number with max */
	struct fact comparison;
	struct cell cell;
	uint32_t ids;
};

struct table {
	uint64_t at;
	uint32_t n; /* 0: none */
	uint8_t size;
};

/* value_changed - the registers that an instruction writes to, a bit for each. */
uint16_t value_changed(const struct decoded *decoded);

/* value_address - of LEA relative to rip: what it puts into which register; else 0. */
uint64_t value_address(const struct decoded *decoded, uint64_t at, uint8_t *reg);

/* value_fills - whether it does nothing, as between blocks of code. */
bool value_fills(const struct decoded *decoded);

/* state_begin - nothing is known but these addresses; 0: not even that. */
void state_begin(struct state *state, const uint64_t *address);

/* state_step - after an instruction that leads on to the next. */
void state_step(struct state *state, const struct decoded *decoded, uint64_t at);

/* state_branch - after a conditional branch that is taken, or not. */
void state_branch(struct state *state, const struct decoded *decoded, bool taken);

/* state_jump - the table that an indirect jump is by; n is 0 if it is by none that is known. */
struct table state_jump(const struct state *state, const struct decoded *decoded);

#endif
