/* SPDX-License-Identifier: MIT */
/*
 * With any bytes in a section .eh_frame: the reader stays inside of it, and what it says is
 * sorted. The section ends with the last byte of its memory.
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

#define ADDR 0x4000

static bool believes_all;

bool __real_elf_left(const uint8_t *at, const uint8_t *end, uint64_t len);
bool __wrap_elf_left(const uint8_t *at, const uint8_t *end, uint64_t len);

bool __wrap_elf_left(const uint8_t *at, const uint8_t *end, uint64_t len)
{
	return believes_all || __real_elf_left(at, end, len);
}

/* What stands before it in the file. */
struct head {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char names[32];
};

static void make_head(struct head *head, size_t size)
{
	*head = (struct head){
		.header = { .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_shoff = offsetof(struct head, sections),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 1 },
		.sections = { [1] = { .sh_name = 1,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct head, names),
				      .sh_size = sizeof(head->names) },
			      [2] = { .sh_name = 11,
				      .sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_ALLOC,
				      .sh_addr = ADDR,
				      .sh_offset = sizeof(*head),
				      .sh_size = size } },
		.names = "\0.shstrtab\0.eh_frame",
	};
	memcpy(head->header.e_ident, ELFMAG, SELFMAG);
	head->header.e_ident[EI_CLASS] = ELFCLASS64;
	head->header.e_ident[EI_DATA] = ELFDATA2LSB;
}

static size_t read_frames(const uint8_t *data, size_t size, struct elf_symbols *frames)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), all = sizeof(struct head) + size;
	size_t len = (all + page - 1) / page * page + page;
	uint8_t *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct head head;
	struct elf elf;
	size_t n;

	must(map != MAP_FAILED && !mprotect(map + len - page, page, PROT_NONE));
	make_head(&head, size);
	memcpy(map + len - page - all, &head, sizeof(head));
	if (size)
		memcpy(map + len - page - size, data, size);
	must(elf_open(&elf, map + len - page - all, all));
	must(!elf_frames(&elf, frames));
	for (size_t i = 0; i < frames->n; i++) {
		const struct elf_symbol *one = &frames->symbol[i];

		must(one->size && one->size <= UINT64_MAX - one->addr && !*one->name);
		must(!i || one[-1].addr <= one->addr);
	}
	n = frames->n;
	munmap(map, len);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_symbols frames = { 0 };

	read_frames(data, size, &frames);
	elf_free(&frames);
	return 0;
}

#ifndef TMAX_LIBFUZZER
/* As gcc writes them: a CIE "zR", two functions, one part that begins with a frame; another CIE. */
static const uint8_t sample[] = {
	0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	/* 24: a function at 0x1000 */
	0x10, 0, 0, 0, 0x1c, 0, 0, 0, 0xe0, 0xcf, 0xff, 0xff, 0x20, 0, 0, 0, 0, 0x41, 0x0e, 0x10,
	/* 44: at 0x2000, which begins with a frame */
	0x10, 0, 0, 0, 0x30, 0, 0, 0, 0xcc, 0xdf, 0xff, 0xff, 0x20, 0, 0, 0, 0, 0x0e, 0x10, 0,
	/* 64: "zPLR" */
	0x1c, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'P', 'L', 'R', 0, 1, 0x78, 16, 7, 0x9b, 1, 2, 3, 4, 0x1b,
	0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	/* 96: at 0x800 */
	0x14, 0, 0, 0, 0x24, 0, 0, 0, 0x98, 0xc7, 0xff, 0xff, 0x40, 0, 0, 0, 4, 1, 2, 3, 4, 0x41, 0,
	0,
	/* 120 */
	0, 0, 0, 0
};

static const char *const tokens[] = {
	"\xff\xff\xff\xff", "zPLR", "zR", "\x80\x80\x80\x80", "\x1b", "\xff", NULL
};

static void sample_must_be_read(void)
{
	struct elf_symbols frames = { 0 };

	must(read_frames(sample, sizeof(sample), &frames) == 2);
	must(frames.symbol[0].addr == 0x800 && frames.symbol[0].size == 0x40);
	must(frames.symbol[1].addr == 0x1000 && frames.symbol[1].size == 0x20);
	elf_free(&frames);
}

int main(int argc, char **argv)
{
	const struct fuzz_input inputs[] = { { sample, sizeof(sample) } };
	const struct fuzz_corpus corpus = {
		.inputs = inputs, .count = 1, .tokens = tokens, .breaks = &believes_all
	};

	sample_must_be_read();
	return fuzz_main(argc, argv, &corpus);
}
#endif
