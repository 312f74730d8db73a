/* SPDX-License-Identifier: MIT */
/* Operands as compilers write them, and as damaged or foreign files may. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "probes/providers/marker.h"

static bool find(const void *object, const char *name, size_t len, uint64_t *address)
{
	*address = (uintptr_t)object;
	return len == 6 && memcmp(name, "memory", 6) == 0;
}

static int64_t memory[4] = { -2, 0x1122334455667788, 3, -4 };
static const struct operand_symbols symbols = { .find = find, .object = memory };

static int64_t value_of(const char *text, const uint64_t regs[16])
{
	struct operand operands[OPERANDS_MAX];
	int64_t value;

	assert_int_equal(operands_parse(text, &symbols, operands), 1);
	if (operands[0].reason)
		fail_msg("%s: %s", text, operands[0].reason);
	assert_true(operand_value(&operands[0], regs, &value));
	return value;
}

static void constants(void **state)
{
	static const uint64_t regs[16];

	(void)state;
	assert_int_equal(value_of("-4@$5", regs), 5);
	assert_int_equal(value_of("-4@$-5", regs), -5);
	assert_int_equal(value_of("4@$-1", regs), 0xffffffff);
	assert_int_equal(value_of("8@$0x1fffffffff", regs), 0x1fffffffff);
	assert_int_equal(value_of("-1@$255", regs), -1);
	assert_int_equal(value_of("8@$memory+8", regs), (uintptr_t)&memory[1]);
}

static void registers(void **state)
{
	static const char *const names[] = {
		"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"
	};
	uint64_t regs[16];
	char text[16];

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		regs[i] = 0xfedcba9876543280 + i;
	for (unsigned i = 0; i < 16; i++) {
		snprintf(text, sizeof(text), "8@%%%s", names[i]);
		assert_int_equal(value_of(text, regs), (int64_t)regs[i]);
	}
	assert_int_equal(value_of("4@%edi", regs), 0x76543287);
	assert_int_equal(value_of("-2@%dx", regs), 0x3282);
	assert_int_equal(value_of("-1@%sil", regs), (int8_t)0x86);
	assert_int_equal(value_of("1@%bh", regs), 0x32);
	assert_int_equal(value_of("-4@%r10d", regs), 0x7654328a);
	assert_int_equal(value_of("2@%r15w", regs), 0x328f);
	assert_int_equal(value_of("1@%r9b", regs), 0x89);
	/* The size before the @ counts, not the name. */
	assert_int_equal(value_of("1@%eax", regs), 0x80);
	assert_int_equal(value_of("-8@%eax", regs), (int64_t)regs[0]);
}

static void in_memory(void **state)
{
	uint64_t regs[16] = { 0 };

	(void)state;
	regs[5] = (uintptr_t)&memory[2];
	regs[3] = 1;
	regs[8] = (uintptr_t)memory;
	assert_int_equal(value_of("8@(%rbp)", regs), 3);
	assert_int_equal(value_of("-8@-16(%rbp)", regs), -2);
	assert_int_equal(value_of("-4@8(%rbp)", regs), -4);
	assert_int_equal(value_of("4@0x8(%r8)", regs), 0x55667788);
	assert_int_equal(value_of("2@12(%r8)", regs), 0x3344);
	assert_int_equal(value_of("8@(%r8,%rbx,8)", regs), memory[1]);
	assert_int_equal(value_of("8@8(%r8, %rbx, 8)", regs), memory[2]);
	assert_int_equal(value_of("1@1(%r8,%rbx)", regs), 0xff);
	assert_int_equal(value_of("8@memory(%rip)", regs), -2);
	assert_int_equal(value_of("8@memory+16(%rip)", regs), 3);
	assert_int_equal(value_of("8@16+memory(%rip)", regs), 3);
	assert_int_equal(value_of("8@memory(,%rbx,8)", regs), memory[1]);
	assert_int_equal(value_of("8@-8+memory+16", regs), memory[1]);
}

static void several(void **state)
{
	struct operand operands[OPERANDS_MAX];

	(void)state;
	assert_int_equal(operands_parse("", &symbols, operands), 0);
	assert_int_equal(operands_parse("   ", &symbols, operands), 0);
	assert_int_equal(operands_parse("8@%rax -4@$1  1@(%rbx,%rcx, 2)", &symbols, operands), 3);
	assert_int_equal(operands[2].scale, 2);
	assert_null(operands[2].reason);
	assert_int_equal(operands_parse("1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 "
					"1@$1 1@$1",
					&symbols, operands),
			 12);
	/* One that is refused spoils no other. */
	assert_int_equal(operands_parse("8f@%xmm0 8@%rdi", &symbols, operands), 2);
	assert_non_null(operands[0].reason);
	assert_null(operands[1].reason);
}

static void refused(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "8f@%xmm0", "floating-point" },
		{ "8@%xmm0", "vector" },
		{ "8@%st", "none of the sixteen" },
		{ "8@%r16", "none of the sixteen" },
		{ "8@%r7", "none of the sixteen" },
		{ "8@%", "none of the sixteen" },
		{ "8@%fs:16", "segment" },
		{ "8@x@tpoff(%rip)", "table" },
		{ "8@other(%rip)", "symbol" },
		{ "8@16(%rip)", "not told" },
		{ "8@(%rip)", "not told" },
		{ "8@(%eax)", "64 bits" },
		{ "8@(%rax,%rsp)", "no such address" },
		{ "8@(%rax,%rip)", "no such address" },
		{ "8@()", "no such address" },
		{ "8@(%rax,%rbx,3)", "scale" },
		{ "8@(%rax", "form" },
		{ "8@(%rax)x", "form" },
		{ "8@$", "ends early" },
		{ "8@$1+", "ends early" },
		{ "8@$99999999999999999999", "too large" },
		{ "8@$0xg", "no digits" },
		{ "3@%rax", "none of 1, 2, 4, 8" },
		{ "16@%rax", "none of 1, 2, 4, 8" },
		{ "8%rax", "no @" },
		{ "%rax", "no size" },
		{ "-@%rax", "no size" },
		{ "2@%ah", "larger" },
	};
	struct operand operands[OPERANDS_MAX];
	char large[2 * OPERAND_TEXT] = "8@";
	int64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(operands_parse(cases[i].text, &symbols, operands), 1);
		if (!operands[0].reason || !strstr(operands[0].reason, cases[i].why))
			fail_msg("%s: %s", cases[i].text, operands[0].reason);
		assert_false(operand_value(&operands[0], (uint64_t[16]){ 0 }, &value));
	}
	memset(large + 2, '(', sizeof(large) - 3);
	assert_int_equal(operands_parse(large, &symbols, operands), 1);
	assert_non_null(strstr(operands[0].reason, "too long"));
	assert_int_equal(operands_parse("8@memory(%rip)", NULL, operands), 1);
	assert_non_null(operands[0].reason);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants), cmocka_unit_test(registers),
		cmocka_unit_test(in_memory), cmocka_unit_test(several),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
