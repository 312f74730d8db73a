/* SPDX-License-Identifier: MIT */
/* Loading libdw, and questions about DIEs that it does not answer in one call. */
#include "probes/dwarf/abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

#define NAMES_MAX 32 /* of a type, one for another */

struct libdw dw;
static bool loaded;

static void load_libdw(void)
{
	/*
	 * Not the agent's dlopen(), which would look for probes in it. A static program has no
	 * loader, and the C library's dlopen() may crash there.
	 */
	void *library = getauxval(AT_BASE)
				? dlmopen(LM_ID_BASE, "libdw.so.1", RTLD_NOW | RTLD_LOCAL)
				: NULL;

	loaded = library;
#define FIND(name) loaded = loaded && (dw.name = (__typeof__(dw.name))dlsym(library, #name));
	LIBDW_CALLS(FIND)
}

bool libdw_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_libdw);
	return loaded;
}

bool libdw_has(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute place;

	return dw.dwarf_attr_integrate(die, attribute, &place) != NULL;
}

bool libdw_known(Dwarf_Die *die, unsigned attribute, Dwarf_Word *value)
{
	Dwarf_Attribute place;

	*value = 0;
	return dw.dwarf_attr_integrate(die, attribute, &place) &&
	       !dw.dwarf_formudata(&place, value);
}

Dwarf_Word libdw_number(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Word value;

	return libdw_known(die, attribute, &value) ? value : 0;
}

static bool follow_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute place;

	return dw.dwarf_attr_integrate(die, DW_AT_type, &place) &&
	       dw.dwarf_formref_die(&place, type);
}

/* A typedef, or a qualified form of another type. */
static bool is_name(Dwarf_Die *type)
{
	int tag = dw.dwarf_tag(type);

	return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
	       tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type;
}

/* What typedefs and qualifiers say of the type behind them. */
struct said {
	bool is_atomic;
	Dwarf_Word aligned; /* to so many bytes; 0: nothing is said */
};

static bool strip_names(Dwarf_Die *die, Dwarf_Die *type, struct said *said)
{
	Dwarf_Attribute place;
	Dwarf_Word aligned;
	Dwarf_Die name;

	if (!follow_type(die, type))
		return false;
	for (unsigned i = 0; i < NAMES_MAX && is_name(type); i++) {
		name = *type;
		said->is_atomic |= dw.dwarf_tag(&name) == DW_TAG_atomic_type;
		if (libdw_known(&name, DW_AT_alignment, &aligned))
			said->aligned = aligned;
		if (!follow_type(&name, type))
			return false;
	}
	/* The type has a unit of its own, in .debug_types. */
	if (dw.dwarf_attr(type, DW_AT_signature, &place))
		dw.dwarf_formref_die(&place, type);
	return true;
}

bool libdw_type(Dwarf_Die *die, Dwarf_Die *type)
{
	return strip_names(die, type, &(struct said){ 0 });
}

bool libdw_is_odd(Dwarf_Die *die)
{
	struct said said = { 0 };
	Dwarf_Die type;

	if (!strip_names(die, &type, &said))
		return false;
	return is_name(&type) || (said.is_atomic && libdw_is_struct(&type)) ||
	       (said.aligned && said.aligned != libdw_size(&type));
}

bool libdw_origin(Dwarf_Die *die)
{
	Dwarf_Attribute place;

	return dw.dwarf_attr(die, DW_AT_abstract_origin, &place) &&
	       dw.dwarf_formref_die(&place, die);
}

bool libdw_next(Dwarf_Die *die)
{
	Dwarf_Off before = dw.dwarf_dieoffset(die);

	return !dw.dwarf_siblingof(die, die) && dw.dwarf_dieoffset(die) > before;
}

Dwarf_Word libdw_size(Dwarf_Die *type)
{
	Dwarf_Word size;

	return dw.dwarf_aggregate_size(type, &size) ? 0 : size;
}

bool libdw_is_struct(Dwarf_Die *type)
{
	int tag = dw.dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* --- Units ------------------------------------------------------------------------------------ */

/* Languages of DWARF 6. */
#define LANG_CPP_17 0x2a
#define LANG_CPP_20 0x2b
#define LANG_C17    0x2c
#define LANG_CPP_23 0x3a
#define LANG_C23    0x3e

struct unit_by unit_by(Dwarf_Die *die)
{
	static const uint8_t c[] = { DW_LANG_C89,  DW_LANG_C, DW_LANG_C99, DW_LANG_C11,
				     DW_LANG_ObjC, LANG_C17,  LANG_C23 };
	static const uint8_t cpp[] = { DW_LANG_C_plus_plus,
				       DW_LANG_C_plus_plus_03,
				       DW_LANG_C_plus_plus_11,
				       DW_LANG_C_plus_plus_14,
				       DW_LANG_ObjC_plus_plus,
				       LANG_CPP_17,
				       LANG_CPP_20,
				       LANG_CPP_23 };
	static const char *const odd[] = { "-mabi=ms", "-mlong-double-128", "-gstrict-dwarf" };
	struct unit_by by = { 0 };
	Dwarf_Attribute place;
	const char *producer;
	Dwarf_Word language;
	Dwarf_Half version;
	Dwarf_Die unit;

	if (!dw.dwarf_diecu(die, &unit, NULL, NULL))
		return by;
	by.dwarf_5 = !dw.dwarf_cu_info(unit.cu, &version, NULL, NULL, NULL, NULL, NULL, NULL) &&
		     version >= 5;
	language = libdw_number(&unit, DW_AT_language);
	by.c = language <= UINT8_MAX && memchr(c, (int)language, sizeof(c));
	by.cpp = language <= UINT8_MAX && memchr(cpp, (int)language, sizeof(cpp));
	producer =
		dw.dwarf_attr(&unit, DW_AT_producer, &place) ? dw.dwarf_formstring(&place) : NULL;
	if (!producer)
		return by;
	by.gcc = !strncmp(producer, "GNU ", 4);
	by.clang = strstr(producer, "clang version") != NULL;
	/* gcc notes its options, clang does not. */
	for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		by.odd |= strstr(producer, odd[i]) != NULL;
	return by;
}
