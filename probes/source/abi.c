/* SPDX-License-Identifier: MIT */
/*
 * A value of up to 16 bytes is handed over in registers, eight bytes each: in one for integers if
 * any of the eight is part of an integer or pointer, else in a vector register. All of it is, or
 * all of it is on the stack, as is what is larger, is not aligned, or has a long double in it.
 *
 * Debug information does not tell that a struct is packed. It is seen by where its members are. If
 * these are where they would be without that, as with a struct of nothing but a long double, it may
 * begin where another would, and what is behind it on the stack is not known. So it is with an
 * __int128 there: clang 14 aligns it to 8, and splits it between the last register and the stack.
 */
#include "probes/source/abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/source/form.h"
#include "probes/source/handed.h"

#define NESTED_MAX 16 /* structs inside of each other */
#define PIECES_MAX 64
#define SHOWN_BITS (64 * 8) /* of a value, from its beginning */
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
	bool memory, x87, pointer, unknown, cut;
	bool is_struct, is_wide;
	uint8_t reg[2];		/* in which the eight bytes are, if they are in registers */
	Dwarf_Word size, align; /* on the stack; bytes */
	Dwarf_Word told;	/* the alignment that debug information tells of; 0: none */
	struct piece piece[PIECES_MAX];
	unsigned n;
	struct abi_names **names;
};

/* How many registers are taken, and bytes of the stack. */
struct taken {
	unsigned integers, vectors;
	Dwarf_Word stack;
	bool moved; /* one that took these is not there */
};

/* --- Pieces ----------------------------------------------------------------------------------- */

static void *keep(struct abi_names **names, const void *what, size_t size)
{
	struct abi_names *kept = malloc(sizeof(*kept) + size);

	if (!kept)
		return NULL;
	memcpy(kept->bytes, what, size);
	kept->next = *names;
	*names = kept;
	return kept->bytes;
}

