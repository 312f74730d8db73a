/* SPDX-License-Identifier: MIT */
/*
 * Changes of several instructions at once: an INT3 on each start before the
 * boundary, and executors that come in at any of them.
 */
#define _GNU_SOURCE /* memfd_create(), sched_setaffinity() */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/site/site.h"
#include "patchcore/tests/flights.h"
#include "patchcore/tests/step.h"
#include "patchcore/word/word.h"

#define FRONT  5 /* of 8 bytes: the third instruction straddles */
#define LEN    8u
#define STARTS 0x55 /* four instructions of two bytes */

/* mov al, mov ah, mov cl, mov ch: each one byte of the number that is returned */
static const uint8_t old_code[LEN] = { 0xb0, 0x11, 0xb4, 0x12, 0xb1, 0x13, 0xb5, 0x14 };
static const uint8_t new_code[LEN] = { 0xb0, 0x21, 0xb4, 0x22, 0xb1, 0x23, 0xb5, 0x24 };

#define OLD 0x14131211u
#define NEW 0x24232221u

static uint8_t *page, *site;

static void put_old(void)
{
	/* movzx eax, ax; shl ecx, 16; or eax, ecx; ret */
	static const uint8_t tail[] = { 0x0f, 0xb7, 0xc0, 0xc1, 0xe1, 0x10, 0x09, 0xc8, 0xc3 };

	memcpy(site, old_code, LEN);
	memcpy(site + LEN, tail, sizeof(tail));
}

static void map_site(void)
{
	page = code_map(1, RWX);
	site = page + 512 - FRONT;
	put_old();
	MUST(pc_text_open(page, CODE_PAGE) == 0);
}

static enum flight_bytes read_site(const uint8_t *old, const uint8_t *new)
{
	static const uint8_t at[] = { 0, 2, 4 };
	uint8_t held[FRONT];

	memcpy(held, old, FRONT);
	for (size_t i = 0; i < sizeof(at); i++)
		held[at[i]] = CODE_INT3;
	if (memcmp(site, old, LEN) == 0)
		return FLIGHT_OLD;
	if (memcmp(site, new, LEN) == 0)
		return FLIGHT_NEW;
	if (memcmp(site, held, FRONT) != 0)
		return FLIGHT_MIXED;
	if (memcmp(site + FRONT, old + FRONT, LEN - FRONT) == 0)
		return FLIGHT_INT3_OLD;
	return memcmp(site + FRONT, new + FRONT, LEN - FRONT) == 0 ? FLIGHT_INT3_NEW : FLIGHT_MIXED;
}

/* --- What stands there ---------------------------------------------------------------------- */

static enum flight_bytes seen;

static bool check_next_bytes(void)
{
	enum flight_bytes now = read_site(old_code, new_code);

	MUST(now != FLIGHT_MIXED && (now == seen || now == seen + 1));
	seen = now;
	return true;
}

static void patch_site(void)
{
	MUST(pc_patch_starts(site, new_code, LEN, STARTS) == 0);
}

/* INT3 on every start before the boundary and nowhere else; all of them or none. */
static void put_int3_on_each_start(const void *arg)
{
	(void)arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer takes no steps");
	step_install();
	flights_use_wait(20000, 20000);
	map_site();
	patch_site();
	MUST(code_run(site) == NEW);
	put_old();
	step_run(patch_site, check_next_bytes);
	MUST(seen == FLIGHT_NEW && code_run(site) == NEW);
}

static void refuse_wrong_starts(const void *arg)
{
	uint8_t code[LEN];

	(void)arg;
	flights_use_membarrier();
	map_site();
	MUST(pc_patch_starts(site, new_code, LEN, 0) == -EINVAL);
	MUST(pc_patch_starts(site, new_code, LEN, 0x54) == -EINVAL);
	MUST(pc_patch_starts(site, new_code, LEN, 0x155) == -EINVAL);
	MUST(pc_patch_starts(site, new_code, 4, 0x15) == -EINVAL);
	MUST(pc_patch_starts(site, new_code, LEN, UINT_MAX) == -EINVAL);
	memcpy(code, new_code, LEN);
	code[6] = CODE_INT3;
	MUST(pc_patch_starts(site, code, LEN, STARTS) == -EINVAL);
	MUST(read_site(old_code, new_code) == FLIGHT_OLD);
	/* As an operand it is a number like any other. */
	MUST(pc_patch_starts(site, code, LEN, 0x15) == 0);
	MUST(memcmp(site, code, LEN) == 0);
}

