/* SPDX-License-Identifier: MIT */
/*
 * With any bytes in an ELF file: the reader stays inside of them, and what it says of them is in
 * order. A copy that ends with the last byte of its memory lets the sanitizer, or an unmapped page,
 * see it.
 */
#define FUZZ_RUNS 50000

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probes/elf/elf.h"
#include "results/tests/fuzz.h"

static bool believes_all;

bool __real_elf_inside(const struct elf *elf, uint64_t offset, uint64_t len);
bool __wrap_elf_inside(const struct elf *elf, uint64_t offset, uint64_t len);

bool __wrap_elf_inside(const struct elf *elf, uint64_t offset, uint64_t len)
{
	return believes_all || __real_elf_inside(elf, offset, len);
}

static const uint8_t *image;
static size_t image_size;

static void must_be_inside(const void *at, size_t len)
{
	const uint8_t *bytes = at;

	must(bytes >= image && len <= image_size && (size_t)(bytes - image) <= image_size - len);
}

static void must_be_text(const char *text)
{
	if (*text)
		must_be_inside(text, strlen(text) + 1);
}

static void check_sections(const struct elf *elf)
{
	struct elf_section section;
	unsigned sum = 0;

	for (uint32_t i = 0; i < elf->number && i < 1000; i++) {
		if (!elf_section(elf, i, &section))
			continue;
		must_be_text(section.name);
		if (section.bytes)
			must_be_inside(section.bytes, section.len);
		if (section.bytes && section.len)
			sum += section.bytes[0] + section.bytes[section.len - 1];
	}
	must(sum != UINT32_MAX);
	must(!elf_section(elf, elf->number, &section));
}

static void check_functions(const struct elf *elf)
{
	struct elf_symbols symbols;

	if (elf_functions(elf, &symbols) < 0)
		return;
	for (size_t i = 0; i < symbols.n; i++) {
		const struct elf_symbol *symbol = &symbols.symbol[i];
		const struct elf_symbol *found = elf_function_at(&symbols, symbol->addr);

		must_be_text(symbol->name);
		must(!i || symbols.symbol[i - 1].addr <= symbol->addr);
		must(found && found->addr == symbol->addr && found->size >= symbol->size);
		found = elf_function_from(&symbols, symbol->addr);
		must(found && found->addr == symbol->addr);
	}
	elf_free(&symbols);
}

static void check_slot(const char *name, uint64_t slot, void *data)
{
	(void)slot;
	(void)data;
	must_be_text(name);
}

static void check_values(const struct elf *elf)
{
	struct elf_values values;
	uint64_t before = 0;

	must(elf_values(elf, &values) == 0);
	for (size_t i = 0; i < values.n; i++) {
		const struct elf_value *value = &values.value[i];
		const struct elf_value *found = elf_value_at(&values, value->at);

		must_be_text(value->name);
		must(before <= value->at && found && found->at == value->at);
		before = value->at;
	}
	free(values.value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = (size + page - 1) / page * page + page;
	uint8_t *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct elf elf;

	must(map != MAP_FAILED && !mprotect(map + len - page, page, PROT_NONE));
	image = map + len - page - size;
	image_size = size;
	if (size)
		memcpy(map + len - page - size, data, size);
	if (elf_open(&elf, image, size)) {
		check_sections(&elf);
		check_functions(&elf);
		check_values(&elf);
		elf_slots(&elf, check_slot, NULL);
	}
	munmap(map, len);
	return 0;
}

#ifndef TMAX_LIBFUZZER
enum {
	NULL_SECTION,
	TEXT,
	NAMES,
	SYMBOLS,
	STRINGS,
	ENTRIES,
	DYNAMIC,
	RELOCATIONS,
	SECTIONS
};

/* A whole file: three functions, their names, a table of entries. */
static struct {
	Elf64_Ehdr header;
	uint8_t text[64];
	char names[64];
	Elf64_Sym symbols[4];
	char strings[32];
	uint64_t entries[3];
	Elf64_Rela relocations[2];
	Elf64_Shdr sections[SECTIONS];
} sample;

static Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t flags, const void *bytes,
			  size_t len)
{
	return (Elf64_Shdr){ .sh_name = name,
			     .sh_type = type,
			     .sh_flags = flags,
			     .sh_addr = 0x1000,
			     .sh_offset = (uint64_t)((const char *)bytes - (const char *)&sample),
			     .sh_size = len };
}