/* path NULL: it is not shown by itself. */
static void add_piece(struct whole *whole, const char *path, enum source_form form, unsigned offset,
		      unsigned bits)
{
	const char *name;

	if (!path)
		return;
	if (whole->n == PIECES_MAX || offset + (bits ? bits : 1) > SHOWN_BITS) {
		whole->cut = true;
		return;
	}
	name = keep(whole->names, path, strlen(path) + 1);
	if (!name) {
		whole->unknown = true;
		return;
	}
	whole->piece[whole->n++] = (struct piece){
		.value = { .name = name, .form = form, .bits = (uint8_t)bits },
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

static void align_to(struct whole *whole, Dwarf_Word bytes)
{
	if (bytes > whole->align && !(bytes & (bytes - 1)))
		whole->align = bytes;
}

/* What is not where it would be by itself is in a packed struct. */
static void place(struct whole *whole, enum class class, unsigned offset, unsigned bits,
		  unsigned eights)
{
	if (offset % bits)
		whole->memory = true;
	else if (!(whole->size % (bits / 8)))
		align_to(whole, bits / 8);
	take_class(whole, class, offset, eights);
}

static void add_value(struct whole *whole, const char *path, enum source_form form,
		      enum class class, unsigned offset, unsigned bits)
{
	place(whole, class, offset, bits, (bits + 63) / 64);
	add_piece(whole, path, form, offset, bits);
}

/* In a vector register of 16 bytes, of which the lower half is known. */
static void add_other(struct whole *whole, const char *path, unsigned offset, unsigned bits)
{
	place(whole, VECTOR, offset, bits, 1);
	add_piece(whole, path, SOURCE_OTHER, offset, 0);
}

static char *longer_path(char longer[NAME_BYTES], const char *path, const char *name)
{
	snprintf(longer, NAME_BYTES, *path && *name != '[' ? "%s.%s" : "%s%s", path, name);
	return longer;
}

/* Where what is large is, is known without that. */
static void add_unknown(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	Dwarf_Word size = libdw_size(type);

	if (whole->size > 16 && size && size < 16)
		add_piece(whole, path, SOURCE_OTHER, offset, 0);
	else
		whole->unknown = true;
}

static void add_x87(struct whole *whole, const char *path, unsigned offset)
{
	whole->x87 = whole->memory = true;
	add_value(whole, path, SOURCE_FLOAT, NONE, offset, 128);
}

static void add_float(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	Dwarf_Word size = libdw_size(type);
	const char *name = dw.dwarf_diename(type);

	if (size == 4 || size == 8)
		return add_value(whole, path, SOURCE_FLOAT, VECTOR, offset, 8 * (unsigned)size);
	if (size == 16 && name && !strcmp(name, "long double"))
		return add_x87(whole, path, offset);
	if (size == 16 && name && (!strcmp(name, "_Float128") || !strcmp(name, "__float128")))
		return add_other(whole, path, offset, 128);
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

		if (bits == 128)
			add_x87(whole, part, offset);
		else
			add_value(whole, part, SOURCE_FLOAT, VECTOR, offset, bits);
	}
}

static void add_base(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	enum source_form form = form_base(type);
	Dwarf_Word size = libdw_size(type);

	if (form == SOURCE_FLOAT)
		return add_float(whole, path, type, offset);
	if (form == SOURCE_OTHER)
		return add_complex(whole, path, type, offset);
	if (size == 1 || size == 2 || size == 4 || size == 8 || size == 16)
		return add_value(whole, path, form, INTEGER, offset, 8 * (unsigned)size);
	add_unknown(whole, path, type, offset);
}

static void add_enum(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset)
{
	Dwarf_Word size = libdw_size(type);

	if (size == 1 || size == 2 || size == 4 || size == 8)
		add_value(whole, path, size == 4 ? SOURCE_SIGNED : SOURCE_UNSIGNED, INTEGER, offset,
			  8 * (unsigned)size);
	else
		whole->unknown = true;
}

static void add_type(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
		     unsigned depth);

static bool is_scalar(Dwarf_Die *type)
{
	int tag = dw.dwarf_tag(type);

	return !libdw_is_struct(type) && tag != DW_TAG_array_type &&
	       (tag != DW_TAG_base_type || form_base(type) != SOURCE_OTHER);
}

/* One value is made of them if they are numbers. */
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
	value = &whole->piece[before].value;
	if (!value->bits)
		return true;
	room = (SHOWN_BITS - offset) / value->bits;
	value->cut = n > room;
	value->count = (uint8_t)(value->cut ? room : n);
	return true;
}

/* What is in memory by the first 16 bytes stays there. */
static void add_array(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
		      unsigned depth)
{
	Dwarf_Word size = libdw_size(type), one, at;
	char longer[NAME_BYTES], number[24];
	Dwarf_Die element;

	if (libdw_has(type, DW_AT_GNU_vector)) {
		whole->unknown |= size != 8 && size != 16;
		return add_other(whole, path, offset, size == 8 ? 64 : 128);
	}
	one = libdw_type(type, &element) ? libdw_size(&element) : 0;
	/* Compilers do not agree on where a small struct is that has one without an end. */
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
		dw.dwarf_tag(type) == DW_TAG_base_type ? form_base(type) : SOURCE_UNSIGNED;

	if (bits > 64) {
		whole->unknown = true;
		return;
	}
	take_class(whole, INTEGER, offset, (offset % 64 + bits + 63) / 64);
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
	if (path && name && dw.dwarf_tag(member) == DW_TAG_member)
		path = longer_path(longer, path, name);
	align_to(whole, libdw_number(member, DW_AT_alignment));
	if (bits)
		add_bits(whole, path, &type, offset + at, bits);
	else
		add_type(whole, path, &type, offset + at, depth + 1);
}

static void add_members(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
			unsigned depth)
{
	unsigned n = whole->n;
	Dwarf_Die child;

	if (dw.dwarf_child(type, &child))
		return add_piece(whole, path, SOURCE_OTHER, offset, 0);
	do {
		int tag = dw.dwarf_tag(&child);

		if (tag == DW_TAG_member || tag == DW_TAG_inheritance)
			add_member(whole, path, &child, offset, depth);
	} while (!dw.dwarf_siblingof(&child, &child));
	if (whole->n == n && !whole->cut)
		add_piece(whole, path, SOURCE_OTHER, offset, 0);
}

