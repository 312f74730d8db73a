/* SPDX-License-Identifier: MIT */
/* The protocol for a straddler, instruction by instruction and sync by sync. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>
#include <x86intrin.h>

#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/step.h"
#include "patchcore/word/word.h"

/* Ticks. The long waits are longer than a few steps take. */
#define SHORT_FIRST  600
#define SHORT_SECOND 700
#define LONG_FIRST   3000000
#define LONG_SECOND  5000000

/*
 * Steps that a test may take in all, at some 10 us each. Enough for all that it
 * wants to see, unless there is a sanitizer at work or no optimisation.
 */
#define BUDGET 80000

#define FRONT 2 /* bytes of the straddler before the boundary */

/* --- The site and its states -------------------------------------------------------- */

static uint8_t *page, *site;
static uint8_t old_code[CODE_LEN], new_code[CODE_LEN];

enum state {
	OLD_OLD,
	INT3_OLD,
	INT3_NEW,
	NEW_NEW,
	MIXED
};

static bool part_is(const uint8_t *code, size_t from, size_t to)
{
	return memcmp(site + from, code + from, to - from) == 0;
}

/* The second byte belongs to the front, which changes as a whole at the end. */
static enum state state_now(void)
{
	bool held = *site == CODE_INT3 && part_is(old_code, 1, FRONT);

	if (part_is(old_code, 0, CODE_LEN))
		return OLD_OLD;
	if (held && part_is(old_code, FRONT, CODE_LEN))
		return INT3_OLD;
	if (held && part_is(new_code, FRONT, CODE_LEN))
		return INT3_NEW;
	return part_is(new_code, 0, CODE_LEN) ? NEW_NEW : MIXED;
}

static void put_old(void)
{
	memcpy(site, old_code, CODE_LEN);
	site[CODE_LEN] = 0xc3;
}

/* --- What is run in steps ----------------------------------------------------------- */

static struct {
	uint8_t *addr;
	uint8_t bytes[PC_PATCH_MAX];
	size_t len;
	struct sync sync;
	int ret;
} patch;

static void all_of_it(void)
{
	patch.ret = pc_patch(patch.addr, patch.bytes, patch.len);
}

/* A third of the steps, for tests that go through all of them many times. */
static void stores_only(void)
{
	struct change change = change_in_place(patch.addr, patch.bytes, patch.len);

	patch.ret = word_patch(&change, &patch.sync);
}

static void set_sync(void)
{
	struct pc_status status;

	MUST(pc_get_status(&status) == 0);
	patch.sync = (struct sync){
		.policy = status.in_use,
		.waits.first = status.first_wait,
		.waits.second = status.second_wait,
		.window = status.atomic_window,
	};
}

static void patch_site(void (*run)(void), step_fn *look)
{
	patch.addr = site;
	patch.len = CODE_LEN;
	memcpy(patch.bytes, new_code, CODE_LEN);
	step_run(run, look);
	MUST(patch.ret == 0);
}

/* --- Getting ready -------------------------------------------------------------------- */

static void use_waits(uint64_t first, uint64_t second)
{
	struct machine_conf conf = conf_here();

	if (!conf.identity.tsc_invariant)
		child_skip("this machine has no invariant TSC");
	conf.level[0].waits.first = first;
	conf.level[0].waits.second = second;
	conf.level[0].waits.stretch = 0;
	conf_use(&conf);
}

/* The site was patched before, so that nothing is allocated under way. */
static void start(enum pc_policy policy)
{
	if (CHILD_TSAN)
		child_skip("the thread sanitizer takes no steps");
	step_install();
	page = code_map(1, RWX);
	site = code_straddler(page);
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	put_old();
	MUST(pc_init() == 0);
	if (pc_set_policy(policy) < 0)
		child_skip("this policy is not to be had here");
	set_sync();
	MUST(pc_text_open(page, CODE_PAGE) == 0);
	MUST(pc_patch(site, new_code, CODE_LEN) == 0);
	put_old();
}

static void start_waiting(uint64_t first, uint64_t second)
{
	use_waits(first, second);
	start(PC_POLICY_WAIT);
}

static void start_membarrier(void)
{
	conf_use_none();
	start(PC_POLICY_MEMBARRIER);
}

/* --- The order, and the waits --------------------------------------------------------- */

static enum state seen;
static uint64_t seen_at[MIXED]; /* ticks, when each was first seen */

static bool look_at_state(void)
{
	enum state state = state_now();

	MUST(state != MIXED);
	MUST(state == seen || state == seen + 1);
	if (state != seen)
		seen_at[state] = __rdtsc();
	seen = state;
	return true;
}

static void must_go_in_order(void)
{
	seen = OLD_OLD;
	patch_site(all_of_it, look_at_state);
	MUST(seen == NEW_NEW);
	MUST(code_run(site) == CODE_NEW);
}

/* What is seen between two stores lies between them in time as well: no bound but the lower. */
static void order_waiting(const void *arg)
{
	(void)arg;
	start_waiting(LONG_FIRST, LONG_SECOND);
	must_go_in_order();
	MUST(seen_at[INT3_NEW] - seen_at[INT3_OLD] >= LONG_FIRST);
	MUST(seen_at[NEW_NEW] - seen_at[INT3_NEW] >= LONG_SECOND);
}

