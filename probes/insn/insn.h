/* SPDX-License-Identifier: MIT */
/*
 * What decoded code does: one instruction, a function, the constants in its registers, its jump
 * tables, jumps between parts of functions, and what a small function clobbers. Only zydis.h knows
 * the decoder; without one, insn_read() reads nothing.
 */
#ifndef PROBES_INSN_INSN_H
#define PROBES_INSN_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/elf/elf.h"

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

/* A constant that an instruction puts into a register. */
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

	bool fills;	 /* a NOP or the like, as between blocks of code */
	bool pops;	 /* registers are loaded from the stack */
	int8_t sets;	 /* register that gets the constant or the copy, or -1 */
	int8_t copies;	 /* register that is copied, or -1 */
	uint16_t writes; /* general registers, a bit for each */
	struct constant constant;
	uint32_t to;   /* index of the target, or INSN_NONE */
	uint32_t into; /* branches, and entries of jump tables, that lead here */

	/* Filled in by analyses. */
	bool open;    /* it is reached in other ways than by branches of the function */
	bool returns; /* a call that always returns */
	bool seen, queued;
	uint32_t table; /* of FLOW_INDIRECT: index of its jump table, or INSN_NONE */
};

/*
 * insn_read - the instruction at an address. False: there is none, or not the same one on all
 * vendors' processors. @len: bytes of code that are there
 */
bool insn_read(struct insn *insn, const uint8_t *code, uint64_t len, uint64_t at);

/* --- A function, decoded from its first byte to its last ------------------------------------- */

struct jump_table {
	uint64_t at;
	uint32_t n; /* 0: unknown */
	uint8_t size;
	bool is_reached; /* the jump is */
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
	/* Of jump tables, each once or more often: by jumps_follow(). */
	uint64_t *target;
	uint32_t targets;
};

/*
 * function_read - its instructions, and which of them lead to which. -ENOMEM; -ENOEXEC:
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

/* --- Constants ------------------------------------------------------------------------------- */

/*
 * The constant that each register holds before each instruction of a function: the one on which all
 * paths to the instruction agree.
 */
struct constants {
	struct function_code *code;
	const struct jump_table *table; /* by insn.table; NULL: jump tables lead nowhere */
	bool addresses;			/* only constants of LEA are followed, and no copies */
	bool all; /* instructions without a known predecessor are open, unless they fill */
	uint16_t over_calls; /* registers that outlast a call that may not return */
	uint16_t over_open;  /* registers that keep their constants where an instruction is open */
	uint32_t (*in)[INSN_REGISTERS];
	uint32_t *queue;
	uint32_t queued;
};

/* constants_open - make room; the rest is for the caller to fill in. -ENOMEM. */
int constants_open(struct constants *constants, struct function_code *code);
void constants_close(struct constants *constants);

/* constants_find - follow all paths. Instructions that are not seen then are never run. */
void constants_find(struct constants *constants);

/* constants_at - what a register holds before an instruction; NULL: that is not known. */
const struct constant *constants_at(const struct constants *constants, uint32_t index, int reg);

/*
 * arguments_open - prepare constants_find() for a function that function_read() has read: until
 * then more of its instructions may be opened, and calls be marked as calls that return. -ENOMEM.
 * constants_close() it, also after an error. @landing_pads: the object has handlers of exceptions
 */
int arguments_open(struct constants *constants, struct function_code *code, bool landing_pads);

/* argument_at - the constant in rdi at the call or jump at an address; NULL: not known. */
const struct constant *argument_at(const struct constants *constants, uint64_t at);

/* --- Branches of a file ---------------------------------------------------------------------- */

#define BRANCH_SECTIONS 64

enum branch_kind {
	BRANCH_CALL,
	BRANCH_JUMP,
	BRANCH_CONDITIONAL, /* or by a jump table */
	BRANCH_MAYBE,	    /* bytes that would be a branch, if they were an instruction */
};

/*
 * All direct branches of a file, so that it is known who leads into a function. A function may have
 * several parts, as the compiler puts some elsewhere (f and f.cold), and code without a symbol may
 * be a part of any.
 */
struct branches {
	const struct elf *elf;
	const struct elf_symbols *symbols;
	struct elf_section section[BRANCH_SECTIONS]; /* of code, sorted */
	size_t sections;
	struct code_function {
		uint64_t addr, end;
		const uint8_t *bytes;
		const char *name;
		bool decoded;
		bool indirect; /* it, or a part of it, has an indirect jump, but by the GOT */
		bool is_open;  /* another part may jump to any address in it */
	} * function;	       /* sorted */
	uint32_t n;
	struct branch {
		uint64_t to;
		uint32_t from; /* index of a function, or INSN_NONE */
		enum branch_kind kind;
	} * branch;
	size_t count, sorted; /* by target, the first ones */
	bool has_open_part;   /* some part may jump to any address in its function */
};

