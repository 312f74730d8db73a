/* SPDX-License-Identifier: MIT */
/*
 * What may be called in a signal handler, called in one that comes after every
 * instruction of the others.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/call.h"
#include "patchcore/tests/flights.h"
#include "patchcore/tests/step.h"

#define STEPS  4000 /* at most, of each */
#define STRIDE 7    /* a handler takes long */

static uint8_t *pages, *same, *other, *inside, *call_at;
static struct pc_call call;
static unsigned long handled;
static int outcome;

/* Old and new by turns; a site that is held refuses, and that is all that may happen. */
static void change(int (*patch)(void *, const void *, size_t), uint8_t *at)
{
	uint8_t bytes[CODE_LEN];
	int ret;

	code_load(bytes, handled % 2 ? CODE_NEW : CODE_OLD);
	ret = patch(at, bytes, CODE_LEN);
	MUST(ret == 0 || ret == -EAGAIN);
}

static bool handle(void)
{
	if (step_now.count % STRIDE)
		return step_now.count < STEPS;
	handled++;
	change(pc_patch, other);
	change(pc_patch, same);
	change(pc_patch, inside);
	change(pc_start_patch, same);
	MUST(pc_finish_patch(same) >= 0);
	MUST(handled % 2 ? pc_activate_call(&call, NULL) == 0 : pc_deactivate_call(&call) == 0);
	return step_now.count < STEPS;
}

static void run_patch(void)
{
	uint8_t bytes[CODE_LEN];

	code_load(bytes, CODE_NEW);
	outcome = pc_patch(same, bytes, CODE_LEN);
}

static void run_start(void)
{
	uint8_t bytes[CODE_LEN];

	code_load(bytes, CODE_NEW);
	outcome = pc_start_patch(same, bytes, CODE_LEN);
}

static void run_drain(void)
{
	outcome = pc_drain();
}

static void run_batch(void)
{
	uint8_t bytes[CODE_LEN];
	struct pc_op ops[] = {
		{ .addr = same, .bytes = bytes, .len = CODE_LEN },
		{ .addr = inside, .bytes = bytes, .len = CODE_LEN },
	};

	code_load(bytes, CODE_OLD);
	outcome = pc_patch_batch(ops, 2);
}

static void run_call(void)
{
	outcome = pc_deactivate_call(&call);
}

static void run_text(void)
{
	outcome = pc_text_open(pages, CODE_PAGE);
	if (outcome == 0)
		outcome = pc_text_close(pages, CODE_PAGE);
}

static void run_malloc(void)
{
	for (int i = 0; i < 20; i++)
		free(malloc(100u << i));
	outcome = 0;
}

/* Known beforehand, so that nothing is allocated. */
static void get_ready(void)
{
	static const uint8_t code[] = { 0xe8, 0, 1, 0, 0 };

	pages = code_map(2, RWX);
	same = flight_site(pages, 0);
	other = flight_site(pages, 4);
	inside = pages + 512;
	call_at = pages + 1024;
	flight_put(same, CODE_OLD);
	flight_put(other, CODE_OLD);
	flight_put(inside, CODE_OLD);
	memcpy(call_at, code, sizeof(code));
	MUST(pc_text_open(pages, 2 * CODE_PAGE) == 0);
	MUST(pc_call_init(&call, call_at) == 0);
	change(pc_patch, same);
	change(pc_patch, other);
}

static void handlers(const void *arg)
{
	static void (*const runs[])(void) = { run_patch, run_start, run_drain, run_batch,
					      run_call,	 run_text,  run_malloc };

	(void)arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer takes no steps");
	conf_use_none();
	step_install();
	MUST(pc_init() == 0);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier SYNC_CORE");
	get_ready();
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		handled = 0;
		step_run(runs[i], handle);
		MUST(outcome == 0 || outcome == -EAGAIN);
		MUST(handled > 0);
		MUST(pc_drain() == 0);
		MUST(flight_look(same) == FLIGHT_OLD || flight_look(same) == FLIGHT_NEW);
		MUST(flight_look(other) == FLIGHT_OLD || flight_look(other) == FLIGHT_NEW);
		MUST(code_run(inside) == CODE_OLD || code_run(inside) == CODE_NEW);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { child_unit_test(handlers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
