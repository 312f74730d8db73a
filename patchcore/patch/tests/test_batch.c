/* SPDX-License-Identifier: MIT */
/* Many changes at once: what becomes of each, and that they share their syncs. */
#define _GNU_SOURCE /* memfd_create(), sched_setaffinity() */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <x86intrin.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/machine/sync.h"
#include "patchcore/tests/flights.h"
#include "patchcore/tests/step.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

#define LONG_FIRST  60000000 /* ticks */
#define LONG_SECOND 50000000

static uint8_t *pages;
static uint8_t old_code[CODE_LEN], new_code[CODE_LEN];

static void map(size_t count, int prot, size_t sites)
{
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	pages = flights_map(count, prot, sites);
}

static struct pc_op op_at(uint8_t *addr, size_t len)
{
	return (struct pc_op){ .addr = addr, .bytes = new_code, .len = len, .result = 1 };
}

/* --- Out of memory, when told to -------------------------------------------------------------- */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static int fail_at; /* the calloc() that fails: 1 is the next, 0 none */

void *__wrap_calloc(size_t count, size_t size)
{
	if (fail_at > 0 && --fail_at == 0)
		return NULL;
	return __real_calloc(count, size);
}

static void no_memory(const void *arg)
{
	struct pc_op ops[PC_QUIET_BATCH + 1]; /* fewer need no memory */
	int failed = 0;

	(void)arg;
	flights_use_membarrier();
	map(1, RWX, 8);
	ops[0] = op_at(flight_site(pages, 0), CODE_LEN);
	for (size_t i = 1; i <= PC_QUIET_BATCH; i++)
		ops[i] = op_at(pages + CODE_PAGE / 2 + i, 1);
	fail_at = 1;
	failed = pc_patch_batch(ops, PC_QUIET_BATCH + 1);
	MUST(failed == -ENOMEM && ops[0].result == -ENOMEM && ops[1].result == -ENOMEM);
	MUST(flight_look(ops[0].addr) == FLIGHT_OLD && pages[8] == CODE_NOP);
	fail_at = 0;
	MUST(pc_patch_batch(ops, PC_QUIET_BATCH + 1) == 0 &&
	     flight_look(ops[0].addr) == FLIGHT_NEW);
}

/* --- What becomes of each --------------------------------------------------------------------- */

static uint8_t expected[CODE_PAGE];

static void must_give(struct pc_op *ops, const int *results, size_t n)
{
	int first = 0;

	for (size_t i = n; i-- > 0;) {
		if (results[i] < 0)
			first = results[i];
		else
			memcpy(expected + ((uint8_t *)ops[i].addr - pages), ops[i].bytes,
			       ops[i].len);
	}
	MUST(pc_patch_batch(ops, n) == first);
	for (size_t i = 0; i < n; i++)
		MUST(ops[i].result == results[i]);
	MUST(memcmp(pages, expected, sizeof(expected)) == 0);
}

/* Refused ones do not keep the others from being made, nor change a byte. */
static void exact(const void *arg)
{
	static const uint8_t int3[] = { CODE_INT3, 1, 2, 3, 4 };
	uint8_t *hole = code_map(2, RWX);
	struct pc_op ops[13];
	static const int results[] = { 0,	0,	 -EINVAL, -EINVAL, -EINVAL,
				       -EINVAL, -EFAULT, -EFAULT, -EAGAIN, -EAGAIN,
				       0,	-EFAULT, 0 };

	(void)arg;
	flights_use_membarrier();
	map(1, RX, 32);
	munmap(hole + CODE_PAGE, CODE_PAGE);
	MUST(pc_text_open(pages, CODE_PAGE) == 0);
	pages[64 * 9 + 8] = CODE_INT3;
	MUST(pc_start_patch(flight_site(pages, 20), new_code, CODE_LEN) == 0);
	ops[0] = op_at(flight_site(pages, 7), CODE_LEN);
	ops[1] = op_at(pages + 64 * 5 + 8, CODE_LEN);
	ops[2] = op_at(flight_site(pages, 3), 0);
	ops[3] = op_at(flight_site(pages, 4), PC_PATCH_MAX + 1);
	ops[4] = op_at(flight_site(pages, 5), CODE_LEN);
	ops[4].bytes = int3;
	ops[5] = op_at(flight_site(pages, 6), CODE_LEN);
	ops[5].bytes = NULL;
	ops[6] = op_at(NULL, CODE_LEN);
	ops[7] = op_at(hole + CODE_PAGE - 2, CODE_LEN);
	ops[8] = op_at(pages + 64 * 9 + 8, CODE_LEN);
	ops[9] = op_at(flight_site(pages, 20), CODE_LEN);
	ops[10] = op_at(flight_site(pages, 1), CODE_LEN);
	ops[11] = op_at((uint8_t *)UINTPTR_MAX - 2, CODE_LEN);
	ops[12] = op_at(flight_site(pages, 8), CODE_LEN);
	memcpy(expected, pages, sizeof(expected));
	must_give(ops, results, LENGTH(ops));
	MUST(hole[CODE_PAGE - 2] == CODE_NOP && hole[CODE_PAGE - 1] == CODE_NOP);
	MUST(pc_drain() == 0 && pc_text_close(pages, CODE_PAGE) == 0 && code_prot(pages) == RX);
}

