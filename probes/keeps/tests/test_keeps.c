/* SPDX-License-Identifier: MIT */
/*
 * A function is said to keep the vectors only if none of its paths changes one, and nothing in it
 * can become something else. A reader that stops at the first RET is noticed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "probes/keeps/keeps.h"

#define PAGE 4096u

static const struct {
	const char *what;
	bool keeps;
	uint8_t code[24]; /* the rest is INT3 */
} functions[] = {
	{ "ret", true, { 0xc3 } },
	{ "endbr64; ret", true, { 0xf3, 0x0f, 0x1e, 0xfa, 0xc3 } },
	{ "lock incq (%rcx); ret", true, { 0xf0, 0x48, 0xff, 0x01, 0xc3 } },
	{ "five 1-byte NOPs", true, { 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 } },
	{ "rdtsc; mov %fs:0, %rax; ret",
	  true,
	  { 0x0f, 0x31, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0xc3 } },
	{ "a loop", true, { 0xff, 0xcf, 0x75, 0xfc, 0xc3 } },
	{ "jz over ret; ret", true, { 0x74, 0x01, 0xc3, 0xff, 0xc0, 0xc3 } },
	{ "rep stosq", true, { 0xf3, 0x48, 0xab, 0xc3 } },
	{ "push, pop", true, { 0x53, 0x5b, 0xc3 } },
	{ "pxor %xmm7, %xmm7", false, { 0x66, 0x0f, 0xef, 0xff, 0xc3 } },
	{ "behind a branch", false, { 0x74, 0x01, 0xc3, 0x66, 0x0f, 0xef, 0xff, 0xc3 } },
	{ "vzeroupper", false, { 0xc5, 0xf8, 0x77, 0xc3 } },
	{ "vaddps %ymm0, %ymm0, %ymm0", false, { 0xc5, 0xfc, 0x58, 0xc0, 0xc3 } },
	{ "kmovw %eax, %k1", false, { 0xc5, 0xf8, 0x92, 0xc8, 0xc3 } },
	{ "movd %eax, %mm0", false, { 0x0f, 0x6e, 0xc0, 0xc3 } },
	{ "fld1", false, { 0xd9, 0xe8, 0xc3 } },
	{ "emms", false, { 0x0f, 0x77, 0xc3 } },
	{ "fninit", false, { 0xdb, 0xe3, 0xc3 } },
	{ "ldmxcsr (%rdi)", false, { 0x0f, 0xae, 0x17, 0xc3 } },
	{ "fxrstor (%rdi)", false, { 0x0f, 0xae, 0x0f, 0xc3 } },
	{ "xrstor (%rdi)", false, { 0x0f, 0xae, 0x2f, 0xc3 } },
	{ "xrstors (%rdi)", false, { 0x0f, 0xc7, 0x1f, 0xc3 } },
	{ "call", false, { 0xe8, 0, 0, 0, 0, 0xc3 } },
	{ "call *%rax", false, { 0xff, 0xd0, 0xc3 } },
	{ "jmp *%rax", false, { 0xff, 0xe0 } },
	{ "a jump that may become a NOP", false, { 0xe9, 0x01, 0, 0, 0, 0xc3, 0xc3 } },
	{ "a NOP that may become a jump", false, { 0x0f, 0x1f, 0x44, 0, 0, 0xc3 } },
	{ "a call that is off", false, { 0xeb, 0x03, 0, 0, 0, 0xc3 } },
	{ "out of the window", false, { 0xeb, 0x7e } },
	{ "before the function", false, { 0xeb, 0xf0 } },
	{ "no instruction", false, { 0x06 } },
	{ "int3", false, { 0xcc } },
	{ "syscall", false, { 0x0f, 0x05, 0xc3 } },
	{ "iretq", false, { 0x48, 0xcf } },
};

#define FUNCTIONS (sizeof(functions) / sizeof(*functions))

static uint8_t *page;

static uint8_t *place(size_t i, size_t at)
{
	memset(page, 0xcc, PAGE);
	memcpy(page + at, functions[i].code, sizeof(functions[i].code));
	return page + at;
}

/* The first that is judged wrongly, FUNCTIONS: none. */
static size_t first_wrong(bool (*judge)(uintptr_t function))
{
	for (size_t i = 0; i < FUNCTIONS; i++)
		if (judge((uintptr_t)place(i, 256)) != functions[i].keeps)
			return i;
	return FUNCTIONS;
}

/* Hides what is behind the first RET from it. */
static bool judge_first_path(uintptr_t function)
{
	uint8_t *code = (uint8_t *)function, *ret = memchr(code, 0xc3, 24);

	if (ret)
		memset(ret, 0xc3, KEEPS_BYTES);
	return keeps_vectors(function);
}

static void each_is_judged(void **state)
{
	size_t wrong = first_wrong(keeps_vectors);

	(void)state;
	if (wrong < FUNCTIONS)
		fail_msg("%s", functions[wrong].what);
}

static void a_path_that_is_not_read_is_noticed(void **state)
{
	(void)state;
	assert_string_equal(functions[first_wrong(judge_first_path)].what, "behind a branch");
}

/* What is remembered is not what stood there before. */
static void other_bytes_are_looked_at_again(void **state)
{
	uint8_t *code = place(0, 512);

	(void)state;
	assert_true(keeps_vectors((uintptr_t)code));
	assert_true(keeps_vectors((uintptr_t)code));
	memcpy(code, functions[9].code, 5);
	assert_false(functions[9].keeps);
	assert_false(keeps_vectors((uintptr_t)code));
}

/* Behind the page is none: a fault would end the test. */
static void nothing_behind_a_page_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const uint8_t *code = functions[i].code;
		const uint8_t *ret = memrchr(code, 0xc3, sizeof(functions[i].code));
		size_t size = ret ? (size_t)(ret - code) + 1 : 0;

		memcpy(page + PAGE - size, code, size);
		if (ret)
			assert_int_equal(keeps_vectors((uintptr_t)page + PAGE - size),
					 functions[i].keeps);
	}
}

static int map_page(void **state)
{
	(void)state;
	page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED || munmap(page + PAGE, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_judged),
		cmocka_unit_test(a_path_that_is_not_read_is_noticed),
		cmocka_unit_test(other_bytes_are_looked_at_again),
		cmocka_unit_test(nothing_behind_a_page_is_read),
	};

	return cmocka_run_group_tests(tests, map_page, NULL);
}
