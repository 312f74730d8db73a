/* SPDX-License-Identifier: MIT */
/* Places of arguments at the entry of a function, by their locations in debug information. */
#include "probes/dwarf/abi.h"

#include "probes/dwarf/source.h"

#define NESTED_MAX 32

/* The place of an argument that is in no register for arguments. */
enum {
	NO_PLACE = -1,
	IN_MEMORY = -2,
	IN_ANOTHER = -3,
};

bool find_argument(const struct callee *callee, Dwarf_Die *argument, Dwarf_Die *found)
{
	Dwarf_Off wanted = dw.dwarf_dieoffset(argument);

	if (dw.dwarf_child(callee->code, found))
		return false;
	do {
		bool is_there = dw.dwarf_tag(found) == DW_TAG_formal_parameter;
		Dwarf_Die origin = *found;

		for (unsigned i = 0; i < NESTED_MAX && is_there; i++) {
			if (dw.dwarf_dieoffset(&origin) == wanted)
				return true;
			is_there = libdw_origin(&origin);
		}
	} while (libdw_next(found));
	return false;
}

/* The number that source_value has for a register of DWARF. */
static int find_register(Dwarf_Word dwarf)
{
	static const uint8_t integers[] = { 5, 4, 1, 2, 8, 9 };

	for (int i = 0; i < SOURCE_INTEGERS; i++)
		if (integers[i] == dwarf)
			return i;
	return dwarf >= 17 && dwarf < 17 + SOURCE_VECTORS ? (int)(SOURCE_VECTOR + dwarf - 17)
							  : IN_ANOTHER;
}

static int find_op_place(const Dwarf_Op *op)
{
	Dwarf_Word base = op->atom - DW_OP_breg0;
	int reg;

	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)
		return find_register(op->atom - DW_OP_reg0);
	if (op->atom < DW_OP_breg0 || op->atom > DW_OP_breg31)
		return op->atom == DW_OP_fbreg || op->atom == DW_OP_call_frame_cfa ? IN_MEMORY
										   : NO_PLACE;
	/* An offset from rbp or rsp is in the frame; from another register, behind a pointer. */
	reg = base == 6 || base == 7 ? IN_MEMORY : find_register(base);
	return reg == IN_ANOTHER || (reg >= 0 && op->number) ? NO_PLACE : reg;
}

/* The place of one piece, or of the whole argument; the operations end at @end. */
static int find_place_of_ops(const Dwarf_Op *op, const Dwarf_Op *end)
{
	int is = op < end ? find_op_place(op++) : NO_PLACE;

	/* The location computes a value; no register holds it. */
	if (is >= 0 && op < end && op->atom != DW_OP_stack_value)
		return NO_PLACE;
	return is;
}

/* The function itself has stored an argument that is in its frame. */
static enum passed judge_eight(int is, const struct whole *whole, unsigned eight)
{
	if (is == NO_PLACE)
		return PASSED_UNKNOWN;
	if (is == IN_MEMORY)
		return whole->moved ? PASSED_UNKNOWN : PASSED_BY_ABI;
	return !whole->on_stack && eight < 2 && whole->reg[eight] == is ? PASSED_BY_ABI
									: PASSED_UNKNOWN;
}

static bool is_taken(const struct whole *whole, unsigned eight)
{
	return whole->on_stack || whole->reg[eight] != PLACE_NONE;
}

static enum passed judge_pieces(const Dwarf_Op *op, size_t n, const struct whole *whole)
{
	bool known[2] = { !is_taken(whole, 0), !is_taken(whole, 1) };
	const Dwarf_Op *piece = op;
	unsigned bytes = 0;

	for (const Dwarf_Op *end = op + n; op < end; op++) {
		unsigned eight = bytes / 8;

		if (op->atom != DW_OP_piece)
			continue;
		if (eight < 2) {
			int is = find_place_of_ops(piece, op);

			/* Padding has no place. */
			if (is != NO_PLACE && judge_eight(is, whole, eight) != PASSED_BY_ABI)
				return PASSED_UNKNOWN;
			known[eight] |= is != NO_PLACE;
		}
		bytes += (unsigned)op->number;
		piece = op + 1;
	}
	return known[0] && known[1] ? PASSED_BY_ABI : PASSED_UNKNOWN;
}

