/* SPDX-License-Identifier: MIT */
/*
 * What parts lead into the middle of a function, in this program itself; nothing else does.
 */
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "probes/insn/insn.h"

#define FUNCTION(name, code)                                                                       \
	".type " name ", @function\n" name ":\n" code ".size " name ", . - " name "\n"

/* clang-format off */
__asm__(".pushsection .text\n"
	FUNCTION("by_part",
		 "test %edi, %edi\n.byte 0x0f, 0x85\n.long part_entry - . - 4\n"
		 "lea part_back(%rip), %rax\npart_back: ret\n")
	FUNCTION("by_part.cold", "nop\npart_entry: .byte 0xe9\n.long part_back - . - 4\n")
	FUNCTION("open_part",
		 "test %edi, %edi\n.byte 0x0f, 0x85\n.long open_part.cold - . - 4\nret\n")
	FUNCTION("open_part.cold", "jmp *%rax\n")
	FUNCTION("nameless_part", "test %edi, %edi\n.byte 0x0f, 0x85\n.long 1f - . - 4\nret\n")
	"nop\n1: jmp *%rax\n"
	".popsection\n");
/* clang-format on */
extern const uint8_t by_part[], open_part[], nameless_part[];

/* Where part_back, and the jumps to the parts, are: to take their addresses would be another way.
 */
#define PART_BACK 15
#define TO_PART	  2

static uint64_t base;
static struct part_entries parts;

static int take_base(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	base = info->dlpi_addr;
	return 1;
}

static int read_self(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_symbols symbols;
	struct stat st;
	struct elf elf;
	void *image;

	(void)state;
	assert_return_code(fd, 0);
	assert_return_code(fstat(fd, &st), 0);
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(image, MAP_FAILED);
	close(fd);
	assert_true(elf_open(&elf, image, (size_t)st.st_size));
	assert_int_equal(elf_functions(&elf, &symbols), 0);
	assert_int_equal(part_entries_read(&parts, &elf, &symbols), 0);
	dl_iterate_phdr(take_base, NULL);
	elf_free(&symbols);
	munmap(image, (size_t)st.st_size);
	return 0;
}

static int forget(void **state)
{
	(void)state;
	free(parts.entry);
	return 0;
}

/* How often it is told of that byte of a function; *anywhere: that all of it may be led to. */
static __attribute__((noinline)) size_t times(const uint8_t *function, size_t offset,
					      bool *anywhere)
{
	uint64_t at = (uintptr_t)function - base + offset;
	size_t first = part_entries_from(&parts, at), n = 0;

	for (; first + n < parts.n && parts.entry[first + n].at == at; n++)
		*anywhere = parts.entry[first + n].anywhere;
	return n;
}

static void led_by_parts(void **state)
{
	bool anywhere = true;

	(void)state;
	assert_int_equal(times(by_part, PART_BACK, &anywhere), 1);
	assert_false(anywhere);
}

static void led_anywhere(void **state)
{
	bool anywhere = false;

	(void)state;
	assert_true(parts.open);
	assert_int_equal(times(open_part, TO_PART, &anywhere), 1);
	assert_true(anywhere);
	anywhere = false;
	assert_int_equal(times(nameless_part, TO_PART, &anywhere), 1);
	assert_true(anywhere);
}

static void nothing_else(void **state)
{
	bool anywhere;

	(void)state;
	for (size_t i = 0; i < PART_BACK; i++)
		assert_int_equal(times(by_part, i, &anywhere), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(led_by_parts),
		cmocka_unit_test(led_anywhere),
		cmocka_unit_test(nothing_else),
	};

	return cmocka_run_group_tests(tests, read_self, forget);
}