static void make_sample(void)
{
	static const char names[] = "\0.text\0.shstrtab\0.symtab\0__patchable_function_entries";

	sample.header =
		(Elf64_Ehdr){ .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_shoff = (uint64_t)((char *)sample.sections - (char *)&sample),
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = SECTIONS,
			      .e_shstrndx = NAMES };
	memcpy(sample.header.e_ident, ELFMAG, SELFMAG);
	sample.header.e_ident[EI_CLASS] = ELFCLASS64;
	sample.header.e_ident[EI_DATA] = ELFDATA2LSB;
	memset(sample.text, 0x90, sizeof(sample.text));
	memcpy(sample.names, names, sizeof(names));
	memcpy(sample.strings, "\0one\0two\0three", 15);
	for (unsigned i = 1; i < 4; i++)
		sample.symbols[i] = (Elf64_Sym){ .st_name = 4 * i - 3,
						 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
						 .st_shndx = TEXT,
						 .st_value = 0x1000 + 16 * (4 - i),
						 .st_size = 16 };
	for (unsigned i = 0; i < 3; i++)
		sample.entries[i] = 0x1000 + 16 * i;
	sample.sections[TEXT] = section(1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, sample.text,
					sizeof(sample.text));
	sample.sections[NAMES] = section(7, SHT_STRTAB, 0, sample.names, sizeof(sample.names));
	sample.sections[SYMBOLS] =
		section(17, SHT_SYMTAB, 0, sample.symbols, sizeof(sample.symbols));
	sample.sections[SYMBOLS].sh_link = STRINGS;
	sample.sections[STRINGS] =
		section(7, SHT_STRTAB, 0, sample.strings, sizeof(sample.strings));
	sample.sections[ENTRIES] =
		section(25, SHT_PROGBITS, SHF_ALLOC, sample.entries, sizeof(sample.entries));
	sample.relocations[0] =
		(Elf64_Rela){ .r_offset = 0x2000, .r_info = ELF64_R_INFO(2, R_X86_64_JUMP_SLOT) };
	sample.relocations[1] =
		(Elf64_Rela){ .r_offset = 0x2008, .r_info = ELF64_R_INFO(3, R_X86_64_GLOB_DAT) };
	sample.sections[DYNAMIC] =
		section(17, SHT_DYNSYM, SHF_ALLOC, sample.symbols, sizeof(sample.symbols));
	sample.sections[DYNAMIC].sh_link = STRINGS;
	sample.sections[RELOCATIONS] =
		section(17, SHT_RELA, SHF_ALLOC, sample.relocations, sizeof(sample.relocations));
	sample.sections[RELOCATIONS].sh_link = DYNAMIC;
}

static const char *const tokens[] = { "\xff\xff\xff\xff\xff\xff\xff\x7f",
				      "\xff\xff\xff\xff",
				      "\x7f"
				      "ELF",
				      "\x02",
				      "\x08",
				      NULL };

/* A bit for each of the two. */
static void note_slot(const char *name, uint64_t slot, void *data)
{
	unsigned *seen = data, bit = strcmp(name, "two") ? 2 : 1;

	must(slot == (bit == 1 ? 0x2000 : 0x2008) && (bit == 1 || !strcmp(name, "three")));
	must(!(*seen & bit));
	*seen |= bit;
}

/* The sample is read as what it is, or the mutants of it are worth nothing. */
static void sample_must_be_read(void)
{
	struct elf elf;
	struct elf_section entries;
	struct elf_symbols symbols;
	const struct elf_symbol *found;
	struct elf_values values;
	unsigned seen = 0;

	must(elf_open(&elf, &sample, sizeof(sample)) && elf.number == SECTIONS);
	must(elf_section(&elf, ENTRIES, &entries) && entries.len == 24);
	must(!strcmp(entries.name, "__patchable_function_entries"));
	must(!elf_functions(&elf, &symbols) && symbols.n == 3);
	found = elf_function_at(&symbols, 0x1000 + 16 * 3 + 15);
	must(found && !strcmp(found->name, "one"));
	must(!elf_function_at(&symbols, 0x1000 + 16 * 4) && !elf_function_at(&symbols, 0));
	must(elf_function_from(&symbols, 0)->addr == 0x1010);
	elf_slots(&elf, note_slot, &seen);
	must(seen == 3);
	must(!elf_values(&elf, &values) && values.n == 1 && !elf_value_at(&values, 0x2000));
	must(elf_value_at(&values, 0x2008) && elf_value_at(&values, 0x2008)->value == 0x1010);
	free(values.value);
	elf_free(&symbols);
}

int main(int argc, char **argv)
{
	const struct fuzz_input inputs[] = { { (const void *)&sample, sizeof(sample) } };
	const struct fuzz_corpus corpus = {
		.inputs = inputs, .count = 1, .tokens = tokens, .breaks = &believes_all
	};

	make_sample();
	sample_must_be_read();
	return fuzz_main(argc, argv, &corpus);
}
#endif
