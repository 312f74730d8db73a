/* SPDX-License-Identifier: MIT */
/* Loading libdw, and questions about DIEs that it does not answer in one call. */
#include "probes/dwarf/libdw.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "probes/dwarf/source.h"

#define NAMES_MAX 32 /* of a type, one for another */

struct libdw dw;
static bool loaded;

/* Without a loader: the C library's dlopen() is of no use there, and may crash. */
static int find_loader(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		*(bool *)data |= info->dlpi_phdr[i].p_type == PT_INTERP;
	/* The program itself comes first. */
	return 1;
}

static bool is_static(void)
{
	bool has_loader = false;

	dl_iterate_phdr(find_loader, &has_loader);
	return !has_loader;
}

static void load_libdw(void)
{
	void *library;

	if (is_static())
		return;
	/* Not the agent's dlopen(), which would look for probes in it. */
	library = dlmopen(LM_ID_BASE, "libdw.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	loaded = true;
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

static bool follow_reference(Dwarf_Die *die, unsigned attribute, Dwarf_Die *to)
{
	Dwarf_Attribute place;

	return dw.dwarf_attr_integrate(die, attribute, &place) && dw.dwarf_formref_die(&place, to);
}

/* A typedef, or a qualified form of another type. */
static bool is_name(Dwarf_Die *type)
{
	switch (dw.dwarf_tag(type)) {
	case DW_TAG_typedef:
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
		return true;
	default:
		return false;
	}
}

bool libdw_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute place;
	Dwarf_Die name;

	if (!follow_reference(die, DW_AT_type, type))
		return false;
	for (unsigned i = 0; i < NAMES_MAX && is_name(type); i++) {
		name = *type;
		if (!follow_reference(&name, DW_AT_type, type))
			return false;
	}
	/* The type has a unit of its own, in .debug_types. */
	if (dw.dwarf_attr(type, DW_AT_signature, &place))
		dw.dwarf_formref_die(&place, type);
	return true;
}

bool libdw_is_odd(Dwarf_Die *die)
{
	Dwarf_Word aligned = 0, declared;
	bool is_atomic = false;
	Dwarf_Die type, at, name = *die;

	if (!libdw_type(die, &type))
		return false;
	for (unsigned i = 0; follow_reference(&name, DW_AT_type, &at) && is_name(&at);
	     i++, name = at) {
		if (i == NAMES_MAX)
			return true;
		is_atomic |= dw.dwarf_tag(&at) == DW_TAG_atomic_type;
		if (libdw_known(&at, DW_AT_alignment, &declared))
			aligned = declared;
	}
	return (is_atomic && libdw_is_struct(&type)) || (aligned && aligned != libdw_size(&type));
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

/* gcc notes its options, clang does not. */
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
