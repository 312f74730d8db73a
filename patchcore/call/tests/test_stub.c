/* SPDX-License-Identifier: MIT */
/* Stubs: what they do, where they are put, and what happens where there is no room for them. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/call/stub.h"
#include "patchcore/pages/text.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/call_site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/mappings.h"

#define REACH	   UINT64_C(0x80000000)
#define POOL_PAGES 3 /* of the first pool in some region: code, and twice as much data */

static uintptr_t near_by; /* an address that displacements count from */

static void start_library(void)
{
	conf_use_none();
	MUST(pc_init() == 0);
	call_pages();
	near_by = (uintptr_t)code + 512;
}

/* For a holder that has none yet. */
static int take_stub(struct stub **stub, uintptr_t end, int low)
{
	struct stubs stubs = { NULL, NULL };

	return stub_get(stub, &stubs, end, low, NULL);
}

/* --- What they do ------------------------------------------------------------------- */

static void must_jump(struct stub *stub)
{
	atomic_store(&stub->target, one);
	MUST(call_run(stub->code) == ONE);
	atomic_store(&stub->target, far_away);
	MUST(call_run(stub->code) == FAR);
}

static void get_every_low_byte(const void *arg)
{
	struct stub *stub;

	(void)arg;
	start_library();
	for (int low = 0; low < 256; low++) {
		MUST(take_stub(&stub, near_by, low) == 0);
		MUST((uint8_t)(uintptr_t)stub->code == low);
		MUST(stub_in_reach(near_by, (uintptr_t)stub->code));
		MUST(stub_in_reach(near_by, (uintptr_t)stub));
		MUST(code_prot(stub->code) == RX);
		MUST(code_prot(stub) == (PROT_READ | PROT_WRITE));
		/* Without a target the stub returns. */
		MUST(call_run(stub->code) == OFF);
		must_jump(stub);
	}
}

#define MANY 1000

