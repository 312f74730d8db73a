/* SPDX-License-Identifier: MIT */
/* The operations that are taken in steps: one of each protocol, and of each way to write. */
#define _GNU_SOURCE /* memfd_create() */
#include "patchcore/life/tests/life.h"

/* Before call_site.h, the names of whose variables it uses for its own. */
#include "patchcore/tests/flights.h"

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/merge.h"
#include "patchcore/signals.h"
#include "patchcore/site/site.h"
#include "patchcore/tests/call_site.h"

#define TICKS 1000 /* of a wait, which is shorter than a step */
#define RUN   5u

struct life life;

static uint8_t old_code[CODE_LEN], new_code[CODE_LEN];

/* --- What all have
 * -------------------------------------------------------------------------------- */

uint32_t life_run(unsigned site)
{
	return call_run(life.site[site].entry);
}

/* FNV-1a */
static uint64_t mix(uint64_t hash, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		hash = (hash ^ (value >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
	return hash;
}

bool life_is_owned(unsigned i)
{
	struct site *site = site_find((uintptr_t)life.site[i].at);

	return site && atomic_load(&site->owner);
}

uint64_t life_bytes(unsigned i)
{
	uint64_t bytes;

	memcpy(&bytes, life.site[i].at, sizeof(bytes));
	return bytes;
}

/* The bytes, and what the library says of them: how far it is, and whether it has an owner. */
uint64_t life_state(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (unsigned i = 0; i < life.sites; i++) {
		struct site *site = site_find((uintptr_t)life.site[i].at);

		hash = mix(hash, life_bytes(i));
		if (site)
			hash = mix(hash, (uint64_t)atomic_load(&site->state) << 2 |
						 (atomic_load(&site->owner) != 0) << 1 |
						 (site_turn(site) & 1));
	}
	return hash;
}

static void lay_out(unsigned sites)
{
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	life.pages = flights_map(1, RX, 32);
	life.len = CODE_PAGE;
	life.prot = RX;
	life.sites = sites;
	for (unsigned i = 0; i < sites; i++) {
		uint8_t *at = flight_site(life.pages, 4 + 4 * i);

		life.site[i] = (struct life_site){ at, at, CODE_OLD, CODE_NEW, CODE_OLD };
	}
}

static int change_by_patch(unsigned site, bool to_new)
{
	return pc_patch(life.site[site].at, to_new ? new_code : old_code, CODE_LEN);
}

/* So that all that is made with a site is there. */
static void patch_before(void)
{
	for (unsigned i = 0; i < life.sites; i++)
		MUST(change_by_patch(i, true) == 0 && change_by_patch(i, false) == 0);
}

static void open_pages(void)
{
	MUST(pc_text_open(life.pages, life.len) == 0);
	life.prot = RWX;
}

static void prepare_open(unsigned sites)
{
	flights_use_membarrier();
	lay_out(sites);
	open_pages();
	patch_before();
}

/* --- One word
 * --------------------------------------------------------------------------------------- */

static int patch_first(void)
{
	return change_by_patch(0, true);
}

static void prepare_one(void)
{
	prepare_open(1);
}

static void prepare_wait(void)
{
	flights_use_wait(TICKS, TICKS);
	lay_out(1);
	open_pages();
	patch_before();
}

/* Neither its page is open nor the site known. */
static void prepare_closed(void)
{
	flights_use_membarrier();
	lay_out(1);
}

static void prepare_alias(void)
{
	flights_use_membarrier();
	lay_out(1);
	MUST(pc_text_alias(life.pages, life.len) == 0);
	patch_before();
}

/* --- Many, and later
 * -------------------------------------------------------------------------------- */

static int start_and_finish(void)
{
	int ret = pc_start_patch(life.site[0].at, new_code, CODE_LEN);

	while (ret == 0 && (ret = pc_finish_patch(life.site[0].at)) > 0)
		ret = 0;
	return ret;
}

static void prepare_two(void)
{
	prepare_open(2);
}

static int start_and_drain(void)
{
	int ret = 0;

	for (unsigned i = 0; i < life.sites && ret == 0; i++)
		ret = pc_start_patch(life.site[i].at, new_code, CODE_LEN);
	return ret < 0 ? ret : pc_drain();
}

/* The last of them lies in one word. */
static void prepare_batch(void)
{
	prepare_open(3);
	life.site[2].at = life.pages + CODE_PAGE - 2 * FLIGHT_LINE;
	life.site[2].entry = life.site[2].at;
	code_put(life.site[2].at, CODE_OLD);
}

static int patch_batch(void)
{
	struct pc_op ops[LIFE_SITES];

	for (unsigned i = 0; i < life.sites; i++)
		ops[i] = (struct pc_op){ .addr = life.site[i].at,
					 .bytes = new_code,
					 .len = CODE_LEN };
	return pc_patch_batch(ops, life.sites);
}

/* --- Calls
 * -------------------------------------------------------------------------------------------- */

static struct pc_call call;

static void prepare_call(void)
{
	static const struct place place = { CALL_NEAR, 3 };
	uint8_t *at;

	flights_use_membarrier();
	call_pages();
	at = put_call(place_at(&place), place.form);
	life = (struct life){
		.site = { { at, at, ONE, TWO, OFF } },
		.sites = 1,
		.pages = code,
		.len = CODE_PAGES * CODE_PAGE,
	};
	MUST(mprotect(life.pages, life.len, RX) == 0);
	open_pages();
	MUST(pc_call_init(&call, at) == 0);
}

static int change_call(unsigned site, bool to_new)
{
	(void)site;
	return pc_activate_call(&call, to_new ? two : NULL);
}

/* Off, on, and on with its first target of its own, which takes a word patch. */
static int turn_call(void)
{
	int ret = pc_deactivate_call(&call);

	if (ret == 0)
		ret = pc_activate_call(&call, NULL);
	return ret < 0 ? ret : pc_activate_call(&call, two);
}

/* A pc_call of a moment. One that a thread has left is under it for good, until it is forgotten. */
static int change_place(unsigned site, bool to_new)
{
	uint8_t *at = life.site[site].at;
	struct pc_call_info info;
	struct pc_call once;
	int ret = pc_call_init(&once, at), ended;

	if (ret == -EBUSY && pc_forget(at, CODE_LEN) == 0)
		ret = pc_call_init(&once, at);
	if (ret < 0)
		return ret;
	ret = pc_activate_call(&once, to_new ? two : one);
	if (ret == 0)
		ret = pc_call_get(&once, &info);
	ended = pc_call_fini(&once);
	return ret < 0 ? ret : ended;
}

static int change_only_place(void)
{
	return change_place(0, true);
}

static void prepare_place(void)
{
	prepare_call();
	MUST(pc_call_fini(&call) == 0);
}

/* --- Runs of NOPs
 * --------------------------------------------------------------------------------------- */

static const uint8_t nops[RUN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };

/* Loads nothing, or the number. */
static void prepare_merge(void)
{
	uint8_t *at;

	flights_use_membarrier();
	lay_out(0);
	at = life.pages + CODE_PAGE / 2 - 2;
	MUST(mprotect(life.pages, life.len, RWX) == 0);
	memcpy(at, nops, RUN);
	at[RUN] = 0xc3;
	MUST(mprotect(life.pages, life.len, RX) == 0);
	life.site[0] = (struct life_site){ at, at, 0, CODE_NEW, 0 };
	life.sites = 1;
}

static int change_run(unsigned site, bool to_new)
{
	if (!to_new)
		return pc_patch(life.site[site].at, nops, RUN);
	return pc_patch_merge(life.site[site].at, new_code, RUN, PC_CHECK_THREADS);
}

static int merge_first(void)
{
	return change_run(0, true);
}

/* Two of them at once. */
static void prepare_over(void)
{
	prepare_merge();
	life.site[1] = life.site[0];
	life.site[1].at += CODE_PAGE / 4;
	life.site[1].entry = life.site[1].at;
	life.sites = 2;
	MUST(mprotect(life.pages, life.len, RWX) == 0);
	memcpy(life.site[1].at, life.site[0].at, RUN + 1);
	MUST(mprotect(life.pages, life.len, RX) == 0);
}

static int over_both(void)
{
	struct pc_over ops[2];

	for (unsigned i = 0; i < life.sites; i++)
		ops[i] = (struct pc_over){ { life.site[i].at, new_code, RUN, 0 }, 0, 1 };
	return pc_patch_over_batch(ops, life.sites, PC_CHECK_THREADS);
}

/* --- Several instructions
 * ---------------------------------------------------------------------------------- */

#define STARTS (1u | 1u << 1) /* as if another instruction started there */

static int change_by_starts(unsigned site, bool to_new)
{
	return pc_patch_starts(life.site[site].at, to_new ? new_code : old_code, CODE_LEN, STARTS);
}

static int starts_first(void)
{
	return change_by_starts(0, true);
}

/* --- What changes no code
 * ---------------------------------------------------------------------------------- */

static int set_and_ask(void)
{
	char reason[64];
	enum pc_text_way way;
	struct pc_signals report;
	struct pc_status status;
	int ret = pc_set_policy(PC_POLICY_MEMBARRIER);

	if (ret == 0)
		ret = pc_set_accept_p(1e-6);
	if (ret == 0)
		ret = pc_set_accept_window_p(1e-6);
	if (ret == 0)
		ret = pc_get_status(&status);
	if (ret == 0)
		ret = pc_text_way(life.pages, life.len, &way, reason, sizeof(reason));
	if (ret < 0)
		return ret;
	/* A debugger's thread, say, has SIGTRAP blocked: that is for the caller to judge. */
	pc_check_signals(&report);
	return patch_first();
}

static uint8_t *other_code;

static void prepare_forget(void)
{
	prepare_one();
	other_code = flight_site(flights_map(1, RX, 8), 4);
}

static int patch_and_forget(void)
{
	int ret = pc_patch(other_code, new_code, CODE_LEN);

	if (ret == 0)
		ret = pc_forget(other_code, CODE_LEN);
	return ret < 0 ? ret : patch_first();
}

/* --- Ways to write
 * ---------------------------------------------------------------------------------------- */

static int open_and_close(void)
{
	int ret = pc_text_open(life.pages, life.len), closed;

	if (ret < 0)
		return ret;
	ret = change_by_patch(0, true);
	closed = pc_text_close(life.pages, life.len);
	return ret < 0 ? ret : closed;
}

static int alias_and_close(void)
{
	int ret = pc_text_alias(life.pages, life.len), closed;

	if (ret < 0)
		return ret;
	ret = change_by_patch(0, true);
	closed = pc_text_close(life.pages, life.len);
	return ret < 0 ? ret : closed;
}

const struct protocol protocols[] = {
	{ .name = "word",
	  .what = "`pc_patch` of a straddler by membarrier, its page open",
	  .prepare = prepare_one,
	  .operate = patch_first,
	  .change = change_by_patch,
	  .steps = 600,
	  .ready = true,
	  .single = true },
	{ .name = "wait",
	  .what = "the same by waits",
	  .prepare = prepare_wait,
	  .operate = patch_first,
	  .change = change_by_patch,
	  .steps = 1500,
	  .ready = true,
	  .single = true },
	{ .name = "protect",
	  .what = "the same where the page is not open and the site is new: `mprotect`",
	  .prepare = prepare_closed,
	  .operate = patch_first,
	  .change = change_by_patch,
	  .steps = 400,
	  .single = true },
	{ .name = "alias",
	  .what = "the same where the page has an alias",
	  .prepare = prepare_alias,
	  .operate = patch_first,
	  .change = change_by_patch,
	  .steps = 600,
	  .ready = true,
	  .single = true,
	  .alias = true },
	{ .name = "async",
	  .what = "`pc_start_patch`, then `pc_finish_patch` until it is finished",
	  .prepare = prepare_one,
	  .operate = start_and_finish,
	  .change = change_by_patch,
	  .steps = 600,
	  .ready = true,
	  .single = true },
	{ .name = "drain",
	  .what = "`pc_start_patch` of two sites, then `pc_drain`",
	  .prepare = prepare_two,
	  .operate = start_and_drain,
	  .change = change_by_patch,
	  .steps = 600,
	  .ready = true },
	{ .name = "batch",
	  .what = "`pc_patch_batch` of two straddlers and a change inside a word",
	  .prepare = prepare_batch,
	  .operate = patch_batch,
	  .change = change_by_patch,
	  .steps = 600,
	  .ready = true },
	{ .name = "call",
	  .what = "a call turned off and on, then on with another target for the first time",
	  .prepare = prepare_call,
	  .operate = turn_call,
	  .change = change_call,
	  .steps = 600,
	  .ready = true },
	{ .name = "place",
	  .what = "`pc_call_init`, `pc_activate_call` with another target, `pc_call_get`, "
		  "`pc_call_fini`",
	  .prepare = prepare_place,
	  .operate = change_only_place,
	  .change = change_place,
	  .steps = 400,
	  .ready = true },
	{ .name = "merge",
	  .what = "`pc_patch_merge` with `PC_CHECK_THREADS`; its thread takes no signals while the "
		  "INT3 "
		  "stands",
	  .prepare = prepare_merge,
	  .operate = merge_first,
	  .change = change_run,
	  .steps = 400,
	  .single = true },
	{ .name = "over",
	  .what = "`pc_patch_over_batch` of two runs of NOPs, likewise",
	  .prepare = prepare_over,
	  .operate = over_both,
	  .change = change_run,
	  .steps = 400 },
	{ .name = "starts",
	  .what = "`pc_patch_starts`, with two starts before the boundary",
	  .prepare = prepare_one,
	  .operate = starts_first,
	  .change = change_by_starts,
	  .steps = 600,
	  .ready = true,
	  .single = true },
	{ .name = "settings",
	  .what = "`pc_set_policy`, `pc_set_accept_p`, `pc_set_accept_window_p`, `pc_get_status`, "
		  "`pc_text_way`, "
		  "`pc_check_signals`, then `pc_patch`",
	  .prepare = prepare_one,
	  .operate = set_and_ask,
	  .change = change_by_patch,
	  .steps = 600,
	  .ready = true,
	  .single = true },
	{ .name = "forget",
	  .what = "`pc_patch` and `pc_forget` of other code, then `pc_patch`",
	  .prepare = prepare_forget,
	  .operate = patch_and_forget,
	  .change = change_by_patch,
	  .steps = 400,
	  .ready = true,
	  .single = true },
	{ .name = "open",
	  .what = "`pc_text_open`, `pc_patch`, `pc_text_close`",
	  .prepare = prepare_closed,
	  .operate = open_and_close,
	  .change = change_by_patch,
	  .steps = 300 },
	{ .name = "mapping",
	  .what = "`pc_text_alias`, `pc_patch`, `pc_text_close`",
	  .prepare = prepare_closed,
	  .operate = alias_and_close,
	  .change = change_by_patch,
	  .steps = 300,
	  .alias = true },
};

const unsigned protocol_count = sizeof(protocols) / sizeof(*protocols);
