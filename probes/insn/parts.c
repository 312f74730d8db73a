/* SPDX-License-Identifier: MIT */
/*
 * Jumps from one function into the middle of another, by their bytes.
 */
#include "probes/insn/insn.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/elf/array.h"
#include "probes/elf/sorted.h"

struct scan {
	const struct elf *elf;
	const struct elf_symbols *symbols;
	struct part_entries *entries;
	bool *open; /* of symbols: a part that may lead anywhere */
};

static int add_entry(struct part_entries *entries, uint64_t at, bool anywhere)
{
	return ARRAY_ADD(entries->entry, entries->n, (struct part_entry){ at, anywhere });
}

/* Code without a symbol may be a part of any function. The PLT is not. */
static bool has_no_name(const struct scan *scan, uint64_t at)
{
	struct elf_section section;

	return elf_section_at(scan->elf, at, &section) && section.flags & SHF_EXECINSTR &&
	       strncmp(section.name, ".plt", strlen(".plt")) != 0;
}

/* Compilers branch to the end of a function where that never happens. */
static bool is_end(const struct scan *scan, uint64_t from, uint64_t to)
{
	const struct elf_symbol *function = elf_function_at(scan->symbols, from);

	return function && to - function->addr == function->size;
}

static int note_jump(struct scan *scan, uint64_t from, uint64_t to)
{
	const struct elf_symbol *function = elf_function_at(scan->symbols, to);

	if (!function)
		return has_no_name(scan, to) && !is_end(scan, from, to)
			       ? add_entry(scan->entries, from, true)
			       : 0;
	if (from - function->addr < function->size)
		return 0;
	if (scan->open[function - scan->symbols->symbol])
		return add_entry(scan->entries, from, true);
	return to != function->addr ? add_entry(scan->entries, to, false) : 0;
}

size_t insn_guess(const uint8_t *bytes, uint64_t len, uint64_t at, uint64_t *target)
{
	bool is_jcc = len >= 2 && bytes[0] == 0x0f && bytes[1] >> 4 == 8;
	bool is_short = bytes[0] >> 4 == 7 || bytes[0] == 0xeb || (bytes[0] & 0xfc) == 0xe0;
	size_t size = is_jcc ? 6 : is_short ? 2 : 5;
	int32_t rel = is_short && len >= 2 ? (int8_t)bytes[1] : 0;

	if (len < size || !(is_jcc || is_short || (bytes[0] & 0xfe) == 0xe8))
		return 0;
	if (!is_short)
		memcpy(&rel, bytes + size - sizeof(rel), sizeof(rel));
	*target = at + size + (uint64_t)(int64_t)rel;
	return size;
}

/* JMP and Jcc with four bytes of distance. */
static int read_code(struct scan *scan, const struct elf_section *section)
{
	uint64_t target;
	int ret = 0;

	for (uint64_t i = 0; i < section->len && !ret; i++) {
		const uint8_t *bytes = section->bytes + i;
		uint64_t at = section->addr + i;

		if ((bytes[0] == 0xe9 || bytes[0] == 0x0f) &&
		    insn_guess(bytes, section->len - i, at, &target))
			ret = note_jump(scan, at, target);
	}
	return ret;
}

/* Whether a part of a function may lead anywhere in it. */
static bool leads_anywhere(const struct elf *elf, const struct elf_symbol *part)
{
	const uint8_t *bytes = elf_constant(elf, part->addr, part->size);
	struct function_code code;
	bool jumps;

	if (!bytes)
		return true;
	jumps = function_read(&code, bytes, part->addr, part->size) || code.indirect;
	function_free(&code);
	return jumps;
}

ORDER_BY(by_address, struct part_entry, at)

int part_entries_read(struct part_entries *entries, const struct elf *elf,
		      const struct elf_symbols *symbols)
{
	struct scan scan = { .elf = elf, .symbols = symbols, .entries = entries };
	struct elf_section section;
	int ret = 0;

	*entries = (struct part_entries){ 0 };
	scan.open = calloc(symbols->n + 1, sizeof(*scan.open));
	if (!scan.open)
		return -ENOMEM;
	for (size_t i = 0; i < symbols->n; i++) {
		scan.open[i] = strstr(symbols->symbol[i].name, ".cold") &&
			       leads_anywhere(elf, &symbols->symbol[i]);
		entries->open |= scan.open[i];
	}
	for (uint32_t i = 0; !ret && elf_next_section(elf, &i, &section);)
		if (section.bytes && section.flags & SHF_ALLOC && section.flags & SHF_EXECINSTR &&
		    strncmp(section.name, ".plt", 4) != 0)
			ret = read_code(&scan, &section);
	if (entries->n)
		qsort(entries->entry, entries->n, sizeof(*entries->entry), by_address);
	free(scan.open);
	return ret;
}

size_t part_entries_from(const struct part_entries *entries, uint64_t at)
{
	return SORTED_FROM(entries->entry, entries->n, at, at);
}