static void overlaps(const void *arg)
{
	uint8_t *one, *two;
	struct pc_op ops[9];
	static const int results[] = {
		-EINVAL, -EINVAL, -EINVAL, 0, 0, -EINVAL, -EINVAL, -EINVAL, 0
	};

	(void)arg;
	flights_use_membarrier();
	map(1, RWX, 32);
	one = flight_site(pages, 10);
	two = flight_site(pages, 20);
	/* In no order. The far end of the first reaches over the second to the third. */
	ops[0] = op_at(one + 4, 1);
	ops[1] = op_at(one, CODE_LEN);
	ops[2] = op_at(one + 2, 1);
	ops[3] = op_at(one + 5, 1);
	ops[4] = op_at(one - 1, 1);
	/* The same twice, and once more from another end. */
	ops[5] = op_at(two, CODE_LEN);
	ops[6] = op_at(two, CODE_LEN);
	ops[7] = op_at(two - 2, 3);
	/* An op that is refused anyway takes no byte from another. */
	ops[8] = op_at(flight_site(pages, 1), CODE_LEN);
	memcpy(expected, pages, sizeof(expected));
	must_give(ops, results, LENGTH(ops));
}

static void nothing(const void *arg)
{
	struct pc_op op, two[2];

	(void)arg;
	flights_use_membarrier();
	map(1, RWX, 8);
	op = op_at(flight_site(pages, 0), CODE_LEN);
	MUST(pc_patch_batch(NULL, 0) == 0 && pc_patch_batch(&op, 0) == 0 && op.result == 1);
	MUST(pc_patch_batch(NULL, 1) == -EINVAL && flight_look(op.addr) == FLIGHT_OLD);
	two[0] = two[1] = op;
	two[1].bytes = NULL;
	MUST(pc_patch_batch(two, 2) == -EINVAL && two[0].result == 0 && two[1].result == -EINVAL);
	MUST(flight_look(op.addr) == FLIGHT_NEW);
}

/* --- Ten thousand
 * ---------------------------------------------------------------------------------- */

#define PAGES 80
#define OPS   (PAGES * CODE_PAGE / FLIGHT_LINE - 1) /* of each kind */

static void fill_in(struct pc_op *ops)
{
	for (size_t i = 0; i < OPS; i++) {
		size_t j = i * 4099 % OPS; /* prime to it: in no order */

		ops[2 * i] = op_at(flight_site(pages, j), CODE_LEN);
		ops[2 * i + 1] = op_at(flight_site(pages, j) - 32, CODE_LEN);
	}
}

static void ten_thousand(const void *arg)
{
	static struct pc_op ops[2 * OPS];
	const bool *open = arg;

	flights_use_membarrier();
	map(PAGES, RWX, OPS);
	for (size_t i = 0; i < OPS; i++)
		flight_put(flight_site(pages, i) - 32, CODE_OLD);
	MUST(mprotect(pages, PAGES * CODE_PAGE, RX) == 0);
	if (*open)
		MUST(pc_text_open(pages, PAGES * CODE_PAGE) == 0);
	fill_in(ops);
	MUST(pc_patch_batch(ops, LENGTH(ops)) == 0);
	for (size_t i = 0; i < LENGTH(ops); i++) {
		MUST(ops[i].result == 0 && flight_look(ops[i].addr) == FLIGHT_NEW);
		MUST(((uint8_t *)ops[i].addr)[CODE_LEN] == 0xc3);
	}
	if (*open)
		MUST(pc_text_close(pages, PAGES * CODE_PAGE) == 0);
	for (size_t p = 0; p < PAGES; p++)
		MUST(code_prot(pages + p * CODE_PAGE) == RX);
	MUST(pc_fini() == 0);
}

