/* SPDX-License-Identifier: MIT */
/* A function, decoded from its first byte to its last: its instructions and its branches. */
#ifndef PROBES_INSN_FUNCTION_H
#define PROBES_INSN_FUNCTION_H

#include "probes/insn/insn.h"

struct jump_table {
	uint64_t at;
	uint32_t n; /* 0: unknown */
	uint8_t size;
	struct jump_target {
		uint64_t at;
		uint32_t index; /* of an instruction, or INSN_NONE */
	} * to;
};

struct function_code {
	const uint8_t *bytes;
	uint64_t addr, end;
	struct insn *insn;
	uint32_t n;
	bool indirect; /* it has an indirect jump */
	bool overlaps; /* a branch leads between two instructions */
};

/*
 * function_read - its instructions, and which of them lead to which. -ENOMEM, -ENOTSUP; -ENOEXEC:
 * not all of it comes out as instructions that end where it ends. function_free() it, also after
 * an error. @code: at an address
 */
int function_read(struct function_code *code, const uint8_t *bytes, uint64_t addr, uint64_t len);
void function_free(struct function_code *code);

/* function_index - of the instruction at an address; INSN_NONE: there is none. */
uint32_t function_index(const struct function_code *code, uint64_t at);

/* function_at - the instruction at an address, or NULL. */
struct insn *function_at(struct function_code *code, uint64_t at);

/* function_open - the instruction at an address, if there is one, is open; all are. */
void function_open(struct function_code *code, uint64_t at);
void function_open_all(struct function_code *code);

/* insn_read_registers - as insn_read(), with the registers and constants. */
bool insn_read_registers(struct insn *insn, const uint8_t *code, uint64_t len, uint64_t at);

#endif
