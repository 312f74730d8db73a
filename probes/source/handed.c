/* SPDX-License-Identifier: MIT */
#include "probes/source/abi.h"

#include "probes/source/source.h"

#define NESTED_MAX 32

/* Where an argument is, if it is in none of the registers that hand over arguments. */
enum {
	NO_PLACE = -1,
	IN_MEMORY = -2,
	IN_ANOTHER = -3,
};

static bool is_of(Dwarf_Die *die, Dwarf_Die *argument)
{
	Dwarf_Die origin = *die;

	for (unsigned i = 0; i < NESTED_MAX; i++) {
		if (dw.dwarf_dieoffset(&origin) == dw.dwarf_dieoffset(argument))
			return true;
		if (!libdw_origin(&origin))
			return false;
	}
	return false;
}

static bool find_argument(Dwarf_Die *code, Dwarf_Die *argument, Dwarf_Die *found)
{
	if (dw.dwarf_child(code, found))
		return false;
	do
		if (dw.dwarf_tag(found) == DW_TAG_formal_parameter && is_of(found, argument))
			return true;
	while (libdw_next(found));
	return false;
}

bool handed_has(const struct handed *handed, Dwarf_Die *argument)
{
	Dwarf_Die found;

	return find_argument(handed->code, argument, &found);
}

/* As source_value has it. */
static int reg_of(Dwarf_Word dwarf)
{
	static const uint8_t integers[] = { 5, 4, 1, 2, 8, 9 };

	for (int i = 0; i < SOURCE_INTEGERS; i++)
		if (integers[i] == dwarf)
			return i;
	return dwarf >= 17 && dwarf < 17 + SOURCE_VECTORS ? (int)(SOURCE_VECTOR + dwarf - 17)
							  : IN_ANOTHER;
}

/* By rbp or rsp it is in the frame; by another, it is behind a pointer, such as one to a copy. */
static int base_place(Dwarf_Word dwarf, Dwarf_Word offset)
{
	int reg = dwarf == 6 || dwarf == 7 ? IN_MEMORY : reg_of(dwarf);

	return reg == IN_ANOTHER || (reg >= 0 && offset) ? NO_PLACE : reg;
}

static int op_place(const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)
		return reg_of(op->atom - DW_OP_reg0);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return base_place(op->atom - DW_OP_breg0, op->number);
	return op->atom == DW_OP_fbreg || op->atom == DW_OP_call_frame_cfa ? IN_MEMORY : NO_PLACE;
}

/* It is a piece's, or all of the argument's, and ends at @end. */
static int ops_place(const Dwarf_Op *op, const Dwarf_Op *end)
{
	int is = op < end ? op_place(op++) : NO_PLACE;

	/* The location computes a value; no register holds it. */
	if (is >= 0 && op < end && op->atom != DW_OP_stack_value)
		return NO_PLACE;
	return is;
}

/* An argument in the frame was put there by the function. */
static enum handed_how in_eight(int is, const struct handed_place *place, unsigned eight)
{
	if (is == NO_PLACE)
		return HANDED_UNKNOWN;
	if (is == IN_MEMORY)
		return place->moved ? HANDED_UNKNOWN : HANDED_SO;
	return !place->memory && eight < 2 && place->eight[eight] == is ? HANDED_SO
									: HANDED_UNKNOWN;
}

static bool is_taken(const struct handed_place *place, unsigned eight)
{
	return place->memory || place->eight[eight] != HANDED_NONE;
}

static enum handed_how by_pieces(const Dwarf_Op *op, size_t n, const struct handed_place *place)
{
	bool known[2] = { !is_taken(place, 0), !is_taken(place, 1) };
	const Dwarf_Op *piece = op;
	unsigned bytes = 0;

	for (const Dwarf_Op *end = op + n; op < end; op++) {
		unsigned eight = bytes / 8;

		if (op->atom != DW_OP_piece)
			continue;
		if (eight < 2) {
			int is = ops_place(piece, op);

			/* Padding has no place. */
			if (is != NO_PLACE && in_eight(is, place, eight) != HANDED_SO)
				return HANDED_UNKNOWN;
			known[eight] |= is != NO_PLACE;
		}
		bytes += (unsigned)op->number;
		piece = op + 1;
	}
	return known[0] && known[1] ? HANDED_SO : HANDED_UNKNOWN;
}

/* Behind an argument that is left out, the others move up in their order. Another place is one that
 * the function itself has set, as in a = b. */
