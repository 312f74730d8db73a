/* SPDX-License-Identifier: MIT */
/*
 * The SysV ABI passes a value of up to 16 bytes in registers, eight bytes each: in one for integers
 * if any of the eight is part of an integer or pointer, else in a vector register. Larger values,
 * values that are not aligned and those with a long double lie on the stack.
 *
 * Debug information does not say that a struct is packed. Where its members do not show it either,
 * the place of the struct on the stack is unknown, and so are those of later arguments. Likewise an
 * __int128 on the stack: clang 14 aligns it to 8 bytes, gcc to 16.
 */
#include "probes/dwarf/abi.h"

#include <string.h>

/* How many registers are taken, and bytes of the stack. */
struct taken_registers {
	unsigned integers, vectors;
	Dwarf_Word stack;
	bool moved; /* one that took these is not there */
};

/* --- Places ----------------------------------------------------------------------------------- */

/* False: there are not enough of them, so it takes none. */
static bool take_registers(struct whole *whole, struct taken_registers *taken, unsigned integers,
			   unsigned vectors)
{
	struct taken_registers more = *taken;
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
		whole->reg[i] = whole->eight[i] ? (uint8_t)reg[i] : PLACE_NONE;
	for (unsigned i = 0; i < whole->n; i++) {
		struct source_value *piece = &whole->piece[i];

		piece->reg = (uint8_t)reg[piece->offset / 64 % 2];
		piece->next = (uint8_t)reg[1];
		piece->shift = (uint8_t)(piece->offset % 64);
	}
	return true;
}

/* False: where it is depends on the compiler, or on whether it is packed. */
static bool take_memory(struct whole *whole, struct taken_registers *taken)
{
	Dwarf_Word at = (taken->stack + whole->align - 1) & ~(whole->align - 1);

	if (whole->is_wide && (at != taken->stack || taken->integers == SOURCE_INTEGERS - 1))
		return false;
	if (whole->may_be_wide && at % 16)
		return false;
	if (whole->is_struct && at != taken->stack && whole->declared_align < whole->align)
		return false;
	taken->stack = at + ((whole->size + 7) & ~UINT64_C(7));
	for (unsigned i = 0; i < whole->n; i++) {
		struct source_value *value = &whole->piece[i];
		Dwarf_Word bit = 8 * at + value->offset;
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
struct value_list {
	struct source_value value[SOURCE_ARGS_MAX];
	unsigned n;
};

static bool add_values(struct value_list *list, const struct whole *whole, const char *name)
{
	if (list->n + whole->n + whole->cut > SOURCE_ARGS_MAX)
		return false;
	memcpy(list->value + list->n, whole->piece, whole->n * sizeof(whole->piece[0]));
	list->n += whole->n;
	if (whole->cut)
		list->value[list->n++] = (struct source_value){ .name = name, .form = SOURCE_MORE };
	return true;
}

static const struct source_value *keep_list(const struct value_list *list, unsigned *n,
					    struct obstack *names)
{
	*n = list->n;
	return obstack_copy(names, list->value, (int)(list->n * sizeof(list->value[0])));
}

/* Find the result, and whether a pointer to it takes the first register. False: not known. */
static bool find_result(Dwarf_Die *die, struct source_function *function,
			struct taken_registers *taken, struct obstack *names)
{
	struct whole whole = { .names = names };
	struct taken_registers results = { 0 };
	struct value_list list = { .n = 0 };
	bool in_x87;
	Dwarf_Die type;

	if (!libdw_type(die, &type))
		return true;
	whole_of(&whole, "", die, &type);
	if (whole.unknown)
		return false;
	/* A long double, a complex one, and a struct of one, are in registers of the x87. */
	in_x87 = whole.x87 && !whole.eight[0] && !whole.eight[1] &&
		 (whole.size <= 16 || !libdw_is_struct(&type));
	if (whole.pointer || (whole.memory && !in_x87))
		taken->integers = 1;
	if (in_x87 || (whole.n == 1 && whole.piece[0].form == SOURCE_OTHER))
		return true;
	if (!take_registers(&whole, &results, 2, 2))
		take_memory(&whole, &results);
	if (add_values(&list, &whole, ""))
		function->result = keep_list(&list, &function->results, names);
	return true;
}

static bool add_arg(struct value_list *list, struct callee *callee, Dwarf_Die *die,
		    struct taken_registers *taken, struct obstack *names)
{
	const char *name = dw.dwarf_diename(die);
	struct whole whole = { .names = names, .moved = taken->moved };
	enum passed how;
	Dwarf_Die type;

	/* Only some copies of a constructor take the argument about virtual bases. */
	if (!find_argument(callee, die, &type) && libdw_has(die, DW_AT_artificial) &&
	    !(name && !strcmp(name, "this")))
		return true;
	if (!libdw_type(die, &type))
		return false;
	name = name ? name : "";
	whole_of(&whole, name, die, &type);
	if (whole.unknown)
		return false;
	whole.on_stack = !take_registers(&whole, taken, SOURCE_INTEGERS, SOURCE_VECTORS);
	if (whole.on_stack && !take_memory(&whole, taken))
		return false;
	how = locate_argument(callee, die, &whole);
	if (how == PASSED_OTHERWISE)
		return false;
	taken->moved |= how != PASSED_BY_ABI && how != PASSED_UNSET;
	if (how == PASSED_UNKNOWN || how == PASSED_UNSET)
		whole_hide(&whole, name);
	for (unsigned i = 0; i < whole.n && how == PASSED_ELSEWHERE; i++) {
		whole.piece[i].reg = whole.reg[0];
		whole.piece[i].shift = (uint8_t)whole.piece[i].offset;
	}
	if (how == PASSED_BY_ABI && !callee->has_prototype && !whole.is_struct && whole.n == 1 &&
	    whole.piece[0].form == SOURCE_FLOAT && whole.piece[0].bits == 32)
		whole_hide(&whole, name); /* C without prototypes passes it as a double. */
	return add_values(list, &whole, name);
}

void abi_function(Dwarf_Die *die, struct callee *callee, struct source_function *function,
		  struct obstack *names)
{
	struct value_list list = { .n = 0 };
	struct taken_registers taken = { 0 };
	Dwarf_Die child;

	function->more = !find_result(die, function, &taken, names);
	if (function->more || dw.dwarf_child(die, &child))
		return;
	do {
		int tag = dw.dwarf_tag(&child);

		if (tag == DW_TAG_formal_parameter && !function->more)
			function->more = !add_arg(&list, callee, &child, &taken, names);
		else if (tag == DW_TAG_unspecified_parameters ||
			 tag == DW_TAG_GNU_formal_parameter_pack)
			function->more = true;
	} while (libdw_next(&child));
	function->arg = keep_list(&list, &function->args, names);
}
