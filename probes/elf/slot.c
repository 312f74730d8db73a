/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/elf/elf.h"
#include "probes/elf/sorted.h"

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

/* --- Values -----------------------------------------------------------------------------------
 */

/* What a relocation puts there; false: no address that is known. */
static bool value_of(const struct elf *elf, const struct elf_section *relocations,
		     const Elf64_Rela *rela, struct elf_value *value)
{
	uint64_t index = ELF64_R_SYM(rela->r_info);
	struct elf_section table;
	Elf64_Sym symbol;

	*value = (struct elf_value){ rela->r_offset, (uint64_t)rela->r_addend, "" };
	if (ELF64_R_TYPE(rela->r_info) == R_X86_64_RELATIVE)
		return true;
	if (ELF64_R_TYPE(rela->r_info) != R_X86_64_GLOB_DAT ||
	    !elf_section(elf, relocations->link, &table) || table.type != SHT_DYNSYM ||
	    !table.bytes || index >= table.len / sizeof(symbol))
		return false;
	memcpy(&symbol, table.bytes + index * sizeof(symbol), sizeof(symbol));
	value->value = symbol.st_value;
	if (symbol.st_shndx != SHN_UNDEF)
		return true;
	value->name = symbol_name(elf, &table, index);
	return *value->name;
}

static int add_values(const struct elf *elf, const struct elf_section *relocations,
		      struct elf_values *values)
{
	uint64_t n = relocations->len / sizeof(Elf64_Rela);
	struct elf_value *more =
		reallocarray(values->value, values->n + n + 1, sizeof(*values->value));
	Elf64_Rela rela;

	if (!more)
		return -ENOMEM;
	values->value = more;
	for (uint64_t i = 0; i < n; i++) {
		memcpy(&rela, relocations->bytes + i * sizeof(rela), sizeof(rela));
		values->n += value_of(elf, relocations, &rela, &values->value[values->n]);
	}
	return 0;
}

ORDER_BY(by_at, struct elf_value, at)

int elf_values(const struct elf *elf, struct elf_values *values)
{
	struct elf_section section;
	int ret = 0;

	*values = (struct elf_values){ 0 };
	for (uint32_t i = 0; i < elf->number && !ret; i++)
		if (elf_section(elf, i, &section) && section.type == SHT_RELA &&
		    section.flags & SHF_ALLOC && section.bytes)
			ret = add_values(elf, &section, values);
	if (values->n)
		qsort(values->value, values->n, sizeof(*values->value), by_at);
	return ret;
}

const struct elf_value *elf_value_at(const struct elf_values *values, uint64_t at)
{
	struct elf_value key = { .at = at };

	return values->n ? bsearch(&key, values->value, values->n, sizeof(key), by_at) : NULL;
}
