/* SPDX-License-Identifier: MIT */
/*
 * Sites that the compiler leaves as NOPs, and lists in a section.
 *
 * -fpatchable-function-entry=N[,M] leaves N bytes of NOPs at each function, M of them before its
 * label, and the address of the first in a section __patchable_function_entries.
 *
 * gcc -pg -mfentry -mnop-mcount -mrecord-mcount leaves one NOP of five bytes at each function,
 * listed in __mcount_loc; -minstrument-return=nop5 -mrecord-return one before each RET, in
 * __return_loc. There the frame of the function is gone, and with it what was in the red zone.
 *
 * The section is read in memory, where the loader has relocated it. The file says where it is, and
 * the names. The first five bytes behind the label, and behind an ENDBR64, are the site.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "probes/core/provider.h"

#define INT3	  0xcc
#define SITE_LEN  5
#define NOPS_MAX  64 /* before a label that is looked for */
#define ENDBR_LEN 4

static const uint8_t nop5[SITE_LEN] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

static const struct table {
	const char *section;
	enum fi_kind kind;
} tables[] = {
	{ "__patchable_function_entries", FI_ENTRY },
	{ "__mcount_loc", FI_ENTRY },
	{ "__return_loc", FI_EXIT },
};

struct patchable_search {
	struct object *object;
	enum fi_kind kind;
	uintptr_t moved; /* distance of a copy from the address that its file was linked for */
	struct elf_symbols symbols;
};

/* The function's label, where some of the NOPs stand before it and so in no function. */
static uintptr_t find_label(const struct patchable_search *place, uintptr_t entry)
{
	uint64_t in_file = entry - place->object->base;
	const struct elf_symbol *next = elf_function_from(&place->symbols, in_file);

	if (!next || next->addr == in_file || next->addr - in_file > NOPS_MAX ||
	    elf_function_at(&place->symbols, in_file))
		return entry;
	return next->addr + place->object->base;
}

static int add_patchable(const struct patchable_search *place, uintptr_t entry)
{
	struct probe probe = {
		.provider = &patchable_provider,
		.object = place->object,
		.kind = place->kind,
		.len = SITE_LEN,
	};
	const struct elf_symbol *symbol;
	uintptr_t site = place->kind == FI_ENTRY ? find_label(place, entry) : entry;
	const uint8_t *code;

	if (!object_covers(place->object, site, ENDBR_LEN + SITE_LEN, PF_X | PF_R))
		probe.reason = "the table names a place that is no code of this object";
	else if (place->kind == FI_ENTRY)
		site += site_endbr((const uint8_t *)site);
	probe.site = (uint8_t *)site;
	code = probe.site;
	memcpy(probe.off, nop5, SITE_LEN);
	/* clang's NOP has another last byte. */
	if (!probe.reason && !memcmp(code, nop5, SITE_LEN - 1))
		probe.off[SITE_LEN - 1] = code[SITE_LEN - 1];
	else if (!probe.reason && *code == INT3)
		probe.reason = PROBE_BREAKPOINT;
	else if (!probe.reason && !site_is_nops(code, SITE_LEN))
		probe.reason = "no five bytes of NOPs: compile with -fpatchable-function-entry=5";
	symbol = elf_function_at(&place->symbols, site - place->object->base);
	if (symbol) {
		probe.name = strdup(symbol->name);
		if (!probe.name)
			return -ENOMEM;
	}
	return probe_add(&probe, NULL);
}

static int discover_patchable(struct object *object, const struct elf *elf)
{
	struct patchable_search place = { .object = object };
	struct elf_section section;
	uint64_t entry;
	int ret = 0;

	if (object->is_file && elf->type == ET_EXEC)
		place.moved = object->base;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && !ret; i++) {
		if (!elf_find_section(elf, tables[i].section, &section) ||
		    !(section.flags & SHF_ALLOC) ||
		    !object_covers(object, object->base + section.addr, section.len, PF_R))
			continue;
		place.kind = tables[i].kind;
		if (!place.symbols.n)
			ret = elf_functions(elf, &place.symbols);
		for (uint64_t k = 0; k < section.len / sizeof(entry) && !ret; k++) {
			memcpy(&entry, (const uint64_t *)(object->base + section.addr) + k,
			       sizeof(entry));
			if (entry)
				ret = add_patchable(&place, entry + place.moved);
		}
	}
	elf_free(&place.symbols);
	return ret;
}

const struct provider patchable_provider = {
	.name = "patchable",
	.discover = discover_patchable,
	.arm = site_arm_call,
};
