/* SPDX-License-Identifier: MIT */
#include "probes/entries/program.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/elf/sorted.h"

ORDER_BY(by_place, struct piece, addr)

void program_sections(struct program *program)
{
	const struct elf *elf = program->elf;
	struct elf_section section;

	program->has_branches = elf_find_section(elf, "fi_branch_sites", &section) ||
				elf_find_section(elf, "fi_call_sites", &section);
	program->is_go = elf_find_section(elf, ".go.buildinfo", &section) ||
			 elf_find_section(elf, ".note.go.buildid", &section) ||
			 elf_find_section(elf, ".gopclntab", &section);
	for (uint32_t i = 0; elf_next_section(elf, &i, &section);)
		if (section.bytes && section.flags & SHF_EXECINSTR && section.len &&
		    section.len <= UINT64_MAX - section.addr && program->codes < SECTIONS_MAX)
			program->code[program->codes++] =
				(struct piece){ section.addr, section.len, section.bytes };
	qsort(program->code, program->codes, sizeof(*program->code), by_place);
}

const struct piece *program_piece(const struct program *program, uint64_t addr, uint64_t len)
{
	for (size_t i = 0; i < program->codes; i++) {
		const struct piece *code = &program->code[i];

		if (addr >= code->addr && addr - code->addr < code->len &&
		    len <= code->len - (addr - code->addr))
			return code;
	}
	return NULL;
}

/* What begins inside of another is no function of its own here, but a name in it: has_label(). */
static void add_function(struct program *program, const struct elf_symbol *symbol)
{
	const struct piece *code = program_piece(program, symbol->addr, symbol->size);
	uint64_t end = program->n ? program->function[program->n - 1].end : 0;

	if (!code || !symbol->size || symbol->addr < end ||
	    elf_in_section(program->elf, symbol->addr, ".plt"))
		return;
	program->function[program->n++] = (struct function){
		.addr = symbol->addr,
		.end = symbol->addr + symbol->size,
		.bytes = code->bytes + (symbol->addr - code->addr),
		.name = symbol->name,
	};
}

int program_functions(struct program *program)
{
	const struct elf_symbols *symbols = &program->symbols;
	int ret = elf_functions(program->elf, &program->symbols);

	if (!ret)
		ret = elf_frames(program->elf, &program->symbols);
	if (ret)
		return ret;
	program->function = calloc(symbols->n + 1, sizeof(*program->function));
	if (!program->function)
		return -ENOMEM;
	for (size_t i = 0; i < symbols->n; i++)
		add_function(program, &symbols->symbol[i]);
	return 0;
}

uint32_t program_function(const struct program *program, uint64_t addr)
{
	size_t i = SORTED_FROM(program->function, program->n, end, addr + 1);

	return i < program->n && program->function[i].addr <= addr ? (uint32_t)i : NO_FUNCTION;
}
