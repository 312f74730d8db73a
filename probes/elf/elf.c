/* SPDX-License-Identifier: MIT */
/* Sections, segments and symbols of an ELF file in memory, and files that are mapped. */
#include "probes/elf/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

static void read_header(const struct elf *elf, uint32_t index, Elf64_Shdr *header)
{
	memcpy(header, elf->image + elf->sections + index * sizeof(*header), sizeof(*header));
}

bool elf_open(struct elf *elf, const void *image, size_t size)
{
	Elf64_Ehdr header;

	*elf = (struct elf){ .image = image, .size = size };
	if (size < sizeof(header))
		return false;
	memcpy(&header, image, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64)
		return false;
	elf->type = header.e_type;
	/* Only objects before linking have more sections than the header can say. */
	if (header.e_shentsize != sizeof(Elf64_Shdr) ||
	    !elf_inside(elf, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)))
		return true;
	elf->sections = header.e_shoff;
	elf->number = header.e_shnum;
	elf->names = header.e_shstrndx;
	return true;
}

/* A string that ends within the section, or "". */
static const char *read_string(const struct elf *elf, const Elf64_Shdr *strings, uint64_t offset)
{
	const char *text;

	if (strings->sh_type != SHT_STRTAB ||
	    !elf_inside(elf, strings->sh_offset, strings->sh_size) || offset >= strings->sh_size)
		return "";
	text = (const char *)elf->image + strings->sh_offset + offset;
	return memchr(text, '\0', strings->sh_size - offset) ? text : "";
}

bool elf_section(const struct elf *elf, uint32_t index, struct elf_section *section)
{
	Elf64_Shdr header, names = { 0 };

	if (index >= elf->number)
		return false;
	read_header(elf, index, &header);
	if (elf->names < elf->number)
		read_header(elf, elf->names, &names);
	*section = (struct elf_section){
		.name = read_string(elf, &names, header.sh_name),
		.type = header.sh_type,
		.link = header.sh_link,
		.flags = header.sh_flags,
		.addr = header.sh_addr,
		.len = header.sh_size,
	};
	if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL)
		return true;
	if (!elf_inside(elf, header.sh_offset, header.sh_size))
		return false;
	section->bytes = elf->image + header.sh_offset;
	return true;
}

size_t elf_segments(const struct elf *elf, Elf64_Phdr segments[ELF_SEGMENTS_MAX])
{
	Elf64_Ehdr header;

	memcpy(&header, elf->image, sizeof(header));
	if (header.e_phnum > ELF_SEGMENTS_MAX || header.e_phentsize != sizeof(*segments) ||
	    !elf_inside(elf, header.e_phoff, header.e_phnum * sizeof(*segments)))
		return 0;
	memcpy(segments, elf->image + header.e_phoff, header.e_phnum * sizeof(*segments));
	return header.e_phnum;
}

bool elf_next_section(const struct elf *elf, uint32_t *index, struct elf_section *section)
{
	while (*index < elf->number)
		if (elf_section(elf, (*index)++, section))
			return true;
	return false;
}

bool elf_find_section(const struct elf *elf, const char *name, struct elf_section *section)
{
	for (uint32_t i = 0; elf_next_section(elf, &i, section);)
		if (section->bytes && !strcmp(section->name, name))
			return true;
	return false;
}

/* Addresses of .tbss overlap those of other sections. */
bool elf_section_at(const struct elf *elf, uint64_t addr, struct elf_section *section)
{
	for (uint32_t i = 0; elf_next_section(elf, &i, section);)
		if ((section->flags & (SHF_ALLOC | SHF_TLS)) == SHF_ALLOC &&
		    addr - section->addr < section->len)
			return true;
	return false;
}

bool elf_in_section(const struct elf *elf, uint64_t addr, const char *prefix)
{
	struct elf_section section;

	return elf_section_at(elf, addr, &section) &&
	       !strncmp(section.name, prefix, strlen(prefix));
}

const uint8_t *elf_constant(const struct elf *elf, uint64_t addr, uint64_t len)
{
	struct elf_section section;

	if (!elf_section_at(elf, addr, &section) || !section.bytes || section.flags & SHF_WRITE ||
	    len > section.len - (addr - section.addr))
		return NULL;
	return section.bytes + (addr - section.addr);
}

