/* SPDX-License-Identifier: MIT */
#include "probes/source/source.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/elf/elf.h"

#define NESTED_MAX 32 /* namespaces and classes inside of each other */

/* What is used of libdw. */
#define CALLS(do)                                                                                                                                                                        \
	do                                                                                                                                                                               \
	(dwarf_begin) do(dwarf_end) do(dwarf_nextcu) do(dwarf_offdie) do(dwarf_dieoffset) do(dwarf_ranges) do(dwarf_entrypc) do(dwarf_getsrc_die) do(dwarf_linesrc) do(dwarf_lineno) do( \
		dwarf_child) do(dwarf_siblingof) do(dwarf_tag) do(dwarf_attr) do(dwarf_attr_integrate) do(dwarf_formudata) do(dwarf_formref_die) do(dwarf_diename) do(dwarf_peel_type) do(dwarf_bytesize)

#define DECLARE(name) __typeof__(name) *name;
static struct {
	CALLS(DECLARE)
} dw;
static bool loaded;

/* Without a loader: the C library's dlopen() is of no use there, and may crash. */
static int find_loader(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		*(bool *)data |= info->dlpi_phdr[i].p_type == PT_INTERP;
	/* Of the program itself, which comes first. */
	return 1;
}

static bool is_static(void)
{
	bool has_loader = false;

	dl_iterate_phdr(find_loader, &has_loader);
	return !has_loader;
}

static void load_libdw(void)
{
	void *library;

	if (is_static())
		return;
	/* Not the agent's dlopen(), which would look for probes in it. */
	library = dlmopen(LM_ID_BASE, "libdw.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	loaded = true;
#define FIND(name) loaded = loaded && (dw.name = (__typeof__(dw.name))dlsym(library, #name));
	CALLS(FIND)
}

bool source_ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_libdw);
	return loaded;
}

/* A stretch of code: of a unit, or of a function in a unit. */
struct range {
	uint64_t from, to;
	Dwarf_Off die;
	size_t unit; /* of those of units: which of source.unit */
};

struct ranges {
	struct range *range; /* sorted by from once all are there */
	size_t n, room;
};

struct unit {
	Dwarf_Off die;
	bool looked; /* at its functions */
	struct ranges functions;
};

struct source {
	int fd;
	Dwarf *dwarf;
	struct unit *unit;
	size_t n;
	struct ranges ranges;
};

/* --- Ranges ----------------------------------------------------------------------------------- */

static bool add_range(struct ranges *ranges, const struct range *range)
{
	if (ranges->n == ranges->room) {
		size_t room = ranges->room ? 2 * ranges->room : 64;
		struct range *more = realloc(ranges->range, room * sizeof(*more));

		if (!more)
			return false;
		ranges->range = more;
		ranges->room = room;
	}
	ranges->range[ranges->n++] = *range;
	return true;
}

