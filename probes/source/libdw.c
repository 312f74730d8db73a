/* SPDX-License-Identifier: MIT */
#include "probes/source/libdw.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>

#include "probes/source/source.h"

struct libdw dw;
static bool loaded;

/* Without a loader: the C library's dlopen() is of no use there, and may crash. */
static int find_loader(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		*(bool *)data |= info->dlpi_phdr[i].p_type == PT_INTERP;
	/* Of the program itself, which comes first. */
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

bool libdw_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute place;
	Dwarf_Die named;

	return dw.dwarf_attr_integrate(die, DW_AT_type, &place) &&
	       dw.dwarf_formref_die(&place, &named) && !dw.dwarf_peel_type(&named, type);
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