static int compare_addresses(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

/* More than one page has, and no two the same. */
static void take_many_stubs(const void *low)
{
	static uintptr_t got[2 * MANY];
	struct stub *stub;

	start_library();
	for (int i = 0; i < MANY; i++) {
		MUST(take_stub(&stub, near_by, low ? *(const int *)low : STUB_ANY) == 0);
		must_jump(stub);
		got[2 * i] = (uintptr_t)stub->code;
		got[2 * i + 1] = (uintptr_t)stub;
	}
	qsort(got, 2 * MANY, sizeof(*got), compare_addresses);
	for (int i = 1; i < 2 * MANY; i++)
		MUST(got[i] - got[i - 1] >= 8);
}

static void test_many(void **state)
{
	static const int low = 0xaf;

	(void)state;
	child_must_pass(take_many_stubs, NULL);
	child_must_pass(take_many_stubs, &low);
}

static void put_stubs_back(const void *arg)
{
	struct stubs first = { NULL, NULL }, second = { NULL, NULL };
	struct stub *stub, *other, *third;

	(void)arg;
	start_library();
	MUST(stub_get(&stub, &first, near_by, 0x40, NULL) == 0);
	MUST(stub_get(&other, &first, near_by, 0x40, NULL) == 0 && other == stub);
	MUST(stub_get(&other, &first, near_by, STUB_ANY, NULL) == 0 && other == stub);
	MUST(stub_get(&other, &second, near_by, 0x40, NULL) == 0 && other != stub);
	/* One more, of another lowest byte. */
	MUST(stub_get(&third, &first, near_by, 0x50, NULL) == 0 && third != stub);
	MUST(stub_get(&third, &first, near_by, 0x40, NULL) == 0 && third == stub);
	must_jump(stub);
	stubs_put(&first);
	MUST(!first.own && !first.shared);
	MUST(stub_get(&third, &second, near_by, 0x40, NULL) == 0 && third == other);
	MUST(stub_get(&third, &first, near_by, 0x40, NULL) == 0 && third == stub);
	/* It leads nowhere again. */
	MUST(call_run(stub->code) == OFF);
}

/* One for all who want the same, for as long as any of them has it. */
static void share_a_stub(const void *arg)
{
	struct stubs first = { NULL, NULL }, second = { NULL, NULL };
	struct stub *stub, *other;

	(void)arg;
	start_library();
	MUST(stub_get(&stub, &first, near_by, 0x40, one) == 0 && call_run(stub->code) == ONE);
	MUST(stub_get(&other, &first, near_by, 0x40, one) == 0 && other == stub);
	/* Another one is that holder's own affair. */
	MUST(stub_get(&other, &first, near_by, 0x40, two) == 0 && other != stub);
	MUST(other == first.own && call_run(other->code) == OFF);
	MUST(stub_get(&other, &first, near_by, 0x50, one) == 0 && other != stub);
	MUST(other == first.own && other->next);
	MUST(stub_get(&other, &first, near_by, 0x40, one) == 0 && other == stub);
	MUST(stub_get(&other, &second, near_by, STUB_ANY, one) == 0 && other == stub);
	stubs_put(&first);
	MUST(call_run(stub->code) == ONE);
	MUST(stub_get(&other, &first, near_by, 0x40, two) == 0 && other != stub);
	MUST(call_run(stub->code) == ONE && call_run(other->code) == TWO);
	stubs_put(&first);
	/* Out of reach it is not shared. */
	MUST(stub_get(&other, &first, (uintptr_t)far_away, STUB_ANY, one) == 0 && other != stub);
	stubs_put(&first);
	stubs_put(&second);
	MUST(stub_get(&other, &first, near_by, 0x40, two) == 0 && call_run(other->code) == TWO);
}

static void share_one_ret(const void *arg)
{
	void *code_at, *slot_at, *other;
	struct stub *stub;

	(void)arg;
	start_library();
	MUST(stub_ret_get(&code_at, near_by, false) == 0);
	MUST(stub_ret_get(&slot_at, near_by, true) == 0);
	MUST(stub_ret_get(&other, near_by + (REACH / 2 - REACH / 16), false) == 0);
	MUST(other == code_at && *(uint8_t *)code_at == 0xc3 && call_run(code_at) == OFF);
	/* An indirect call enters by an ENDBR64. */
	MUST(memcmp(*(void **)slot_at, "\xf3\x0f\x1e\xfa\xc3", 5) == 0);
	MUST(take_stub(&stub, near_by, STUB_ANY) == 0 && stub != slot_at);
	MUST((uintptr_t)stub->code / CODE_PAGE == (uintptr_t)code_at / CODE_PAGE);
	/* And another one for a call that is too far away. */
	MUST(stub_ret_get(&other, (uintptr_t)far_away, false) == 0);
	MUST(other != code_at && stub_in_reach((uintptr_t)far_away, (uintptr_t)other));
}

static void use_a_stub_in_a_child(const void *arg)
{
	struct stub *stub;

	start_library();
	MUST(take_stub(&stub, near_by, STUB_ANY) == 0);
	atomic_store(&stub->target, one);
	if (arg)
		return;
	MUST(WEXITSTATUS(child_run(use_a_stub_in_a_child, "")) == 0);
	MUST(call_run(stub->code) == ONE);
}

/* --- Where they are put ----------------------------------------------------------------- */

static void fill_gap(uintptr_t from, uintptr_t to)
{
	uintptr_t low = near_by - REACH - CODE_PAGE, high = near_by + REACH + CODE_PAGE;

	from = from > low ? from : low & ~(uintptr_t)(CODE_PAGE - 1);
	to = to < high ? to : high & ~(uintptr_t)(CODE_PAGE - 1);
	if (from < to)
		MUST(mmap((void *)from, to - from, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			  0) == (void *)from);
}

/* Leave nothing free that a displacement can reach. */
static void fill_reach(void)
{
	struct mapping *map;
	int count = mappings_read(0, UINTPTR_MAX, &map);
	uintptr_t reached = 0x100000;

	MUST(count > 0);
	for (int i = 0; i < count; i++) {
		fill_gap(reached, map[i].start);
		reached = map[i].end > reached ? map[i].end : reached;
	}
	free(map);
}

static void must_be_put(uintptr_t hole)
{
	struct stub *stub;

	MUST(munmap((void *)hole, POOL_PAGES * CODE_PAGE) == 0);
	MUST(take_stub(&stub, near_by, STUB_ANY) == 0);
	MUST((uintptr_t)stub->code / CODE_PAGE == hole / CODE_PAGE);
	must_jump(stub);
}

/* One hole is left, and it is found, right at the edge of what is in reach too. */
static void find_the_last_hole(const void *arg)
{
	const int64_t *offset = arg;
	struct stub *stub;

	start_library();
	fill_reach();
	MUST(take_stub(&stub, near_by, STUB_ANY) == -ENOSPC);
	/* Two pages are too few. */
	MUST(munmap(code - 0x100000, 2 * CODE_PAGE) == 0);
	MUST(take_stub(&stub, near_by, STUB_ANY) == -ENOSPC);
	must_be_put(((uintptr_t)code & ~(uintptr_t)(CODE_PAGE - 1)) + (uintptr_t)*offset);
}

static void test_crowded(void **state)
{
	static const int64_t offsets[] = { -(INT64_C(0x80000000) - 0x3000), -0x900000, 0x900000,
					   INT64_C(0x80000000) - 0x4000 };

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
		child_must_pass(find_the_last_hole, &offsets[i]);
}

static void refuse_a_hole_too_far_away(const void *arg)
{
	const int64_t *offset = arg;
	struct stub *stub;

	start_library();
	fill_reach();
	munmap(code + *offset, POOL_PAGES * CODE_PAGE);
	MUST(take_stub(&stub, near_by, STUB_ANY) == -ENOSPC);
}

static void test_just_too_far(void **state)
{
	static const int64_t offsets[] = { -INT64_C(0x80000000), INT64_C(0x80000000) - 0x3000 };

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
		child_must_pass(refuse_a_hole_too_far_away, &offsets[i]);
}

/* The hole below the main thread's stack is used from its other end. */
static void take_the_hole_below_the_stack(const void *arg)
{
	uintptr_t stack = getauxval(AT_RANDOM), low;
	struct mapping *map;
	struct stub *stub;
	int count, i;

	(void)arg;
	start_library();
	count = mappings_read(0, UINTPTR_MAX, &map);
	for (i = 0; i < count && map[i].end <= stack; i++)
		;
	MUST(i > 0 && i < count && map[i].start <= stack);
	low = map[i - 1].end;
	if (map[i].start - low < 4 * 1024 * CODE_PAGE)
		child_skip("no room below the stack");
	/* All that is in reach but that hole. */
	near_by = low;
	MUST(mmap((void *)low, map[i].start - low, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == (void *)low);
	fill_reach();
	MUST(munmap((void *)low, map[i].start - low) == 0);
	MUST(take_stub(&stub, near_by, STUB_ANY) == 0);
	MUST((uintptr_t)stub->code / CODE_PAGE == low / CODE_PAGE);
}

/* --- Where there is no room ----------------------------------------------------------------- */

static void must_turn(struct pc_call *call)
{
	for (int i = 0; i < 3; i++) {
		MUST(pc_deactivate_call(call) == 0 && call_run(call->addr) == OFF);
		MUST(pc_activate_call(call, NULL) == 0 && call_run(call->addr) == ONE);
	}
}

static void make_a_call_without_room(const void *arg)
{
	const struct place *place = arg;
	bool has_way = place->split != 1 || call_shapes[place->form].tail;
	uint8_t before[CALL_MAX], *at;
	struct pc_call call;

	start_library();
	memset(code, 0x41, CODE_PAGES * CODE_PAGE);
	at = code + 1024 - place->split;
	call_encode(at, place->form, to_target(at, place->form, one));
	memcpy(before, at, CALL_MAX);
	/* No padding behind it. */
	at[call_shapes[place->form].len] = 0xc3;
	memcpy(before, at, CALL_MAX);
	fill_reach();
	MUST(pc_call_init(&call, at) == (has_way ? 0 : -ENOSPC));
	MUST(memcmp(at, before, CALL_MAX) == 0);
	if (has_way)
		must_turn(&call);
	/* No stub, no other target, unless one store can take it there. */
	if (has_way)
		MUST(pc_activate_call(&call, two) == -ENOSPC && call_run(at) == ONE);
}

/* Two bytes of front where one word holds them. */
static void test_nothing_at_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < PLACES; i++)
		child_must_pass(make_a_call_without_room, &places[i]);
}

