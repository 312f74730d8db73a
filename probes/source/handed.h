/* SPDX-License-Identifier: MIT */
/*
 * Whether an argument is where the ABI has it. A compiler may hand over what it likes to a function
 * that all of its callers are known of: clang leaves out arguments of which no use is made, those
 * behind it move up, and neither the function's name nor its type tells. Debug information does: it
 * says where arguments are at the entry.
 */
#ifndef PROBES_SOURCE_HANDED_H
#define PROBES_SOURCE_HANDED_H

#include <stdint.h>

#include "probes/source/libdw.h"

/* A function that is in the file, as code. */
struct handed {
	Dwarf_Die *code;
	uint64_t addr; /* of its probe */
	unsigned nops; /* bytes, there; clang's arguments have a place from behind them on */
	bool by_abi;
	bool sets_all; /* callers set also what the function makes no use of */
	bool has_prototype;
	unsigned taken[2]; /* registers for integers and for vectors, by what debug information says
			    */
};

/* Where the ABI has an argument. */
struct handed_place {
	Dwarf_Word size;  /* in bytes */
	bool moved;	  /* one before it is not where the ABI has it */
	bool memory;	  /* on the stack */
	bool is_number;	  /* of up to eight bytes, or a pointer */
	uint8_t eight[2]; /* else: registers as in source_value, HANDED_NONE */
};
#define HANDED_NONE UINT8_MAX

enum handed_how {
	HANDED_SO = 0,
	HANDED_ELSEWHERE, /* in the register that is the first now */
	HANDED_UNKNOWN,
	HANDED_UNSET,	  /* no use is made of it, and callers need not set it */
	HANDED_OTHERWISE, /* debug information is of another ABI, or of what the code does first */
};

/*
 * handed_by - @code is a function at @addr, of a unit. All compilers follow the ABI where it is
 * @exported, but clang's callers may not set what it makes no use of; gcc follows it elsewhere too,
 * but for copies, which have names of their own, and what is asked for.
 */
struct handed handed_by(Dwarf_Die *code, uint64_t addr, unsigned nops, bool exported);

/*
 * handed_how - @argument may be one of what @code was made of, an inline function's or a copy's.
 * For each argument once, in their order. handed_has - the code has it.
 */
enum handed_how handed_how(struct handed *handed, Dwarf_Die *argument, struct handed_place *place);
bool handed_has(const struct handed *handed, Dwarf_Die *argument);

#endif
