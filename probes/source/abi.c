/* SPDX-License-Identifier: MIT */
/*
 * A value of up to 16 bytes is handed over in registers, eight bytes each: in one for integers if
 * any of the eight is part of an integer or pointer, else in a vector register. All of it is, or
 * all of it is on the stack.
 */
#include "probes/source/abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NESTED_MAX 16 /* structs inside of each other */
#define PIECES_MAX SOURCE_ARGS_MAX
#define NAME_BYTES 120

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
	bool memory, x87, pointer, unknown;
	struct piece piece[PIECES_MAX];
	unsigned n;
	struct abi_names **names;
};

/* How many registers are taken. */
struct taken {
	unsigned integers, vectors;
};

/* --- Forms ------------------------------------------------------------------------------------ */

static enum source_form base_form(Dwarf_Die *type)
{
	const char *name = dw.dwarf_diename(type);

	switch (libdw_number(type, DW_AT_encoding)) {
	case DW_ATE_boolean:
		return SOURCE_BOOL;
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
		if (name && !strcmp(name, "char"))
			return SOURCE_CHAR;
		return libdw_number(type, DW_AT_encoding) == DW_ATE_signed_char ? SOURCE_SIGNED
										: SOURCE_UNSIGNED;
	case DW_ATE_signed:
		return SOURCE_SIGNED;
	case DW_ATE_unsigned:
	case DW_ATE_UTF:
	case DW_ATE_address:
		return SOURCE_UNSIGNED;
	case DW_ATE_float:
		return SOURCE_FLOAT;
	default:
		return SOURCE_OTHER;
	}
}

static enum source_form pointer_form(Dwarf_Die *pointer)
{
	Dwarf_Die to;

	if (libdw_type(pointer, &to) && dw.dwarf_tag(&to) == DW_TAG_base_type &&
	    base_form(&to) == SOURCE_CHAR)
		return SOURCE_STRING;
	return SOURCE_POINTER;
}

/* --- Pieces ----------------------------------------------------------------------------------- */

/* path NULL: it is not shown by itself. */
static void add_piece(struct whole *whole, const char *path, enum source_form form, unsigned offset,
		      unsigned bits)
{
	size_t size = path ? strlen(path) + 1 : 0;
	struct abi_names *name;

	if (!path)
		return;
	name = whole->n < PIECES_MAX ? malloc(sizeof(*name) + size) : NULL;
	if (!name) {
		whole->unknown = true;
		return;
	}
	memcpy(name->name, path, size);
	name->next = *whole->names;
	*whole->names = name;
	whole->piece[whole->n++] = (struct piece){
		.value = { .name = name->name, .form = form, .bits = (uint8_t)bits },
		.offset = offset,
	};
}

/* So many eight bytes from there are in registers of that class. */
static void take_class(struct whole *whole, enum class class, unsigned offset, unsigned eights)
{
	for (unsigned i = offset / 64; i < offset / 64 + eights; i++)
		if (i > 1)
			whole->memory = true;
		else if (whole->eight[i] < class)
			whole->eight[i] = class;
}

static void add_value(struct whole *whole, const char *path, enum source_form form,
		      enum class class, unsigned offset, unsigned bits)
{
	/* In a packed struct. */
	if (offset % bits)
		whole->memory = true;
	take_class(whole, class, offset, 1);
	add_piece(whole, path, form, offset, bits);
}

static void add_other(struct whole *whole, const char *path, enum class class, unsigned offset,
		      unsigned eights)
{
	if (offset % 64)
		whole->memory = true;
	take_class(whole, class, offset, eights);
	add_piece(whole, path, SOURCE_OTHER, offset, 0);
}

static void add_float(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	Dwarf_Word size = libdw_size(type);
	const char *name = dw.dwarf_diename(type);

	if (size == 4 || size == 8)
		return add_value(whole, path, SOURCE_FLOAT, VECTOR, offset, 8 * (unsigned)size);
	whole->unknown |= size != 16 || !name;
	if (whole->unknown)
		return;
	if (!strcmp(name, "long double"))
		whole->x87 = whole->memory = true;
	else if (strcmp(name, "_Float128") != 0 && strcmp(name, "__float128") != 0)
		whole->unknown = true;
	add_other(whole, path, whole->x87 ? NONE : VECTOR, offset, 1);
}

static void add_complex(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	static const char *const parts[] = { "real", "imag" };
	Dwarf_Word size = libdw_size(type);
	char longer[NAME_BYTES];

	if (libdw_number(type, DW_AT_encoding) != DW_ATE_complex_float ||
	    (size != 8 && size != 16)) {
		whole->unknown = true;
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		if (path)
			snprintf(longer, sizeof(longer), "%s.%s", path, parts[i]);
		add_value(whole, path ? longer : NULL, SOURCE_FLOAT, VECTOR,
			  offset + i * 4 * (unsigned)size, 4 * (unsigned)size);
	}
}

