/* SPDX-License-Identifier: MIT */
#include "probes/source/unit.h"

#include <string.h>

/* As DWARF 6 has them. */
#define LANG_CPP_17 0x2a
#define LANG_CPP_20 0x2b
#define LANG_C17    0x2c
#define LANG_CPP_23 0x3a
#define LANG_C23    0x3e

static void find_language(struct unit_by *by, Dwarf_Die *unit)
{
	switch (libdw_number(unit, DW_AT_language)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_ObjC:
	case LANG_C17:
	case LANG_C23:
		by->c = true;
		break;
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_ObjC_plus_plus:
	case LANG_CPP_17:
	case LANG_CPP_20:
	case LANG_CPP_23:
		by->cpp = true;
		break;
	}
}

/* gcc tells its options, clang does not. */
static void find_compiler(struct unit_by *by, const char *producer)
{
	static const char *const odd[] = { "-mabi=ms", "-mlong-double-128", "-gstrict-dwarf" };

	by->gcc = !strncmp(producer, "GNU ", 4);
	by->clang = strstr(producer, "clang version") != NULL;
	for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		by->odd |= strstr(producer, odd[i]) != NULL;
}

struct unit_by unit_by(Dwarf_Die *die)
{
	struct unit_by by = { 0 };
	Dwarf_Attribute place;
	const char *producer;
	Dwarf_Half version;
	Dwarf_Die unit;

	if (!dw.dwarf_diecu(die, &unit, NULL, NULL))
		return by;
	by.dwarf_5 = !dw.dwarf_cu_info(unit.cu, &version, NULL, NULL, NULL, NULL, NULL, NULL) &&
		     version >= 5;
	find_language(&by, &unit);
	producer =
		dw.dwarf_attr(&unit, DW_AT_producer, &place) ? dw.dwarf_formstring(&place) : NULL;
	if (producer)
		find_compiler(&by, producer);
	return by;
}
