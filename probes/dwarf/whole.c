/* SPDX-License-Identifier: MIT */
/* The members of a value: how they are shown, and in which class of registers they go. */
#include "probes/dwarf/abi.h"

#include <stdio.h>
#include <string.h>

#define NESTED_MAX 16	    /* structs inside of each other */
#define LOOKED_MAX 4096	    /* types in one value; damage makes structs that are in themselves */
#define SHOWN_BITS (64 * 8) /* of a value, from its beginning */
#define NAME_BYTES 120

/* --- How values are shown -------------------------------------------------------------------- */

static bool is_char(Dwarf_Die *type)
{
	const char *name = dw.dwarf_diename(type);

	return dw.dwarf_tag(type) == DW_TAG_base_type && name && !strcmp(name, "char");
}

/* SOURCE_OTHER: none of these, as a complex one. */
static enum source_form find_base_form(Dwarf_Die *type)
{
	switch (libdw_number(type, DW_AT_encoding)) {
	case DW_ATE_boolean:
		return SOURCE_BOOL;
	case DW_ATE_signed_char:
		return is_char(type) ? SOURCE_CHAR : SOURCE_SIGNED;
	case DW_ATE_unsigned_char:
		return is_char(type) ? SOURCE_BYTE : SOURCE_UNSIGNED;
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

/* The type of an enum in C is the compiler's choice: signed if a value is below 0. */
static bool has_negative(Dwarf_Die *type)
{
	Dwarf_Attribute place;
	Dwarf_Sword value;
	Dwarf_Die child;

	if (dw.dwarf_child(type, &child))
		return false;
	do
		if (dw.dwarf_attr(&child, DW_AT_const_value, &place) &&
		    place.form == DW_FORM_sdata && !dw.dwarf_formsdata(&place, &value) && value < 0)
			return true;
	while (libdw_next(&child));
	return false;
}

static enum source_form find_enum_form(Dwarf_Die *type)
{
	enum source_form form;
	Dwarf_Die base;

	if (!libdw_type(type, &base))
		base = *type;
	if (!libdw_has(&base, DW_AT_encoding))
		return has_negative(type) ? SOURCE_SIGNED : SOURCE_UNSIGNED;
	form = find_base_form(&base);
	if (form == SOURCE_BOOL || form == SOURCE_SIGNED)
		return form;
	return form == SOURCE_CHAR ? SOURCE_SIGNED : SOURCE_UNSIGNED;
}

/* --- Members --------------------------------------------------------------------------------- */

/* path NULL: it is not shown by itself. */
static void add_piece(struct whole *whole, const char *path, enum source_form form, unsigned offset,
		      unsigned bits)
{
	if (!path)
		return;
	if (whole->n == PIECES_MAX || offset + (bits ? bits : 1) > SHOWN_BITS) {
		whole->cut = true;
		return;
	}
	whole->piece[whole->n++] = (struct source_value){
		.name = obstack_copy0(whole->names, path, (int)strlen(path)),
		.form = form,
		.bits = (uint8_t)bits,
		.offset = (uint16_t)offset,
	};
}

/* Note the class of registers for so many eight bytes from an offset on. */
static void take_class(struct whole *whole, enum class class, unsigned offset, unsigned eights)
{
	for (unsigned i = offset / 64; i < offset / 64 + eights; i++)
		if (i > 1)
			whole->memory = true;
		else if (whole->eight[i] < class)
			whole->eight[i] = class;
}

static void align_to(struct whole *whole, Dwarf_Word bytes)
{
	if (bytes > whole->align && !(bytes & (bytes - 1)))
		whole->align = bytes;
}

static void mark_covered(struct whole *whole, unsigned offset, unsigned bits)
{
	for (unsigned byte = offset / 8; byte < 16 && 8 * byte < offset + bits; byte++)
		whole->covered |= (uint16_t)(1u << byte);
}

/* class NONE: in the x87. SOURCE_OTHER: in a vector register whose upper half is unused. */
static void add_value(struct whole *whole, const char *path, enum source_form form,
		      enum class class, unsigned offset, unsigned bits)
{
	bool is_other = form == SOURCE_OTHER;

	whole->x87 |= class == NONE;
	/* A value that is not aligned is in a packed struct. */
	whole->memory |= class == NONE || offset % bits;
	if (!(offset % bits) && !(whole->size % (bits / 8)))
		align_to(whole, bits / 8);
	mark_covered(whole, offset, bits);
	take_class(whole, class, offset, is_other ? 1 : (bits + 63) / 64);
	add_piece(whole, path, form, offset, is_other ? 0 : bits);
}

static char *longer_path(char longer[NAME_BYTES], const char *path, const char *name)
{
	snprintf(longer, NAME_BYTES, *path && *name != '[' ? "%s.%s" : "%s%s", path, name);
	return longer;
}

/* A value of more than 16 bytes is in memory, with all kinds of parts. */
static void add_unknown(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	Dwarf_Word size = libdw_size(type);

	if (whole->size > 16 && size && size < 16)
		add_piece(whole, path, SOURCE_OTHER, offset, 0);
	else
		whole->unknown = true;
}

static void add_float(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	const char *name = dw.dwarf_diename(type);
	unsigned bits = 8 * (unsigned)libdw_size(type);

	name = name ? name : "";
	if (bits == 32 || bits == 64)
		add_value(whole, path, SOURCE_FLOAT, VECTOR, offset, bits);
	else if (bits == 128 && !strcmp(name, "long double"))
		add_value(whole, path, SOURCE_FLOAT, NONE, offset, bits);
	else if (bits == 128 && (!strcmp(name, "_Float128") || !strcmp(name, "__float128")))
		add_value(whole, path, SOURCE_OTHER, VECTOR, offset, bits);
	else
		add_unknown(whole, path, type, offset);
}

static void add_complex(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	static const char *const parts[] = { "real", "imag" };
	unsigned bits = 4 * (unsigned)libdw_size(type);
	char longer[NAME_BYTES];

	if (libdw_number(type, DW_AT_encoding) != DW_ATE_complex_float ||
	    (bits != 32 && bits != 64 && bits != 128))
		return add_unknown(whole, path, type, offset);
	for (unsigned i = 0; i < 2; i++, offset += bits) {
		const char *part = path ? longer_path(longer, path, parts[i]) : NULL;

		add_value(whole, part, SOURCE_FLOAT, bits == 128 ? NONE : VECTOR, offset, bits);
	}
}

/* Add an integer, if registers have its size. */
static void add_integer(struct whole *whole, const char *path, Dwarf_Die *type,
			enum source_form form, Dwarf_Word most, unsigned offset)
{
	Dwarf_Word size = libdw_size(type);

	if (size && size <= most && !(size & (size - 1)))
		add_value(whole, path, form, INTEGER, offset, 8 * (unsigned)size);
	else
		add_unknown(whole, path, type, offset);
}

static void add_base(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	enum source_form form = find_base_form(type);
	const char *name = dw.dwarf_diename(type);

	/* The bits above a _BitInt are not part of its value. */
	if (name && strstr(name, "_BitInt"))
		whole->unknown = true;
	else if (form == SOURCE_FLOAT)
		add_float(whole, path, type, offset);
	else if (form == SOURCE_OTHER)
		add_complex(whole, path, type, offset);
	else
		add_integer(whole, path, type, form, 16, offset);
}

/* Pointers of 32 bits are extensions of compilers. */
static void add_pointer(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	Dwarf_Word size;
	Dwarf_Die to;
	bool is_string = libdw_type(type, &to) && is_char(&to);

	if (libdw_known(type, DW_AT_byte_size, &size) && size != 8)
		whole->unknown = true;
	else
		add_value(whole, path, is_string ? SOURCE_STRING : SOURCE_POINTER, INTEGER, offset,
			  64);
}

static void add_type(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
		     unsigned depth);

static bool is_scalar(Dwarf_Die *type)
{
	int tag = dw.dwarf_tag(type);

	return !libdw_is_struct(type) && tag != DW_TAG_array_type &&
	       (tag != DW_TAG_base_type || find_base_form(type) != SOURCE_OTHER);
}

/* An array of numbers is one value. */
static bool add_scalars(struct whole *whole, const char *path, Dwarf_Die *element, unsigned offset,
			Dwarf_Word n)
{
	unsigned before = whole->n, room;
	struct source_value *value;

	if (!is_scalar(element))
		return false;
	add_type(whole, path, element, offset, 0);
	if (whole->n == before)
		return true;
	value = &whole->piece[before];
	if (!value->bits)
		return true;
	room = (SHOWN_BITS - offset) / value->bits;
	value->cut = n > room;
	value->count = (uint8_t)(value->cut ? room : n);
	return true;
}

/* The first 16 bytes decide whether the value is in memory. */
static void add_array(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
		      unsigned depth)
{
	Dwarf_Word size = libdw_size(type), one, at;
	char longer[NAME_BYTES], number[24];
	Dwarf_Die element;

	one = libdw_type(type, &element) ? libdw_size(&element) : 0;
	whole->unknown |= libdw_is_odd(type);
	if (libdw_has(type, DW_AT_GNU_vector)) {
		/* Compilers disagree on vectors of one element, and of other sizes. */
		whole->unknown |= (size != 8 && size != 16) || size == one;
		return add_value(whole, path, SOURCE_OTHER, VECTOR, offset, size == 8 ? 64 : 128);
	}
	/* Compilers disagree on small structs with a flexible array member. */
	whole->unknown |= (!one || size < one) && whole->size <= 16;
	if (!one || size < one)
		return add_piece(whole, path, SOURCE_OTHER, offset, 0);
	if (path && add_scalars(whole, path, &element, offset, size / one))
		path = NULL;
	for (at = 0; at + one <= size && !whole->unknown && (at < 16 || (path && !whole->cut));
	     at += one) {
		snprintf(number, sizeof(number), "[%u]", (unsigned)(at / one));
		add_type(whole, path ? longer_path(longer, path, number) : NULL, &element,
			 offset + 8 * (unsigned)at, depth + 1);
	}
}

/* In bits, from the start of its struct. DWARF 4 counts bit fields from the other end. */
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
	bool is_enum = dw.dwarf_tag(type) == DW_TAG_enumeration_type;
	enum source_form form = is_enum ? find_enum_form(type) : find_base_form(type);

	if (bits > 64) {
		whole->unknown = true;
		return;
	}
	mark_covered(whole, offset, bits);
	take_class(whole, INTEGER, offset, (offset % 64 + bits + 63) / 64);
	add_piece(whole, path, form, offset, bits);
}

static void add_member(struct whole *whole, const char *path, Dwarf_Die *member, unsigned offset,
		       unsigned depth)
{
	unsigned bits = (unsigned)libdw_number(member, DW_AT_bit_size), at;
	const char *name = dw.dwarf_diename(member);
	struct unit_by by = unit_by(member);
	char longer[NAME_BYTES];
	Dwarf_Die type;

	/* A static member is no part of its objects. */
	if (libdw_has(member, DW_AT_external) || libdw_has(member, DW_AT_declaration))
		return;
	if (libdw_is_odd(member) || !libdw_type(member, &type) ||
	    !member_offset(member, &type, bits, &at)) {
		whole->unknown = true;
		return;
	}
	if (path && name && dw.dwarf_tag(member) == DW_TAG_member)
		path = longer_path(longer, path, name);
	align_to(whole, libdw_number(member, DW_AT_alignment));
	/* An _Atomic struct of 16 bytes is aligned to 16. */
	whole->may_be_wide |=
		by.c && !by.dwarf_5 && libdw_is_struct(&type) && libdw_size(&type) == 16;
	if (bits)
		add_bits(whole, path, &type, offset + at, bits);
	else
		add_type(whole, path, &type, offset + at, depth + 1);
}

static void add_members(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
			unsigned depth)
{
	unsigned n = whole->n;
	bool has_member = false;
	Dwarf_Attribute place;
	Dwarf_Die child;

	if (dw.dwarf_attr(type, DW_AT_declaration, &place)) {
		whole->unknown = true;
		return;
	}
	if (dw.dwarf_child(type, &child)) {
		mark_covered(whole, offset, 8);
		return add_piece(whole, path, SOURCE_OTHER, offset, 0);
	}
	do {
		int tag = dw.dwarf_tag(&child);

		if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
			continue;
		has_member = true;
		add_member(whole, path, &child, offset, depth);
	} while (!whole->unknown && libdw_next(&child));
	if (!has_member)
		mark_covered(whole, offset, 8);
	if (whole->n == n && !whole->cut)
		add_piece(whole, path, SOURCE_OTHER, offset, 0);
}

static void add_type(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
		     unsigned depth)
{
	whole->unknown |= depth > NESTED_MAX || whole->looked++ == LOOKED_MAX;
	if (whole->unknown)
		return;
	align_to(whole, libdw_number(type, DW_AT_alignment));
	switch (dw.dwarf_tag(type)) {
	case DW_TAG_base_type:
		return add_base(whole, path, type, offset);
	case DW_TAG_enumeration_type:
		return add_integer(whole, path, type, find_enum_form(type), 8, offset);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_unspecified_type:
		return add_pointer(whole, path, type, offset);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return add_members(whole, path, type, offset, depth);
	case DW_TAG_array_type:
		return add_array(whole, path, type, offset, depth);
	default:
		add_unknown(whole, path, type, offset);
	}
}

/* Bit fields without names are integers to gcc, but only holes in debug information. */
static bool has_hole(const struct whole *whole)
{
	for (unsigned i = 0; i < 2 && 8 * i < whole->size; i++) {
		unsigned bytes = whole->covered >> 8 * i & 0xff;

		if (whole->eight[i] != INTEGER && !(bytes & 0xf) && (bytes || whole->align < 16))
			return true;
	}
	return false;
}

void whole_of(struct whole *whole, const char *name, Dwarf_Die *die, Dwarf_Die *type)
{
	enum by_reference how = abi_by_reference(type);

	whole->size = whole->align = 8;
	if (how == BY_REFERENCE_UNKNOWN || libdw_is_odd(die)) {
		whole->unknown = true;
		return;
	}
	if (how == BY_REFERENCE) {
		whole->pointer = true;
		return add_value(whole, name, SOURCE_POINTER, INTEGER, 0, 64);
	}
	if (!is_scalar(type) || dw.dwarf_tag(type) == DW_TAG_base_type)
		whole->size = libdw_size(type);
	whole->memory = whole->size > 16;
	whole->is_struct = libdw_is_struct(type);
	whole->declared_align = libdw_number(type, DW_AT_alignment);
	add_type(whole, name, type, 0, 0);
	whole->is_wide = is_scalar(type) && whole->eight[1];
	/* Compilers disagree on structs that have empty members alone. */
	whole->unknown |= whole->memory && !whole->x87 && !whole->eight[0] && !whole->eight[1];
	whole->unknown |= whole->is_struct && !whole->memory && has_hole(whole);
}

void whole_hide(struct whole *whole, const char *name)
{
	whole->n = 0;
	whole->cut = false;
	add_piece(whole, name, SOURCE_OTHER, 0, 0);
}
