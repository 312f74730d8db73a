/* SPDX-License-Identifier: MIT */
/*
 * C++ passes classes by reference that have a copy or move constructor or a destructor that is not
 * trivial. clang notes it; gcc only lists the functions of the class and of its members.
 */
#include "probes/dwarf/abi.h"

#include <string.h>

#define NESTED_MAX 16
#define LOOKED_MAX 4096 /* types in one; damage makes classes that are parts of themselves */

/* A constructor from another object of the class; its first argument is "this". */
static bool takes_another(Dwarf_Die *constructor, Dwarf_Die *class)
{
	Dwarf_Die child, reference, to;
	unsigned n = 0;
	int tag;

	if (dw.dwarf_child(constructor, &child))
		return false;
	while (dw.dwarf_tag(&child) != DW_TAG_formal_parameter || n++ != 1)
		if (!libdw_next(&child))
			return false;
	tag = libdw_type(&child, &reference) ? dw.dwarf_tag(&reference) : 0;
	return (tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type) &&
	       libdw_type(&reference, &to) && dw.dwarf_dieoffset(&to) == dw.dwarf_dieoffset(class);
}

/* A defaulted function is trivial if those of the parts are. */
static enum by_reference by_function(Dwarf_Die *function, Dwarf_Die *class)
{
	const char *name = dw.dwarf_diename(function), *whose = dw.dwarf_diename(class);
	bool is_constructor;
	size_t len;

	if (libdw_number(function, DW_AT_virtuality))
		return BY_REFERENCE;
	if (libdw_has(function, DW_AT_artificial) || !name || !whose ||
	    libdw_number(function, DW_AT_defaulted) == DW_DEFAULTED_in_class)
		return BY_VALUE;
	/* vector<int> has constructors with the name vector. */
	len = strcspn(whose, "<");
	is_constructor = strlen(name) == len && !memcmp(whose, name, len);
	if (*name != '~' && !(is_constructor && takes_another(function, class)))
		return BY_VALUE;
	return libdw_has(function, DW_AT_deleted) ? BY_REFERENCE_UNKNOWN : BY_REFERENCE;
}

static enum by_reference of_class(Dwarf_Die *class, unsigned depth, unsigned *looked);

static enum by_reference by_part(Dwarf_Die *part, unsigned depth, unsigned *looked)
{
	Dwarf_Die type;

	if (dw.dwarf_tag(part) == DW_TAG_inheritance && libdw_number(part, DW_AT_virtuality))
		return BY_REFERENCE;
	/* A static member is no part of its objects. */
	if (libdw_has(part, DW_AT_external) || libdw_has(part, DW_AT_declaration))
		return BY_VALUE;
	if (!libdw_type(part, &type))
		return BY_REFERENCE_UNKNOWN;
	while (dw.dwarf_tag(&type) == DW_TAG_array_type)
		if (++*looked > LOOKED_MAX || !libdw_type(&type, &type))
			return BY_REFERENCE_UNKNOWN;
	return libdw_is_struct(&type) ? of_class(&type, depth + 1, looked) : BY_VALUE;
}

static enum by_reference of_class(Dwarf_Die *class, unsigned depth, unsigned *looked)
{
	enum by_reference is = BY_VALUE, one;
	struct unit_by by = unit_by(class);
	Dwarf_Word how;
	Dwarf_Die child;

	if (libdw_known(class, DW_AT_calling_convention, &how))
		return how == DW_CC_pass_by_reference ? BY_REFERENCE : BY_VALUE;
	/* clang notes it for each class of C++, but not with -gstrict-dwarf. */
	if (depth > NESTED_MAX || ++*looked > LOOKED_MAX || libdw_has(class, DW_AT_declaration) ||
	    (by.clang && by.cpp))
		return BY_REFERENCE_UNKNOWN;
	if (dw.dwarf_child(class, &child))
		return BY_VALUE;
	do {
		int tag = dw.dwarf_tag(&child);

		one = BY_VALUE;
		if (tag == DW_TAG_subprogram)
			one = by_function(&child, class);
		else if (tag == DW_TAG_member || tag == DW_TAG_inheritance)
			one = by_part(&child, depth, looked);
		if (one == BY_REFERENCE)
			return one;
		if (one)
			is = one;
	} while (libdw_next(&child));
	return is;
}

enum by_reference abi_by_reference(Dwarf_Die *type)
{
	unsigned looked = 0;

	return libdw_is_struct(type) ? of_class(type, 0, &looked) : BY_VALUE;
}