static void test_ten_thousand(void **state)
{
	bool open = true;

	(void)state;
	child_must_pass(ten_thousand, &open);
	open = false;
	child_must_pass(ten_thousand, &open);
}

/* --- The syncs
 * ---------------------------------------------------------------------------------------- */

#define SITES 500

static struct {
	int count;
	int answer;	 /* to the first, 0 or a negative errno */
	size_t run_site; /* at the first: so many of them, by the patcher's own thread, ... */
	bool inside;	 /* ... which needs syncs of its own */
} syncs;

static void on_membarrier(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	bool first = syncs.count == 0;

	(void)signal;
	(void)info;
	regs[REG_RAX] = 0;
	if (syncs.inside)
		return;
	for (size_t i = 0; i < SITES; i++)
		MUST(flight_look(flight_site(pages, i)) ==
		     (first ? FLIGHT_INT3_OLD : FLIGHT_INT3_NEW));
	syncs.count++;
	syncs.inside = true;
	for (size_t i = 0; i < syncs.run_site; i++)
		MUST(code_run(flight_site(pages, i)) == CODE_NEW);
	syncs.inside = false;
	if (first)
		regs[REG_RAX] = syncs.answer;
}

static struct pc_op many[SITES];

static void play_membarrier(void)
{
	struct sigaction action = { .sa_sigaction = on_membarrier,
				    .sa_flags = SA_SIGINFO | SA_NODEFER };

	flights_use_membarrier();
	map(8, RWX, SITES);
	MUST(sigaction(SIGSYS, &action, NULL) == 0);
	flights_filter_membarrier(SECCOMP_RET_TRAP);
	for (size_t i = 0; i < SITES; i++)
		many[i] = op_at(flight_site(pages, i), CODE_LEN);
}

/* All INT3 before the first, all backs before the second, and no front before that. */
static void one_pair(const void *arg)
{
	(void)arg;
	play_membarrier();
	MUST(pc_patch_batch(many, SITES) == 0 && syncs.count == 2);
	for (size_t i = 0; i < SITES; i++)
		MUST(flight_look(many[i].addr) == FLIGHT_NEW && many[i].result == 0);
}

/* Nothing was changed anywhere, and the sites are free. */
static void first_sync_fails(const void *arg)
{
	uint8_t before[8 * CODE_PAGE];

	(void)arg;
	play_membarrier();
	memcpy(before, pages, sizeof(before));
	syncs.answer = -ENOMEM;
	MUST(pc_patch_batch(many, SITES) == -ENOMEM && syncs.count == 1);
	for (size_t i = 0; i < SITES; i++)
		MUST(many[i].result == -ENOMEM);
	MUST(memcmp(pages, before, sizeof(before)) == 0);
	syncs.answer = syncs.count = 0;
	MUST(pc_patch_batch(many, SITES) == 0 && syncs.count == 2);
}

/* What lies inside the window needs no sync. */
static void denied(const void *arg)
{
	uint8_t before[CODE_PAGE];
	struct pc_op ops[2];

	(void)arg;
	flights_use_membarrier();
	map(1, RX, 8);
	memcpy(before, pages, sizeof(before));
	ops[0] = op_at(flight_site(pages, 0), CODE_LEN);
	ops[1] = op_at(pages + 8, 1);
	flights_filter_membarrier(SECCOMP_RET_ERRNO | EPERM);
	MUST(pc_patch_batch(ops, 1) == -EPERM && ops[0].result == -EPERM);
	MUST(memcmp(pages, before, sizeof(before)) == 0 && code_prot(pages) == RX);
	MUST(pc_patch_batch(ops, 2) == -EPERM && ops[0].result == -EPERM && ops[1].result == 0);
	before[8] = new_code[0];
	MUST(memcmp(pages, before, sizeof(before)) == 0 && code_prot(pages) == RX);
	MUST(pc_fini() == 0);
}

#define RUN 10

/* The patcher's own signal handler has completed these, and so they are made. */
static void helped_sync_fails(const void *arg)
{
	(void)arg;
	play_membarrier();
	syncs.run_site = RUN;
	syncs.answer = -ENOMEM;
	MUST(pc_patch_batch(many, SITES) == -ENOMEM);
	for (size_t i = 0; i < SITES; i++) {
		MUST(many[i].result == (i < RUN ? 0 : -ENOMEM));
		MUST(flight_look(many[i].addr) == (i < RUN ? FLIGHT_NEW : FLIGHT_OLD));
	}
}

