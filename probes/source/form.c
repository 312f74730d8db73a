/* SPDX-License-Identifier: MIT */
#include "probes/source/form.h"

#include <string.h>

enum source_form form_base(Dwarf_Die *type)
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

enum source_form form_pointer(Dwarf_Die *pointer)
{
	Dwarf_Die to;

	if (libdw_type(pointer, &to) && dw.dwarf_tag(&to) == DW_TAG_base_type &&
	    form_base(&to) == SOURCE_CHAR)
		return SOURCE_STRING;
	return SOURCE_POINTER;
}