/* branches_read - of all these functions, and between them. -ENOMEM. branches_free() it always. */
int branches_read(struct branches *branches, const struct elf *elf,
		  const struct elf_symbols *symbols);
void branches_free(struct branches *branches);

/* branches_add - to be sorted later, by branches_sort(). -ENOMEM. */
int branches_add(struct branches *branches, uint64_t to, uint32_t from, enum branch_kind kind);
void branches_sort(struct branches *branches);

/* branches_to - the index of the first sorted branch to an address or behind it. */
size_t branches_to(const struct branches *branches, uint64_t to);

/* branches_function - the index of the function that has an address, or INSN_NONE. */
uint32_t branches_function(const struct branches *branches, uint64_t addr);

/* branches_enter - whether other code than that of a function may lead to an address. */
bool branches_enter(const struct branches *branches, uint32_t index, uint64_t at);

/* branches_code - the section of code that has all these bytes, or NULL. */
const struct elf_section *branches_code(const struct branches *branches, uint64_t addr,
					uint64_t len);

/* --- Jump tables ----------------------------------------------------------------------------- */

/*
 * Where the indirect jumps of a function lead, if all of them use jump tables of a compiler:
 *
 *	cmp	$7, %edi
 *	ja	otherwise
 *	lea	table(%rip), %rdx
 *	mov	%edi, %edi
 *	movslq	(%rdx,%rdi,4), %rax
 *	add	%rdx, %rax
 *	jmp	*%rax			or at once: jmp *table(,%rdi,8)
 *
 * in any order and by any registers, if all this is proven:
 *
 *  - every path to the jump comes from the check, in one line or by its branch;
 *  - the number that was checked selects the entry, and its upper half is 0;
 *  - the table is the one that is added, and the program cannot write to it;
 *  - all entries up to the bound lead to instructions of the function, or to the beginning of
 *    another: a part of it that was put elsewhere.
 *
 * The address of the table is followed along all branches, as a register may have it since long
 * before. A value in memory is assumed to stay as it was checked or stored, if nothing is stored in
 * between, as the compiler assumed it.
 */

/*
 * jumps_follow - of the function of an index. 1: these are all. 0: there are others, or it is not
 * certain. -ENOMEM.
 */
int jumps_follow(const struct branches *branches, uint32_t index, struct function_code *code);

/* --- Effects of a small function ------------------------------------------------------------- */

/* What a function clobbers of vector, mask, x87 and MMX registers, and their control words. */
enum clobbers {
	CLOBBERS_ANY,	      /* in doubt */
	CLOBBERS_LOWER_FLAGS, /* the lower 16 bytes of the first EFFECTS_XMM vectors, MXCSR */
	CLOBBERS_LOWER,	      /* only these 16 bytes each */
	CLOBBERS_NONE
};

#define EFFECTS_XMM	 8
#define EFFECTS_BYTES	 128
#define EFFECTS_RELATIVE 8

struct effects {
	enum clobbers clobbers;
	/*
	 * A copy of its first bytes does the same elsewhere, and leaves them at their end: it
	 * changes no vector, makes no use of the stack, and its only RET is behind them.
	 */
	bool moves;
	uint8_t size;	 /* of these bytes */
	uint8_t read;	 /* all this is known of as many bytes; 0: of more than EFFECTS_BYTES */
	uint16_t reads;	 /* bit i: the general register i, by its number in machine code */
	uint16_t writes; /* the same */
	/* Offsets of RIP-relative displacements in them, which a copy has to adjust. */
	uint8_t relative[EFFECTS_RELATIVE];
	uint8_t relatives;
};

/*
 * effects_read - of a small function, of EFFECTS_BYTES, that calls nothing and jumps nowhere else:
 * all its paths are decoded. Of others, and without a decoder: CLOBBERS_ANY, and it does not move.
 *
 * Nothing in it may be a site that this library or its user could change later: no call, no jump of
 * five bytes, nor a NOP of five, nor the short jump that stands for a call. SSE instructions leave
 * the upper parts of a vector as they are, those of AVX do not.
 */
struct effects effects_read(uintptr_t function);

#endif
