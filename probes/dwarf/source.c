/* SPDX-License-Identifier: MIT */
/* Debug information of a file: its units and their functions by address, lines, and arguments. */
#include "probes/dwarf/source.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "probes/dwarf/abi.h"
#include "probes/elf/elf.h"

#define obstack_chunk_alloc malloc
#define obstack_chunk_free  free

#define NESTED_MAX 32 /* namespaces and classes inside of each other */

/* A stretch of code: of a unit, or of a function in a unit. */
struct code_range {
	uint64_t from, to;
	Dwarf_Off die;
	size_t unit; /* index into source.unit, if the range is a unit's */
};

struct ranges {
	struct code_range *range; /* sorted by from once all are there */
	size_t n;
};

struct unit {
	bool looked; /* at its functions */
	struct ranges functions;
};

struct source {
	int fd;
	Dwarf *dwarf;
	struct unit *unit;
	size_t n;
	struct ranges ranges;
	struct obstack names; /* and values of functions */
	bool has_symbols;     /* or there are none */
	struct elf_symbols symbols;
};

/* --- Ranges ----------------------------------------------------------------------------------- */

/* All of a DIE. Code that a linker has dropped is at 0. */
static void add_ranges(struct ranges *ranges, Dwarf_Die *die, size_t unit)
{
	struct code_range range = { .die = dw.dwarf_dieoffset(die), .unit = unit };
	Dwarf_Addr base, from, to;
	ptrdiff_t at = 0;

	while ((at = dw.dwarf_ranges(die, at, &base, &from, &to)) > 0) {
		range.from = from;
		range.to = to;
		if (from && from < to && ARRAY_ADD(ranges->range, ranges->n, range))
			return;
	}
}

ORDER_BY(by_start, struct code_range, from)

static void sort_ranges(struct ranges *ranges)
{
	if (ranges->n)
		qsort(ranges->range, ranges->n, sizeof(*ranges->range), by_start);
}

static const struct code_range *find_range(const struct ranges *ranges, uint64_t addr)
{
	size_t behind = SORTED_FROM(ranges->range, ranges->n, from, addr + 1);
	const struct code_range *range = behind ? &ranges->range[behind - 1] : NULL;

	return range && addr < range->to ? range : NULL;
}

/* --- Files ------------------------------------------------------------------------------------ */

static bool open_dwarf(struct source *source, const char *path)
{
	Dwarf_Off at = 0, next;
	size_t header;
	Dwarf_Die die;

	source->fd = open(path, O_RDONLY | O_CLOEXEC);
	source->dwarf = source->fd < 0 ? NULL : dw.dwarf_begin(source->fd, DWARF_C_READ);
	for (;
	     source->dwarf && !dw.dwarf_nextcu(source->dwarf, at, &next, &header, NULL, NULL, NULL);
	     at = next) {
		if (!dw.dwarf_offdie(source->dwarf, at + header, &die))
			continue;
		if (ARRAY_ADD(source->unit, source->n, (struct unit){ 0 }))
			break;
		add_ranges(&source->ranges, &die, source->n - 1);
	}
	sort_ranges(&source->ranges);
	if (source->n)
		return true;
	dw.dwarf_end(source->dwarf);
	if (source->fd >= 0)
		close(source->fd);
	return false;
}

static bool open_beside(struct source *source, const char *path)
{
	char debug[256] = "/usr/lib/debug/.build-id/"; /* ab/cdef.debug */
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd < 0 ? NULL : dw.elf_begin(fd, ELF_C_READ, NULL);
	const void *id;
	ssize_t len = elf ? dw.dwelf_elf_gnu_build_id(elf, &id) : 0;
	size_t used = strlen(debug);

	if (len < 2 || len > 64)
		len = 0;
	for (ssize_t i = 0; i < len; i++)
		used += (size_t)sprintf(debug + used, i ? "%02x" : "%02x/",
					((const uint8_t *)id)[i]);
	strcpy(debug + used, ".debug");
	dw.elf_end(elf);
	if (fd >= 0)
		close(fd);
	return len && open_dwarf(source, debug);
}

bool source_ready(void)
{
	return libdw_load();
}

struct source *source_open(const char *path)
{
	struct source *source = libdw_load() ? calloc(1, sizeof(*source)) : NULL;

