/* SPDX-License-Identifier: MIT */
/*
 * A value as one that is handed over: its members, and in which class of registers they go.
 */
#ifndef PROBES_SOURCE_WHOLE_H
#define PROBES_SOURCE_WHOLE_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/source/abi.h"
#include "probes/source/libdw.h"
#include "probes/source/source.h"

#define PIECES_MAX 64

enum class {
	NONE = 0,
	VECTOR,
	INTEGER,
};

struct piece {
	struct source_value value;
	unsigned offset; /* bits */
};

/* A value with its members. */
struct whole {
	enum class eight[2];
	bool memory, x87, pointer, unknown, cut;
	bool is_struct, is_wide;
	bool may_be_wide;	/* aligned to 16, and debug information does not tell */
	uint8_t reg[2];		/* in which the eight bytes are, if they are in registers */
	uint16_t covered;	/* by members, a bit for each of the first bytes */
	Dwarf_Word size, align; /* on the stack; bytes */
	Dwarf_Word told;	/* the alignment that debug information tells of; 0: none */
	unsigned looked;	/* at so many types */
	struct piece piece[PIECES_MAX];
	unsigned n;
	struct abi_names **names;
};

/*
 * whole_of - of what @die has as its type. @type is the type. Where @whole is unknown it is not
 * known where it is, nor what is behind it.
 */
void whole_of(struct whole *whole, const char *name, Dwarf_Die *die, Dwarf_Die *type);

/* whole_hide - nothing but its name is shown. */
void whole_hide(struct whole *whole, const char *name);

/* abi_keep - until abi_forget(). NULL: no memory. */
void *abi_keep(struct abi_names **names, const void *what, size_t size);

/* form_base - of a base type; SOURCE_OTHER: of none of these, as a complex one. */
enum source_form form_base(Dwarf_Die *type);

/* form_enum - of an enumeration: SOURCE_SIGNED or SOURCE_UNSIGNED, or of a bool. */
enum source_form form_enum(Dwarf_Die *type);

/* form_pointer - of a pointer or reference: SOURCE_STRING or SOURCE_POINTER. */
enum source_form form_pointer(Dwarf_Die *pointer);

#endif