/* All of a DIE. Code that a linker has dropped is at 0. */
static void add_ranges(struct ranges *ranges, Dwarf_Die *die, size_t unit)
{
	struct range range = { .die = dw.dwarf_dieoffset(die), .unit = unit };
	Dwarf_Addr base, from, to;
	ptrdiff_t at = 0;

	while ((at = dw.dwarf_ranges(die, at, &base, &from, &to)) > 0) {
		range.from = from;
		range.to = to;
		if (from && from < to && !add_range(ranges, &range))
			return;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct range *one = a, *two = b;

	return one->from < two->from ? -1 : one->from > two->from;
}

static void sort_ranges(struct ranges *ranges)
{
	if (ranges->n)
		qsort(ranges->range, ranges->n, sizeof(*ranges->range), by_start);
}

static const struct range *find_range(const struct ranges *ranges, uint64_t addr)
{
	size_t low = 0, high = ranges->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->range[middle].from <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && addr < ranges->range[low - 1].to ? &ranges->range[low - 1] : NULL;
}

/* --- Files ------------------------------------------------------------------------------------ */

static bool find_units(struct source *source)
{
	Dwarf_Off at = 0, next;
	size_t header;
	Dwarf_Die die;

	for (; !dw.dwarf_nextcu(source->dwarf, at, &next, &header, NULL, NULL, NULL); at = next) {
		struct unit *more = realloc(source->unit, (source->n + 1) * sizeof(*more));

		if (!more)
			return false;
		source->unit = more;
		source->unit[source->n] = (struct unit){ .die = at + header };
		if (dw.dwarf_offdie(source->dwarf, at + header, &die))
			add_ranges(&source->ranges, &die, source->n++);
	}
	sort_ranges(&source->ranges);
	return source->n > 0;
}

static bool open_dwarf(struct source *source, const char *path)
{
	source->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (source->fd < 0)
		return false;
	source->dwarf = dw.dwarf_begin(source->fd, DWARF_C_READ);
	if (source->dwarf && find_units(source))
		return true;
	if (source->dwarf)
		dw.dwarf_end(source->dwarf);
	close(source->fd);
	return false;
}

static bool is_build_id(const struct elf_section *section, const Elf64_Nhdr *note)
{
	return note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz >= 2 &&
	       note->n_descsz <= 64 && section->len >= sizeof(*note) + 4 + note->n_descsz &&
	       !memcmp(section->bytes + sizeof(*note), "GNU", 4);
}

/* /usr/lib/debug/.build-id/ab/cdef.debug */
static bool debug_path(const struct elf *elf, char *path, size_t size)
{
	struct elf_section section;
	Elf64_Nhdr note;
	const uint8_t *id;
	int used;

	for (uint32_t i = 0; i < elf->number; i++) {
		if (!elf_section(elf, i, &section) || section.type != SHT_NOTE || !section.bytes ||
		    section.len < sizeof(note))
			continue;
		memcpy(&note, section.bytes, sizeof(note));
		if (!is_build_id(&section, &note))
			continue;
		id = section.bytes + sizeof(note) + 4;
		used = snprintf(path, size, "/usr/lib/debug/.build-id/%02x/", id[0]);
		for (uint32_t k = 1; k < note.n_descsz; k++)
			used += snprintf(path + used, size - (size_t)used, "%02x", id[k]);
		snprintf(path + used, size - (size_t)used, ".debug");
		return true;
	}
	return false;
}

static bool open_beside(struct source *source, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char debug[256] = "";
	struct stat stat;
	struct elf elf;
	void *map = MAP_FAILED;

	if (fd < 0)
		return false;
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_size > 0)
		map = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return false;
	if (!elf_open(&elf, map, (size_t)stat.st_size) || !debug_path(&elf, debug, sizeof(debug)))
		debug[0] = '\0';
	munmap(map, (size_t)stat.st_size);
	return debug[0] && open_dwarf(source, debug);
}

struct source *source_open(const char *path)
{
	struct source *source = source_ready() ? calloc(1, sizeof(*source)) : NULL;

	if (!source || open_dwarf(source, path) || open_beside(source, path))
		return source;
	free(source->unit);
	free(source->ranges.range);
	free(source);
	return NULL;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	for (size_t i = 0; i < source->n; i++)
		free(source->unit[i].functions.range);
	dw.dwarf_end(source->dwarf);
	close(source->fd);
	free(source->unit);
	free(source->ranges.range);
	free(source);
}

/* --- Lines ------------------------------------------------------------------------------------ */

bool source_line(struct source *source, uint64_t addr, const char **file, unsigned *line)
{
	const struct range *range = find_range(&source->ranges, addr);
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

/* Also those inside of namespaces and classes. */
static void find_functions(struct ranges *functions, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth > NESTED_MAX || dw.dwarf_child(parent, &die))
		return;
	do {
		switch (dw.dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			add_ranges(functions, &die, 0);
			break;
		case DW_TAG_namespace:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
			find_functions(functions, &die, depth + 1);
			break;
		}
	} while (!dw.dwarf_siblingof(&die, &die));
}

static bool find_function(struct source *source, uint64_t addr, Dwarf_Die *function)
{
	const struct range *range = find_range(&source->ranges, addr);
	struct unit *unit;
	Dwarf_Die die;

	if (!range)
		return false;
	unit = &source->unit[range->unit];
	if (!unit->looked && dw.dwarf_offdie(source->dwarf, unit->die, &die)) {
		find_functions(&unit->functions, &die, 0);
		sort_ranges(&unit->functions);
	}
	unit->looked = true;
	range = find_range(&unit->functions, addr);
	return range && dw.dwarf_offdie(source->dwarf, range->die, function);
}

static bool follow_attribute(Dwarf_Die *die, unsigned attribute, Dwarf_Die *to)
{
	Dwarf_Attribute place;

	return dw.dwarf_attr_integrate(die, attribute, &place) && dw.dwarf_formref_die(&place, to);
}

