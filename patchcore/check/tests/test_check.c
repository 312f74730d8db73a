/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/check.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

#define INSIDE	 512		 /* no boundary of any window in what follows */
#define STRADDLE (CODE_PAGE - 2) /* two bytes before one of every window */

#define CALL 0xe8
#define JMP  0xeb
#define BAD  0x06 /* no instruction in 64-bit code */
#define MOV  0xb8 /* eax, imm32 */

/* A change of the first len bytes. */
struct change {
	const char *name;
	uint8_t old_code[12];
	uint8_t new_code[12];
	size_t len;
	int ret;
	uint64_t lost;
	uint32_t starts;
	uint64_t after_jump;
	size_t end; /* of the last old instruction */
	bool merges_nops, old_partial, new_partial;
};

/* clang-format off */
static const struct change changes[] = {
	{ .name = "call to call", { CALL, 1, 2, 3, 4 }, { CALL, 5, 6, 7, 8 }, 5, 0, .starts = 1, .end = 5 },
	{ .name = "call to NOP", { CALL, 1, 2, 3, 4 }, { 0x0f, 0x1f, 0x44, 0, 0 }, 5, 0, .starts = 1, .end = 5 },
	{ .name = "starts may be added", { CALL, 1, 2, 3, 4 }, { 0x90, 0x90, 0x90, 0x90, 0x90 }, 5, 0,
	  .starts = 1, .end = 5 },
	{ .name = "NOPs to call", { 0x90, 0x90, 0x90, 0x90, 0x90 }, { CALL, 1, 2, 3, 4 }, 5, -EILSEQ,
	  .lost = 0x1e, .starts = 1, .end = 5, .merges_nops = true },
	{ .name = "some NOPs to a longer one", { 0x31, 0xc0, 0x90, 0x90 }, { 0x31, 0xc0, 0x66, 0x90 }, 4,
	  -EILSEQ, .lost = 1 << 3, .starts = 5, .end = 4, .merges_nops = true },
	{ .name = "not only NOPs", { 0x31, 0xc0, 0x90, 0x90 }, { 0x0f, 0x1f, 0x40, 0 }, 4, -EILSEQ,
	  .lost = 0xc, .starts = 1, .end = 4 },
	{ .name = "two instructions", { 0x31, 0xc0, 0x31, 0xdb }, { 0x89, 0xd8, 0x89, 0xca }, 4, 0,
	  .starts = 5, .end = 4 },
	{ .name = "other boundaries", { 0x31, 0xc0, 0x0f, 0x1f, 0 }, { 0x0f, 0x1f, 0, 0x31, 0xc0 }, 5, -EILSEQ,
	  .lost = 1 << 2, .starts = 1, .end = 5 },
	{ .name = "call to a jump over its rest", { CALL, 1, 2, 3, 4 }, { JMP, 3 }, 2, 0, .starts = 1, .end = 5,
	  .old_partial = true },
	{ .name = "a rest that is code", { MOV, 1, 0x90, 0x90, 0x90 }, { 0x31, 0xc0 }, 2, 0, .starts = 1,
	  .end = 5, .old_partial = true },
	{ .name = "a rest that is none", { MOV, 1, BAD, 0x90, 0x90 }, { 0x31, 0xc0 }, 2, -ENOEXEC },
	{ .name = "a rest that runs on", { MOV, 1, MOV, 0, 0 }, { 0x31, 0xc0 }, 2, -EILSEQ, .lost = 0x20,
	  .starts = 1, .end = 7, .old_partial = true },
	{ .name = "cut off", { 0x0f, 0x1f, 0 }, { CALL, 1, 2 }, 3, -EILSEQ, .lost = 0x08, .starts = 1, .end = 5,
	  .new_partial = true },
	{ .name = "operand alone", { MOV, 1, 2, 3, 4 }, { MOV, 9 }, 2, 0, .starts = 1, .end = 5,
	  .old_partial = true, .new_partial = true },
	{ .name = "a jump over what was left there", { JMP, 3, MOV, 0, 0 }, { CALL, 1, 2, 3, 4 }, 5, 0,
	  .starts = 1, .end = 5 },
	{ .name = "the same, and no code", { JMP, 3, 0x90, BAD, 0 }, { CALL, 1, 2, 3, 4 }, 5, 0, .starts = 1,
	  .end = 5 },
	{ .name = "a jump alone", { JMP, 3, MOV, 0, 0 }, { CALL, 1 }, 2, 0, .starts = 1, .end = 5,
	  .new_partial = true },
	{ .name = "a jump over code", { JMP, 3, 0x0f, 0x1f, 0 }, { CALL, 1, 2, 3, 4 }, 5, -EILSEQ, .lost = 4,
	  .starts = 1, .after_jump = 4, .end = 5 },
	{ .name = "behind a return", { 0xc3, 0x90, 0x90 }, { 0x0f, 0x1f, 0 }, 3, -EILSEQ, .lost = 6, .starts = 1,
	  .after_jump = 6, .end = 3 },
	{ .name = "where a jump leads", { JMP, 1, 0x90, 0x90, 0x90 }, { 0x0f, 0x1f, 0x44, 0, 0 }, 5, -EILSEQ,
	  .lost = 0x1c, .starts = 1, .after_jump = 4, .end = 5 },
	{ .name = "behind a branch that may not be taken", { 0x74, 1, 0x90 }, { 0x0f, 0x1f, 0 }, 3, -EILSEQ,
	  .lost = 4, .starts = 1, .end = 3 },
	{ .name = "no jump reaches the rest", { 0x31, 0xc0, 0x31, 0xdb }, { JMP, 9, 0x89, 0xca }, 4, 0,
	  .starts = 5, .end = 4 },
	{ .name = "the rest is overrun", { 0x31, 0xc0, 0x31, 0xdb }, { JMP, 9, BAD, 0xca }, 4, -ENOEXEC },
	{ .name = "call to return", { CALL, 1, 2, 3, 4 }, { 0xc3 }, 1, 0, .starts = 1, .end = 5, .old_partial = true },
	{ .name = "nothing runs the rest", { CALL, 1, 2, 3, 4 }, { 0xc3, BAD, BAD, BAD, BAD }, 5, 0, .starts = 1,
	  .end = 5 },
	{ .name = "a jump over another one", { JMP, 4, 0xc3, MOV, 0, 0 }, { 0xff, 0x15, 1, 2, 3, 4 }, 6, 0,
	  .starts = 1, .end = 6 },
	{ .name = "old nonsense", { BAD, 1, 2 }, { 0x90 }, 1, -ENOEXEC },
	{ .name = "new nonsense", { 0x90, 1, 2 }, { BAD }, 1, -ENOEXEC },
	{ .name = "66 before a branch", { CALL, 1, 2, 3, 4, 5 }, { 0x66, CALL, 1, 2, 3, 4 }, 6, -ENOEXEC },
	{ .name = "67 before a branch", { 0xff, 0x15, 1, 2, 3, 4 }, { 0x67, CALL, 1, 2, 3, 4 }, 6, 0,
	  .starts = 1, .end = 6 },
	{ .name = "held", { CODE_INT3, 1, 2, 3, 4 }, { CALL, 1, 2, 3, 4 }, 5, -EAGAIN },
	{ .name = "INT3", { 0x90 }, { CODE_INT3 }, 1, -EINVAL, .starts = 1, .end = 1 },
	{ .name = "INT3 on the second", { 0x90, 0x90 }, { 0x90, CODE_INT3 }, 2, -EINVAL, .starts = 3, .end = 2 },
	{ .name = "INT3 in an operand", { CALL, 1, 2, 3, 4 }, { CALL, CODE_INT3, CODE_INT3 }, 3, 0, .starts = 1,
	  .end = 5, .old_partial = true, .new_partial = true },
	{ .name = "eight", { 0x90, MOV, 1, 2, 3, 4, 0x31, 0xc0 }, { 0x90, MOV, 5, 6, 7, 8, 0x31, 0xdb }, 8, 0,
	  .starts = 0x43, .end = 8 },
	{ .name = "nine", { 0x90, 0x90, MOV, 1, 2, 3, 4, 0x31, 0xc0 },
	  { 0x90, 0x90, MOV, 1, 2, 3, 4, 0x31, 0xdb }, 9, -E2BIG, .starts = 0x87, .end = 9 },
};
/* clang-format on */