#define FEW 3

static uint64_t seen_at[FLIGHT_MIXED]; /* ticks: when all of them were so far */
static uint64_t left_at[FLIGHT_MIXED]; /* when the first had left it */

static void patch_few(void)
{
	MUST(pc_patch_batch(many, FEW) == 0);
}

static bool look_on(void)
{
	uint64_t now = __rdtsc();
	size_t count[FLIGHT_MIXED + 1] = { 0 };

	for (size_t i = 0; i < FEW; i++)
		count[flight_look(many[i].addr)]++;
	MUST(count[FLIGHT_MIXED] == 0);
	for (int b = 0; b < FLIGHT_MIXED; b++) {
		if (count[b] == FEW && !seen_at[b])
			seen_at[b] = now;
		if (seen_at[b] && count[b] < FEW && !left_at[b])
			left_at[b] = now;
	}
	return true;
}

/* A step takes thousands of ticks: much lies between the first store of a kind and the last. */
static void waits(const void *arg)
{
	(void)arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer takes no steps");
	flights_pin(0);
	step_install();
	flights_use_wait(LONG_FIRST, LONG_SECOND);
	map(1, RWX, FEW);
	MUST(pc_text_open(pages, CODE_PAGE) == 0);
	for (size_t i = 0; i < FEW; i++)
		many[i] = op_at(flight_site(pages, i), CODE_LEN);
	patch_few();
	for (size_t i = 0; i < FEW; i++)
		flight_put(many[i].addr, CODE_OLD);
	step_run(patch_few, look_on);
	MUST(left_at[FLIGHT_INT3_OLD] - seen_at[FLIGHT_INT3_OLD] >= LONG_FIRST);
	MUST(left_at[FLIGHT_INT3_NEW] - seen_at[FLIGHT_INT3_NEW] >= LONG_SECOND);
	MUST(seen_at[FLIGHT_NEW]);
}

/* Counted from the last store of a kind, to the first of the next. */
static void test_waits(void **state)
{
	(void)state;
	child_must_pass(waits, NULL);
}

/* --- The cheaper one
 * ------------------------------------------------------------------------------------ */

static void count_membarrier(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 0;
	syncs.count++;
}

/* What a patcher knows before its first change. Far apart: a patcher may lose its CPU at any time.
 */
struct prices {
	uint64_t wait; /* ticks, each of two */
	uint64_t membarrier;
	bool waits; /* they are cheaper */
};

/* Both are safe enough. */
static void cheaper(const void *arg)
{
	const struct prices *of = arg;
	struct sigaction action = { .sa_sigaction = count_membarrier, .sa_flags = SA_SIGINFO };

	sync_expect(SYNC_MEMBARRIER, of->membarrier);
	flights_use_wait(of->wait, of->wait);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("membarrier is not to be had here");
	MUST(pc_set_accept_p(1e-3) == 0 && pc_set_policy(PC_POLICY_AUTO) == 0);
	MUST(sigaction(SIGSYS, &action, NULL) == 0);
	flights_filter_membarrier(SECCOMP_RET_TRAP);
	map(1, RWX, 8);
	for (size_t i = 0; i < FEW; i++)
		many[i] = op_at(flight_site(pages, i), CODE_LEN);
	patch_few();
	MUST(syncs.count == (of->waits ? 0 : 2));
	MUST(pc_patch(flight_site(pages, 0), old_code, CODE_LEN) == 0);
	MUST(syncs.count == (of->waits ? 0 : 4));
	MUST(pc_set_accept_p(1e-30) == 0);
	patch_few();
	MUST(syncs.count == (of->waits ? 2 : 6));
}

static void test_cheaper(void **state)
{
	static const struct prices waits = { 1, UINT64_C(1) << 40, true };
	static const struct prices membarriers = { 1000000000, 1, false };

	(void)state;
	child_must_pass(cheaper, &waits);
	child_must_pass(cheaper, &membarriers);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(no_memory),	     child_unit_test(exact),
		child_unit_test(overlaps),	     child_unit_test(nothing),
		cmocka_unit_test(test_ten_thousand), child_unit_test(one_pair),
		child_unit_test(first_sync_fails),   child_unit_test(denied),
		child_unit_test(helped_sync_fails),  cmocka_unit_test(test_waits),
		cmocka_unit_test(test_cheaper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
