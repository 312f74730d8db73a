/* SPDX-License-Identifier: MIT */
#include "probes/calls/entered.h"
#include "probes/elf/sorted.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const struct elf *elf;
	const struct elf_symbols *symbols;
	struct entered *entered;
	bool *open; /* of symbols: a part that may lead anywhere */
};

static int note_place(struct entered *entered, uint64_t at, bool anywhere)
{
	size_t room = entered->room ? 2 * entered->room : 256;
	struct entered_place *more;

	if (entered->n == entered->room) {
		more = realloc(entered->place, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		entered->place = more;
		entered->room = room;
	}
	entered->place[entered->n++] = (struct entered_place){ at, anywhere };
	return 0;
}

/* Of code that is no part of a function though no symbol is of it: to another object. */
static bool is_plt(const struct elf_section *section)
{
	return !strncmp(section->name, ".plt", strlen(".plt"));
}

/* Whether code without a name is there, which may be a part of any function. */
static bool has_no_name(const struct scan *scan, uint64_t at)
{
	struct elf_section section;

	for (uint32_t i = 0; i < scan->elf->number; i++)
		if (elf_section(scan->elf, i, &section) && section.flags & SHF_EXECINSTR &&
		    at - section.addr < section.len)
			return !is_plt(&section);
	return false;
}

/* Compilers lead what never happens to where the function ends. */
static bool is_end(const struct scan *scan, uint64_t from, uint64_t to)
{
	const struct elf_symbol *function = elf_function_at(scan->symbols, from);

	return function && to - function->addr == function->size;
}

/* A jump from one place to another. */
static int see_jump(struct scan *scan, uint64_t from, uint64_t to)
{
	const struct elf_symbol *function = elf_function_at(scan->symbols, to);

	if (!function)
		return has_no_name(scan, to) && !is_end(scan, from, to)
			       ? note_place(scan->entered, from, true)
			       : 0;
	if (from - function->addr < function->size)
		return 0;
	if (scan->open[function - scan->symbols->symbol])
		return note_place(scan->entered, from, true);
	return to != function->addr ? note_place(scan->entered, to, false) : 0;
}

/* Behind that many bytes of an instruction, at its end. */
static uint64_t relative(const uint8_t *bytes, uint64_t at, size_t opcodes)
{
	int32_t rel;

	memcpy(&rel, bytes + opcodes, sizeof(rel));
	return at + opcodes + sizeof(rel) + (uint64_t)(int64_t)rel;
}

/* JMP and Jcc. */
static int read_code(struct scan *scan, const struct elf_section *section)
{
	int ret = 0;

	for (uint64_t i = 0; i + 5 <= section->len && !ret; i++) {
		const uint8_t *bytes = section->bytes + i;
		uint64_t at = section->addr + i;

		if (bytes[0] == 0xe9)
			ret = see_jump(scan, at, relative(bytes, at, 1));
		else if (section->len - i >= 6 && bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80)
			ret = see_jump(scan, at, relative(bytes, at, 2));
	}
	return ret;
}

static int by_place(const void *a, const void *b)
{
	const struct entered_place *one = a, *two = b;

	return one->at < two->at ? -1 : one->at > two->at;
}

int entered_read(struct entered *entered, const struct elf *elf, const struct elf_symbols *symbols,
		 bool (*jumps)(const struct elf_symbol *function, void *data), void *data)
{
	struct scan scan = { .elf = elf, .symbols = symbols, .entered = entered };
	struct elf_section section;
	int ret = 0;

	*entered = (struct entered){ 0 };
	scan.open = calloc(symbols->n + 1, sizeof(*scan.open));
	if (!scan.open)
		return -ENOMEM;
	for (size_t i = 0; i < symbols->n; i++) {
		scan.open[i] = strstr(symbols->symbol[i].name, ".cold") &&
			       jumps(&symbols->symbol[i], data);
		entered->open |= scan.open[i];
	}
	for (uint32_t i = 0; i < elf->number && !ret; i++)
		if (elf_section(elf, i, &section) && section.bytes && !is_plt(&section) &&
		    section.flags & SHF_ALLOC && section.flags & SHF_EXECINSTR)
			ret = read_code(&scan, &section);
	if (entered->n)
		qsort(entered->place, entered->n, sizeof(*entered->place), by_place);
	free(scan.open);
	return ret;
}

size_t entered_from(const struct entered *entered, uint64_t at)
{
	return SORTED_FROM(entered->place, entered->n, at, at);
}