static void add_base(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	enum source_form form = base_form(type);
	Dwarf_Word size = libdw_size(type);

	if (form == SOURCE_FLOAT)
		return add_float(whole, path, type, offset);
	if (form == SOURCE_OTHER)
		return add_complex(whole, path, type, offset);
	if (size == 16)
		return add_other(whole, path, INTEGER, offset, 2);
	if (size == 1 || size == 2 || size == 4 || size == 8)
		return add_value(whole, path, form, INTEGER, offset, 8 * (unsigned)size);
	whole->unknown = true;
}

static void add_type(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
		     unsigned depth);

static void add_array(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
		      unsigned depth)
{
	Dwarf_Word size = libdw_size(type), one;
	Dwarf_Die element;

	if (libdw_has(type, DW_AT_GNU_vector)) {
		whole->unknown |= size != 8 && size != 16;
		return add_other(whole, path, VECTOR, offset, 1);
	}
	one = libdw_type(type, &element) ? libdw_size(&element) : 0;
	for (Dwarf_Word at = 0; one && at < size && at < 16; at += one)
		add_type(whole, NULL, &element, offset + 8 * (unsigned)at, depth + 1);
	add_piece(whole, path, SOURCE_OTHER, offset, 0);
}

/* In bits, from the beginning of its struct. DWARF 4 counts those of bit fields from the other end.
 */
static bool member_offset(Dwarf_Die *member, Dwarf_Die *type, unsigned bits, unsigned *offset)
{
	Dwarf_Word at, from_end, storage;

	if (libdw_known(member, DW_AT_data_bit_offset, &at)) {
		*offset = (unsigned)at;
		return true;
	}
	if (!libdw_known(member, DW_AT_data_member_location, &at) &&
	    libdw_has(member, DW_AT_data_member_location))
		return false;
	*offset = 8 * (unsigned)at;
	if (!libdw_known(member, DW_AT_bit_offset, &from_end))
		return true;
	if (!libdw_known(member, DW_AT_byte_size, &storage))
		storage = libdw_size(type);
	*offset += 8 * (unsigned)storage - (unsigned)from_end - bits;
	return true;
}

static void add_bits(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
		     unsigned bits)
{
	enum source_form form =
		dw.dwarf_tag(type) == DW_TAG_base_type ? base_form(type) : SOURCE_UNSIGNED;

	whole->unknown |= bits > 64 || offset / 64 != (offset + bits - 1) / 64;
	take_class(whole, INTEGER, offset, 1);
	add_piece(whole, path, form, offset, bits);
}

static void add_member(struct whole *whole, const char *path, Dwarf_Die *member, unsigned offset,
		       unsigned depth)
{
	unsigned bits = (unsigned)libdw_number(member, DW_AT_bit_size), at;
	const char *name = dw.dwarf_diename(member);
	char longer[NAME_BYTES];
	Dwarf_Die type;

	/* One of the class, not of its objects. */
	if (libdw_has(member, DW_AT_external) || libdw_has(member, DW_AT_declaration))
		return;
	if (!libdw_type(member, &type) || !member_offset(member, &type, bits, &at)) {
		whole->unknown = true;
		return;
	}
	if (path && name && dw.dwarf_tag(member) == DW_TAG_member) {
		snprintf(longer, sizeof(longer), "%s.%s", path, name);
		path = longer;
	}
	if (bits)
		add_bits(whole, path, &type, offset + at, bits);
	else
		add_type(whole, path, &type, offset + at, depth + 1);
}

static void add_members(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
			unsigned depth)
{
	bool shown = dw.dwarf_tag(type) != DW_TAG_union_type;
	unsigned n = whole->n;
	Dwarf_Die child;

	if (dw.dwarf_child(type, &child))
		return add_piece(whole, path, SOURCE_OTHER, offset, 0);
	do {
		int tag = dw.dwarf_tag(&child);

		if (tag == DW_TAG_member || tag == DW_TAG_inheritance)
			add_member(whole, shown ? path : NULL, &child, offset, depth);
	} while (!dw.dwarf_siblingof(&child, &child));
	if (whole->n == n)
		add_piece(whole, path, SOURCE_OTHER, offset, 0);
}