static void must_tell(const struct change *change, uint8_t *at)
{
	struct pc_check check;
	int ret;

	memcpy(at, change->old_code, sizeof(change->old_code));
	ret = pc_check_site(at, change->new_code, change->len, &check);
	if (ret != change->ret)
		print_message("%s: %s\n", change->name, check.why);
	assert_int_equal(ret, change->ret);
	assert_int_not_equal(check.why[0], '\0');
	assert_null(strchr(check.why, '\n'));
	if (ret == -ENOEXEC || ret == -EAGAIN)
		return;
	assert_int_equal(check.lost_starts, change->lost);
	assert_int_equal(check.starts, change->starts);
	assert_int_equal(check.after_jump, change->after_jump);
	assert_int_equal(check.old_end, change->end);
	assert_int_equal(check.merges_nops, change->merges_nops);
	assert_int_equal(check.old_partial, change->old_partial);
	assert_int_equal(check.new_partial, change->new_partial);
	assert_int_equal(check.int3, ret == -EINVAL);
	assert_int_equal(check.lost_starts, check.old_starts & ~check.new_starts);
	assert_int_equal(strstr(check.why, "from elsewhere") != NULL,
			 check.lost_starts && !check.merges_nops &&
				 check.lost_starts < 1u << change->len &&
				 !(check.lost_starts & ~check.after_jump));
}