static bool moves_up(struct handed *handed, unsigned is, const struct handed_place *place)
{
	unsigned *taken = &handed->taken[is >= SOURCE_VECTOR];
	unsigned number = is % SOURCE_VECTOR;
	bool up = number >= *taken && (place->memory || is < place->eight[0]);

	if (number >= *taken)
		*taken = number + 1;
	return up;
}

/* A whole argument in another register is shown as it is in that. */
static enum handed_how by_place(struct handed *handed, int is, struct handed_place *place)
{
	enum handed_how how = in_eight(is, place, 0);

	if (is < 0 || place->size > 8)
		return how;
	if (!moves_up(handed, (unsigned)is, place) && how != HANDED_SO)
		return handed->by_abi ? HANDED_OTHERWISE : HANDED_UNKNOWN;
	if (how == HANDED_SO)
		return how;
	place->eight[0] = (uint8_t)is;
	return handed->by_abi ? HANDED_OTHERWISE : HANDED_ELSEWHERE;
}

static enum handed_how by_ops(struct handed *handed, const Dwarf_Op *op, size_t n,
			      struct handed_place *place)
{
	for (size_t i = 0; i < n; i++)
		if (op[i].atom == DW_OP_piece)
			return by_pieces(op, n, place);
	return by_place(handed, ops_place(op, op + n), place);
}

static bool place_at(Dwarf_Attribute *attribute, uint64_t addr, Dwarf_Op **op, size_t *n)
{
	return dw.dwarf_getlocation_addr(attribute, addr, op, n, 1) == 1 && *n > 0;
}

/* --- What callers need not set ---------------------------------------------------------------- */

static bool is_read(const Dwarf_Op *op)
{
	return op_place(op) != NO_PLACE || (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) ||
	       op->atom == DW_OP_entry_value || op->atom == DW_OP_GNU_entry_value;
}

/* The eight bytes that a register or memory has; a constant is none that a caller has given. */
static void note_places(const Dwarf_Op *op, size_t n, bool placed[2])
{
	bool read = false, has_pieces = false;
	unsigned bytes = 0;

	for (const Dwarf_Op *end = op + n; op < end; op++) {
		if (op->atom != DW_OP_piece) {
			read |= is_read(op);
			continue;
		}
		for (unsigned i = 0; i < op->number && read; i++)
			placed[(bytes + i) / 8 % 2] = true;
		bytes += (unsigned)op->number;
		has_pieces = true;
		read = false;
	}
	for (int i = 0; i < 2 && !has_pieces; i++)
		placed[i] |= read;
}

static bool is_entered(const struct handed *handed, Dwarf_Addr from, Dwarf_Addr to)
{
	return (from <= handed->addr && handed->addr < to) ||
	       (from <= handed->addr + handed->nops && handed->addr + handed->nops < to);
}

/* An unused argument has no location at all. A number in a register has one at the entry; others
 * may have theirs later. */
static bool is_used(const struct handed *handed, Dwarf_Attribute *attribute,
		    const struct handed_place *place)
{
	bool placed[2] = { false };
	Dwarf_Addr base, from, to;
	ptrdiff_t at = 0;
	Dwarf_Op *op;
	size_t n;

	while ((at = dw.dwarf_getlocations(attribute, at, &base, &from, &to, &op, &n)) > 0)
		if (!place->is_number || place->memory || is_entered(handed, from, to))
			note_places(op, n, placed);
	if (place->memory)
		return placed[0] || placed[1];
	return (placed[0] || !is_taken(place, 0)) && (placed[1] || !is_taken(place, 1));
}

enum handed_how handed_how(struct handed *handed, Dwarf_Die *argument, struct handed_place *place)
{
	enum handed_how how = HANDED_UNKNOWN;
	Dwarf_Attribute attribute;
	Dwarf_Die die;
	Dwarf_Op *op;
	size_t n;
	bool has_place = find_argument(handed->code, argument, &die) &&
			 dw.dwarf_attr(&die, DW_AT_location, &attribute);

	if (handed->by_abi && !handed->sets_all &&
	    !(has_place && is_used(handed, &attribute, place)))
		return HANDED_UNSET;
	if (has_place &&
	    (place_at(&attribute, handed->addr, &op, &n) ||
	     (handed->nops && place_at(&attribute, handed->addr + handed->nops, &op, &n))))
		how = by_ops(handed, op, n, place);
	return how == HANDED_UNKNOWN && handed->by_abi ? HANDED_SO : how;
}
