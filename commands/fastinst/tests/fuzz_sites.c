/* SPDX-License-Identifier: MIT */
/*
 * With any bytes in a program: its sites are found without a look outside of it, and their names
 * and arguments end. A reader that believes all that an ELF file says is found out.
 */
#define FUZZ_RUNS 25000

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "commands/fastinst/sites.h"
#include "results/tests/fuzz.h"

static bool believes_all;

bool __real_elf_inside(const struct elf *elf, uint64_t offset, uint64_t len);
bool __wrap_elf_inside(const struct elf *elf, uint64_t offset, uint64_t len);

bool __wrap_elf_inside(const struct elf *elf, uint64_t offset, uint64_t len)
{
	return believes_all || __real_elf_inside(elf, offset, len);
}

static void check(const struct listed_sites *sites, const uint8_t *image, size_t size)
{
	for (size_t i = 0; i < sites->n; i++) {
		const struct listed_site *site = &sites->site[i];
		const uint8_t *args = (const uint8_t *)site->args;

		must(site->name && site->len && site->kind && site->provider);
		must(strlen(site->name) <= size + 64);
		if (args)
			must(args >= image && args < image + size &&
			     memchr(args, 0, (size_t)(image + size - args)));
	}
}

/* The last byte of the file is the last of its memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = (size + page - 1) / page * page + page;
	uint8_t *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *image = map + len - page - size;
	struct listed_sites sites = { 0 };

	must(map != MAP_FAILED && !mprotect(map + len - page, page, PROT_NONE));
	if (size)
		memcpy(image, data, size);
	if (elf_open(&sites.elf, image, size) && file_sites_find(&sites) == 0)
		check(&sites, image, size);
	file_sites_free(&sites);
	munmap(map, len);
	return 0;
}

#ifndef TMAX_LIBFUZZER
#include <elf.h>

/*
 * A program of one page: calls of hooks by way of the slots, one with an argument in a function of
 * two parts, a marker, a table of NOPs.
 */
static struct {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	uint8_t text[64];
	uint64_t slot[2];
	uint64_t entries[2];
	struct {
		Elf64_Nhdr head;
		char owner[8];
		uint64_t words[3];
		char strings[24];
	} __attribute__((packed)) note;
	char names[96];
	char strings[96];
	Elf64_Sym symbols[6];
	Elf64_Rela relocations[2];
	Elf64_Shdr sections[8];
} sample;

static Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t flags, const void *bytes,
			  size_t len)
{
	uint64_t at = (uint64_t)((const char *)bytes - (const char *)&sample);

	return (Elf64_Shdr){ .sh_name = name,
			     .sh_type = type,
			     .sh_flags = flags,
			     .sh_addr = 0x10000 + at,
			     .sh_offset = at,
			     .sh_size = len };
}

static uint64_t addr(const void *at)
{
	return 0x10000 + (uint64_t)((const char *)at - (const char *)&sample);
}

/* Where an instruction ends, in its last four bytes, how far it is from there to an address. */
static void put_distance(size_t end, uint64_t to)
{
	int32_t distance = (int32_t)(to - addr(sample.text + end));

	memcpy(sample.text + end - sizeof(distance), &distance, sizeof(distance));
}

static Elf64_Sym function_of(uint32_t name, size_t from, size_t to)
{
	return (Elf64_Sym){ .st_name = name,
			    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			    .st_shndx = 1,
			    .st_value = addr(sample.text + from),
			    .st_size = to - from };
}

static Elf64_Sym undefined(uint32_t name)
{
	return (Elf64_Sym){ .st_name = name, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE) };
}

#define OUTER	   18
#define OUTER_COLD 36
#define TEXT_END   41