static void test_changes(void **state)
{
	uint8_t *pages = code_map(2, RWX);

	(void)state;
	for (size_t i = 0; i < LENGTH(changes); i++) {
		must_tell(&changes[i], pages + INSIDE);
		must_tell(&changes[i], pages + STRADDLE);
	}
	code_unmap(pages, 2);
}

static void test_which_is_nonsense(void **state)
{
	uint8_t *page = code_map(1, RWX), bad[] = { BAD }, nop[] = { CODE_NOP };
	struct pc_check check;

	(void)state;
	assert_int_equal(pc_check_site(page, bad, 1, &check), -ENOEXEC);
	assert_true(check.new_invalid && !check.old_invalid);
	page[0] = BAD;
	assert_int_equal(pc_check_site(page, nop, 1, &check), -ENOEXEC);
	assert_true(check.old_invalid && !check.new_invalid);
	code_unmap(page, 1);
}

static void test_relative(void **state)
{
	static const uint8_t lea[] = { 0x48, 0x8d, 0x05, 1, 2, 3, 4 }; /* lea rax, [rip + ...] */
	static const uint8_t two[] = { 0x31, 0xc0, CALL, 1, 2, 3, 4 };
	static const uint8_t none[] = { 0x48, 0x8d, 0x80, 1, 2, 3, 4 }; /* lea rax, [rax + ...] */
	uint8_t *page = code_map(1, RWX);
	struct pc_check check;

	(void)state;
	memcpy(page, lea, sizeof(lea));
	assert_int_equal(pc_check_site(page, none, sizeof(none), &check), 0);
	assert_int_equal(check.relative, 0);
	assert_int_equal(pc_check_site(page, lea, sizeof(lea), &check), 0);
	assert_int_equal(check.relative, 1);
	assert_int_equal(pc_check_site(page, two, sizeof(two), &check), 0);
	assert_int_equal(check.relative, 4);
	code_unmap(page, 1);
}

/* --- Boundaries ------------------------------------------------------------------------- */

static unsigned split_at(size_t at, size_t len, unsigned unit)
{
	for (unsigned front = 1; front < len; front++)
		if ((at + front) % unit == 0)
			return front;
	return 0;
}

/* Without pc_init(): a window of 8 holds on every machine. */
static void test_splits(void **state)
{
	static const uint8_t call[] = { CALL, 1, 2, 3, 4 };
	uint8_t *pages = code_map(2, RWX);

	(void)state;
	for (size_t at = CODE_PAGE - 80; at < CODE_PAGE + 80; at++) {
		struct pc_check check;

		memset(pages, CODE_NOP, 2 * CODE_PAGE);
		memcpy(pages + at, call, sizeof(call));
		assert_int_equal(pc_check_site(pages + at, call, sizeof(call), &check), 0);
		assert_int_equal(check.window, 8);
		assert_int_equal(check.window_split, split_at(at, sizeof(call), 8));
		assert_int_equal(check.line_split, split_at(at, sizeof(call), 64));
		assert_int_equal(check.page_split, split_at(at, sizeof(call), CODE_PAGE));
		assert_int_equal(strstr(check.why, "one store") == NULL, check.window_split > 0);
	}
	code_unmap(pages, 2);
}

static void window_of_the_library(const void *window)
{
	static const uint8_t call[] = { CALL, 1, 2, 3, 4 };
	struct machine_conf conf = conf_here();
	uint8_t *page = code_map(1, RWX);
	struct pc_check check;

	conf.window = *(const unsigned *)window;
	conf.window_p = 1e-10;
	conf.window_runs = 30;
	conf_use(&conf);
	if (!conf.identity.tsc_invariant)
		child_skip("this machine has no invariant TSC");
	MUST(pc_init() == 0);
	memcpy(page + 62, call, sizeof(call));
	memcpy(page + 70, call, sizeof(call));
	MUST(pc_check_site(page + 62, call, sizeof(call), &check) == 0);
	MUST(check.window == conf.window && check.window_split == 2);
	MUST(pc_check_site(page + 70, call, sizeof(call), &check) == 0);
	MUST(check.window_split == (conf.window == 8 ? 2u : 0u));
}

