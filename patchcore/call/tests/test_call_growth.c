/* SPDX-License-Identifier: MIT */
/*
 * What many calls leave in the process: mappings and memory, counted. Calls that lead to one
 * target share their stubs, and code that is forgotten leaves nothing.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/patchcore.h"
#include "patchcore/tests/call_site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/scale.h"
#include "patchcore/tests/start.h"

#define MANY	    20000u
#define STEP	    32u /* bytes from one call to the next */
#define MANY_OFFSET 0x100000

static uint8_t *many;

static void start(void)
{
	if (CHILD_ASAN || CHILD_TSAN)
		child_skip("a sanitizer has its own malloc()");
	start_by_membarrier();
	call_pages();
	many = call_page(code + MANY_OFFSET, MANY * STEP / CODE_PAGE + 1);
	MUST(pc_text_open(many, MANY * STEP) == 0);
	MUST(pc_text_open(code, CODE_PAGES * CODE_PAGE) == 0);
}

static unsigned mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned count = 0;
	int c;

	MUST(file);
	while ((c = getc(file)) != EOF)
		count += c == '\n';
	fclose(file);
	return count;
}

/* --- Many calls ------------------------------------------------------------------------- */

static unsigned count_of(unsigned all)
{
	return test_scale() < 1 ? all / 10 : all;
}

/* The calls of one split, each to one and then to those targets. Returns how many mappings. */
static unsigned added_by(const struct place *place, uint8_t *const targets[2])
{
	static struct pc_call calls[MANY];
	unsigned before = mappings(), after;

	for (unsigned i = 0; i < count_of(MANY); i++) {
		uint8_t *at = many + (size_t)i * STEP + STEP - 8 - place->split;

		call_encode(at, place->form, to_target(at, place->form, one));
		at[call_shapes[place->form].len] = 0xc3;
		MUST(pc_call_init(&calls[i], at) == 0);
		for (int j = 0; j < 2 && targets[j]; j++)
			MUST(pc_activate_call(&calls[i], targets[j]) == 0);
	}
	after = mappings();
	for (unsigned i = 0; i < count_of(MANY); i += 97) {
		call_must_turn_off(&calls[i]);
		call_must_turn(&calls[i], targets[0], targets[0], targets[0] == two ? TWO : FAR);
		call_must_turn(&calls[i], NULL, one, ONE);
	}
	return after - before;
}

/* A stub for all, which takes one pool. */
static void one_target(const void *arg)
{

	start();
	MUST(added_by(arg, (uint8_t *const[2]){ far_away, NULL }) <= 2 * 4);
}

/* A stub for each, all with the same low byte: each pool is as large as those before it. */
static void own_targets(const void *arg)
{
	start();
	MUST(added_by(arg, (uint8_t *const[2]){ two, far_away }) <= 2 * 16);
}

/* --- One place, again and again ------------------------------------------------------------- */

#define ROUNDS 2000u

static size_t used_bytes(void)
{
	return mallinfo2().uordblks;
}

/* A call with both kinds of stubs, or with none, forgotten while it is on or off, or given up. */
static void use_and_forget(const struct place *place, unsigned round)
{
	uint8_t *at = put_call(place_at(place), place->form);
	struct pc_call call;

	MUST(pc_call_init(&call, at) == 0);
	if (round % 4 > 0)
		MUST(pc_activate_call(&call, far_away) == 0 && call_run(at) == FAR);
	if (round % 4 > 1)
		MUST(pc_activate_call(&call, two) == 0 && call_run(at) == TWO);
	if (round % 4 > 2)
		MUST(pc_deactivate_call(&call) == 0 && call_run(at) == OFF);
	if (round % 8 > 4)
		MUST(pc_call_fini(&call) == 0);
	MUST(pc_forget(code, CODE_PAGES * CODE_PAGE) == 0);
	MUST(pc_text_open(code, CODE_PAGES * CODE_PAGE) == 0);
}

static void forgotten(const void *arg)
{
	unsigned had_mappings = 0;
	size_t had_bytes = 0;

	start();
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (i == 16) {
			had_mappings = mappings();
			had_bytes = used_bytes();
		}
		use_and_forget(arg, i);
	}
	MUST(mappings() == had_mappings && used_bytes() == had_bytes);
}

/* Each time somewhere else: what one has given back, the next one has. */
static void forgotten_elsewhere(const void *arg)
{
	const struct place *place = arg;
	unsigned had = 0;

	start();
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint8_t *at = many + (size_t)i * STEP + STEP - 8 - place->split;
		struct pc_call call;

		if (i == 16)
			had = mappings();
		call_encode(at, place->form, to_target(at, place->form, one));
		MUST(pc_call_init(&call, at) == 0);
		MUST(pc_activate_call(&call, far_away) == 0 && pc_activate_call(&call, two) == 0);
		MUST(pc_activate_call(&call, call.addr + 1) == 0);
		MUST(pc_forget(at, CALL_MAX) == 0);
	}
	/* malloc() may have got some memory for what the library knows of 2,000 addresses. */
	MUST(mappings() <= had + 2);
}

/* A pc_call whose code was forgotten leaves the stubs alone, which another call has now. */
static void forgotten_is_refused(const void *arg)
{
	const struct place *place = arg;
	struct pc_call_info info;
	struct pc_call calls[2];
	uint8_t *at[2];

	start();
	for (unsigned i = 0; i < 2; i++) {
		at[i] = many + (size_t)(2 * i + 1) * STEP - 8 - place->split;
		call_encode(at[i], place->form, to_target(at[i], place->form, one));
		MUST(pc_call_init(&calls[i], at[i]) == 0);
		MUST(pc_activate_call(&calls[i], far_away) == 0);
		MUST(pc_activate_call(&calls[i], two) == 0);
		MUST(pc_activate_call(&calls[i], at[i] + 1) == 0);
		if (i == 0)
			MUST(pc_forget(at[i], CALL_MAX) == 0);
	}
	MUST(pc_activate_call(&calls[0], far_away) == -ENOENT);
	MUST(pc_activate_call(&calls[0], (uint8_t *)far_away + 1) == -ENOENT);
	MUST(pc_call_get(&calls[1], &info) == 0 && info.target == at[1] + 1);
}

static const struct CMUnitTest tests[] = {
	AT_PLACE(one_target, 0),
	AT_PLACE(one_target, 2),
	AT_PLACE(one_target, 3),
	AT_PLACE(one_target, 4),
	AT_PLACE(one_target, 10),
	AT_PLACE(one_target, 11),
	AT_PLACE(one_target, 14),
	AT_PLACE(one_target, 17),
	AT_PLACE(one_target, 25),
	AT_PLACE(own_targets, 0),
	AT_PLACE(own_targets, 3),
	AT_PLACE(own_targets, 10),
	AT_PLACE(own_targets, 11),
	AT_PLACE(own_targets, 17),
	AT_PLACE(own_targets, 25),
	AT_ALL_PLACES(forgotten),
	AT_ALL_PLACES(forgotten_elsewhere),
	AT_ALL_PLACES(forgotten_is_refused),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
