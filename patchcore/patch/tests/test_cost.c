/* SPDX-License-Identifier: MIT */
/*
 * What a change executes that costs more than the rest of it together: readings of the clock,
 * locked stores and system calls. They are counted, instruction by instruction; no time is
 * measured.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/machine/policy.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"

#define PAGE  4096
#define TRACE 0x100 /* the flag of RFLAGS */

static const uint8_t codes[2][5] = { { 0xb8, 1, 2, 3, 4 }, { 0xb8, 5, 6, 7, 8 } };

static struct {
	unsigned rdtscp, rdtsc, locked, system, all;
} seen;

static void count_next(int signal, siginfo_t *info, void *context)
{
	const uint8_t *at = (void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)signal;
	(void)info;
	seen.all++;
	seen.rdtscp += memcmp(at, "\x0f\x01\xf9", 3) == 0;
	seen.rdtsc += memcmp(at, "\x0f\x31", 2) == 0;
	seen.system += memcmp(at, "\x0f\x05", 2) == 0;
	/* XCHG with memory locks by itself. */
	seen.locked += at[0] == 0xf0 || ((at[0] | 1) == 0x87 && at[1] < 0xc0) ||
		       ((at[0] & 0xf0) == 0x40 && (at[1] | 1) == 0x87 && at[2] < 0xc0);
}

typedef int change_fn(void *addr, const void *bytes, size_t len);

/* Of the third change there: what is done once was done. */
static void count(change_fn *change, uint8_t *at)
{
	int ret;

	for (unsigned i = 0; i < 2; i++) {
		MUST(change(at, codes[i], sizeof(codes[i])) == 0);
		MUST(pc_drain() == 0);
	}
	memset(&seen, 0, sizeof(seen));
	__asm__ volatile("" : : : "memory");
	__writeeflags(__readeflags() | TRACE);
	ret = change(at, codes[0], sizeof(codes[0]));
	__writeeflags(__readeflags() & ~(unsigned long long)TRACE);
	__asm__ volatile("" : : : "memory");
	MUST(ret == 0 && seen.all > 50);
}

static uint8_t *open_page(enum pc_policy policy)
{
	uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction trap = { .sa_sigaction = count_next, .sa_flags = SA_SIGINFO };

	/* The library hands it what is not its own. */
	MUST(sigaction(SIGTRAP, &trap, NULL) == 0);
	policy_assume_waits(3000, 2000, 1);
	MUST(page != MAP_FAILED && pc_init() == 0);
	if (pc_set_policy(policy) < 0)
		child_skip("no such policy here");
	MUST(pc_text_open(page, PAGE) == 0);
	return page;
}

static void change_in_word(const void *policy)
{
	count(pc_patch, open_page(*(const enum pc_policy *)policy) + 64);
	MUST(seen.locked == 1 && seen.system == 0);
	MUST(seen.rdtscp == 0 && seen.rdtsc == 0);
}

/* One RDTSC tells whether it is time to look again who has SIGTRAP. */
static void start_by_membarrier(const void *policy)
{
	count(pc_start_patch, open_page(*(const enum pc_policy *)policy) + 61);
	MUST(seen.rdtscp == 0 && seen.rdtsc <= 1 && seen.system <= 1);
}

/* How long the store took, and since when is waited. */
static void start_by_wait(const void *policy)
{
	count(pc_start_patch, open_page(*(const enum pc_policy *)policy) + 61);
	MUST(seen.rdtscp == 2 && seen.rdtsc <= 1 && seen.system <= 1);
}

static void run(child_fn *fn, enum pc_policy policy)
{
	child_must_pass(fn, &policy);
}

static void test_change_in_word(void **state)
{
	(void)state;
	run(change_in_word, PC_POLICY_WAIT);
	run(change_in_word, PC_POLICY_MEMBARRIER);
}

static void test_start(void **state)
{
	(void)state;
	run(start_by_membarrier, PC_POLICY_MEMBARRIER);
	run(start_by_wait, PC_POLICY_WAIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change_in_word),
		cmocka_unit_test(test_start),
	};

	return CHILD_TSAN ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
