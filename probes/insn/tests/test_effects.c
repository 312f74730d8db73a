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

#include "probes/insn/insn.h"

#define PAGE 4096u

static const struct {
	const char *what;
	enum clobbers clobbers;
	uint8_t code[24]; /* the rest is INT3 */
} functions[] = {
	{ "ret", CLOBBERS_NONE, { 0xc3 } },
	{ "endbr64; ret", CLOBBERS_NONE, { 0xf3, 0x0f, 0x1e, 0xfa, 0xc3 } },
	{ "lock incq (%rcx); ret", CLOBBERS_NONE, { 0xf0, 0x48, 0xff, 0x01, 0xc3 } },
	{ "five 1-byte NOPs", CLOBBERS_NONE, { 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 } },
	{ "rdtsc; mov %fs:0, %rax; ret",
	  CLOBBERS_NONE,
	  { 0x0f, 0x31, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0xc3 } },
	{ "a loop", CLOBBERS_NONE, { 0xff, 0xcf, 0x75, 0xfc, 0xc3 } },
	{ "jz over ret; ret", CLOBBERS_NONE, { 0x74, 0x01, 0xc3, 0xff, 0xc0, 0xc3 } },
	{ "rep stosq", CLOBBERS_NONE, { 0xf3, 0x48, 0xab, 0xc3 } },
	{ "push, pop", CLOBBERS_NONE, { 0x53, 0x5b, 0xc3 } },
	{ "pxor %xmm7, %xmm7", CLOBBERS_LOWER, { 0x66, 0x0f, 0xef, 0xff, 0xc3 } },
	{ "pxor %xmm8, %xmm8", CLOBBERS_ANY, { 0x66, 0x45, 0x0f, 0xef, 0xc0, 0xc3 } },
	{ "addsd %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0xf2, 0x0f, 0x58, 0xc8, 0xc3 } },
	{ "cvtsi2sd %rax, %xmm0", CLOBBERS_LOWER_FLAGS, { 0xf2, 0x48, 0x0f, 0x2a, 0xc0, 0xc3 } },
	{ "cvttss2si %xmm0, %eax", CLOBBERS_LOWER_FLAGS, { 0xf3, 0x0f, 0x2c, 0xc0, 0xc3 } },
	{ "ucomisd %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0x66, 0x0f, 0x2e, 0xc8, 0xc3 } },
	{ "comiss %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0x0f, 0x2f, 0xc8, 0xc3 } },
	{ "minps %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0x0f, 0x5d, 0xc8, 0xc3 } },
	{ "roundsd $0, %xmm0, %xmm1",
	  CLOBBERS_LOWER_FLAGS,
	  { 0x66, 0x0f, 0x3a, 0x0b, 0xc8, 0, 0xc3 } },
	{ "sqrtsd %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0xf2, 0x0f, 0x51, 0xc8, 0xc3 } },
	{ "cvtps2pd %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0x0f, 0x5a, 0xc8, 0xc3 } },
	{ "haddpd %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0x66, 0x0f, 0x7c, 0xc8, 0xc3 } },
	{ "dpps $0, %xmm0, %xmm1",
	  CLOBBERS_LOWER_FLAGS,
	  { 0x66, 0x0f, 0x3a, 0x40, 0xc8, 0, 0xc3 } },
	{ "cmpltps %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0x0f, 0xc2, 0xc8, 1, 0xc3 } },
	{ "addsubps %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0xf2, 0x0f, 0xd0, 0xc8, 0xc3 } },
	{ "cvtdq2ps %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0x0f, 0x5b, 0xc8, 0xc3 } },
	{ "divss %xmm0, %xmm1", CLOBBERS_LOWER_FLAGS, { 0xf3, 0x0f, 0x5e, 0xc8, 0xc3 } },
	{ "pblendvb %xmm0, %xmm9, %xmm1",
	  CLOBBERS_ANY,
	  { 0x66, 0x41, 0x0f, 0x38, 0x10, 0xc9, 0xc3 } },
	{ "movdq2q %xmm0, %mm0", CLOBBERS_ANY, { 0xf2, 0x0f, 0xd6, 0xc0, 0xc3 } },
	{ "cvtpi2ps %mm0, %xmm0", CLOBBERS_ANY, { 0x0f, 0x2a, 0xc0, 0xc3 } },
	{ "vpxor %xmm0, %xmm0, %xmm0", CLOBBERS_ANY, { 0xc5, 0xf9, 0xef, 0xc0, 0xc3 } },
	{ "pxor, then vzeroupper",
	  CLOBBERS_ANY,
	  { 0x66, 0x0f, 0xef, 0xff, 0xc5, 0xf8, 0x77, 0xc3 } },
	{ "stmxcsr -8(%rsp)", CLOBBERS_LOWER_FLAGS, { 0x0f, 0xae, 0x5c, 0x24, 0xf8, 0xc3 } },
	{ "movups, paddq", CLOBBERS_LOWER, { 0x0f, 0x10, 0x07, 0x66, 0x0f, 0xd4, 0xc1, 0xc3 } },
	{ "behind a branch", CLOBBERS_LOWER, { 0x74, 0x01, 0xc3, 0x66, 0x0f, 0xef, 0xff, 0xc3 } },
	{ "vzeroupper", CLOBBERS_ANY, { 0xc5, 0xf8, 0x77, 0xc3 } },
	{ "vaddps %ymm0, %ymm0, %ymm0", CLOBBERS_ANY, { 0xc5, 0xfc, 0x58, 0xc0, 0xc3 } },
	{ "kmovw %eax, %k1", CLOBBERS_ANY, { 0xc5, 0xf8, 0x92, 0xc8, 0xc3 } },
	{ "movd %eax, %mm0", CLOBBERS_ANY, { 0x0f, 0x6e, 0xc0, 0xc3 } },
	{ "fld1", CLOBBERS_ANY, { 0xd9, 0xe8, 0xc3 } },
	{ "emms", CLOBBERS_ANY, { 0x0f, 0x77, 0xc3 } },
	{ "fninit", CLOBBERS_ANY, { 0xdb, 0xe3, 0xc3 } },
	{ "ldmxcsr (%rdi)", CLOBBERS_ANY, { 0x0f, 0xae, 0x17, 0xc3 } },
	{ "fxrstor (%rdi)", CLOBBERS_ANY, { 0x0f, 0xae, 0x0f, 0xc3 } },
	{ "xrstor (%rdi)", CLOBBERS_ANY, { 0x0f, 0xae, 0x2f, 0xc3 } },
	{ "xrstors (%rdi)", CLOBBERS_ANY, { 0x0f, 0xc7, 0x1f, 0xc3 } },
	{ "call", CLOBBERS_ANY, { 0xe8, 0, 0, 0, 0, 0xc3 } },
	{ "call *%rax", CLOBBERS_ANY, { 0xff, 0xd0, 0xc3 } },
	{ "jmp *%rax", CLOBBERS_ANY, { 0xff, 0xe0 } },
	{ "a jump that may become a NOP", CLOBBERS_ANY, { 0xe9, 0x01, 0, 0, 0, 0xc3, 0xc3 } },
	{ "a NOP that may become a jump", CLOBBERS_ANY, { 0x0f, 0x1f, 0x44, 0, 0, 0xc3 } },
	{ "a call that is off", CLOBBERS_ANY, { 0xeb, 0x03, 0, 0, 0, 0xc3 } },
	{ "out of the window", CLOBBERS_ANY, { 0xeb, 0x7e } },
	{ "before the function", CLOBBERS_ANY, { 0xeb, 0xf0 } },
	{ "no instruction", CLOBBERS_ANY, { 0x06 } },
	{ "int3", CLOBBERS_ANY, { 0xcc } },
	{ "syscall", CLOBBERS_ANY, { 0x0f, 0x05, 0xc3 } },
	{ "iretq", CLOBBERS_ANY, { 0x48, 0xcf } },
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
static size_t first_wrong(struct effects (*judge)(uintptr_t function))
{
	for (size_t i = 0; i < FUNCTIONS; i++)
		if (judge((uintptr_t)place(i, 256)).clobbers != functions[i].clobbers)
			return i;
	return FUNCTIONS;
}

/* Hides what is behind the first RET from it. */
static struct effects judge_first_path(uintptr_t function)
{
	uint8_t *code = (uint8_t *)function, *ret = memchr(code, 0xc3, 24);

	if (ret)
		memset(ret, 0xc3, EFFECTS_BYTES);
	return effects_read(function);
}

static void each_is_judged(void **state)
{
	size_t wrong = first_wrong(effects_read);

	(void)state;
	if (wrong < FUNCTIONS)
		fail_msg("%s", functions[wrong].what);
}

static void a_path_that_is_not_read_is_noticed(void **state)
{
	(void)state;
	assert_string_equal(functions[first_wrong(judge_first_path)].what, "behind a branch");
}

static void other_bytes_are_looked_at_again(void **state)
{
	uint8_t *code = place(0, 512);

	(void)state;
	assert_int_equal(effects_read((uintptr_t)code).clobbers, CLOBBERS_NONE);
	memcpy(code, functions[9].code, 5);
	assert_int_equal(functions[9].clobbers, CLOBBERS_LOWER);
	assert_int_equal(effects_read((uintptr_t)code).clobbers, CLOBBERS_LOWER);
}

/* All bytes that decide are told, those of a refusal, too. */
static void bytes_that_decide_are_told(void **state)
{
	uint8_t *code = page + 256;
	struct effects effects;

	(void)state;
	memset(page, 0xcc, PAGE);
	effects = effects_read((uintptr_t)code);
	assert_int_equal(effects.clobbers, CLOBBERS_ANY);
	assert_int_equal(effects.read, 1);
	memcpy(code, "\x90\x90\xc3", 3);
	effects = effects_read((uintptr_t)code);
	assert_int_equal(effects.clobbers, CLOBBERS_NONE);
	assert_int_equal(effects.read, 3);
	/* One that reaches over their end. */
	memset(code, 0x90, EFFECTS_BYTES);
	memcpy(code + EFFECTS_BYTES - 1, "\x31\xc0\xc3", 3);
	assert_int_equal(effects_read((uintptr_t)code).read, 0);
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
			assert_int_equal(effects_read((uintptr_t)page + PAGE - size).clobbers,
					 functions[i].clobbers);
	}
}

/* --- Whether it may be run elsewhere --------------------------------------------------------- */

#define R(i) (1u << (i))
#define RAX  R(0)
#define RCX  R(1)
#define RDX  R(2)
#define RBX  R(3)
#define RSI  R(6)
#define RDI  R(7)

static const struct {
	const char *what;
	bool moves;
	uint16_t reads, writes;
	uint8_t size, relative; /* of these bytes; where a distance is, 0: none */
	uint8_t code[24];
} movers[] = {
	{ "ret", true, 0, 0, 0, 0, { 0xc3 } },
	{ "endbr64; rep ret", true, 0, 0, 4, 0, { 0xf3, 0x0f, 0x1e, 0xfa, 0xf3, 0xc3 } },
	{ "mov (%rdx,%rsi), %ah", true, RDX | RSI, RAX, 3, 0, { 0x8a, 0x24, 0x32, 0xc3 } },
	{ "lock incq (%rcx)", true, RCX, 0, 4, 0, { 0xf0, 0x48, 0xff, 0x01, 0xc3 } },
	{ "rdtsc", true, 0, RAX | RDX, 2, 0, { 0x0f, 0x31, 0xc3 } },
	{ "cpuid", true, RAX | RCX, RAX | RBX | RCX | RDX, 2, 0, { 0x0f, 0xa2, 0xc3 } },
	{ "mul %rdi", true, RAX | RDI, RAX | RDX, 3, 0, { 0x48, 0xf7, 0xe7, 0xc3 } },
	{ "rep stosq", true, RAX | RCX | RDI, RCX | RDI, 3, 0, { 0xf3, 0x48, 0xab, 0xc3 } },
	{ "xchg %esi, %r9d", true, RSI | R(9), RSI | R(9), 3, 0, { 0x41, 0x87, 0xf1, 0xc3 } },
	{ "cmovz %rdi, %r11", true, RDI, R(11), 4, 0, { 0x4c, 0x0f, 0x44, 0xdf, 0xc3 } },
	{ "incl 0(%rip)", true, 0, 0, 6, 2, { 0xff, 0x05, 0, 0, 0, 0, 0xc3 } },
	{ "a jump to the ret", true, RCX, RCX, 4, 0, { 0x74, 0x02, 0xff, 0xc9, 0xc3 } },
	{ "two returns", false, 0, 0, 0, 0, { 0x74, 0x01, 0xc3, 0xff, 0xc0, 0xc3 } },
	{ "a return in the middle", false, 0, 0, 0, 0, { 0x75, 0x01, 0xc3, 0xeb, 0xfd } },
	{ "ret 8", false, 0, 0, 0, 0, { 0xc2, 0x08, 0x00 } },
	{ "push, pop", false, 0, 0, 0, 0, { 0x53, 0x5b, 0xc3 } },
	{ "mov (%rsp), %rax", false, 0, 0, 0, 0, { 0x48, 0x8b, 0x04, 0x24, 0xc3 } },
	{ "mov -8(%rsp), %rax", false, 0, 0, 0, 0, { 0x48, 0x8b, 0x44, 0x24, 0xf8, 0xc3 } },
	{ "mov %rsp, %rax", false, 0, 0, 0, 0, { 0x48, 0x89, 0xe0, 0xc3 } },
	{ "xor %spl, %al", false, 0, 0, 0, 0, { 0x40, 0x30, 0xe0, 0xc3 } },
	{ "leave", false, 0, 0, 0, 0, { 0xc9, 0xc3 } },
	{ "pushf", false, 0, 0, 0, 0, { 0x9c, 0xc3 } },
	{ "a NOP of one byte", false, 0, 0, 0, 0, { 0x90, 0xc3 } },
	{ "incl 0(%eip)", false, 0, 0, 0, 0, { 0x67, 0xff, 0x05, 0, 0, 0, 0, 0xc3 } },
	{ "pxor", false, 0, 0, 0, 0, { 0x66, 0x0f, 0xef, 0xff, 0xc3 } },
	{ "call", false, 0, 0, 0, 0, { 0xe8, 0, 0, 0, 0, 0xc3 } },
};

static void what_can_be_copied_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(movers) / sizeof(*movers); i++) {
		struct effects leaf;

		memset(page, 0xcc, PAGE);
		memcpy(page, movers[i].code, sizeof(movers[i].code));
		leaf = effects_read((uintptr_t)page);
		if (leaf.moves != movers[i].moves)
			fail_msg("%s", movers[i].what);
		if (leaf.moves &&
		    (leaf.reads != movers[i].reads || leaf.writes != movers[i].writes ||
		     leaf.size != movers[i].size || leaf.relatives != (movers[i].relative != 0) ||
		     (leaf.relatives && leaf.relative[0] != movers[i].relative)))
			fail_msg("%s: reads %x, writes %x, size %u", movers[i].what, leaf.reads,
				 leaf.writes, leaf.size);
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
		cmocka_unit_test(bytes_that_decide_are_told),
		cmocka_unit_test(nothing_behind_a_page_is_read),
		cmocka_unit_test(what_can_be_copied_is_told),
	};

	return cmocka_run_group_tests(tests, map_page, NULL);
}