/* Without names for types and their qualifiers. False: void. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Die named;

	return follow_attribute(die, DW_AT_type, &named) && !dw.dwarf_peel_type(&named, type);
}

static Dwarf_Word attribute_number(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute place;
	Dwarf_Word value;

	if (!dw.dwarf_attr_integrate(die, attribute, &place) || dw.dwarf_formudata(&place, &value))
		return 0;
	return value;
}

static enum source_form base_form(Dwarf_Die *type)
{
	const char *name = dw.dwarf_diename(type);

	switch (attribute_number(type, DW_AT_encoding)) {
	case DW_ATE_boolean:
		return SOURCE_BOOL;
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
		if (name && !strcmp(name, "char"))
			return SOURCE_CHAR;
		return attribute_number(type, DW_AT_encoding) == DW_ATE_signed_char
			       ? SOURCE_SIGNED
			       : SOURCE_UNSIGNED;
	case DW_ATE_signed:
		return SOURCE_SIGNED;
	case DW_ATE_unsigned:
	case DW_ATE_UTF:
	case DW_ATE_address:
		return SOURCE_UNSIGNED;
	default:
		return SOURCE_OTHER;
	}
}

static enum source_form pointer_form(Dwarf_Die *pointer)
{
	Dwarf_Die to;

	if (type_of(pointer, &to) && dw.dwarf_tag(&to) == DW_TAG_base_type &&
	    base_form(&to) == SOURCE_CHAR)
		return SOURCE_STRING;
	return SOURCE_POINTER;
}

/* How a value of the type is handed over, by the ABI. */
enum handed {
	IN_REGISTER, /* for integers */
	ELSEWHERE,   /* on the stack, or in a register for vectors */
	NOT_KNOWN,   /* in pieces, or in one of these ways */
};

static enum handed classify(Dwarf_Die *type, struct source_value *value)
{
	Dwarf_Word size = attribute_number(type, DW_AT_byte_size);

	value->form = SOURCE_OTHER;
	switch (dw.dwarf_tag(type)) {
	case DW_TAG_base_type:
		value->form = base_form(type);
		if (value->form == SOURCE_OTHER)
			return ELSEWHERE;
		break;
	case DW_TAG_enumeration_type:
		value->form = size == 4 ? SOURCE_SIGNED : SOURCE_UNSIGNED;
		break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_unspecified_type:
		value->form = pointer_form(type);
		size = 8;
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		if (attribute_number(type, DW_AT_calling_convention) == DW_CC_pass_by_reference) {
			value->form = SOURCE_POINTER;
			size = 8;
			break;
		}
		return size > 16 ? ELSEWHERE : NOT_KNOWN;
	default:
		return NOT_KNOWN;
	}
	value->size = (uint8_t)size;
	return size == 1 || size == 2 || size == 4 || size == 8 ? IN_REGISTER : NOT_KNOWN;
}

/* What comes back; whether a pointer to it takes the first register. False: not known. */
static bool find_result(Dwarf_Die *die, struct source_function *function, unsigned *registers)
{
	Dwarf_Die type;
	enum handed how;

	*registers = 0;
	if (!type_of(die, &type))
		return true;
	how = classify(&type, &function->result);
	if (how == NOT_KNOWN)
		return false;
	if (function->result.form == SOURCE_OTHER)
		*registers = dw.dwarf_tag(&type) != DW_TAG_base_type;
	else
		function->returns = true;
	if (function->returns && dw.dwarf_tag(&type) != DW_TAG_base_type &&
	    attribute_number(&type, DW_AT_calling_convention) == DW_CC_pass_by_reference)
		*registers = 1;
	return true;
}

static bool add_arg(struct source_function *function, Dwarf_Die *die, unsigned *registers)
{
	struct source_value *arg = &function->arg[function->args];
	const char *name = dw.dwarf_diename(die);
	enum handed how;
	Dwarf_Die type;

	if (function->args == 2 * SOURCE_ARGS || !type_of(die, &type))
		return false;
	*arg = (struct source_value){ .name = name ? name : "" };
	how = classify(&type, arg);
	if (how == NOT_KNOWN || (how == IN_REGISTER && *registers == SOURCE_ARGS))
		return false;
	if (how == IN_REGISTER)
		arg->reg = (uint8_t)(*registers)++;
	function->args++;
	return true;
}

/* The parameters as they were declared: a copy of the function may leave some out. */
static void declared(Dwarf_Die *die)
{
	Dwarf_Attribute place;

	for (unsigned i = 0; i < NESTED_MAX; i++)
		if (!dw.dwarf_attr(die, DW_AT_abstract_origin, &place) ||
		    !dw.dwarf_formref_die(&place, die))
			return;
}

bool source_function(struct source *source, uint64_t addr, struct source_function *function)
{
	unsigned registers;
	Dwarf_Die die, child;

	*function = (struct source_function){ 0 };
	if (!find_function(source, addr, &die))
		return false;
	declared(&die);
	if (!find_result(&die, function, &registers)) {
		function->more = true;
		return true;
	}
	if (dw.dwarf_child(&die, &child))
		return true;
	do {
		int tag = dw.dwarf_tag(&child);

		if (tag == DW_TAG_formal_parameter && !function->more)
			function->more = !add_arg(function, &child, &registers);
		else if (tag == DW_TAG_unspecified_parameters)
			function->more = true;
	} while (!dw.dwarf_siblingof(&child, &child));
	return true;
}
