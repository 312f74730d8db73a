/* SPDX-License-Identifier: MIT */
/* What parts lead into the middle of a function, in this program itself; nothing else does. */
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

/* Behind padding, as bytes without a symbol are taken for short branches. */
/* clang-format off */
__asm__(".pushsection .text\n.skip 256, 0xcc\n"
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

/* Where part_back is: to take its address would be another way. */
#define PART_BACK 15

static uint64_t base;
static struct branches branches;
static struct elf_symbols symbols;

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
	assert_int_equal(branches_read(&branches, &elf, &symbols), 0);
	dl_iterate_phdr(take_base, NULL);
	return 0;
}

static int forget(void **state)
{
	(void)state;
	branches_free(&branches);
	elf_free(&symbols);
	return 0;
}

static __attribute__((noinline)) uint64_t find_address(const uint8_t *function)
{
	return (uintptr_t)function - base;
}

/* How often other code leads to that byte of a function. */
static size_t count_entries(const uint8_t *function, size_t offset)
{
	uint64_t at = find_address(function) + offset;
	uint32_t index = branches_function(&branches, at);
	size_t n = 0;

	assert_int_not_equal(index, INSN_NONE);
	for (size_t i = branches_to(&branches, at);
	     i < branches.sorted && branches.branch[i].to == at; i++)
		n += branches.branch[i].from != index;
	assert_int_equal(branches_enter(&branches, index, at), n || !offset);
	return n;
}

static bool is_open(const uint8_t *function)
{
	return branches.function[branches_function(&branches, find_address(function))].is_open;
}

static void led_by_parts(void **state)
{
	(void)state;
	assert_int_equal(count_entries(by_part, PART_BACK), 1);
	assert_false(is_open(by_part));
}

static void led_anywhere(void **state)
{
	(void)state;
	assert_true(branches.has_open_part);
	assert_true(is_open(open_part));
	assert_true(is_open(nameless_part));
}

static void nothing_else(void **state)
{
	(void)state;
	for (size_t i = 0; i < PART_BACK; i++)
		assert_int_equal(count_entries(by_part, i), 0);
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