static void test_window_of_the_library(void **state)
{
	static const unsigned windows[] = { 8, 32 };

	(void)state;
	for (size_t i = 0; i < LENGTH(windows); i++)
		child_must_pass(window_of_the_library, &windows[i]);
}

/* Part of a straddler: the rest must change with it, or never. */
static void test_cut(void **state)
{
	static const uint8_t call[] = { CALL, 1, 2, 3, 4 }, jump[] = { JMP, 3 };
	uint8_t *page = code_map(1, RWX);
	struct pc_check check;

	(void)state;
	memcpy(page + 61, call, sizeof(call));
	assert_int_equal(pc_check_site(page + 61, jump, 2, &check), 0);
	assert_true(check.cut);
	assert_non_null(strstr(check.why, "the same part"));
	assert_int_equal(pc_check_site(page + 61, call, 5, &check), 0);
	assert_false(check.cut);
	memcpy(page + 8, call, sizeof(call));
	assert_int_equal(pc_check_site(page + 8, jump, 2, &check), 0);
	assert_false(check.cut);
	code_unmap(page, 1);
}

/* More than one instruction before the split needs an INT3 on each. */
static void test_says_which_call(void **state)
{
	static const uint8_t two[] = { 0x31, 0xc0, 0x31, 0xdb };
	static const struct {
		size_t at;
		const char *why;
	} expect[] = {
		{ 8, "one store" },
		{ 64 - 1, "word protocol" },
		{ 64 - 2, "word protocol" },
		{ 64 - 3, "pc_patch_starts" },
	};
	uint8_t *page = code_map(1, RWX);
	struct pc_check check;

	(void)state;
	for (size_t i = 0; i < LENGTH(expect); i++) {
		memset(page, CODE_NOP, CODE_PAGE);
		memcpy(page + expect[i].at, two, sizeof(two));
		assert_int_equal(pc_check_site(page + expect[i].at, two, sizeof(two), &check), 0);
		assert_non_null(strstr(check.why, expect[i].why));
		assert_int_equal(check.starts, 5);
	}
	code_unmap(page, 1);
}

/* --- What is there ------------------------------------------------------------------------ */

static void test_arguments(void **state)
{
	uint8_t *page = code_map(1, RWX), nops[PC_CHECK_MAX + 1];
	struct pc_check check;

	(void)state;
	memset(nops, CODE_NOP, sizeof(nops));
	assert_int_equal(pc_check_site(page, nops, 0, &check), -EINVAL);
	assert_int_equal(pc_check_site(page, nops, PC_CHECK_MAX + 1, &check), -EINVAL);
	assert_int_equal(pc_check_site(page, nops, SIZE_MAX, &check), -EINVAL);
	assert_int_equal(pc_check_site(page, NULL, 1, &check), -EINVAL);
	assert_int_equal(pc_check_site(page, nops, 1, NULL), -EINVAL);
	assert_int_equal(pc_check_site(page, nops, PC_CHECK_MAX, &check), -E2BIG);
	assert_int_equal(pc_check_site(page, nops, PC_PATCH_MAX, &check), 0);
	code_unmap(page, 1);
}

/* The page behind is gone, or must not be read. */
static void must_stop_at(uint8_t *end)
{
	static const uint8_t call[] = { CALL, 1, 2, 3, 4 }, nop[] = { CODE_NOP };
	struct pc_check check;

	memcpy(end - 6, call, sizeof(call));
	end[-1] = 0xc3;
	assert_int_equal(pc_check_site(end - 6, call, sizeof(call), &check), 0);
	assert_int_equal(pc_check_site(end - 1, nop, 1, &check), 0);
	end[-1] = CODE_NOP;
	assert_int_equal(pc_check_site(end - 1, nop, 1, &check), 0);
	assert_int_equal(pc_check_site(end - 1, call, 2, &check), -EFAULT);
	assert_non_null(strstr(check.why, "not all mapped"));
	assert_int_equal(pc_check_site(end, nop, 1, &check), -EFAULT);
	end[-1] = CALL;
	assert_int_equal(pc_check_site(end - 1, nop, 1, &check), -EFAULT);
	end[-1] = CODE_NOP;
	assert_int_equal(pc_check_site(end - 1, call, 1, &check), -ENOEXEC);
}

