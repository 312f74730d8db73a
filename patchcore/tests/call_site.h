/* SPDX-License-Identifier: MIT */
/*
 * Calls to turn on and off: every form at every split, with targets that return
 * a number each. No byte of the displacement to one is that of the other, and
 * between them there is no memory: a mix of the two is a crash.
 *
 * For tests in a child, in cmocka tests, which include cmocka.h first.
 */
#ifndef PATCHCORE_TESTS_CALL_SITE_H
#define PATCHCORE_TESTS_CALL_SITE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "patchcore/call.h"
#include "patchcore/call/call_form.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"

#define REGION	   UINT64_C(0x20000000)
#define CODE_AT	   UINT64_C(0x10000000)
#define CODE_PAGES 2
#define ONE_AT	   (CODE_AT + 0x05213000)
#define TWO_AT	   (CODE_AT - 0x0abcc000)
#define ONE_IN	   0x340 /* their place on the page */
#define TWO_IN	   0x580
#define SLOT_AT	   (CODE_AT + 0x4000)

#define MARGIN 16 /* bytes on either side of a call that must stay as they are */

/* What a call returns, by where it goes. */
enum {
	OFF = 0,
	ONE = 1,
	TWO = 2,
	FAR = 3
};

struct place {
	enum call_form form;
	unsigned split;
};

#define PLACES 28

static const struct place places[PLACES] = {
	{ CALL_NEAR, 0 },      { CALL_NEAR, 1 },      { CALL_NEAR, 2 },	     { CALL_NEAR, 3 },
	{ CALL_NEAR, 4 },      { CALL_ADDR32, 0 },    { CALL_ADDR32, 1 },    { CALL_ADDR32, 2 },
	{ CALL_ADDR32, 3 },    { CALL_ADDR32, 4 },    { CALL_ADDR32, 5 },    { CALL_SLOT, 0 },
	{ CALL_SLOT, 1 },      { CALL_SLOT, 2 },      { CALL_SLOT, 3 },	     { CALL_SLOT, 4 },
	{ CALL_SLOT, 5 },      { CALL_TAIL, 0 },      { CALL_TAIL, 1 },	     { CALL_TAIL, 2 },
	{ CALL_TAIL, 3 },      { CALL_TAIL, 4 },      { CALL_TAIL_SLOT, 0 }, { CALL_TAIL_SLOT, 1 },
	{ CALL_TAIL_SLOT, 2 }, { CALL_TAIL_SLOT, 3 }, { CALL_TAIL_SLOT, 4 }, { CALL_TAIL_SLOT, 5 },
};

static uint8_t *code, *one, *two, *far_away;
static void **slot;

static inline uint8_t *call_page(uint8_t *at, size_t pages)
{
	MUST(mprotect(at, pages * CODE_PAGE, RWX) == 0);
	memset(at, CODE_NOP, pages * CODE_PAGE);
	return at;
}

/* Further than any displacement reaches. */
static inline uint8_t *map_far(void)
{
	for (uint64_t i = 1; i < 64; i++) {
		uint8_t *wanted = code + i * UINT64_C(0x140000000);
		uint8_t *at = mmap(wanted, CODE_PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED)
			continue;
		if (llabs((int64_t)(at - code)) > INT64_C(0x90000000))
			return at;
		munmap(at, CODE_PAGE);
	}
	child_skip("no memory far away");
	return NULL;
}

static inline void call_pages(void)
{
	uint8_t *region =
		mmap(NULL, REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	MUST(region != MAP_FAILED);
	code = call_page(region + CODE_AT, CODE_PAGES);
	one = call_page(region + ONE_AT, 1) + ONE_IN;
	two = call_page(region + TWO_AT, 1) + TWO_IN;
	far_away = call_page(map_far(), 1);
	slot = (void **)call_page(region + SLOT_AT, 1);
	code_put(one, ONE);
	code_put(two, TWO);
	code_put(far_away, FAR);
	*slot = one;
}

/* eax, which the call loads if it is on. */
static inline uint32_t call_run(const uint8_t *at)
{
	uint32_t number = OFF;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n" /* leave the red zone alone */
			 "call *%1\n"
			 "lea 128(%%rsp), %%rsp"
			 : "+a"(number)
			 : "r"(at)
			 : "memory", "cc");
	return number;
}

static inline int32_t to_target(const uint8_t *at, enum call_form form, const uint8_t *target)
{
	const uint8_t *to = call_shapes[form].slot ? (const uint8_t *)slot : target;

	return (int32_t)(to - (at + call_shapes[form].len));
}

static inline void must_differ_everywhere(const uint8_t *at, enum call_form form)
{
	uint32_t a = (uint32_t)to_target(at, form, one), b = (uint32_t)to_target(at, form, two);

	for (int i = 0; i < 32 && !call_shapes[form].slot; i += 8)
		MUST((a >> i & 0xff) != (b >> i & 0xff));
}

/* Across a boundary of every window. */
static inline uint8_t *place_at(const struct place *place)
{
	return code + CODE_PAGE - place->split;
}

/* A call to `one` and a ret, among NOPs. */
static inline uint8_t *put_call(uint8_t *at, enum call_form form)
{
	size_t len;

	memset(at - MARGIN, CODE_NOP, 2 * MARGIN + CALL_MAX + 1);
	len = call_encode(at, form, to_target(at, form, one));
	at[len] = 0xc3;
	must_differ_everywhere(at, form);
	return at;
}

static inline void call_must_be(const struct pc_call *call, int active, void *target)
{
	struct pc_call_info info;

	MUST(pc_call_get(call, &info) == 0);
	MUST(info.active == active && info.target == target);
}

static inline void call_must_turn(struct pc_call *call, void *target, void *expected,
				  uint32_t number)
{
	MUST(pc_activate_call(call, target) == 0);
	MUST(call_run(call->addr) == number);
	call_must_be(call, 1, expected);
}

static inline void call_must_turn_off(struct pc_call *call)
{
	MUST(pc_deactivate_call(call) == 0);
	MUST(call_run(call->addr) == OFF);
	call_must_be(call, 0, NULL);
}

/* A test for each place, or for some of them: NAME gets the place as its argument. */
#define AT_PLACE(name, i) child_unit_case(#name " " #i, name, &places[i])

#define AT_PLACES(name, first)                                                                     \
	AT_PLACE(name, (first) + 0), AT_PLACE(name, (first) + 1), AT_PLACE(name, (first) + 2),     \
		AT_PLACE(name, (first) + 3), AT_PLACE(name, (first) + 4)

#define AT_ALL_PLACES(name)                                                                        \
	AT_PLACES(name, 0), AT_PLACES(name, 5), AT_PLACES(name, 10), AT_PLACES(name, 15),          \
		AT_PLACES(name, 20), AT_PLACE(name, 25), AT_PLACE(name, 26), AT_PLACE(name, 27)

#endif
