/* SPDX-License-Identifier: MIT */
#include "probes/calls/entered.h"
#include "probes/elf/sorted.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT64_MAX

struct table {
	uint64_t at;
	uint64_t from; /* the LEA; NOWHERE: of several functions */
};

struct scan {
	const struct elf *elf;
	const struct elf_symbols *symbols;
	struct entered *entered;
	uint64_t code, end; /* of all sections of code */
	struct table *table;
	size_t tables, room;
};

/* Room for one more of that size behind n of them. */
static void *grown_ranges(void *all, size_t n, size_t *room, size_t size)
{
	void *more;

	if (n < *room)
		return all;
	more = realloc(all, (*room ? 2 * *room : 256) * size);
	if (more)
		*room = *room ? 2 * *room : 256;
	return more;
}

static int note_entry(struct scan *scan, uint64_t from, uint64_t at)
{
	const struct elf_symbol *function = elf_function_at(scan->symbols, at);
	struct entered *entered = scan->entered;
	struct entered_place *place;

	if (!function || at == function->addr)
		return 0;
	place = grown_ranges(entered->place, entered->n, &entered->room, sizeof(*place));
	if (!place)
		return -ENOMEM;
	entered->place = place;
	place[entered->n++] = (struct entered_place){
		.at = at,
		.other = from - function->addr >= function->size,
	};
	return 0;
}

static bool is_code(const struct scan *scan, uint64_t at)
{
	/* Also where it ends: a table that has an entry for what never happens may lead there. */
	return at >= scan->code && at <= scan->end;
}

static int note_address(struct scan *scan, uint64_t from, uint64_t at)
{
	struct table *table;

	if (is_code(scan, at))
		return note_entry(scan, from, at);
	table = grown_ranges(scan->table, scan->tables, &scan->room, sizeof(*table));
	if (!table)
		return -ENOMEM;
	scan->table = table;
	table[scan->tables++] = (struct table){ .at = at, .from = from };
	return 0;
}

/* Behind that many bytes of an instruction, at its end. */
static uint64_t relative(const uint8_t *bytes, uint64_t at, size_t opcodes)
{
	int32_t rel;

	memcpy(&rel, bytes + opcodes, sizeof(rel));
	return at + opcodes + sizeof(rel) + (uint64_t)(int64_t)rel;
}

/* JMP and Jcc from another function, and LEA. */
static int read_code(struct scan *scan, const struct elf_section *section)
{
	int ret = 0;

	for (uint64_t i = 0; i + 5 <= section->len && !ret; i++) {
		const uint8_t *bytes = section->bytes + i;
		uint64_t at = section->addr + i, to = 0, left = section->len - i;
		const struct elf_symbol *function;

		if (bytes[0] == 0xe9)
			to = relative(bytes, at, 1);
		else if (left >= 6 && bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80)
			to = relative(bytes, at, 2);
		else if (left >= 7 && (bytes[0] & 0xfb) == 0x48 && bytes[1] == 0x8d &&
			 (bytes[2] & 0xc7) == 5)
			ret = note_address(scan, at, relative(bytes, at, 3));
		if (!to || !is_code(scan, to))
			continue;
		function = elf_function_at(scan->symbols, to);
		if (function && at - function->addr >= function->size)
			ret = note_entry(scan, at, to);
	}
	return ret;
}

/* What is not loaded anywhere else needs no relocations. */
static int read_words(struct scan *scan, const struct elf_section *section)
{
	int ret = 0;

	for (uint64_t i = 0; i + 8 <= section->len && !ret; i += 8) {
		uint64_t word;

		memcpy(&word, section->bytes + i, sizeof(word));
		if (is_code(scan, word))
			ret = note_entry(scan, word, word);
	}
	return ret;
}

static int read_sections(struct scan *scan, bool code,
			 int (*read)(struct scan *scan, const struct elf_section *section))
{
	struct elf_section section;
	int ret = 0;

	for (uint32_t i = 0; i < scan->elf->number && !ret; i++)
		if (elf_section(scan->elf, i, &section) && section.bytes &&
		    section.flags & SHF_ALLOC && !(section.flags & SHF_EXECINSTR) != code)
			ret = read(scan, &section);
	return ret;
}

static int measure_code(struct scan *scan, const struct elf_section *section)
{
	if (section->addr < scan->code)
		scan->code = section->addr;
	if (section->addr + section->len > scan->end)
		scan->end = section->addr + section->len;
	return 0;
}

static int by_table(const void *a, const void *b)
{
	const struct table *one = a, *two = b;

	return one->at < two->at ? -1 : one->at > two->at;
}

/* Distances from the table, up to the next one. */
static int read_table(struct scan *scan, const struct table *table, uint64_t end)
{
	int ret = 0;

	for (uint64_t at = table->at; end - at >= 4 && !ret; at += 4) {
		const uint8_t *bytes = elf_constant(scan->elf, at, 4);
		uint64_t to;

		if (!bytes)
			break;
		to = relative(bytes, table->at - 4, 0);
		if (!is_code(scan, to))
			break;
		ret = note_entry(scan, table->from, to);
	}
	return ret;
}

static int read_tables(struct scan *scan)
{
	const struct table *tables = scan->table;
	int ret = 0;

	qsort(scan->table, scan->tables, sizeof(*scan->table), by_table);
	for (size_t i = 0, next; i < scan->tables && !ret; i = next) {
		struct table one = tables[i];

		for (next = i + 1; next < scan->tables && tables[next].at == one.at; next++)
			if (elf_function_at(scan->symbols, tables[next].from) !=
			    elf_function_at(scan->symbols, one.from))
				one.from = NOWHERE;
		ret = read_table(scan, &one, next < scan->tables ? tables[next].at : UINT64_MAX);
	}
	return ret;
}

static int by_place(const void *a, const void *b)
{
	const struct entered_place *one = a, *two = b;

	return one->at < two->at ? -1 : one->at > two->at;
}

int entered_read(struct entered *entered, const struct elf *elf, const struct elf_symbols *symbols,
		 const struct elf_values *values)
{
	struct scan scan = {
		.elf = elf, .symbols = symbols, .entered = entered, .code = UINT64_MAX
	};
	int ret;

	*entered = (struct entered){ 0 };
	read_sections(&scan, true, measure_code);
	ret = read_sections(&scan, true, read_code);
	if (!ret && scan.tables)
		ret = read_tables(&scan);
	if (!ret && elf->type == ET_EXEC)
		ret = read_sections(&scan, false, read_words);
	for (size_t i = 0; i < values->n && !ret; i++)
		ret = note_entry(&scan, values->value[i].value, values->value[i].value);
	if (entered->n)
		qsort(entered->place, entered->n, sizeof(*entered->place), by_place);
	free(scan.table);
	return ret;
}

size_t entered_from(const struct entered *entered, uint64_t at)
{
	return SORTED_FROM(entered->place, entered->n, at, at);
}
