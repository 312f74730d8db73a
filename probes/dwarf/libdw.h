/* SPDX-License-Identifier: MIT */
/* The functions of libdw that are used. libdw_load() comes before all else here. */
#ifndef PROBES_DWARF_LIBDW_H
#define PROBES_DWARF_LIBDW_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <stdbool.h>

/* clang-format off */
#define LIBDW_CALLS(do)                                                                            \
	do(dwarf_begin) do(dwarf_end) do(dwarf_nextcu) do(dwarf_offdie) do(dwarf_dieoffset)        \
	do(dwarf_ranges) do(dwarf_entrypc) do(dwarf_getsrc_die) do(dwarf_linesrc)                  \
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

#endif