static void add_type(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
		     unsigned depth)
{
	Dwarf_Word size = libdw_size(type);

	if (depth > NESTED_MAX) {
		whole->unknown = true;
		return;
	}
	switch (dw.dwarf_tag(type)) {
	case DW_TAG_base_type:
		return add_base(whole, path, type, offset);
	case DW_TAG_enumeration_type:
		whole->unknown |= size != 1 && size != 2 && size != 4 && size != 8;
		return add_value(whole, path, size == 4 ? SOURCE_SIGNED : SOURCE_UNSIGNED, INTEGER,
				 offset, size ? 8 * (unsigned)size : 8);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_unspecified_type:
		return add_value(whole, path, pointer_form(type), INTEGER, offset, 64);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return add_members(whole, path, type, offset, depth);
	case DW_TAG_array_type:
		return add_array(whole, path, type, offset, depth);
	default:
		whole->unknown = true;
	}
}

static void classify(struct whole *whole, const char *name, Dwarf_Die *type)
{
	enum by_reference how = abi_by_reference(type);

	if (how == BY_REFERENCE_UNKNOWN) {
		whole->unknown = true;
	} else if (how == BY_REFERENCE) {
		whole->pointer = true;
		add_value(whole, name, SOURCE_POINTER, INTEGER, 0, 64);
	} else if (libdw_is_struct(type) && libdw_size(type) > 16) {
		whole->memory = true;
		add_piece(whole, name, SOURCE_OTHER, 0, 0);
	} else {
		add_type(whole, name, type, 0, 0);
	}
}

/* --- Registers -------------------------------------------------------------------------------- */

/* False: there are not enough of them, so it takes none. */
static bool take_registers(struct whole *whole, struct taken *taken, unsigned integers,
			   unsigned vectors)
{
	struct taken more = *taken;
	unsigned reg[2] = { 0 };

	if (whole->memory)
		return false;
	for (unsigned i = 0; i < 2; i++)
		if (whole->eight[i] == INTEGER)
			reg[i] = more.integers++;
		else if (whole->eight[i] == VECTOR)
			reg[i] = SOURCE_VECTOR + more.vectors++;
	if (more.integers > integers || more.vectors > vectors)
		return false;
	*taken = more;
	for (unsigned i = 0; i < whole->n; i++) {
		struct piece *piece = &whole->piece[i];

		piece->value.reg = (uint8_t)reg[piece->offset / 64 % 2];
		piece->value.shift = (uint8_t)(piece->offset % 64);
	}
	return true;
}

/* What comes back; whether a pointer to it takes the first register. False: not known. */
static bool find_result(Dwarf_Die *die, struct source_function *function, struct taken *taken,
			struct abi_names **names)
{
	struct whole whole = { .names = names };
	struct taken results = { 0 };
	Dwarf_Die type;

	if (!libdw_type(die, &type))
		return true;
	classify(&whole, "", &type);
	if (whole.unknown)
		return false;
	/* A long double, and a struct of one, is in a register of the x87. */
	if (whole.pointer || (whole.memory && libdw_is_struct(&type) &&
			      !(whole.x87 && !whole.eight[0] && !whole.eight[1])))
		taken->integers = 1;
	function->returns = take_registers(&whole, &results, 2, 2) &&
			    (whole.pointer || !libdw_is_struct(&type)) && whole.n == 1 &&
			    whole.piece[0].value.form != SOURCE_OTHER;
	if (function->returns)
		function->result = whole.piece[0].value;
	return true;
}

static bool add_arg(struct source_function *function, Dwarf_Die *die, struct taken *taken,
		    struct abi_names **names)
{
	const char *name = dw.dwarf_diename(die);
	struct whole whole = { .names = names };
	Dwarf_Die type;

	if (!libdw_type(die, &type))
		return false;
	name = name ? name : "";
	classify(&whole, name, &type);
	if (whole.unknown)
		return false;
	if (!take_registers(&whole, taken, SOURCE_INTEGERS, SOURCE_VECTORS)) {
		whole.n = 0;
		add_piece(&whole, name, SOURCE_OTHER, 0, 0);
	}
	if (whole.unknown || function->args + whole.n > SOURCE_ARGS_MAX)
		return false;
	for (unsigned i = 0; i < whole.n; i++)
		function->arg[function->args++] = whole.piece[i].value;
	return true;
}

void abi_function(Dwarf_Die *die, struct source_function *function, struct abi_names **names)
{
	struct taken taken = { 0 };
	Dwarf_Die child;

	function->more = !find_result(die, function, &taken, names);
	if (function->more || dw.dwarf_child(die, &child))
		return;
	do {
		int tag = dw.dwarf_tag(&child);

		if (tag == DW_TAG_formal_parameter && !function->more)
			function->more = !add_arg(function, &child, &taken, names);
		else if (tag == DW_TAG_unspecified_parameters)
			function->more = true;
	} while (!dw.dwarf_siblingof(&child, &child));
}

void abi_forget(struct abi_names *names)
{
	while (names) {
		struct abi_names *next = names->next;

		free(names);
		names = next;
	}
}
