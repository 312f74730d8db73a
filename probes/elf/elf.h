/* SPDX-License-Identifier: MIT */
/*
 * Reading a 64-bit ELF file that is in memory, of which nothing is believed: a damaged one has
 * fewer sections and symbols, and no byte outside of the image is read.
 */
#ifndef PROBES_ELF_ELF_H
#define PROBES_ELF_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf {
	const uint8_t *image;
	size_t size;
	uint64_t sections; /* offset of their table */
	uint32_t number;
	uint32_t names; /* index of the section with their names */
	uint16_t type;	/* ET_EXEC and so on */
};

struct elf_section {
	const char *name;
	uint32_t type;
	uint32_t link;
	uint64_t flags;
	uint64_t addr;
	uint64_t len;
	const uint8_t *bytes; /* of the file; NULL: it has none there */
};

/* A function, or a relocation: both are sorted by addr. */
struct elf_symbol {
	uint64_t addr;
	uint64_t size;
	const char *name; /* in the image */
	bool exported;	  /* a function: code of another object may call it by its name */
};

struct elf_symbols {
	struct elf_symbol *symbol;
	size_t n;
};

/* elf_open - false: no ELF file of this machine. */
bool elf_open(struct elf *elf, const void *image, size_t size);

/* As the file is, or with uprobes' breakpoints, which the kernel puts into private mappings. */
enum elf_view {
	ELF_PLAIN,
	ELF_PATCHED
};

/* elf_map, elf_map_fd - a file, until elf_unmap(). -ENOEXEC: it is none; or as open(2), mmap(2). */
int elf_map(struct elf *elf, const char *path, enum elf_view view);
int elf_map_fd(struct elf *elf, int fd, enum elf_view view);
void elf_unmap(const struct elf *elf);

/* elf_inside - whether the file has these bytes: asked before any of them is read. */
bool elf_inside(const struct elf *elf, uint64_t offset, uint64_t len);

/* elf_left - whether a section that ends at end has them from at on. */
bool elf_left(const uint8_t *at, const uint8_t *end, uint64_t len);

/* elf_segments - the program headers: how many. 0 of a damaged file, or one with more than a linker
 * makes. */
#define ELF_SEGMENTS_MAX 64
size_t elf_segments(const struct elf *elf, Elf64_Phdr segments[ELF_SEGMENTS_MAX]);

/* elf_section - the one of that index; false: there is none, or it lies outside of the file. */
bool elf_section(const struct elf *elf, uint32_t index, struct elf_section *section);

/* elf_next_section - the next one that the file has, from *index on. False: there is none. */
bool elf_next_section(const struct elf *elf, uint32_t *index, struct elf_section *section);

/* elf_find_section - the first of that name with bytes. elf_section_at - the one that is loaded
 * there. */
bool elf_find_section(const struct elf *elf, const char *name, struct elf_section *section);
bool elf_section_at(const struct elf *elf, uint64_t addr, struct elf_section *section);

/* elf_in_section - whether an address lies in a section whose name begins so. */
bool elf_in_section(const struct elf *elf, uint64_t addr, const char *prefix);

/* elf_constant - the bytes that are loaded to an address, if they are not writable; else NULL. */
const uint8_t *elf_constant(const struct elf *elf, uint64_t addr, uint64_t len);

/* elf_read_symbol - an entry of a table of symbols, and its name, "" for none. False: it has no
 * such. */
bool elf_read_symbol(const struct elf *elf, const struct elf_section *table, uint64_t index,
		     Elf64_Sym *symbol, const char **name);

/* elf_functions - from .symtab, or if that was stripped, .dynsym. -ENOMEM. elf_free() them. */
int elf_functions(const struct elf *elf, struct elf_symbols *symbols);

/*
 * elf_frames - add functions without names, from .eh_frame: a range counts if its frame begins as
 * that of a function does. -ENOMEM.
 */
int elf_frames(const struct elf *elf, struct elf_symbols *symbols);

/* elf_sort - by address; of one the longest first, and those with names before others. */
void elf_sort(struct elf_symbols *symbols);
void elf_free(struct elf_symbols *symbols);

/* elf_function_at - the function that has addr; elf_function_from - the first at or behind it. */
const struct elf_symbol *elf_function_at(const struct elf_symbols *symbols, uint64_t addr);
const struct elf_symbol *elf_function_from(const struct elf_symbols *symbols, uint64_t addr);

/* elf_slots - all slots where the loader puts the address of a symbol, with its name or "". */
void elf_slots(const struct elf *elf, void (*found)(const char *name, uint64_t slot, void *data),
	       void *data);

/* Relocated words, sorted by their addresses. */
struct elf_values {
	struct elf_value {
		uint64_t at;
		uint64_t value;	  /* in this file */
		const char *name; /* of a symbol of another file, in the image; else "" */
	} * value;		  /* free() it, also after an error */
	size_t n;
};

/* elf_values - all of them; a symbol has its value in this file, though another may define it.
 * -ENOMEM. */
int elf_values(const struct elf *elf, struct elf_values *values);

/* elf_value_at - NULL: there is none at that place. */
const struct elf_value *elf_value_at(const struct elf_values *values, uint64_t at);

#endif
