/* SPDX-License-Identifier: MIT */
/*
 * With any bytes in functions and their tables: the survey ends, looks at nothing outside of the
 * file, and what it takes are whole instructions of one function, which it can move. One that
 * believes that a table lies in the file is found out.
 */
#define FUZZ_RUNS 20000

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probes/elf/elf.h"
#include "probes/entries/survey.h"
#include "results/tests/fuzz.h"

#define TABLE	   0x1000
#define TABLE_SIZE 72
#define TEXT	   0x2000
#define FUNCTIONS  2

static bool believes_all;

const uint8_t *__real_elf_constant(const struct elf *elf, uint64_t addr, uint64_t len);
const uint8_t *__wrap_elf_constant(const struct elf *elf, uint64_t addr, uint64_t len);

const uint8_t *__wrap_elf_constant(const struct elf *elf, uint64_t addr, uint64_t len)
{
	return believes_all ? elf->image + addr : __real_elf_constant(elf, addr, len);
}

/* What stands before table and text in the file. */
struct head {
	Elf64_Ehdr header;
	Elf64_Shdr sections[6];
	Elf64_Sym symbols[1 + FUNCTIONS];
	char names[48];
};

static Elf64_Shdr section(unsigned name, unsigned type, uint64_t addr, size_t offset, size_t size)
{
	return (Elf64_Shdr){ .sh_name = name,
			     .sh_type = type,
			     .sh_flags = addr ? SHF_ALLOC : 0,
			     .sh_addr = addr,
			     .sh_offset = offset,
			     .sh_size = size };
}

static void make_head(struct head *head, size_t table, size_t text)
{
	*head = (struct head){
		.header = { .e_type = ET_EXEC,
			    .e_machine = EM_X86_64,
			    .e_shoff = offsetof(struct head, sections),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 6,
			    .e_shstrndx = 1 },
		.names = "\0.shstrtab\0.text\0.rodata\0.symtab\0f\0g",
	};
	head->sections[1] = section(1, SHT_STRTAB, 0, offsetof(struct head, names), 48);
	head->sections[2] = section(11, SHT_PROGBITS, TEXT, sizeof(*head) + table, text);
	head->sections[2].sh_flags |= SHF_EXECINSTR;
	head->sections[3] = section(17, SHT_PROGBITS, TABLE, sizeof(*head), table);
	head->sections[4] =
		section(25, SHT_SYMTAB, 0, offsetof(struct head, symbols), sizeof(head->symbols));
	head->sections[4].sh_link = 1;
	head->sections[4].sh_entsize = sizeof(Elf64_Sym);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		head->symbols[1 + i] = (Elf64_Sym){ .st_name = 33 + 2 * i,
						    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
						    .st_shndx = 2,
						    .st_value = TEXT + i * (text / FUNCTIONS),
						    .st_size = text / FUNCTIONS };
	memcpy(head->header.e_ident, ELFMAG, SELFMAG);
	head->header.e_ident[EI_CLASS] = ELFCLASS64;
	head->header.e_ident[EI_DATA] = ELFDATA2LSB;
}

static void check(const struct survey_site *site, size_t text)
{
	uint8_t moved[SURVEY_ROOM];

	must(site->function >= TEXT && site->end > site->function && site->end <= TEXT + text);
	if (site->reason)
		return;
	must(site->len && site->len <= SURVEY_MOVED && site->starts & 1);
	must(site->site == site->function || site->site == site->function + 4);
	must(site->site + site->len <= site->end);
	must(survey_move(site, site->site, TEXT + 0x100000, moved) <= SURVEY_ROOM);
}

/* The end of the table is the end of the file, or that of the text is. How many are taken. */
static size_t survey_all(const uint8_t *data, size_t size)
{
	size_t table = size < TABLE_SIZE ? size : TABLE_SIZE, text = size - table;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), all = sizeof(struct head) + size;
	size_t len = (all + page - 1) / page * page + page;
	uint8_t *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct survey survey;
	struct head head;
	struct elf elf;
	size_t usable;

	must(map != MAP_FAILED && !mprotect(map + len - page, page, PROT_NONE));
	make_head(&head, table, text);
	memcpy(map + len - page - all, &head, sizeof(head));
	if (size)
		memcpy(map + len - page - size, data, size);
	must(elf_open(&elf, map + len - page - all, all));
	must(!survey_make(&survey, &elf));
	for (size_t i = 0; i < survey.n; i++)
		check(&survey.site[i], text);
	usable = survey.usable;
	survey_free(&survey);
	munmap(map, len);
	return usable;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	survey_all(data, size);
	return 0;
}

#ifndef TMAX_LIBFUZZER
#define FAR(x)	(uint8_t)((x)-TABLE), (uint8_t)(((x)-TABLE) >> 8), 0, 0
#define ADDR(x) (uint8_t)(x), (uint8_t)((x) >> 8), 0, 0, 0, 0, 0, 0

/* Two tables, and as gcc compiles it a switch by each. */
static const uint8_t sample[] = {
	FAR(0x201d), FAR(0x201d), FAR(0x201d), FAR(0x2018), FAR(0x201d), FAR(0x201d), FAR(0x201d),
	FAR(0x2018), FAR(0x201d), FAR(0x201d), ADDR(0x2034), ADDR(0x2026), ADDR(0x2034),
	ADDR(0x2034),
	/* cmp $9, %edi; ja 9f; lea TABLE(%rip), %rdx; mov %edi, %edi; movslq (%rdx,%rdi,4), %rax */
	0x83, 0xff, 0x09, 0x77, 0x18, 0x48, 0x8d, 0x15, 0xf4, 0xef, 0xff, 0xff, 0x89, 0xff, 0x48,
	0x63, 0x04, 0xba,
	/* add %rdx, %rax; notrack jmp *%rax; 7: lea 50(%rdi), %rax; ret; 9: xor %eax, %eax; ret */
	0x48, 0x01, 0xd0, 0x3e, 0xff, 0xe0, 0x48, 0x8d, 0x47, 0x32, 0xc3, 0x31, 0xc0, 0xc3,
	/* cmpb $3, 8(%rdi); jbe 1f; xor %eax, %eax; ret; 1: movzbl 8(%rdi), %ecx */
	0x80, 0x7f, 0x08, 0x03, 0x76, 0x03, 0x31, 0xc0, 0xc3, 0x0f, 0xb6, 0x4f, 0x08,
	/* jmp *TABLE+40(,%rcx,8); 2: lea 1(%rdi), %rax; ret */
	0xff, 0x24, 0xcd, 0x28, 0x10, 0x00, 0x00, 0x48, 0x8d, 0x47, 0x01, 0xc3, 0xc3, 0xc3, 0xc3,
	0xc3, 0xc3, 0xc3, 0xc3
};

static const char *const tokens[] = {
	"\x3e\xff\xe0", "\xff\xe0", "\x48\x63\x04\xba", "\x77\x02", "\x83\xff\x7f", "\xeb\xfe", NULL
};

int main(int argc, char **argv)
{
	const struct fuzz_input inputs[] = { { sample, sizeof(sample) } };
	const struct fuzz_corpus corpus = {
		.inputs = inputs, .count = 1, .tokens = tokens, .breaks = &believes_all
	};

	must(survey_all(sample, sizeof(sample)) == FUNCTIONS);
	return fuzz_main(argc, argv, &corpus);
}
#endif