/* A whole argument in another register is shown as it is in that. */
static enum passed judge_ops(struct callee *callee, const Dwarf_Op *op, size_t n,
			     struct whole *whole)
{
	int is = find_place_of_ops(op, op + n);
	enum passed how = judge_eight(is, whole, 0);
	unsigned number, *taken;
	bool moves_up;

	for (size_t i = 0; i < n; i++)
		if (op[i].atom == DW_OP_piece)
			return judge_pieces(op, n, whole);
	if (is < 0 || whole->size > 8)
		return how;
	taken = &callee->taken[is >= SOURCE_VECTOR];
	number = (unsigned)is % SOURCE_VECTOR;
	moves_up = number >= *taken && (whole->on_stack || is < whole->reg[0]);
	if (number >= *taken)
		*taken = number + 1;
	if (how == PASSED_BY_ABI)
		return how;
	/* Behind an argument that is left out, the others move up in their order. Another place is
	 * one that the function itself has set, as in a = b. */
	if (moves_up && !callee->by_abi) {
		whole->reg[0] = (uint8_t)is;
		return PASSED_ELSEWHERE;
	}
	return callee->by_abi ? PASSED_OTHERWISE : PASSED_UNKNOWN;
}

static bool read_place(Dwarf_Attribute *attribute, uint64_t addr, Dwarf_Op **op, size_t *n)
{
	return dw.dwarf_getlocation_addr(attribute, addr, op, n, 1) == 1 && *n > 0;
}

/* --- What callers need not set ---------------------------------------------------------------- */

/* Which eight bytes of the argument are in a register or memory, not a constant. */
static void note_places(const Dwarf_Op *op, size_t n, bool placed[2])
{
	bool read = false, has_pieces = false;
	unsigned bytes = 0;

	for (const Dwarf_Op *end = op + n; op < end; op++) {
		if (op->atom != DW_OP_piece) {
			read |= find_op_place(op) != NO_PLACE ||
				(op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) ||
				op->atom == DW_OP_entry_value || op->atom == DW_OP_GNU_entry_value;
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

/* An unused argument has no location at all. A number in a register has one at the entry; others
 * may have theirs later. */
static bool is_used(const struct callee *callee, Dwarf_Attribute *attribute,
		    const struct whole *whole)
{
	bool is_number = !whole->is_struct && whole->n == 1 && whole->size <= 8;
	bool placed[2] = { false };
	Dwarf_Addr base, from, to, entry = callee->addr, behind = entry + callee->nops;
	ptrdiff_t at = 0;
	Dwarf_Op *op;
	size_t n;

	while ((at = dw.dwarf_getlocations(attribute, at, &base, &from, &to, &op, &n)) > 0)
		if (!is_number || whole->on_stack || (from <= entry && entry < to) ||
		    (from <= behind && behind < to))
			note_places(op, n, placed);
	if (whole->on_stack)
		return placed[0] || placed[1];
	return (placed[0] || !is_taken(whole, 0)) && (placed[1] || !is_taken(whole, 1));
}

enum passed locate_argument(struct callee *callee, Dwarf_Die *argument, struct whole *whole)
{
	enum passed how = PASSED_UNKNOWN;
	Dwarf_Attribute attribute;
	Dwarf_Die die;
	Dwarf_Op *op;
	size_t n;
	bool has_place = find_argument(callee, argument, &die) &&
			 dw.dwarf_attr(&die, DW_AT_location, &attribute);

	if (callee->by_abi && !callee->sets_all &&
	    !(has_place && is_used(callee, &attribute, whole)))
		return PASSED_UNSET;
	if (has_place && (read_place(&attribute, callee->addr, &op, &n) ||
			  read_place(&attribute, callee->addr + callee->nops, &op, &n)))
		how = judge_ops(callee, op, n, whole);
	return how == PASSED_UNKNOWN && callee->by_abi ? PASSED_BY_ABI : how;
}
