/* SPDX-License-Identifier: MIT */
#include "probes/source/abi.h"

#include <string.h>

static bool is_char(Dwarf_Die *type)
{
	const char *name = dw.dwarf_diename(type);

	return dw.dwarf_tag(type) == DW_TAG_base_type && name && !strcmp(name, "char");
}

enum source_form form_base(Dwarf_Die *type)
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

/* C leaves it to the compiler: there it is signed if a value is below 0. */
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

enum source_form form_enum(Dwarf_Die *type)
{
	Dwarf_Die base;

	if (!libdw_type(type, &base))
		base = *type;
	if (!libdw_has(&base, DW_AT_encoding))
		return has_negative(type) ? SOURCE_SIGNED : SOURCE_UNSIGNED;
	switch (form_base(&base)) {
	case SOURCE_BOOL:
		return SOURCE_BOOL;
	case SOURCE_SIGNED:
	case SOURCE_CHAR:
		return SOURCE_SIGNED;
	default:
		return SOURCE_UNSIGNED;
	}
}

enum source_form form_pointer(Dwarf_Die *pointer)
{
	Dwarf_Die to;

	return libdw_type(pointer, &to) && is_char(&to) ? SOURCE_STRING : SOURCE_POINTER;
}