static void make_sample(void)
{
	static const char names[] = "\0.text\0.shstrtab\0.dynsym\0.rela\0.note.stapsdt\0"
				    "__patchable_function_entries";
	static const char strings[] = "\0__sanitizer_cov_trace_pc\0work\0"
				      "__cyg_profile_func_enter\0outer\0outer.cold";
	static const uint8_t text[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00,	    /* the entry */
					0xff, 0x15, 0, 0, 0, 0,		    /* the hook */
					0x90, 0x0f, 0x1f, 0x44, 0x00, 0x08, /* the marker */
					0xc3,
					/* outer: what is given, the hook, to the other part */
					0xbf, 0, 0, 0, 0, 0xff, 0x15, 0, 0, 0, 0, 0x0f, 0x85, 0, 0,
					0, 0, 0xc3,
					/* and back */
					0xe9, 0, 0, 0, 0 };
	uint32_t given = (uint32_t)addr(sample.text);

	sample.header = (Elf64_Ehdr){ .e_type = ET_EXEC,
				      .e_machine = EM_X86_64,
				      .e_phoff = offsetof(__typeof__(sample), segment),
				      .e_phentsize = sizeof(Elf64_Phdr),
				      .e_phnum = 1,
				      .e_shoff = offsetof(__typeof__(sample), sections),
				      .e_shentsize = sizeof(Elf64_Shdr),
				      .e_shnum = 8,
				      .e_shstrndx = 2 };
	memcpy(sample.header.e_ident, ELFMAG, SELFMAG);
	sample.header.e_ident[EI_CLASS] = ELFCLASS64;
	sample.header.e_ident[EI_DATA] = ELFDATA2LSB;
	sample.segment = (Elf64_Phdr){ .p_type = PT_LOAD,
				       .p_flags = PF_R | PF_X,
				       .p_vaddr = 0x10000,
				       .p_filesz = sizeof(sample),
				       .p_memsz = sizeof(sample) };
	memcpy(sample.text, text, sizeof(text));
	memcpy(sample.text + OUTER + 1, &given, sizeof(given));
	put_distance(11, addr(&sample.slot[0]));
	put_distance(OUTER + 11, addr(&sample.slot[1]));
	put_distance(OUTER + 17, addr(sample.text + OUTER_COLD));
	put_distance(TEXT_END, addr(sample.text + OUTER + 11));
	sample.entries[0] = addr(sample.text);
	sample.note.head = (Elf64_Nhdr){ 8, sizeof(sample.note) - sizeof(Elf64_Nhdr) - 8, 3 };
	memcpy(sample.note.owner, "stapsdt", 8);
	sample.note.words[0] = addr(sample.text) + 11;
	memcpy(sample.note.strings, "shop\0sold\0-4@%edi", 18);
	memcpy(sample.names, names, sizeof(names));
	memcpy(sample.strings, strings, sizeof(strings));
	sample.symbols[1] = undefined(1);
	sample.symbols[2] = function_of(26, 0, OUTER);
	sample.symbols[3] = undefined(31);
	sample.symbols[4] = function_of(56, OUTER, OUTER_COLD);
	sample.symbols[5] = function_of(62, OUTER_COLD, TEXT_END);
	for (uint32_t i = 0; i < 2; i++)
		sample.relocations[i] =
			(Elf64_Rela){ .r_offset = addr(&sample.slot[i]),
				      .r_info = ELF64_R_INFO(1 + 2 * i, R_X86_64_GLOB_DAT) };
	sample.sections[1] = section(1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, sample.text,
				     sizeof(sample.text));
	sample.sections[2] = section(7, SHT_STRTAB, 0, sample.names, sizeof(sample.names));
	sample.sections[3] =
		section(17, SHT_DYNSYM, SHF_ALLOC, sample.symbols, sizeof(sample.symbols));
	sample.sections[3].sh_link = 5;
	sample.sections[4] =
		section(25, SHT_RELA, SHF_ALLOC, sample.relocations, sizeof(sample.relocations));
	sample.sections[4].sh_link = 3;
	sample.sections[5] = section(0, SHT_STRTAB, 0, sample.strings, sizeof(sample.strings));
	sample.sections[6] = section(31, SHT_NOTE, SHF_ALLOC, &sample.note, sizeof(sample.note));
	sample.sections[7] = section(45, SHT_PROGBITS, SHF_ALLOC, sample.entries, 8);
}

/* Read as what it is, or the mutants of it are worth nothing. */
static void sample_must_be_read(void)
{
	struct listed_sites sites = { 0 };

	must(elf_open(&sites.elf, &sample, sizeof(sample)) && !file_sites_find(&sites));
	must(sites.n == 4);
	must(!strcmp(sites.site[0].kind, "block") && !strcmp(sites.site[0].name, "work+0x5") &&
	     sites.site[0].len == 6);
	/* Without a decoder nothing is told, and the reason is. */
	must(!strcmp(sites.site[1].provider, "cyg") &&
	     !strcmp(sites.site[1].name, sites.site[1].reason ? "outer" : "work"));
	must(!strcmp(sites.site[2].name, "shop.sold") && !strcmp(sites.site[2].args, "-4@%edi") &&
	     !sites.site[2].reason);
	must(!strcmp(sites.site[3].kind, "entry") && !strcmp(sites.site[3].name, "work") &&
	     !sites.site[3].reason);
	file_sites_free(&sites);
}

int main(int argc, char **argv)
{
	static const char *const tokens[] = { "\xff\xff\xff\xff\xff\xff\xff\x7f",
					      "\xff\xff\xff\xff",
					      "\xe8",
					      "\xff\x25",
					      "\x67\xe8",
					      NULL };
	const struct fuzz_input inputs[] = { { (const void *)&sample, sizeof(sample) } };
	const struct fuzz_corpus corpus = {
		.inputs = inputs, .count = 1, .tokens = tokens, .breaks = &believes_all
	};

	make_sample();
	sample_must_be_read();
	return fuzz_main(argc, argv, &corpus);
}
#endif
