/* SPDX-License-Identifier: MIT */
/*
 * What a call is given: by all ways to it, or not told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probes/calls/given.h"

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
__asm__(".pushsection .text\none: nop\ntwo: nop\nother: ret\n.popsection\n");
extern const uint8_t one[], two[];

static bool find(const uint8_t *from, const uint8_t *call, const uint8_t *end, bool pads,
		 struct given_value *value)
{
	struct given given;
	bool found;

	assert_int_equal(given_open(&given, from, (size_t)(end - from), pads), 0);
	given_hook(&given, (size_t)(call - from));
	found = given_find(&given, (size_t)(call - from), value);
	given_close(&given);
	return found;
}

#define FIND(name, pads) find(name, name##_call, name##_end, pads, &value)

static void told(void **state)
{
	struct given_value value;

	(void)state;
	assert_true(FIND(direct, true));
	assert_int_equal(value.kind, GIVEN_ADDRESS);
	assert_ptr_equal(value.at, one);
	assert_true(FIND(number, true));
	assert_int_equal(value.kind, GIVEN_NUMBER);
	assert_int_equal(value.at, 0x123456);
	assert_true(FIND(slot, true));
	assert_int_equal(value.kind, GIVEN_SLOT);
	assert_ptr_equal(value.at, one);
	assert_true(FIND(far, true));
	assert_ptr_equal(value.at, one);
	assert_true(FIND(agreed, true));
	assert_ptr_equal(value.at, one);
	assert_true(FIND(pad, false));
	assert_ptr_equal(value.at, two);
}

static void not_told(void **state)
{
	struct given_value value;

	(void)state;
	assert_false(FIND(merged, false));
	assert_false(FIND(clobbered, false));
	assert_false(FIND(loaded, false));
	assert_false(FIND(halved, false));
	assert_false(FIND(callers, false));
	assert_false(FIND(dead, false));
	assert_false(FIND(pad, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told),
		cmocka_unit_test(not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