	if (!source || open_dwarf(source, path) || open_beside(source, path))
		return source;
	free(source->unit);
	free(source->ranges.range);
	free(source);
	return NULL;
}

/* --- Lines ------------------------------------------------------------------------------------ */

bool source_line(struct source *source, uint64_t addr, const char **file, unsigned *line)
{
	const struct code_range *range = find_range(&source->ranges, addr);
	Dwarf_Line *found;
	Dwarf_Die unit;
	int number = 0;

	if (!range || !dw.dwarf_offdie(source->dwarf, range->die, &unit))
		return false;
	found = dw.dwarf_getsrc_die(&unit, addr);
	*file = found ? dw.dwarf_linesrc(found, NULL, NULL) : NULL;
	if (!*file || dw.dwarf_lineno(found, &number) || number < 1)
		return false;
	*line = (unsigned)number;
	return true;
}

/* --- Functions -------------------------------------------------------------------------------- */

/* Find functions, those inside of namespaces and classes, too. */
static void find_functions(struct ranges *functions, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth > NESTED_MAX || dw.dwarf_child(parent, &die))
		return;
	do {
		int tag = dw.dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			add_ranges(functions, &die, 0);
		else if (tag == DW_TAG_namespace || libdw_is_struct(&die))
			find_functions(functions, &die, depth + 1);
	} while (libdw_next(&die));
}

static bool find_function(struct source *source, uint64_t addr, Dwarf_Die *function,
			  uint64_t *begin)
{
	const struct code_range *range = find_range(&source->ranges, addr);
	struct unit *unit;
	Dwarf_Die die;

	if (!range)
		return false;
	unit = &source->unit[range->unit];
	if (!unit->looked && dw.dwarf_offdie(source->dwarf, range->die, &die)) {
		find_functions(&unit->functions, &die, 0);
		sort_ranges(&unit->functions);
	}
	unit->looked = true;
	range = find_range(&unit->functions, addr);
	*begin = range ? range->from : 0;
	return range && dw.dwarf_offdie(source->dwarf, range->die, function);
}

/*
 * Whether a function has a name, and not that of a copy, whose arguments are not those declared.
 * The symbol says whether it is exported: link-time optimization leaves DIEs as they were.
 */
static bool is_named(struct source *source, uint64_t addr, bool *exported)
{
	const struct elf_symbol *symbol, *end;
	struct elf elf;
	bool is = false;

	/* The file's map stays, with their names. */
	if (!source->has_symbols && !elf_map_fd(&elf, source->fd, ELF_PLAIN))
		elf_functions(&elf, &source->symbols);
	source->has_symbols = true;
	symbol = elf_function_from(&source->symbols, addr);
	end = source->symbols.symbol + source->symbols.n;
	*exported = false;
	for (; symbol && symbol < end && symbol->addr == addr; symbol++) {
		/* f.isra.0 */
		if (strchr(symbol->name, '.'))
			return false;
		is = true;
		*exported |= symbol->exported;
	}
	return is;
}

bool source_function(struct source *source, uint64_t addr, unsigned nops,
		     struct source_function *function)
{
	struct callee callee = { .addr = addr, .nops = nops };
	Dwarf_Die die, code;
	struct unit_by by;
	Dwarf_Word how;
	bool exported;
	uint64_t begin;

	/* Without memory for it, a command ends; a program that is probed asks for lines only. */
	if (!source->names.chunk)
		obstack_init(&source->names);
	*function = (struct source_function){ 0 };
	if (!find_function(source, addr, &die, &begin))
		return false;
	by = unit_by(&die);
	/* Else its arguments are not where the ABI has them. */
	if (by.odd || !(by.c || by.cpp) ||
	    (libdw_known(&die, DW_AT_calling_convention, &how) && how != DW_CC_normal) ||
	    !is_named(source, begin, &exported))
		return false;
	code = die;
	callee.code = &code;
	/* All compilers follow the ABI in functions that are exported, gcc in all but copies. */
	callee.by_abi = exported || by.gcc;
	callee.sets_all = by.gcc;
	callee.has_prototype = !by.c || libdw_has(&code, DW_AT_prototyped);
	/* The parameters as they were declared: a copy of the function may leave some out. */
	for (unsigned i = 0; i < NESTED_MAX && libdw_origin(&die); i++)
		;
	abi_function(&die, &callee, function, &source->names);
	return true;
}