static void order_membarrier(const void *arg)
{
	(void)arg;
	start_membarrier();
	must_go_in_order();
}

/* --- Neighbours ------------------------------------------------------------------------ */

#define ROOM 16 /* bytes on either side of what is patched */

/*
 * So many steps apart do they change. A loop around a locked exchange with more
 * than that would never get through, so there is an end to it.
 */
#define STRIDE	61
#define CHANGES 24

static unsigned long phase; /* of the steps at which they change */
static unsigned changes;

static void change_bytes(uint8_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		from[i] ^= 0x55;
}

/* The thread that has these bytes changes them now. */
static bool change_neighbours(void)
{
	if (step_now.count % STRIDE != phase || changes == CHANGES)
		return true;
	changes++;
	change_bytes(patch.addr - ROOM, ROOM);
	change_bytes(patch.addr + patch.len, ROOM);
	return true;
}

static void must_keep_neighbours(void)
{
	uint8_t expected[2 * ROOM + PC_PATCH_MAX];
	size_t size = 2 * ROOM + patch.len;

	memcpy(expected, patch.addr - ROOM, size);
	changes = 0;
	step_run(stores_only, change_neighbours);
	MUST(patch.ret == 0);
	if (changes % 2)
		change_bytes(expected, size);
	memcpy(expected + ROOM, patch.bytes, patch.len);
	MUST(memcmp(patch.addr - ROOM, expected, size) == 0);
}

/* After every instruction of a patch in turn. */
static void keep_neighbours_of(uint8_t *addr, size_t len)
{
	patch.addr = addr;
	patch.len = len;
	memcpy(patch.bytes, "\1\2\3\4\5\6\7", PC_PATCH_MAX);
	step_now.count = 0;
	for (phase = 0; phase < STRIDE; phase += 1 + step_now.count * STRIDE / BUDGET) {
		for (size_t i = 0; i < len; i++)
			patch.bytes[i] ^= 0x33;
		must_keep_neighbours();
		MUST(changes > 0 || step_now.count < STRIDE);
	}
}

static void neighbours(const void *arg)
{
	(void)arg;
	start_waiting(SHORT_FIRST, SHORT_SECOND);
	keep_neighbours_of(page + 256 + 3, 1);
	keep_neighbours_of(page + 256 + 2, 5);
	keep_neighbours_of(site, 3);
	keep_neighbours_of(site, CODE_LEN);
}

/* --- Signals in the patcher's own thread ------------------------------------------------- */

static unsigned long held_steps; /* so far in this patch */
static unsigned long help_at;	 /* the one of them at which the site is run */
static bool helped;

/* Also while it is not held, which is no concern of the library's. */
static bool run_site(void)
{
	bool held = *(volatile uint8_t *)site == CODE_INT3;
	uint32_t number;

	if (held && ++held_steps != help_at)
		return true;
	step_allow_traps(true);
	number = code_run(site);
	step_allow_traps(false);
	MUST(number == CODE_NEW || (!held && number == CODE_OLD));
	helped |= held;
	return true;
}

/* A signal whose handler runs the site comes after one instruction after the other. */
static void must_help_everywhere(void)
{
	unsigned long times = 0;

	help_at = 1;
	do {
		put_old();
		held_steps = 0;
		helped = false;
		patch_site(stores_only, run_site);
		MUST(state_now() == NEW_NEW);
		help_at += 1 + step_now.count * step_now.count / 4 / BUDGET;
		times++;
	} while (helped);
	MUST(times > 20);
	put_old();
	MUST(pc_patch(site, new_code, CODE_LEN) == 0);
}

static void help_waiting(const void *arg)
{
	(void)arg;
	start_waiting(SHORT_FIRST, SHORT_SECOND);
	must_help_everywhere();
}

static void help_membarrier(const void *arg)
{
	(void)arg;
	start_membarrier();
	must_help_everywhere();
}

static enum state help_in; /* run the site when it is in this state for help_at steps */
static uint64_t left_at;   /* ticks, before it got there */
static uint64_t helped_at; /* ticks, when it had run */

static bool help_late(void)
{
	if (state_now() != help_in) {
		left_at = __rdtsc();
		return true;
	}
	if (++held_steps != help_at)
		return true;
	step_allow_traps(true);
	MUST(code_run(site) == CODE_NEW);
	step_allow_traps(false);
	helped_at = __rdtsc();
	MUST(state_now() == NEW_NEW);
	return false;
}

/* Help does not make the syncs any shorter. */
static void must_help_slowly(enum state in, uint64_t least)
{
	help_in = in;
	for (help_at = 1; help_at <= 12; help_at++) {
		put_old();
		held_steps = 0;
		patch_site(stores_only, help_late);
		MUST(held_steps == help_at);
		MUST(helped_at - left_at >= least);
	}
}

