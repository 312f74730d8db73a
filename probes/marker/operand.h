/* SPDX-License-Identifier: MIT */
/*
 * Arguments of a marker, as its note has them: "-4@%edi 8@-16(%rbp) 4@$5". Before the @ is the size
 * in bytes, negative for signed ones, behind it an operand in AT&T syntax. Notes may be damaged:
 * unknown operands are refused with a reason.
 */
#ifndef PROBES_MARKER_OPERAND_H
#define PROBES_MARKER_OPERAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPERANDS_MAX 12
#define OPERAND_TEXT 512 /* longer texts are refused */

/* Registers by their numbers in machine code: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ... */
#define OPERAND_NONE 16

enum operand_form {
	OPERAND_REFUSED = 0,
	OPERAND_CONSTANT,
	OPERAND_REGISTER,
	OPERAND_MEMORY
};

struct operand {
	enum operand_form form;
	uint8_t size; /* 1, 2, 4 or 8 */
	bool is_signed;
	uint8_t base;  /* the register itself, or the base */
	uint8_t shift; /* of a register: 8 for the second byte (%ah) */
	uint8_t index;
	uint8_t scale;
	int64_t value;	    /* the constant, or the displacement */
	const char *reason; /* why it is refused, else NULL */
};

/* Finds the address of the one symbol of a name, which is not terminated. False: none, or several.
 */
struct operand_symbols {
	bool (*find)(const void *object, const char *name, size_t len, uint64_t *address);
	const void *object;
};

/* How many operands there are; those beyond OPERANDS_MAX are dropped. @symbols may be NULL. */
unsigned operands_parse(const char *text, const struct operand_symbols *symbols,
			struct operand operands[OPERANDS_MAX]);

/* Its value with these registers. False: it is refused. Memory is read where it says. */
bool operand_value(const struct operand *operand, const uint64_t regs[16], int64_t *value);

#endif
