/* SPDX-License-Identifier: MIT */
/*
 * How values of a type are shown.
 */
#ifndef PROBES_SOURCE_FORM_H
#define PROBES_SOURCE_FORM_H

#include "probes/source/libdw.h"
#include "probes/source/source.h"

/* form_base - of a base type; SOURCE_OTHER: of none of these, as a complex one. */
enum source_form form_base(Dwarf_Die *type);

/* form_enum - of an enumeration: SOURCE_SIGNED or SOURCE_UNSIGNED, or of a bool. */
enum source_form form_enum(Dwarf_Die *type);

/* form_pointer - of a pointer or reference: SOURCE_STRING or SOURCE_POINTER. */
enum source_form form_pointer(Dwarf_Die *pointer);

#endif
