/* SPDX-License-Identifier: MIT */
/*
 * Basic blocks of code whose bytes are known: what is a site and what is not. A scanner that takes
 * any bytes for instructions destroys a constant, and is seen to.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <patchcore/patchcore.h>

#include "probes/core/provider.h"
#include "probes/insn/insn.h"

#define CONSTANT UINT64_C(0x332211)
#define IDS	 16
#define MUTANTS	 60
#define BITES	 200

/* clang-format off */
asm(".pushsection .text\n"
    ".p2align 4\n"
    ".type two_blocks, @function\n"
    "two_blocks:\n"
    "	sub $8, %rsp\n"
    "1:	call __sanitizer_cov_trace_pc\n"
    "	dec %edi\n"
    "	jnz 1b\n"
    "	add $8, %rsp\n"
    "	mov $5, %eax\n"
    "	jmp __sanitizer_cov_trace_pc\n"
    ".size two_blocks, . - two_blocks\n"
    ".p2align 4\n"
    ".type constant, @function\n"
    "constant:\n"
    "	.byte 0x48, 0xb8, 0xe8\n"
    "	.reloc ., R_X86_64_PC32, __sanitizer_cov_trace_pc - 4\n"
    "	.long 0\n"
    "	.byte 0x11, 0x22, 0x33\n"
    "	ret\n"
    ".size constant, . - constant\n"
    ".p2align 4\n"
    ".type no_code, @function\n"
    "no_code:\n"
    "	sub $8, %rsp\n"
    "	call __sanitizer_cov_trace_pc\n"
    "	add $8, %rsp\n"
    "	ret\n"
    "	.byte 0x06\n" /* no instruction */
    ".size no_code, . - no_code\n"
    ".popsection\n");
/* clang-format on */

int two_blocks(int rounds);
uint64_t constant(void);
void no_code(void);

static bool takes_all;

uint32_t __real_function_index(const struct function_code *code, uint64_t at);
uint32_t __wrap_function_index(const struct function_code *code, uint64_t at);

uint32_t __wrap_function_index(const struct function_code *code, uint64_t at)
{
	return takes_all ? 0 : __real_function_index(code, at);
}

static int status_of(int (*child)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(child());
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int takes_the_constant(void)
{
	takes_all = true;
	return fi_init() ? 2 : constant() >> 40 == CONSTANT && (constant() & 0xff) != 0xe8;
}

static void test_bytes_inside_of_an_instruction_are_no_site(void **state)
{
	long n;

	(void)state;
	assert_int_equal(status_of(takes_the_constant), 1);
	assert_int_equal(fi_init(), 0);
	n = fi_find("constant+*", NULL, 0);
	assert_int_equal(n, 0);
	assert_int_equal(constant() & 0xff, 0xe8);
	assert_int_equal(constant() >> 40, CONSTANT);
}

static void test_counts(void **state)
{
	uint32_t ids[IDS];
	struct fi_probe probe;

	(void)state;
	assert_int_equal(fi_init(), 0);
	assert_int_equal(fi_find("two_blocks+*", ids, IDS), 2);
	assert_int_equal(fi_get(ids[0], &probe), 0);
	assert_int_equal(probe.kind, FI_BLOCK);
	assert_int_equal(probe.state, FI_OFF);
	assert_int_equal(two_blocks(3), 5);
	assert_int_equal(fi_count(ids[0]), 0);
	for (unsigned round = 1; round <= 3; round++) {
		assert_int_equal(fi_activate_batch(ids, 2, NULL), 0);
		assert_int_equal(two_blocks(10), 5);
		assert_int_equal(fi_deactivate_batch(ids, 2), 0);
		assert_int_equal(two_blocks(7), 5);
		assert_int_equal(fi_count(ids[0]), 10 * round);
		assert_int_equal(fi_count(ids[1]), round);
	}
}

static uint64_t changes(uint32_t id)
{
	struct fi_probe probe;
	struct pc_status status;

	assert_int_equal(fi_get(id, &probe), 0);
	/* Else it would always be one store. */
	assert_true(((uintptr_t)probe.address & 7) + 5 > 8);
	assert_int_equal(pc_get_status(&status), 0);
	return status.changes;
}

/* But for the first time, when the address behind the opcode is another one. */
static void test_across_words_the_opcode_alone_is_changed(void **state)
{
	uint32_t ids[IDS];
	uint64_t before;

	(void)state;
	assert_int_equal(fi_init(), 0);
	assert_int_equal(fi_find("two_blocks+*", ids, IDS), 2);
	assert_int_equal(fi_activate_batch(ids, 2, NULL), 0);
	before = changes(ids[0]);
	assert_true(before > 0);
	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(fi_deactivate_batch(ids, 2), 0);
		assert_int_equal(two_blocks(7), 5);
		assert_int_equal(fi_activate_batch(ids, 2, NULL), 0);
		assert_int_equal(two_blocks(7), 5);
	}
	assert_int_equal(fi_deactivate_batch(ids, 2), 0);
	assert_int_equal(changes(ids[0]), before);
}

