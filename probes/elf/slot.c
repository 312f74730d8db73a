/* SPDX-License-Identifier: MIT */
/* Relocations: where the loader puts addresses, and which. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "probes/elf/elf.h"

/* All relocations of a file, one after the other; all zeros but the file at the beginning. */
struct relocations {
	const struct elf *elf;
	uint32_t next; /* index of the next section */
	uint64_t used; /* of the section's */
	struct elf_section section;
	struct elf_section symbols; /* may be empty */
};

static bool next_relocation(struct relocations *all, Elf64_Rela *rela)
{
	struct elf_section *section = &all->section;

	while (all->used >= section->len / sizeof(*rela)) {
		all->used = 0;
		if (!elf_next_section(all->elf, &all->next, section))
			return false;
		if (section->type != SHT_RELA || !section->bytes)
			section->len = 0;
		else if (!elf_section(all->elf, section->link, &all->symbols) ||
			 all->symbols.type != SHT_DYNSYM)
			all->symbols = (struct elf_section){ 0 };
	}
	memcpy(rela, section->bytes + all->used++ * sizeof(*rela), sizeof(*rela));
	return true;
}

void elf_slots(const struct elf *elf, void (*found)(const char *name, uint64_t slot, void *data),
	       void *data)
{
	struct relocations all = { .elf = elf };
	Elf64_Sym symbol;
	Elf64_Rela rela;

	while (next_relocation(&all, &rela)) {
		const char *name = "";

		if (!all.symbols.bytes || (ELF64_R_TYPE(rela.r_info) != R_X86_64_JUMP_SLOT &&
					   ELF64_R_TYPE(rela.r_info) != R_X86_64_GLOB_DAT))
			continue;
		elf_read_symbol(elf, &all.symbols, ELF64_R_SYM(rela.r_info), &symbol, &name);
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
	struct relocations all = { .elf = elf };
	struct elf_value value;
	Elf64_Rela rela;
	int ret = 0;

	*values = (struct elf_values){ 0 };
	while (!ret && next_relocation(&all, &rela))
		if (all.section.flags & SHF_ALLOC && read_value(elf, &all.symbols, &rela, &value))
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
