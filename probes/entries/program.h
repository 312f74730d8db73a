/* SPDX-License-Identifier: MIT */
/* What a survey knows of a file: its code, its functions, its branches. */
#ifndef PROBES_ENTRIES_PROGRAM_H
#define PROBES_ENTRIES_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/entries/survey.h"
#include "probes/insn/function.h"

#define SECTIONS_MAX 64
#define NO_FUNCTION  UINT32_MAX

enum kind {
	CALL,
	JUMP,
	CONDITIONAL,
	MAYBE, /* bytes that would be a branch, if they were an instruction */
};

struct branch {
	uint64_t to;
	uint32_t from; /* index of a function, or NO_FUNCTION */
	enum kind kind;
};

struct piece {
	uint64_t addr, len;
	const uint8_t *bytes;
};

struct function {
	uint64_t addr, end;
	const uint8_t *bytes;
	const char *name;
	bool decoded;
	bool indirect; /* it, or a part of it, has an indirect jump */
};

struct link {
	uint32_t a, b;
};

struct program {
	const struct elf *elf;
	struct elf_symbols symbols;	 /* also of functions without names */
	struct piece code[SECTIONS_MAX]; /* sorted, without the PLT */
	size_t codes;
	bool has_branches; /* sites that libfastinst changes itself */
	bool is_go;
	struct function *function;
	uint32_t n;
	struct branch *branch;
	size_t branches;
	struct link *link;
	size_t links;
};

void program_sections(struct program *program);

/* program_functions - sorted; they do not overlap. -ENOMEM. elf_free() the symbols in any case. */
int program_functions(struct program *program);

/* program_piece - the code that has all of a range, or NULL. */
const struct piece *program_piece(const struct program *program, uint64_t addr, uint64_t len);

/* program_function - the index of the one that an address is in, or NO_FUNCTION. */
uint32_t program_function(const struct program *program, uint64_t addr);

#endif