/* --- Executors ------------------------------------------------------------------------------ */

static atomic_int arrived, gone_on;

static void *enter_at(void *at)
{
	uint32_t number;

	arrived++;
	number = code_run(at);
	gone_on++;
	return (void *)(uintptr_t)number;
}

/* An executor that comes in at any of them waits there, then runs the new code from there on. */
static void hold_executors_until_the_end(const void *arg)
{
	struct sync sync = { .policy = PC_POLICY_WAIT, .window = 8 };
	struct change change;
	struct word *word;
	pthread_t threads[3];
	void *number;

	(void)arg;
	flights_use_membarrier();
	map_site();
	change = change_in_place(site, new_code, LEN);
	change.starts = STARTS;
	MUST(word_begin(&word, &change, &sync) == 0);
	MUST(read_site(old_code, new_code) == FLIGHT_INT3_OLD);
	for (size_t i = 0; i < 3; i++)
		MUST(pthread_create(&threads[i], NULL, enter_at, site + 2 * i) == 0);
	while (arrived < 3)
		usleep(1000);
	usleep(20000);
	MUST(gone_on == 0 && read_site(old_code, new_code) == FLIGHT_INT3_OLD);
	MUST(word_finish(word) == 0);
	word_release(word);
	for (size_t i = 0; i < 3; i++) {
		uint32_t know = i == 0 ? ~0u : i == 1 ? 0xffffff00u : 0xffff0000u;

		MUST(pthread_join(threads[i], &number) == 0);
		MUST(((uint32_t)(uintptr_t)number & know) == (NEW & know));
	}
}

static void *begin_change(void *unused)
{
	static const struct sync kept = { .policy = PC_POLICY_MEMBARRIER, .window = 8 };
	struct change change = change_in_place(site, new_code, LEN);
	struct word *word;

	change.starts = STARTS;
	MUST(word_begin(&word, &change, &kept) == 0);
	return unused;
}

/* An executor that waits at one behind the first goes on with the change that it is held for. */
static void finish_the_change_of_a_gone_thread(const void *arg)
{
	pthread_t thread;

	(void)arg;
	flights_use_membarrier();
	map_site();
	MUST(pthread_create(&thread, NULL, begin_change, NULL) == 0);
	pthread_join(thread, NULL);
	MUST(read_site(old_code, new_code) == FLIGHT_INT3_OLD);
	MUST((code_run(site + 2) & 0xffffff00) == (NEW & 0xffffff00));
	MUST(read_site(old_code, new_code) == FLIGHT_NEW && pc_drain() == 0 && pc_fini() == 0);
}

static atomic_bool done;

static void *run_site(void *unused)
{
	while (!done) {
		uint32_t number = code_run(site);

		/* Each instruction by itself is old or new. */
		for (unsigned i = 0; i < 4; i++) {
			uint8_t byte = (uint8_t)(number >> 8 * i);

			MUST(byte == 0x11 + i || byte == 0x21 + i);
		}
	}
	return unused;
}

#define TOGGLES 2000

static void run_while_patched(const void *arg)
{
	pthread_t thread;

	(void)arg;
	flights_use_membarrier();
	map_site();
	MUST(pthread_create(&thread, NULL, run_site, NULL) == 0);
	for (int i = 0; i < TOGGLES; i++)
		MUST(pc_patch_starts(site, i % 2 ? old_code : new_code, LEN, STARTS) == 0);
	done = true;
	pthread_join(thread, NULL);
}

/* --- To which change the starts behind the first belong --------------------------------------- */

