/* SPDX-License-Identifier: MIT */
/* What a call is given: by all ways to it, or not told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probes/insn/insn.h"

/* NAME to NAME_end; NAME_call is the call in question. */
#define FUNCTION(name, code)                                                                       \
	__asm__(".pushsection .text\n" #name ":\n" code "\n" #name "_end:\n.popsection\n");        \
	extern const uint8_t name[], name##_call[], name##_end[]

FUNCTION(direct, "lea one(%rip), %rdi\nmov %rbx, %rsi\ndirect_call: call other\nret");
FUNCTION(number, "mov $0x123456, %edi\nnumber_call: call other\nret");
FUNCTION(slot, "mov one(%rip), %rbx\nmov %rbx, %rdi\nslot_call: jmp other");
FUNCTION(far, "push %rbx\nlea one(%rip), %rbx\n1: call other\nmov %rbx, %rdi\n"
	      "far_call: call other\ndec %ebp\njne 1b\npop %rbx\nret");
/* As clang does: two calls with different arguments become one. */
FUNCTION(merged, "lea one(%rip), %rbx\ntest %eax, %eax\njne 1f\nlea two(%rip), %rbx\ncall other\n"
		 "1: mov %rbx, %rdi\nmerged_call: call other\nret");
FUNCTION(agreed, "lea one(%rip), %rdi\ntest %eax, %eax\njne 1f\nlea one(%rip), %rdi\n"
		 "1:\nagreed_call: call other\nret");
FUNCTION(clobbered, "lea one(%rip), %rdi\ncall other\nclobbered_call: call other\nret");
FUNCTION(loaded, "lea one(%rip), %rdi\nmov 8(%rsp), %rdi\nloaded_call: call other\nret");
FUNCTION(halved, "lea one(%rip), %rdi\nmov $5, %di\nhalved_call: call other\nret");
FUNCTION(callers, "callers_call: call other\nret");
FUNCTION(dead, "lea one(%rip), %rdi\nret\ndead_call: call other\nret");
/* The second call never returns, and the third stands in a handler of exceptions. */
FUNCTION(pad, "lea one(%rip), %rbx\ncall other\nlea two(%rip), %rbx\ncall other\nmov %rbx, %rdi\n"
	      "pad_call: call other\nret");
/* Nothing tells where the jump leads. */
FUNCTION(jumped, "lea two(%rip), %rbx\njmp *%rax\nlea one(%rip), %rbx\nmov %rbx, %rdi\n"
		 "jumped_call: call other\nret");
/* What is behind the RET is come to from elsewhere. */
FUNCTION(unseen, "lea two(%rip), %rbx\nret\nnopl 0(%rax)\ndec %eax\njmp 1f\nlea one(%rip), %rbx\n"
		 "1: mov %rbx, %rdi\nunseen_call: call other\nret");
/* Another part of it leads to each NAME_way. */
FUNCTION(led, "lea two(%rip), %rbx\nret\nlea one(%rip), %rbx\nled_way: mov %rbx, %rdi\n"
	      "led_call: call other\nret");
FUNCTION(stays, "lea one(%rip), %rbx\ntest %eax, %eax\njne stays_way\nret\nstays_way: mov "
		"%rbx, %rdi\n"
		"stays_call: call other\npop %rbx\nret");
FUNCTION(reloaded, "lea one(%rip), %rbx\ntest %eax, %eax\njne 1f\nmov 8(%rsp), %rbx\nret\n"
		   "1:\nreloaded_way: mov %rbx, %rdi\nreloaded_call: call other\nret");
/* Other places than that to which the jump leads. */
FUNCTION(elsewhere, "lea two(%rip), %rbx\nelsewhere_way: jmp *%rax\nlea one(%rip), %rbx\n"
		    "mov %rbx, %rdi\nelsewhere_call: call other\nret");
/* No register that a function restores before it ends. */
FUNCTION(popped, "lea one(%rip), %rdi\ntest %eax, %eax\njne popped_way\npop %rdi\nret\n"
		 "popped_way:\npopped_call: jmp other");
extern const uint8_t led_way[], stays_way[], reloaded_way[], elsewhere_way[], popped_way[];
__asm__(".pushsection .text\none: nop\ntwo: nop\nother: ret\n.popsection\n");
extern const uint8_t one[], two[];

static bool find_led(const uint8_t *from, const uint8_t *call, const uint8_t *end, bool pads,
		     const uint8_t *way, bool other, struct constant *value)
{
	const struct constant *found;
	struct constants constants;
	struct function_code code;

	assert_int_equal(function_read(&code, from, (uintptr_t)from, (size_t)(end - from)), 0);
	assert_int_equal(arguments_open(&constants, &code, pads), 0);
	if (code.indirect)
		function_open_all(&code);
	function_at(&code, (uintptr_t)call)->returns = true;
	if (way)
		function_open(&code, (uintptr_t)way);
	if (other)
		constants.over_open = 0;
	constants_find(&constants);
	found = argument_at(&constants, (uintptr_t)call);
	if (found)
		*value = *found;
	constants_close(&constants);
	function_free(&code);
	return found;
}

#define FIND(name, pads) find_led(name, name##_call, name##_end, pads, NULL, false, &value)
#define FIND_LED(name, other)                                                                      \
	find_led(name, name##_call, name##_end, false, name##_way, other, &value)

static void told(void **state)
{
	struct constant value;

	(void)state;
	assert_true(FIND(direct, true));
	assert_int_equal(value.kind, CONSTANT_ADDRESS);
	assert_ptr_equal(value.at, one);
	assert_true(FIND(number, true));
	assert_int_equal(value.kind, CONSTANT_NUMBER);
	assert_int_equal(value.at, 0x123456);
	assert_true(FIND(slot, true));
	assert_int_equal(value.kind, CONSTANT_SLOT);
	assert_ptr_equal(value.at, one);
	assert_true(FIND(far, true));
	assert_ptr_equal(value.at, one);
	assert_true(FIND(agreed, true));
	assert_ptr_equal(value.at, one);
	assert_true(FIND(pad, false));
	assert_ptr_equal(value.at, two);
	assert_true(FIND_LED(stays, false));
	assert_ptr_equal(value.at, one);
}

static void not_told(void **state)
{
	struct constant value;

	(void)state;
	assert_false(FIND(merged, false));
	assert_false(FIND(clobbered, false));
	assert_false(FIND(loaded, false));
	assert_false(FIND(halved, false));
	assert_false(FIND(callers, false));
	assert_false(FIND(dead, false));
	assert_false(FIND(pad, true));
	assert_false(FIND(jumped, false));
	assert_false(FIND(unseen, false));
	assert_false(FIND_LED(led, false));
	assert_false(FIND_LED(stays, true));
	assert_false(FIND_LED(reloaded, false));
	assert_false(FIND_LED(elsewhere, false));
	assert_false(FIND_LED(popped, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told),
		cmocka_unit_test(not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