static void test_holes(void **state)
{
	uint8_t *pages = code_map(2, RWX), nop[] = { CODE_NOP };
	struct pc_check check;

	(void)state;
	assert_int_equal(mprotect(pages + CODE_PAGE, CODE_PAGE, PROT_NONE), 0);
	must_stop_at(pages + CODE_PAGE);
	munmap(pages + CODE_PAGE, CODE_PAGE);
	must_stop_at(pages + CODE_PAGE);
	assert_int_equal(pc_check_site(NULL, nop, 1, &check), -EFAULT);
	assert_int_equal(pc_check_site((void *)UINTPTR_MAX, nop, 1, &check), -EFAULT);
	assert_int_equal(pc_check_site((void *)(UINT64_C(1) << 63), nop, 1, &check), -EFAULT);
	code_unmap(pages, 1);
}

static void way_denied(const void *both)
{
	static const uint8_t call[] = { CALL, 1, 2, 3, 4 };
	uint8_t *pages = code_map(2, RWX);
	struct pc_check check;

	munmap(pages + CODE_PAGE, CODE_PAGE);
	memcpy(pages + CODE_PAGE - 5, call, sizeof(call));
	child_filter(SYS_process_vm_readv, 0, 0, SECCOMP_RET_ERRNO | EPERM);
	if (both)
		child_filter(SYS_openat, 0, 0, SECCOMP_RET_ERRNO | EACCES);
	MUST(pc_check_site(pages + CODE_PAGE - 5, call, 5, &check) == (both ? -EACCES : 0));
	MUST(pc_check_site(pages + CODE_PAGE - 4, call, 5, &check) == (both ? -EACCES : -EFAULT));
	MUST(pc_check_site(pages + CODE_PAGE, call, 5, &check) == (both ? -EACCES : -EFAULT));
}

static void test_ways_to_read(void **state)
{
	(void)state;
	child_must_pass(way_denied, NULL);
	child_must_pass(way_denied, "both");
}

/* --- Code of compilers -------------------------------------------------------------------- */

/* To put what is there already changes nothing, with any code there. */
static void test_same_code(void **state)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)must_tell, *at = code;
	struct pc_check check;

	(void)state;
	for (size_t count = 0; count < 100 && at[0] != 0xc3; count++) {
		assert_int_equal(pc_check_site(at, at, 1, &check), 0);
		for (size_t len = 1; len <= PC_PATCH_MAX; len++) {
			assert_int_equal(pc_check_site(at, at, len, &check), 0);
			assert_int_equal(check.lost_starts, 0);
			assert_int_equal(check.old_end, check.new_end);
			assert_true(check.old_end >= len);
		}
		pc_check_site(at, at, 1, &check);
		at += check.old_end;
	}
	assert_true(at - code > 20);
}

/* --- Nonsense ----------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static void must_be_sound(const struct pc_check *check, int ret, size_t len)
{
	assert_true(ret == 0 || ret == -EINVAL || ret == -EAGAIN || ret == -ENOEXEC ||
		    ret == -EILSEQ || ret == -E2BIG);
	assert_int_not_equal(check->why[0], '\0');
	assert_true(strlen(check->why) < sizeof(check->why) - 1);
	assert_int_equal(check->lost_starts, check->old_starts & ~check->new_starts);
	if (ret == -EILSEQ)
		assert_true(check->lost_starts != 0 || check->old_end != check->new_end);
	if (ret != 0)
		return;
	assert_int_equal(check->lost_starts, 0);
	assert_int_equal(check->old_end, check->new_end);
	assert_int_equal(check->starts & 1, 1);
	assert_int_equal(check->starts >> (len - 1) >> 1, 0);
	assert_true(check->old_end >= len && check->old_end <= 64);
}

/* With random code, so much of it that every kind of instruction occurs. */
static void test_random(void **state)
{
	uint8_t *page = code_map(1, RWX), code[PC_CHECK_MAX];
	uint32_t seed = 1, allowed = 0;

	(void)state;
	for (unsigned i = 0; i < 50000; i++) {
		size_t len = 1 + next_random(&seed) % (i % 8 ? PC_PATCH_MAX : PC_CHECK_MAX);
		struct pc_check check;
		int ret;

		for (size_t k = 0; k < 64; k++)
			page[k] = (uint8_t)next_random(&seed);
		for (size_t k = 0; k < sizeof(code); k++)
			code[k] = i % 3 ? (uint8_t)next_random(&seed) : page[k] ^ (k == i % 5);
		ret = pc_check_site(page, code, len, &check);
		must_be_sound(&check, ret, len);
		allowed += ret == 0;
	}
	assert_true(allowed > 1000);
	code_unmap(page, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_which_is_nonsense),
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_splits),
		cmocka_unit_test(test_window_of_the_library),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_says_which_call),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_ways_to_read),
		cmocka_unit_test(test_same_code),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