/* --- Functions -------------------------------------------------------------------------------- */

static int by_addr(const void *a, const void *b)
{
	const struct elf_symbol *one = a, *two = b;

	if (one->addr != two->addr)
		return one->addr < two->addr ? -1 : 1;
	if (one->size != two->size)
		return one->size > two->size ? -1 : 1;
	if (!*one->name != !*two->name)
		return !*one->name - !*two->name;
	return strcmp(one->name, two->name);
}

void elf_sort(struct elf_symbols *symbols)
{
	if (symbols->n)
		qsort(symbols->symbol, symbols->n, sizeof(*symbols->symbol), by_addr);
}

static bool find_table(const struct elf *elf, uint32_t type, struct elf_section *found)
{
	for (uint32_t i = 0; elf_next_section(elf, &i, found);)
		if (found->type == type && found->bytes)
			return true;
	return false;
}

bool elf_read_symbol(const struct elf *elf, const struct elf_section *table, uint64_t index,
		     Elf64_Sym *symbol, const char **name)
{
	Elf64_Shdr strings = { 0 };

	if (!table->bytes || index >= table->len / sizeof(*symbol))
		return false;
	memcpy(symbol, table->bytes + index * sizeof(*symbol), sizeof(*symbol));
	if (table->link < elf->number)
		read_header(elf, table->link, &strings);
	*name = read_string(elf, &strings, symbol->st_name);
	return true;
}

int elf_functions(const struct elf *elf, struct elf_symbols *symbols)
{
	struct elf_section table;
	Elf64_Sym symbol;
	const char *name;
	int ret = 0;

	*symbols = (struct elf_symbols){ 0 };
	if (!find_table(elf, SHT_SYMTAB, &table) && !find_table(elf, SHT_DYNSYM, &table))
		return 0;
	for (uint64_t i = 0; !ret && elf_read_symbol(elf, &table, i, &symbol, &name); i++)
		if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
			ret = ARRAY_ADD(
				symbols->symbol, symbols->n,
				(struct elf_symbol){
					.addr = symbol.st_value,
					.size = symbol.st_size,
					.name = name,
					.exported = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL,
				});
	if (ret)
		elf_free(symbols);
	elf_sort(symbols);
	return ret;
}

void elf_free(struct elf_symbols *symbols)
{
	free(symbols->symbol);
	*symbols = (struct elf_symbols){ 0 };
}

/* Index of the first function at or behind addr. */
static size_t find_from(const struct elf_symbols *symbols, uint64_t addr)
{
	return SORTED_FROM(symbols->symbol, symbols->n, addr, addr);
}

const struct elf_symbol *elf_function_from(const struct elf_symbols *symbols, uint64_t addr)
{
	size_t i = find_from(symbols, addr);

	return i < symbols->n ? &symbols->symbol[i] : NULL;
}

const struct elf_symbol *elf_function_at(const struct elf_symbols *symbols, uint64_t addr)
{
	size_t i = find_from(symbols, addr);

	if (i < symbols->n && symbols->symbol[i].addr == addr)
		return &symbols->symbol[i];
	if (!i)
		return NULL;
	/* The first of those that begin at the same place. */
	i = find_from(symbols, symbols->symbol[i - 1].addr);
	return addr - symbols->symbol[i].addr < symbols->symbol[i].size ? &symbols->symbol[i]
									: NULL;
}

/* --- Files ----------------------------------------------------------------------------------- */

int elf_map_fd(struct elf *elf, int fd, enum elf_view view)
{
	struct stat stat;
	void *map;

	if (fstat(fd, &stat) < 0)
		return -errno;
	if (!S_ISREG(stat.st_mode) || stat.st_size <= 0)
		return -ENOEXEC;
	map = mmap(NULL, (size_t)stat.st_size, PROT_READ,
		   view == ELF_PATCHED ? MAP_PRIVATE : MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (elf_open(elf, map, (size_t)stat.st_size))
		return 0;
	munmap(map, (size_t)stat.st_size);
	return -ENOEXEC;
}

int elf_map(struct elf *elf, const char *path, enum elf_view view)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = elf_map_fd(elf, fd, view);
	close(fd);
	return ret;
}

void elf_unmap(const struct elf *elf)
{
	munmap((void *)(uintptr_t)elf->image, elf->size);
}
