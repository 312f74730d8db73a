/* SPDX-License-Identifier: MIT */
/*
 * The file of a program may be damaged in any way: its notes, their operands, the symbols that they
 * name, and the entries of static branches are read without reading a byte outside of it, and their
 * strings end inside it.
 */
#define FUZZ_RUNS 250000

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probes/providers/branch.h"
#include "probes/providers/marker.h"
#include "results/tests/fuzz.h"

struct whole {
	const uint8_t *data;
	size_t size;
	struct elf elf;
};

static void must_end(const struct whole *whole, const char *text)
{
	size_t at = (size_t)((const uint8_t *)text - whole->data);

	must((const uint8_t *)text >= whole->data && at < whole->size);
	must(memchr(text, 0, whole->size - at) != NULL);
}

static bool find(const void *object, const char *name, size_t len, uint64_t *address)
{
	const struct whole *whole = object;

	return notes_symbol(&whole->elf, name, len, address);
}

static int on_note(const struct note *note, void *data)
{
	const struct whole *whole = data;
	const struct operand_symbols symbols = { .find = find, .object = whole };
	struct operand operands[OPERANDS_MAX];
	unsigned count;

	must_end(whole, note->provider);
	must_end(whole, note->name);
	must_end(whole, note->operands);
	count = operands_parse(note->operands, &symbols, operands);
	must(count <= OPERANDS_MAX);
	for (unsigned i = 0; i < count; i++) {
		const struct operand *o = &operands[i];

		must((o->form == OPERAND_REFUSED) == (o->reason != NULL));
		must(o->base <= OPERAND_NONE && o->index <= OPERAND_NONE);
		must(o->reason || o->size == 1 || o->size == 2 || o->size == 4 || o->size == 8);
	}
	return 0;
}

static int on_entry(const struct branch_entry *entry, void *data)
{
	must_end(data, entry->name);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct whole whole = { .data = data, .size = size };

	if (!elf_open(&whole.elf, data, size))
		return 0;
	must(notes_read(&whole.elf, on_note, &whole) == 0);
	must(entries_read(&whole.elf, "fi_branch_sites", on_entry, &whole) == 0);
	return 0;
}

#ifndef TMAX_LIBFUZZER
enum {
	NONE,
	NAMES,
	BASE,
	NOTES,
	SITES,
	SYMBOLS,
	STRINGS,
	SECTIONS
};

/* A file with one of each section that is read. */
struct sample {
	Elf64_Ehdr head;
	Elf64_Shdr section[SECTIONS];
	char names[96];
	struct __attribute__((packed)) {
		Elf64_Nhdr head;
		char name[8];
		uint64_t words[3];
		char strings[64];
	} note[2];
	struct {
		uint32_t length;
		int32_t site, other;
		uint32_t usual;
		char name[16];
	} site[2];
	Elf64_Sym symbol[3];
	char strings[16];
};

static const char section_names[] =
	"\0.shstrtab\0.stapsdt.base\0.note.stapsdt\0fi_branch_sites\0.symtab\0.strtab";

static void place(struct sample *s, unsigned number, uint32_t type, const char *name,
		  const void *from, size_t size)
{
	const char *at = memmem(section_names, sizeof(section_names), name, strlen(name) + 1);

	s->section[number] = (Elf64_Shdr){
		.sh_name = (Elf64_Word)(at - section_names),
		.sh_type = type,
		.sh_flags = SHF_ALLOC,
		.sh_addr = 0x1000 * number,
		.sh_offset = (Elf64_Off)((const char *)from - (const char *)s),
		.sh_size = size,
		.sh_link = STRINGS,
	};
}

static void make_notes(struct sample *s)
{
	static const char strings[2][64] = {
		"shop\0sold\0-4@%edi 8@-16(%rbp,%rcx,8) 2@memory+4(%rip)",
		"shop\0none\0",
	};

	for (int i = 0; i < 2; i++) {
		s->note[i].head = (Elf64_Nhdr){ 8, 24 + 64, 3 };
		memcpy(s->note[i].name, "stapsdt", 8);
		s->note[i].words[0] = 0x1234;
		s->note[i].words[1] = 0x2000;
		s->note[i].words[2] = i ? 0x4000 : 0;
		memcpy(s->note[i].strings, strings[i], sizeof(strings[i]));
		s->site[i].length = sizeof(s->site[i]);
		s->site[i].site = -0x100;
		s->site[i].other = 0x7f;
		s->site[i].usual = (uint32_t)i;
		memcpy(s->site[i].name, "net.trace", 10);
	}
}

static struct sample make_sample(void)
{
	struct sample s = { .head = { .e_machine = EM_X86_64,
				      .e_shoff = offsetof(struct sample, section),
				      .e_shentsize = sizeof(Elf64_Shdr),
				      .e_shnum = SECTIONS,
				      .e_shstrndx = NAMES } };

	memcpy(s.head.e_ident, ELFMAG "\2\1\1", 7);
	memcpy(s.names, section_names, sizeof(section_names));
	memcpy(s.strings, "\0memory\0other", 14);
	make_notes(&s);
	s.symbol[1] = (Elf64_Sym){ .st_name = 1, .st_shndx = 1, .st_value = 0x5000 };
	s.symbol[2] = (Elf64_Sym){ .st_name = 8, .st_shndx = 1, .st_value = 0x6000 };
	place(&s, NAMES, SHT_STRTAB, ".shstrtab", s.names, sizeof(s.names));
	place(&s, BASE, SHT_PROGBITS, ".stapsdt.base", s.names, 1);
	place(&s, NOTES, SHT_NOTE, ".note.stapsdt", s.note, sizeof(s.note));
	place(&s, SITES, SHT_PROGBITS, "fi_branch_sites", s.site, sizeof(s.site));
	place(&s, SYMBOLS, SHT_SYMTAB, ".symtab", s.symbol, sizeof(s.symbol));
	place(&s, STRINGS, SHT_STRTAB, ".strtab", s.strings, sizeof(s.strings));
	return s;
}

static unsigned told;

static int count(const struct note *note, void *data)
{
	struct operand operands[OPERANDS_MAX];
	const struct operand_symbols symbols = { .find = find, .object = data };

	if (operands_parse(note->operands, &symbols, operands) == 3)
		told += !operands[0].reason + !operands[1].reason + !operands[2].reason;
	return 0;
}

static int count_entry(const struct branch_entry *entry, void *data)
{
	(void)data;
	told += strcmp(entry->name, "net.trace") == 0;
	return 0;
}

/* A corpus of which nothing is understood would fuzz nothing. */
static void check_sample(const struct sample *s)
{
	struct whole whole = { .data = (const uint8_t *)s, .size = sizeof(*s) };

	must(elf_open(&whole.elf, s, sizeof(*s)));
	must(notes_read(&whole.elf, count, &whole) == 0);
	must(entries_read(&whole.elf, "fi_branch_sites", count_entry, &whole) == 0);
	must(told == 5);
}

static const char *const tokens[] = {
	"%rax", "%r15d", "(%rip)", "memory", "@",  "-8@", "$0x",  "(", ")",	  ",",
	" ",	"8f@",	 "+",	   "-",	     "\1", "\2",  "\xff", "4", "stapsdt", NULL,
};

int main(int argc, char **argv)
{
	struct sample sample = make_sample();
	const struct fuzz_input input = { &sample, sizeof(sample) };
	const struct fuzz_corpus corpus = { .inputs = &input, .count = 1, .tokens = tokens };

	check_sample(&sample);
	return fuzz_main(argc, argv, &corpus);
}
#endif
