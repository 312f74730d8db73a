/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <string.h>

#include "probes/elf/elf.h"

/* The name of a symbol, "" where the table or its strings have none. */
static const char *symbol_name(const struct elf *elf, const struct elf_section *table,
			       uint64_t index)
{
	struct elf_section strings;
	Elf64_Sym symbol;

	if (index >= table->len / sizeof(symbol))
		return "";
	memcpy(&symbol, table->bytes + index * sizeof(symbol), sizeof(symbol));
	if (!elf_section(elf, table->link, &strings) || !strings.bytes ||
	    symbol.st_name >= strings.len ||
	    !memchr(strings.bytes + symbol.st_name, '\0', strings.len - symbol.st_name))
		return "";
	return (const char *)strings.bytes + symbol.st_name;
}

static void slots_of(const struct elf *elf, const struct elf_section *relocations,
		     void (*found)(const char *name, uint64_t slot, void *data), void *data)
{
	struct elf_section table;
	Elf64_Rela rela;

	if (!elf_section(elf, relocations->link, &table) || table.type != SHT_DYNSYM ||
	    !table.bytes)
		return;
	for (uint64_t i = 0; i < relocations->len / sizeof(rela); i++) {
		memcpy(&rela, relocations->bytes + i * sizeof(rela), sizeof(rela));
		if (ELF64_R_TYPE(rela.r_info) == R_X86_64_JUMP_SLOT ||
		    ELF64_R_TYPE(rela.r_info) == R_X86_64_GLOB_DAT)
			found(symbol_name(elf, &table, ELF64_R_SYM(rela.r_info)), rela.r_offset,
			      data);
	}
}

void elf_slots(const struct elf *elf, void (*found)(const char *name, uint64_t slot, void *data),
	       void *data)
{
	struct elf_section section;

	for (uint32_t i = 0; i < elf->number; i++)
		if (elf_section(elf, i, &section) && section.type == SHT_RELA && section.bytes)
			slots_of(elf, &section, found, data);
}