/* --- Where the system allows no new code ------------------------------------------------------ */

/* Memory that was writable may not become executable, a file may be mapped so. */
static void get_a_stub_without_mprotect(const void *arg)
{
	struct stub *stub;

	(void)arg;
	start_library();
	child_filter(SYS_mprotect, 2, PROT_EXEC, SECCOMP_RET_ERRNO | EACCES);
	MUST(take_stub(&stub, near_by, STUB_ANY) == 0);
	MUST(code_prot(stub->code) == RX);
	must_jump(stub);
}

/* An error, and not the signal that comes with a file that is too large. */
static void refuse_without_a_file(const void *arg)
{
	static const struct rlimit none = { 0, 0 };
	struct stub *stub;

	(void)arg;
	start_library();
	child_filter(SYS_mprotect, 2, PROT_EXEC, SECCOMP_RET_ERRNO | EACCES);
	setrlimit(RLIMIT_FSIZE, &none);
	MUST(take_stub(&stub, near_by, STUB_ANY) == -ENOSPC);
}

static void refuse_without_new_code(const void *arg)
{
	struct pc_call call;
	struct stub *stub;
	void *ret;

	(void)arg;
	start_library();
	put_call(code + 1024, CALL_NEAR);
	MUST(pc_text_open(code, CODE_PAGE) == 0);
	child_filter(SYS_mprotect, 2, PROT_EXEC, SECCOMP_RET_ERRNO | EACCES);
	child_filter(SYS_mmap, 2, PROT_EXEC, SECCOMP_RET_ERRNO | EACCES);
	for (int i = 0; i < 3; i++) {
		MUST(take_stub(&stub, near_by, STUB_ANY) == -ENOSPC);
		MUST(stub_ret_get(&ret, near_by, false) == -ENOSPC);
	}
	MUST(pc_call_init(&call, code + 1024) == 0 && call.way == PC_CALL_FRONT);
	must_turn(&call);
	MUST(pc_activate_call(&call, far_away) == -ENOSPC);
}

static void refuse_without_memory(const void *arg)
{
	struct stub *stub;

	(void)arg;
	if (CHILD_ASAN)
		child_skip("the sanitizer needs memory of its own");
	start_library();
	MUST(take_stub(&stub, near_by, STUB_ANY) == 0);
	child_filter(SYS_mmap, 3, MAP_ANONYMOUS, SECCOMP_RET_ERRNO | ENOMEM);
	/* What is there already serves on. */
	MUST(take_stub(&stub, near_by, STUB_ANY) == 0);
	must_jump(stub);
	MUST(take_stub(&stub, near_by, 0x05) == -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		child_unit_test(get_every_low_byte),
		cmocka_unit_test(test_many),
		child_unit_test(put_stubs_back),
		child_unit_test(share_a_stub),
		child_unit_test(share_one_ret),
		child_unit_test(use_a_stub_in_a_child),
		cmocka_unit_test(test_crowded),
		cmocka_unit_test(test_just_too_far),
		cmocka_unit_test(test_nothing_at_all),
		child_unit_test(get_a_stub_without_mprotect),
		child_unit_test(refuse_without_a_file),
		child_unit_test(refuse_without_new_code),
		child_unit_test(refuse_without_memory),
		child_unit_test(take_the_hole_below_the_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