/* The call stays, and does nothing. */
static void test_what_is_no_code_is_refused(void **state)
{
	struct fi_probe probe;
	bool found = false;

	(void)state;
	assert_int_equal(fi_init(), 0);
	for (uint32_t id = 0; id < fi_probes() && !found; id++)
		found = !fi_get(id, &probe) && !strncmp(probe.function, "no_code+", 8);
	assert_true(found);
	assert_int_equal(probe.state, FI_REFUSED);
	assert_true(*probe.reason);
	no_code();
}

/* --- Damage ----------------------------------------------------------------------------------- */

static uint64_t random_number(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static void test_any_bytes(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct function_code code;

	(void)state;
	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + page, page, PROT_NONE), 0);
	for (unsigned i = 0; i < 20000; i++) {
		size_t len = 1 + random_number() % 256;

		for (size_t at = page - len; at < page; at++)
			map[at] = random_number() % 4 ? 0x90 : (uint8_t)random_number();
		if (!function_read(&code, map + page - len, 0, len))
			assert_int_equal(code.insn[code.n - 1].at + code.insn[code.n - 1].len, len);
		function_free(&code);
	}
	munmap(map, 2 * page);
}

static int describe(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object *object = data;

	(void)size;
	object->base = info->dlpi_addr;
	for (int i = 0, n = 0; i < info->dlpi_phnum && n < 8; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];

		if (phdr->p_type != PT_LOAD)
			continue;
		object->segment[n].start = object->base + phdr->p_vaddr;
		object->segment[n].end = object->segment[n].start + phdr->p_memsz;
		object->segment[n++].flags = phdr->p_flags;
	}
	return 1;
}

/* Sections, symbols and headers are at the end and at the start; code in memory stays whole. */
static int reads_damaged(void)
{
	static struct object object = { .path = "damaged" };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat stat;
	uint8_t *whole, *copy;

	dl_iterate_phdr(describe, &object);
	if (fi_init() || fd < 0 || fstat(fd, &stat))
		return 2;
	whole = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	copy = malloc((size_t)stat.st_size);
	if (whole == MAP_FAILED || !copy)
		return 2;
	for (unsigned i = 0; i < MUTANTS; i++) {
		Elf64_Ehdr header;
		struct elf elf;

		memcpy(copy, whole, (size_t)stat.st_size);
		memcpy(&header, copy, sizeof(header));
		for (unsigned bite = 0; bite < BITES; bite++) {
			size_t rest = (size_t)stat.st_size - header.e_shoff;
			size_t at = bite % 8 ? random_number() % (size_t)stat.st_size
					     : header.e_shoff + random_number() % rest;

			copy[at] = (uint8_t)random_number();
		}
		if (elf_open(&elf, copy, (size_t)stat.st_size))
			blocks_provider.discover(&object, &elf);
	}
	return 0;
}

static void test_damaged_files(void **state)
{
	(void)state;
	assert_int_equal(status_of(reads_damaged), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_bytes_inside_of_an_instruction_are_no_site),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_across_words_the_opcode_alone_is_changed),
		cmocka_unit_test(test_what_is_no_code_is_refused),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
