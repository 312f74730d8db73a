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
	struct elf_section section;

	for (uint32_t i = 0; elf_next_section(program->elf, &i, &section);) {
		struct piece piece = { section.addr, section.len, section.bytes };

		if (!strncmp(section.name, "fi_branch", 9) || !strncmp(section.name, "fi_call", 7))
			program->has_branches = true;
		if (!strcmp(section.name, ".go.buildinfo") ||
		    !strcmp(section.name, ".note.go.buildid") ||
		    !strcmp(section.name, ".gopclntab"))
			program->is_go = true;
		if (section.bytes && section.flags & SHF_EXECINSTR && section.len &&
		    section.len <= UINT64_MAX - section.addr && program->codes < SECTIONS_MAX)
			program->code[program->codes++] = piece;
	}
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

static int by_addr(const void *a, const void *b)
{
	const struct function *one = a, *two = b;

	if (one->addr != two->addr)
		return one->addr < two->addr ? -1 : 1;
	if (one->end != two->end)
		return one->end > two->end ? -1 : 1;
	return (*two->name != '\0') - (*one->name != '\0');
}

static void add_functions(struct program *program, const struct elf_symbols *symbols)
{
	for (size_t i = 0; i < symbols->n; i++) {
		const struct elf_symbol *symbol = &symbols->symbol[i];
		const struct piece *code = program_piece(program, symbol->addr, symbol->size);

		if (!code || !symbol->size || elf_in_section(program->elf, symbol->addr, ".plt"))
			continue;
		program->function[program->n++] = (struct function){
			.addr = symbol->addr,
			.end = symbol->addr + symbol->size,
			.bytes = code->bytes + (symbol->addr - code->addr),
			.name = symbol->name,
		};
	}
}

/* What begins inside of another is no function of its own here, but a name in it: see labels. */
int program_functions(struct program *program)
{
	struct survey *survey = program->survey;
	uint32_t kept = 0;
	int ret = elf_functions(program->elf, &survey->symbols);

	if (!ret)
		ret = elf_frames(program->elf, &survey->frames);
	if (ret)
		return ret;
	program->function =
		calloc(survey->symbols.n + survey->frames.n + 1, sizeof(*program->function));
	if (!program->function)
		return -ENOMEM;
	add_functions(program, &survey->symbols);
	add_functions(program, &survey->frames);
	qsort(program->function, program->n, sizeof(*program->function), by_addr);
	for (uint32_t i = 0; i < program->n; i++)
		if (!kept || program->function[i].addr >= program->function[kept - 1].end)
			program->function[kept++] = program->function[i];
	program->n = kept;
	return 0;
}

uint32_t program_function(const struct program *program, uint64_t addr)
{
	uint32_t low = 0, high = program->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (program->function[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < program->n && program->function[low].addr <= addr ? low : NO_FUNCTION;
}
