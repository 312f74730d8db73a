/* SPDX-License-Identifier: MIT */
/* The provider of markers: what it keeps of one, and what is on the stack while one runs. */
#ifndef PROBES_PROVIDERS_MARKER_H
#define PROBES_PROVIDERS_MARKER_H

#include "probes/elf/elf.h"

#include "probes/core/provider.h"

/*
 * Arguments of a marker, as its note has them: "-4@%edi 8@-16(%rbp) 4@$5". Before the @ is the size
 * in bytes, negative for signed ones, behind it an operand in AT&T syntax. Notes may be damaged:
 * unknown operands are refused with a reason.
 */

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

/* Finds the address of the only symbol of a name, which is not terminated, or returns false. */
struct operand_symbols {
	bool (*find)(const void *object, const char *name, size_t len, uint64_t *address);
	const void *object;
};

/* How many operands there are; those beyond OPERANDS_MAX are dropped. @symbols may be NULL. */
unsigned operands_parse(const char *text, const struct operand_symbols *symbols,
			struct operand operands[OPERANDS_MAX]);

/* Its value with these registers. False: it is refused. Memory is read where it says. */
bool operand_value(const struct operand *operand, const uint64_t regs[16], int64_t *value);

/* probe->extra. Never freed: a thread may still be at the site of an object that is unloaded. */
struct marker {
	uint16_t *semaphore; /* NULL: none */
	const uint8_t *back; /* behind its NOP */
	unsigned count;
	struct operand operands[];
};

/* Pushed by the stub and marker_entry; fi_regs.rsp points here in a probe function. */
struct marker_saved {
	uint64_t r15, r14, r13, r12, rbp, rbx;
	uint64_t back; /* into the stub */
	uint64_t id;
	uint8_t red_zone[128];
};

/* Called by stubs. Not a C function. */
void marker_entry(void);

/* The stub of a marker, to stand at @at. -ERANGE: @back is out of reach. */
#define STUB_BYTES 32
int stub_make(uint8_t stub[STUB_BYTES], const uint8_t *at, uint32_t id, const uint8_t *back);

/* Addresses are those of the file. The strings are in the image, and end there. */
struct note {
	uint64_t address;   /* of the first NOP */
	uint64_t semaphore; /* 0: none */
	const char *provider;
	const char *name;
	const char *operands;
};

/*
 * nop_length - of the NOP that the code begins with, with all its prefixes, as processors of all
 * vendors decode it: 90, or 0F 1F /0. 0: there is none, or not all of it.
 */
size_t nop_length(const uint8_t *code, size_t left);

/* Called for each note; what is not 0 ends the reading and is returned. */
typedef int note_fn(const struct note *note, void *data);

/* notes_read - the notes of a file; damaged ones are left out. 0, or what the callback returned. */
int notes_read(const struct elf *elf, note_fn *tell, void *data);

/* The address in the file of the symbol of that name, if there is one only. @name needs no end. */
bool notes_symbol(const struct elf *elf, const char *name, size_t len, uint64_t *address);

#endif
