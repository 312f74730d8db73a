/* SPDX-License-Identifier: MIT */
/* Where the arguments and the result of a function are, by their types and the SysV ABI. */
#ifndef PROBES_DWARF_ABI_H
#define PROBES_DWARF_ABI_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <obstack.h>
#include <stdbool.h>
#include <stdint.h>

#include "probes/dwarf/source.h"

/* --- libdw, by libdw.c: libdw_load() comes before all else ------------------------------------ */

/* clang-format off */
#define LIBDW_CALLS(do)                                                                            \
	do(dwarf_begin) do(dwarf_end) do(dwarf_nextcu) do(dwarf_offdie) do(dwarf_dieoffset)        \
	do(dwarf_ranges) do(dwarf_getsrc_die) do(dwarf_linesrc)                  \
	do(dwarf_lineno) do(dwarf_child) do(dwarf_siblingof) do(dwarf_tag) do(dwarf_attr)          \
	do(dwarf_attr_integrate) do(dwarf_formudata) do(dwarf_formref_die) do(dwarf_diename)       \
	do(dwarf_formsdata) do(dwarf_cu_info) do(dwarf_aggregate_size)                             \
	do(elf_begin) do(elf_end) do(dwelf_elf_gnu_build_id)                                       \
	do(dwarf_diecu) do(dwarf_formstring) do(dwarf_getlocation_addr) do(dwarf_getlocations)
/* clang-format on */

#define LIBDW_DECLARE(name) __typeof__(name) *name;
struct libdw {
	LIBDW_CALLS(LIBDW_DECLARE)
};

extern struct libdw dw __attribute__((visibility("hidden")));

/* libdw_load - false: it is not here. */
bool libdw_load(void);

/* libdw_has, libdw_known, libdw_number - an attribute: whether it is there; as a number, else 0. */
bool libdw_has(Dwarf_Die *die, unsigned attribute);
bool libdw_known(Dwarf_Die *die, unsigned attribute, Dwarf_Word *value);
Dwarf_Word libdw_number(Dwarf_Die *die, unsigned attribute);

/*
 * libdw_type - of a DIE, without typedefs and qualifiers. False: void. libdw_is_odd - compilers
 * disagree on its alignment: a typedef has its own, or it is an _Atomic struct.
 */
bool libdw_type(Dwarf_Die *die, Dwarf_Die *type);
bool libdw_is_odd(Dwarf_Die *die);

/* libdw_origin - what the DIE is a copy of, in its place. False: of none. */
bool libdw_origin(Dwarf_Die *die);

/* libdw_next - the next of the same parent. False: there is none, or damage leads back. */
bool libdw_next(Dwarf_Die *die);

/* libdw_size - of a type, in bytes. 0: not known. */
Dwarf_Word libdw_size(Dwarf_Die *type);

/* libdw_is_struct - of members: struct, class or union. */
bool libdw_is_struct(Dwarf_Die *type);

/* The compiler and the language of debug information. */
struct unit_by {
	bool gcc, clang;
	bool c, cpp;  /* languages whose arguments are where the ABI of C has them */
	bool dwarf_5; /* which tells of _Atomic types */
	bool odd;     /* with options that change where arguments are, or leave out what tells it */
};

/* unit_by - of the unit that a DIE is in. */
struct unit_by unit_by(Dwarf_Die *die);

/* --- How classes of C++ are passed ------------------------------------------------------------ */

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
