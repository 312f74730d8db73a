/* SPDX-License-Identifier: MIT */
/*
 * What one instruction does: how long it is, where it leads, what it refers to. This and zydis.h
 * are all that the decoder is seen by; without one, insn_read() reads nothing.
 */
#ifndef PROBES_INSN_INSN_H
#define PROBES_INSN_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSN_REGISTERS	16
#define INSN_RSP	4
#define INSN_CLOBBERED	0x0fc7 /* by a call: rax, rcx, rdx, rsi, rdi, r8 to r11 */
#define INSN_CALL_SAVED 0xf028 /* a function restores them: rbx, rbp, r12 to r15 */
#define INSN_NONE	UINT32_MAX

enum insn_flow {
	FLOW_ON,       /* to the next instruction */
	FLOW_CALL,     /* the same, by way of a function */
	FLOW_BRANCH,   /* to the target, or on */
	FLOW_JUMP,     /* to the target */
	FLOW_INDIRECT, /* a jump by a register or by memory */
	FLOW_END,      /* to no instruction of this function */
};

/* What an instruction puts into a register. */
struct constant {
	enum {
		CONSTANT_ADDRESS,
		CONSTANT_NUMBER,
		CONSTANT_SLOT, /* what the loader stores at that address */
	} kind;
	uint64_t at;
};

struct insn {
	uint64_t at;
	uint64_t target; /* of a direct branch or call, or 0 */
	uint64_t memory; /* address of the operand that is relative to RIP, or 0 */
	uint8_t len;
	uint8_t flow;
	uint8_t distance;  /* with memory: offset of the distance in the instruction */
	uint8_t condition; /* of FLOW_BRANCH: low bits of the opcode */
	bool traps;	   /* a system call, an interrupt */
	bool only_short;   /* a branch that has no form with four bytes of distance */
	bool is_nop;	   /* also INT3 */

	/* By function_read() alone. */
	bool fills;	 /* a NOP or the like, as between blocks of code */
	bool pops;	 /* registers are loaded from the stack */
	int8_t sets;	 /* register that gets the constant or the copy, or -1 */
	int8_t copies;	 /* register that is copied, or -1 */
	uint16_t writes; /* general registers, a bit for each */
	struct constant constant;
	uint32_t to;   /* index of the target, or INSN_NONE */
	uint32_t into; /* branches, and entries of jump tables, that lead here */

	/* Of an analysis. */
	bool open;    /* it is reached in other ways than by branches of the function */
	bool returns; /* a call that always returns */
	bool seen, queued;
	uint32_t table; /* of FLOW_INDIRECT: index of its jump table, or INSN_NONE */
};

/* insn_support - 0, or -ENOTSUP: built without a decoder. */
int insn_support(void);

/*
 * insn_read - the instruction at an address. False: there is none, or not the same one on all
 * vendors' processors. @len: bytes of code that are there
 */
bool insn_read(struct insn *insn, const uint8_t *code, uint64_t len, uint64_t at);

/*
 * insn_guess - the length and the target of the direct branch that bytes would be if an instruction
 * began there; 0: of none. Without a decoder, too.
 */
size_t insn_guess(const uint8_t *bytes, uint64_t len, uint64_t at, uint64_t *target);

/* --- A function, decoded from its first byte to its last ----------------------------------------
 */

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

/* function_open - mark the instruction at an address open. function_open_all - mark all. */
void function_open(struct function_code *code, uint64_t at);
void function_open_all(struct function_code *code);

/* insn_read_registers - as insn_read(), with the registers and constants. */
bool insn_read_registers(struct insn *insn, const uint8_t *code, uint64_t len, uint64_t at);

#endif