/* One site has one change, whether it is the first start of that or another. */
static void share_a_start_with_another_change(const void *arg)
{
	struct sync sync = { .policy = PC_POLICY_WAIT, .window = 8 };
	struct change change;
	struct word *word;

	(void)arg;
	flights_use_wait(1000, 1);
	map_site();
	MUST(pc_start_patch(site + 4, new_code + 4, 4) == 0);
	MUST(pc_patch_starts(site, new_code, LEN, STARTS) == -EAGAIN);
	MUST(memcmp(site, old_code, 4) == 0 && site[4] == CODE_INT3);
	/* Nothing of the attempt is left: neither here nor on the start in between. */
	MUST(site_turn(site_find((uintptr_t)site)) % 2 == 0);
	MUST(site_turn(site_find((uintptr_t)site + 2)) % 2 == 0);
	MUST(site_turn(site_find((uintptr_t)site + 4)) % 2 == 1);
	MUST(pc_drain() == 0 && memcmp(site + 4, new_code + 4, 4) == 0);
	change = change_in_place(site, old_code, LEN);
	change.starts = STARTS;
	MUST(word_begin(&word, &change, &sync) == 0);
	MUST(pc_start_patch(site + 4, new_code + 4, 4) == -EAGAIN);
	MUST(word_finish(word) == 0);
	word_release(word);
	MUST(read_site(old_code, new_code) == FLIGHT_OLD);
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0 && pc_fini() == 0);
}

/* Every INT3 is taken back. */
static void take_back_each_int3(const void *arg)
{
	(void)arg;
	flights_use_membarrier();
	map_site();
	flights_filter_membarrier(SECCOMP_RET_ERRNO | ENOMEM);
	MUST(pc_patch_starts(site, new_code, LEN, STARTS) == -ENOMEM);
	MUST(read_site(old_code, new_code) == FLIGHT_OLD && code_run(site) == OLD);
	MUST(pc_patch_starts(site, new_code, LEN, STARTS) == -ENOMEM && pc_fini() == 0);
}

/* Its page, read-only, is closed while the INT3s of a thread that is gone stand. */
static void close_the_page_of_a_gone_thread(const void *arg)
{
	pthread_t thread;

	(void)arg;
	flights_use_membarrier();
	map_site();
	MUST(pc_text_close(page, CODE_PAGE) == 0 && mprotect(page, CODE_PAGE, RX) == 0);
	MUST(pc_text_open(page, CODE_PAGE) == 0);
	MUST(pthread_create(&thread, NULL, begin_change, NULL) == 0);
	pthread_join(thread, NULL);
	MUST(read_site(old_code, new_code) == FLIGHT_INT3_OLD);
	MUST(pc_text_close(page, CODE_PAGE) == 0 && code_prot(page) == RX);
	MUST(read_site(old_code, new_code) == FLIGHT_NEW && code_run(site) == NEW);
}

/* Whichever of the sites is found first: they lie in a table by their addresses. */
static void forget_a_site_at_any_place(const void *arg)
{
	const struct pc_how how = { .starts = STARTS, .flags = PC_LATER };

	(void)arg;
	flights_use_membarrier();
	map_site();
	for (unsigned i = 1; i < 8; i++) {
		site = page + 512 * i - FRONT;
		put_old();
		MUST(pc_patch_how(site, new_code, LEN, &how) == 0);
		MUST(read_site(old_code, new_code) == FLIGHT_INT3_OLD);
		MUST(pc_forget(site, LEN) == 0);
	}
	MUST(pc_drain() == 0 && pc_fini() == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(put_int3_on_each_start),
		child_unit_test(refuse_wrong_starts),
		child_unit_test(hold_executors_until_the_end),
		child_unit_test(run_while_patched),
		child_unit_test(finish_the_change_of_a_gone_thread),
		child_unit_test(share_a_start_with_another_change),
		child_unit_test(take_back_each_int3),
		child_unit_test(close_the_page_of_a_gone_thread),
		child_unit_test(forget_a_site_at_any_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