static void help_waits(const void *arg)
{
	(void)arg;
	start_waiting(SHORT_FIRST, LONG_SECOND);
	must_help_slowly(INT3_NEW, LONG_SECOND);
	MUST(pc_fini() == 0);
	start_waiting(LONG_FIRST, SHORT_SECOND);
	must_help_slowly(INT3_OLD, LONG_FIRST + SHORT_SECOND);
}

/* --- Membarrier, played by the test ------------------------------------------------------ */

#define SYNCS 8

static struct {
	enum state state[SYNCS]; /* of the site at each sync */
	uint8_t code[SYNCS][CODE_LEN];
	int answer[SYNCS]; /* to each, 0 or a negative errno */
	int run_site;	   /* at this one, from 0 on; -1: never */
	int count;
} syncs;

static void on_membarrier(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	int i = syncs.count++;

	(void)signal;
	(void)info;
	MUST(i < SYNCS);
	syncs.state[i] = state_now();
	memcpy(syncs.code[i], site, CODE_LEN);
	if (syncs.run_site == i)
		MUST(code_run(site) == CODE_NEW);
	regs[REG_RAX] = syncs.answer[i];
}

static void play_membarrier(void)
{
	struct sigaction action = { .sa_sigaction = on_membarrier,
				    .sa_flags = SA_SIGINFO | SA_NODEFER };

	start_membarrier();
	MUST(sigaction(SIGSYS, &action, NULL) == 0);
	/* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE */
	child_filter(SYS_membarrier, 0, 1 << 5, SECCOMP_RET_TRAP);
	syncs.run_site = -1;
}

static void reset_syncs(void)
{
	memset(&syncs, 0, sizeof(syncs));
	syncs.run_site = -1;
	put_old();
}

static void syncs_in_between(const void *arg)
{
	(void)arg;
	play_membarrier();
	MUST(pc_patch(site, new_code, CODE_LEN) == 0);
	MUST(syncs.count == 2 && syncs.state[0] == INT3_OLD && syncs.state[1] == INT3_NEW);
	MUST(state_now() == NEW_NEW);
}

/* The code is as it was, and the site is free for another attempt. */
static void first_sync_fails(const void *arg)
{
	(void)arg;
	play_membarrier();
	syncs.answer[0] = -ENOMEM;
	MUST(pc_patch(site, new_code, CODE_LEN) == -ENOMEM);
	MUST(syncs.count == 1 && state_now() == OLD_OLD);
	reset_syncs();
	MUST(pc_patch(site, new_code, CODE_LEN) == 0);
	MUST(state_now() == NEW_NEW);
}

/* No way back from there, so on with it until it works. */
static void second_sync_fails(const void *arg)
{
	(void)arg;
	play_membarrier();
	for (int i = 1; i < 5; i++)
		syncs.answer[i] = -ENOMEM;
	MUST(pc_patch(site, new_code, CODE_LEN) == 0);
	MUST(syncs.count == 6 && state_now() == NEW_NEW);
	for (int i = 1; i < 6; i++)
		MUST(syncs.state[i] == INT3_NEW);
}

static void change_part(size_t from, size_t to)
{
	uint8_t code[CODE_LEN];

	memcpy(code, site, sizeof(code));
	memcpy(code + from, new_code + from, to - from);
	MUST(pc_patch(site, code, sizeof(code)) == 0);
}

static bool is_between(const uint8_t *code)
{
	bool front_old = memcmp(code, old_code, FRONT) == 0;
	bool front_new = memcmp(code, new_code, FRONT) == 0;
	bool back_old = memcmp(code + FRONT, old_code + FRONT, CODE_LEN - FRONT) == 0;

	return back_old ? !front_old : !front_new;
}

static void must_sync_between(void)
{
	bool synced = false;

	MUST(state_now() == NEW_NEW && syncs.count <= SYNCS);
	for (int i = 0; i < syncs.count; i++)
		synced |= is_between(syncs.code[i]);
	MUST(synced);
}

/*
 * Of two changes, each of one part, no executor may see the second and not the first: with that
 * front and that back the instruction never stood there.
 */
static void part_by_part(const void *arg)
{
	(void)arg;
	play_membarrier();
	change_part(FRONT, CODE_LEN);
	change_part(0, FRONT);
	must_sync_between();
	reset_syncs();
	change_part(0, FRONT);
	change_part(FRONT, CODE_LEN);
	must_sync_between();
}

/*
 * A signal during the sync, whose handler runs the site and so completes the
 * patch; then the sync fails. There is nothing left to undo.
 */
static void helped_sync_fails(const void *arg)
{
	int ret;

	(void)arg;
	play_membarrier();
	syncs.run_site = 0;
	syncs.answer[0] = -ENOMEM;
	ret = pc_patch(site, new_code, CODE_LEN);
	MUST(state_now() == (ret == 0 ? NEW_NEW : OLD_OLD));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(order_waiting),	    child_unit_test(order_membarrier),
		child_unit_test(neighbours),	    child_unit_test(help_waiting),
		child_unit_test(help_membarrier),   child_unit_test(help_waits),
		child_unit_test(syncs_in_between),  child_unit_test(first_sync_fails),
		child_unit_test(second_sync_fails), child_unit_test(helped_sync_fails),
		child_unit_test(part_by_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