static void add_type(struct whole *whole, const char *path, Dwarf_Die *type, unsigned offset,
		     unsigned depth)
{
	if (depth > NESTED_MAX) {
		whole->unknown = true;
		return;
	}
	align_to(whole, libdw_number(type, DW_AT_alignment));
	switch (dw.dwarf_tag(type)) {
	case DW_TAG_base_type:
		return add_base(whole, path, type, offset);
	case DW_TAG_enumeration_type:
		return add_enum(whole, path, type, offset);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_unspecified_type:
		return add_value(whole, path, form_pointer(type), INTEGER, offset, 64);
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

static void classify(struct whole *whole, const char *name, Dwarf_Die *type)
{
	enum by_reference how = abi_by_reference(type);

	whole->size = whole->align = 8;
	if (how == BY_REFERENCE_UNKNOWN) {
		whole->unknown = true;
	} else if (how == BY_REFERENCE) {
		whole->pointer = true;
		add_value(whole, name, SOURCE_POINTER, INTEGER, 0, 64);
	} else {
		if (!is_scalar(type) || dw.dwarf_tag(type) == DW_TAG_base_type)
			whole->size = libdw_size(type);
		whole->memory = whole->size > 16;
		whole->is_struct = libdw_is_struct(type);
		whole->told = libdw_number(type, DW_AT_alignment);
		add_type(whole, name, type, 0, 0);
		whole->is_wide = is_scalar(type) && whole->eight[1];
		/* Of nothing but empty classes: compilers do not agree. */
		whole->unknown |=
			whole->memory && !whole->x87 && !whole->eight[0] && !whole->eight[1];
	}
}

/* --- Places ----------------------------------------------------------------------------------- */

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
	for (unsigned i = 0; i < 2; i++)
		whole->reg[i] = whole->eight[i] ? (uint8_t)reg[i] : HANDED_NONE;
	for (unsigned i = 0; i < whole->n; i++) {
		struct piece *piece = &whole->piece[i];

		piece->value.reg = (uint8_t)reg[piece->offset / 64 % 2];
		piece->value.next = (uint8_t)reg[1];
		piece->value.shift = (uint8_t)(piece->offset % 64);
	}
	return true;
}

/* False: where it is depends on the compiler, or on whether it is packed. */
static bool take_memory(struct whole *whole, struct taken *taken)
{
	Dwarf_Word at = (taken->stack + whole->align - 1) & ~(whole->align - 1);

	if (whole->is_wide && (at != taken->stack || taken->integers == SOURCE_INTEGERS - 1))
		return false;
	if (whole->is_struct && at != taken->stack && whole->told < whole->align)
		return false;
	taken->stack = at + ((whole->size + 7) & ~UINT64_C(7));
	for (unsigned i = 0; i < whole->n; i++) {
		struct source_value *value = &whole->piece[i].value;
		Dwarf_Word bit = 8 * at + whole->piece[i].offset;
		unsigned bits = value->bits * (value->count ? value->count : 1u);

		if (bit + bits > 64 * SOURCE_WORDS) {
			value->form = SOURCE_OTHER;
			value->count = 0;
			continue;
		}
		value->reg = (uint8_t)(SOURCE_MEMORY + bit / 64);
		value->next = value->reg + 1;
		value->shift = (uint8_t)(bit % 64);
	}
	return true;
}

/* --- Functions -------------------------------------------------------------------------------- */

/* Values of a function before they are kept. */
struct list {
	struct source_value value[SOURCE_ARGS_MAX];
	unsigned n;
};

static bool add_values(struct list *list, const struct whole *whole, const char *name)
{
	if (list->n + whole->n + whole->cut > SOURCE_ARGS_MAX)
		return false;
	for (unsigned i = 0; i < whole->n; i++)
		list->value[list->n++] = whole->piece[i].value;
	if (whole->cut)
		list->value[list->n++] = (struct source_value){ .name = name, .form = SOURCE_MORE };
	return true;
}

static const struct source_value *keep_list(const struct list *list, unsigned *n,
					    struct abi_names **names)
{
	const struct source_value *kept =
		keep(names, list->value, list->n * sizeof(list->value[0]));

	*n = kept ? list->n : 0;
	return kept;
}

/* What comes back; whether a pointer to it takes the first register. False: not known. */
static bool find_result(Dwarf_Die *die, struct source_function *function, struct taken *taken,
			struct abi_names **names)
{
	struct whole whole = { .names = names };
	struct taken results = { 0 };
	struct list list = { .n = 0 };
	bool in_x87;
	Dwarf_Die type;

	if (!libdw_type(die, &type))
		return true;
	classify(&whole, "", &type);
	if (whole.unknown)
		return false;
	/* A long double, a complex one, and a struct of one, are in registers of the x87. */
	in_x87 = whole.x87 && !whole.eight[0] && !whole.eight[1] &&
		 (whole.size <= 16 || !libdw_is_struct(&type));
	if (whole.pointer || (whole.memory && !in_x87))
		taken->integers = 1;
	if (in_x87 || (whole.n == 1 && whole.piece[0].value.form == SOURCE_OTHER))
		return true;
	if (!take_registers(&whole, &results, 2, 2))
		take_memory(&whole, &results);
	if (add_values(&list, &whole, ""))
		function->result = keep_list(&list, &function->results, names);
	return true;
}

/* False: not known. */
static bool find_place(struct whole *whole, struct taken *taken, struct handed_place *place)
{
	place->memory = !take_registers(whole, taken, SOURCE_INTEGERS, SOURCE_VECTORS);
	memcpy(place->eight, whole->reg, sizeof(place->eight));
	return !place->memory || take_memory(whole, taken);
}

/* What the compiler hands over in its own way. */
static void take_handed(struct whole *whole, const char *name, enum handed_how how,
			const struct handed_place *place)
{
	if (how == HANDED_UNKNOWN) {
		whole->n = 0;
		whole->cut = false;
		add_piece(whole, name, SOURCE_OTHER, 0, 0);
	}
	for (unsigned i = 0; i < whole->n; i++) {
		whole->piece[i].value.reg = place->eight[0];
		whole->piece[i].value.shift = (uint8_t)whole->piece[i].offset;
	}
}

static bool add_arg(struct list *list, const struct handed *handed, Dwarf_Die *die,
		    struct taken *taken, struct abi_names **names)
{
	const char *name = dw.dwarf_diename(die);
	struct whole whole = { .names = names };
	struct handed_place place = { .moved = taken->moved };
	enum handed_how how;
	Dwarf_Die type;

	if (!libdw_type(die, &type))
		return false;
	name = name ? name : "";
	classify(&whole, name, &type);
	if (whole.unknown || !find_place(&whole, taken, &place))
		return false;
	place.size = whole.size;
	how = handed_how(handed, die, &place);
	taken->moved |= how != HANDED_SO;
	if (how != HANDED_SO)
		take_handed(&whole, name, how, &place);
	return add_values(list, &whole, name);
}

void abi_function(Dwarf_Die *die, const struct handed *handed, struct source_function *function,
		  struct abi_names **names)
{
	struct list list = { .n = 0 };
	struct taken taken = { 0 };
	Dwarf_Die child;

	function->more = !find_result(die, function, &taken, names);
	if (function->more || dw.dwarf_child(die, &child))
		return;
	do {
		int tag = dw.dwarf_tag(&child);

		if (tag == DW_TAG_formal_parameter && !function->more)
			function->more = !add_arg(&list, handed, &child, &taken, names);
		else if (tag == DW_TAG_unspecified_parameters)
			function->more = true;
	} while (!dw.dwarf_siblingof(&child, &child));
	function->arg = keep_list(&list, &function->args, names);
}

void abi_forget(struct abi_names *names)
{
	while (names) {
		struct abi_names *next = names->next;

		free(names);
		names = next;
	}
}
