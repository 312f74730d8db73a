/* SPDX-License-Identifier: MIT */
/*
 * What leads into the middle of a function, in this program itself: by a table of distances, a
 * table of addresses, a jump from another part; nothing else does.
 */
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "probes/calls/entered.h"

#define FUNCTION(name, code)                                                                       \
	".type " name ", @function\n" name ":\n" code ".size " name ", . - " name "\n"

__asm__(".pushsection .text\n" FUNCTION("by_distance",
					"lea distances(%rip), %rdx\nmovslq (%rdx,%rdi,4), %rax\n"
					"add %rdx, %rax\njmp *%rax\ndistance_1: nop\ndistance_2: "
					"ret\n") FUNCTION("by_address",
							  "lea addresses(%rip), %rdx\njmp "
							  "*(%rdx,%rdi,8)\n"
							  "address_1: nop\naddress_2: ret\n")
		FUNCTION("by_part", "test %edi, %edi\n.byte 0x0f, 0x85\n.long part_entry - . - 4\n"
				    "lea distances_end(%rip), %rax\n"
				    "part_back: ret\n")
			FUNCTION("by_part.cold", "nop\npart_entry: .byte 0xe9\n.long part_back - . "
						 "- 4\n") ".popsection\n"
							  ".pushsection .rodata\n.balign "
							  "4\ndistances: .long distance_1 - "
							  "distances\n"
							  ".long distance_2 - "
							  "distances\ndistances_end: .long "
							  "0x7fffffff\n.popsection\n"
							  ".pushsection .data.rel.ro, "
							  "\"aw\"\n.balign 8\naddresses: .quad "
							  "address_1\n"
							  ".quad address_2\n.popsection\n");
extern const uint8_t by_distance[], by_address[], by_part[];

/* Where distance_1, address_1 and part_back are: to take their addresses would be another way. */
#define DISTANCE_1 16
#define ADDRESS_1  10
#define PART_BACK  15

static uint64_t base;
static struct entered entered;

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
	struct elf_values values;
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
	assert_int_equal(elf_values(&elf, &values), 0);
	assert_int_equal(entered_read(&entered, &elf, &symbols, &values), 0);
	dl_iterate_phdr(take_base, NULL);
	free(values.value);
	elf_free(&symbols);
	munmap(image, (size_t)st.st_size);
	return 0;
}

static int forget(void **state)
{
	(void)state;
	free(entered.place);
	return 0;
}

/* How often it is told of that byte of a function; *other: whether by another one. */
static __attribute__((noinline)) size_t times(const uint8_t *function, size_t offset, bool *other)
{
	uint64_t at = (uintptr_t)function - base + offset;
	size_t first = entered_from(&entered, at), n = 0;

	for (; first + n < entered.n && entered.place[first + n].at == at; n++)
		*other = entered.place[first + n].other;
	return n;
}

static void led_by_tables(void **state)
{
	bool other = true;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(times(by_distance, DISTANCE_1 + i, &other), 1);
		assert_false(other);
		assert_int_equal(times(by_address, ADDRESS_1 + i, &other), 1);
		assert_false(other);
	}
}

static void led_by_parts(void **state)
{
	bool other = false;

	(void)state;
	assert_int_equal(times(by_part, PART_BACK, &other), 1);
	assert_true(other);
}

static void nothing_else(void **state)
{
	bool other;

	(void)state;
	for (size_t i = 0; i < DISTANCE_1; i++)
		assert_int_equal(times(by_distance, i, &other), 0);
	for (size_t i = 0; i < ADDRESS_1; i++)
		assert_int_equal(times(by_address, i, &other), 0);
	for (size_t i = 0; i < PART_BACK; i++)
		assert_int_equal(times(by_part, i, &other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(led_by_tables),
		cmocka_unit_test(led_by_parts),
		cmocka_unit_test(nothing_else),
	};

	return cmocka_run_group_tests(tests, read_self, forget);
}
