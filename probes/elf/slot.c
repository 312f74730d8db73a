/* SPDX-License-Identifier: MIT */
/* Relocations: where the loader puts addresses, and which. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "probes/elf/array.h"
#include "probes/elf/elf.h"

/* The next relocation of a section; false: there is none. */
static bool next_relocation(const struct elf_section *section, uint64_t *index, Elf64_Rela *rela)
{
	if (*index >= section->len / sizeof(*rela))
		return false;
	memcpy(rela, section->bytes + (*index)++ * sizeof(*rela), sizeof(*rela));
	return true;
}

/* The next section of relocations, with the table of their symbols, which may be empty. */
static bool next_section(const struct elf *elf, uint32_t *index, struct elf_section *section,
			 struct elf_section *table)
{
	while (elf_next_section(elf, index, section)) {
		if (section->type != SHT_RELA || !section->bytes)
			continue;
		if (!elf_section(elf, section->link, table) || table->type != SHT_DYNSYM)
			*table = (struct elf_section){ 0 };
		return true;
	}
	return false;
}

void elf_slots(const struct elf *elf, void (*found)(const char *name, uint64_t slot, void *data),
	       void *data)
{
	struct elf_section section, table;
	Elf64_Sym symbol;
	Elf64_Rela rela;

	for (uint32_t i = 0; next_section(elf, &i, &section, &table);)
		for (uint64_t k = 0; table.bytes && next_relocation(&section, &k, &rela);) {
			const char *name = "";

			if (ELF64_R_TYPE(rela.r_info) != R_X86_64_JUMP_SLOT &&
			    ELF64_R_TYPE(rela.r_info) != R_X86_64_GLOB_DAT)
				continue;
			elf_read_symbol(elf, &table, ELF64_R_SYM(rela.r_info), &symbol, &name);
			found(name, rela.r_offset, data);
		}
}

/* --- Values ----------------------------------------------------------------------------------- */

/* The word that a relocation writes; false: it is no known address. */
static bool read_value(const struct elf *elf, const struct elf_section *table,
		       const Elf64_Rela *rela, struct elf_value *value)
{
	const char *name;
	Elf64_Sym symbol;

	*value = (struct elf_value){ rela->r_offset, (uint64_t)rela->r_addend, "" };
	if (ELF64_R_TYPE(rela->r_info) == R_X86_64_RELATIVE)
		return true;
	if (ELF64_R_TYPE(rela->r_info) != R_X86_64_GLOB_DAT ||
	    !elf_read_symbol(elf, table, ELF64_R_SYM(rela->r_info), &symbol, &name))
		return false;
	value->value = symbol.st_value;
	if (symbol.st_shndx == SHN_UNDEF)
		value->name = name;
	return symbol.st_shndx != SHN_UNDEF || *name;
}

ORDER_BY(by_at, struct elf_value, at)

int elf_values(const struct elf *elf, struct elf_values *values)
{
	struct elf_section section, table;
	struct elf_value value;
	Elf64_Rela rela;
	int ret = 0;

	*values = (struct elf_values){ 0 };
	for (uint32_t i = 0; !ret && next_section(elf, &i, &section, &table);)
		for (uint64_t k = 0;
		     section.flags & SHF_ALLOC && !ret && next_relocation(&section, &k, &rela);)
			if (read_value(elf, &table, &rela, &value))
				ret = ARRAY_ADD(values->value, values->n, value);
	if (values->n)
		qsort(values->value, values->n, sizeof(*values->value), by_at);
	return ret;
}

const struct elf_value *elf_value_at(const struct elf_values *values, uint64_t at)
{
	struct elf_value key = { .at = at };

	return values->n ? bsearch(&key, values->value, values->n, sizeof(key), by_at) : NULL;
}
