/* SPDX-License-Identifier: MIT */
/*
 * Where the arguments and the result of a function are, by their types and the SysV ABI.
 */
#ifndef PROBES_DWARF_ABI_H
#define PROBES_DWARF_ABI_H

#include <obstack.h>
#include <stdbool.h>
#include <stdint.h>

#include "probes/dwarf/libdw.h"
#include "probes/dwarf/source.h"

enum by_reference {
	BY_VALUE = 0,
	BY_REFERENCE,
	BY_REFERENCE_UNKNOWN,
};

/* abi_by_reference - whether a value of that type, a class of C++, is passed by a pointer to a
 * copy. */
enum by_reference abi_by_reference(Dwarf_Die *type);

/* --- A value, with the class of registers of its members -------------------------------------- */

#define PIECES_MAX 64

enum class {
	NONE = 0,
	VECTOR,
	INTEGER,
};

/* A value with its members. */
struct whole {
	enum class eight[2];
	bool memory, x87, pointer, unknown, cut;
	bool is_struct, is_wide;
	bool on_stack;		   /* by the ABI */
	bool moved;		   /* an argument before it is not where the ABI has it */
	bool may_be_wide;	   /* aligned to 16, and debug information does not tell */
	uint8_t reg[2];		   /* in which the eight bytes are, if they are in registers */
	uint16_t covered;	   /* by members, a bit for each of the first bytes */
	Dwarf_Word size, align;	   /* on the stack; bytes */
	Dwarf_Word declared_align; /* the alignment that debug information tells of; 0: none */
	unsigned looked;	   /* at so many types */
	struct source_value piece[PIECES_MAX];
	unsigned n;
	struct obstack *names;
};

/* whole_of - a value of @type, the type of @die. If it is unknown, so are later arguments. */
void whole_of(struct whole *whole, const char *name, Dwarf_Die *die, Dwarf_Die *type);

/* whole_hide - nothing but its name is shown. */
void whole_hide(struct whole *whole, const char *name);

/* --- Arguments at other places than the ABI has ----------------------------------------------- */

/*
 * A function with code, and how it gets its arguments. A compiler that knows all callers may leave
 * the ABI: clang leaves out unused arguments, and later ones move up. Only their locations in debug
 * information show it.
 */
struct callee {
	Dwarf_Die *code;
	uint64_t addr; /* of its probe */
	unsigned nops; /* bytes, there; clang's arguments have a place from behind them on */
	bool by_abi;
	bool sets_all; /* callers set also what the function makes no use of */
	bool has_prototype;
	unsigned taken[2]; /* registers for integers and for vectors, by debug information */
};

#define PLACE_NONE UINT8_MAX /* in whole.reg */

enum passed {
	PASSED_BY_ABI = 0,
	PASSED_ELSEWHERE, /* in another register, whole.reg[0] */
	PASSED_UNKNOWN,
	PASSED_UNSET,	  /* unused, so that callers need not set it */
	PASSED_OTHERWISE, /* debug information is of another ABI, or of what the code does first */
};

/*
 * locate_argument - by the DIE of its declaration; called for each argument in their order.
 * find_argument - false: the code does not have it.
 */
enum passed locate_argument(struct callee *callee, Dwarf_Die *argument, struct whole *whole);
bool find_argument(const struct callee *callee, Dwarf_Die *argument, Dwarf_Die *found);

/* --- Functions -------------------------------------------------------------------------------- */

/*
 * abi_function - fill in the function of that DIE, as it was declared, up to the first argument
 * whose place is unknown. Its strings and values are in @names.
 */
void abi_function(Dwarf_Die *die, struct callee *callee, struct source_function *function,
		  struct obstack *names);

#endif
