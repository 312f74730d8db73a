/* SPDX-License-Identifier: MIT */
/*
 * PC_POLICY_QUIET: what it refuses, and that the changes that it makes interrupt no other CPU.
 *
 * Interrupts of the executor's CPU are counted in windows of equal length, in random order: one
 * without changes, one with changes under the policy, and two that break the promise on purpose.
 * What other programs cause falls into all of them alike. So if changes cause nothing, the windows
 * with more interrupts than the idle ones beside them are as many as those with fewer, as with a
 * coin.
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/call.h"
#include "patchcore/machine/policy.h"
#include "patchcore/machine/wait.h"
#include "patchcore/mapping.h"
#include "patchcore/merge.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"

static const uint8_t codes[2][5] = { { 0xb8, 1, 2, 3, 4 }, { 0xb8, 5, 6, 7, 8 } };

static void begin(void)
{
	policy_assume_waits(1000, 1000, 1);
	MUST(pc_init() == 0);
}

/* --- What it refuses -------------------------------------------------------------------------- */

static void refusals(const void *arg)
{
	uint8_t *aliased = code_map(2, RX), *open = code_map(2, RX), *closed = code_map(1, RX);
	uint8_t *nops = code_map(1, RWX), *far = (uint8_t *)(uintptr_t)abort;
	/* Across a word, behind its first byte: its front cannot change by one store. */
	uint8_t *call_at = code_map(1, RWX) + 7;
	static struct pc_op ops[PC_QUIET_BATCH + 1];
	enum pc_text_way way;
	struct pc_over over;
	struct pc_call call;
	char why[128];

	(void)arg;
	begin();
	memset(nops, 0x90, 5);
	memcpy(call_at, "\xe8\x14\x00\x00\x00", 5);
	call_at[25] = 0xc3;
	MUST(pc_text_alias(aliased, 2 * CODE_PAGE) == 0 && pc_text_alias(nops, 5) == 0);
	MUST(pc_text_open(open, 2 * CODE_PAGE) == 0 && pc_text_alias(call_at, 5) == 0);
	MUST(pc_set_policy(PC_POLICY_QUIET) == 0);
	/* Inside a word, across a word, across the pages. */
	for (unsigned at = 0; at < 3; at++) {
		static const size_t offset[] = { 64, 61, CODE_PAGE - 2 };

		MUST(pc_patch(aliased + offset[at], codes[0], 5) == 0);
		MUST(pc_start_patch(aliased + offset[at], codes[1], 5) == 0 && pc_drain() == 0);
		MUST(!memcmp(aliased + offset[at], codes[1], 5));
		MUST(pc_patch(open + offset[at], codes[0], 5) == -ENOTSUP);
		MUST(pc_start_patch(open + offset[at], codes[0], 5) == -ENOTSUP);
		MUST(open[offset[at]] == CODE_NOP);
	}
	MUST(pc_patch(closed, codes[0], 5) == -ENOTSUP && code_prot(closed) == RX);
	MUST(pc_text_open(closed, 1) == -ENOTSUP && pc_text_alias(closed, 1) == -ENOTSUP);
	MUST(pc_text_open_shared(closed, 1) == -ENOTSUP && code_prot(closed) == RX);
	MUST(pc_text_close(open, 2 * CODE_PAGE) == -ENOTSUP);
	MUST(pc_text_close(aliased, 2 * CODE_PAGE) == -ENOTSUP);
	MUST(pc_text_way(closed, 1, &way, why, sizeof(why)) == -ENOTSUP && strstr(why, "alias"));
	MUST(pc_text_way(open, 1, &way, why, sizeof(why)) == -ENOTSUP && strstr(why, "alias"));
	MUST(pc_text_way(aliased, 1, &way, why, sizeof(why)) == 0 && way == PC_TEXT_ALIAS);
	MUST(pc_patch_merge(nops, codes[0], 5, PC_CHECK_THREADS) == -ENOTSUP && nops[0] == 0x90);
	over = (struct pc_over){ { nops, codes[0], 5, 0 }, 1, 1 };
	MUST(pc_patch_over_batch(&over, 1, PC_STARTS_KEPT) == -ENOTSUP);
	MUST(over.op.result == -ENOTSUP && nops[0] == 0x90);
	for (size_t i = 0; i <= PC_QUIET_BATCH; i++)
		ops[i] = (struct pc_op){ aliased + 128 + 5 * i, codes[0], 5, 0 };
	MUST(pc_patch_batch(ops, PC_QUIET_BATCH + 1) == -ENOTSUP);
	MUST(ops[PC_QUIET_BATCH].result == -ENOTSUP && aliased[128] == CODE_NOP);
	MUST(pc_patch_batch(ops, PC_QUIET_BATCH) == 0 && aliased[128] == 0xb8);
	MUST(pc_call_init(&call, call_at) == -ENOSPC && call_at[0] == 0xe8);
	/* Another policy, and all of it is possible again. */
	MUST(pc_set_policy(PC_POLICY_WAIT) == 0);
	MUST(pc_call_init(&call, call_at) == 0 && pc_patch(open + 61, codes[0], 5) == 0);
	MUST(pc_set_policy(PC_POLICY_QUIET) == 0);
	MUST(pc_deactivate_call(&call) == 0 && pc_activate_call(&call, NULL) == 0);
	MUST(pc_activate_call(&call, far) == 0 || pc_deactivate_call(&call) == 0);
	MUST(pc_fini() == 0 && code_prot(open) == RX);
}

/* Without waits the policy is had, for what one store changes. */
static void without_waits(const void *arg)
{
	uint8_t *page = code_map(1, RX);
	struct pc_status status;

	(void)arg;
	setenv("PATCHCORE_MACHINE_CONF", "/dev/null", 1);
	MUST(pc_init() == 0 && pc_text_alias(page, 1) == 0);
	MUST(pc_set_policy(PC_POLICY_QUIET) == 0 && pc_get_status(&status) == 0);
	MUST(status.asked == PC_POLICY_QUIET && status.in_use == PC_POLICY_AUTO);
	MUST(pc_patch(page + 64, codes[0], 5) == 0);
	MUST(pc_patch(page + 61, codes[0], 5) == -ENOTSUP && page[61] == CODE_NOP);
}

/* What was started by membarrier is over before the policy is in force. */
static void in_flight(const void *arg)
{
	uint8_t *page = code_map(1, RX);

	(void)arg;
	begin();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier here");
	MUST(pc_start_patch(page + 61, codes[0], 5) == 0 && page[61] == CODE_INT3);
	MUST(code_prot(page) == RWX && pc_set_policy(PC_POLICY_QUIET) == 0);
	MUST(!memcmp(page + 61, codes[0], 5) && code_prot(page) == RX);
}

/* --- Interrupts ------------------------------------------------------------------------------- */

#define ROUNDS	    400
#define CHANGES	    25		      /* in a window; 10,000 in all */
#define WINDOW	    UINT64_C(6000000) /* ticks */
#define CHANCE	    1e-7
#define LIMIT_S	    60
#define LEAST_SHARE 0.25

enum way {
	IDLE,
	QUIET,
	BY_MEMBARRIER,
	BY_MPROTECT, /* pages that are opened and closed for each change */
	WAYS
};

static uint8_t *sites[WAYS]; /* a page each */
static atomic_bool done;

static void *execute(void *unused)
{
	(void)unused;
	while (!done)
		for (enum way way = IDLE; way < WAYS; way++) {
			code_run(sites[way] + 64);
			code_run(sites[way] + 61 + 64);
		}
	return NULL;
}

/* Function calls, TLB shootdowns and rescheduling; -1: the kernel does not say. */
static long interrupts_of(int cpu)
{
	FILE *file = fopen("/proc/interrupts", "re");
	char line[16384], name[16], *at;
	long sum = -1, count;
	int column = -1;

	snprintf(name, sizeof(name), "CPU%d", cpu);
	if (file && fgets(line, sizeof(line), file)) {
		at = strtok(line, " \n");
		for (int i = 0; at; i++, at = strtok(NULL, " \n"))
			column = strcmp(at, name) ? column : i;
	}
	while (file && column >= 0 && fgets(line, sizeof(line), file)) {
		if (!strstr(line, "CAL:") && !strstr(line, "TLB:") && !strstr(line, "RES:"))
			continue;
		at = strchr(line, ':') + 1;
		for (int i = 0; i <= column; i++)
			count = strtol(at, &at, 10);
		sum = (sum < 0 ? 0 : sum) + count;
	}
	if (file)
		fclose(file);
	return sum;
}

static long count_window(enum way way, int cpu)
{
	static const enum pc_policy policies[WAYS] = {
		[BY_MEMBARRIER] = PC_POLICY_MEMBARRIER,
		[BY_MPROTECT] = PC_POLICY_WAIT,
		[QUIET] = PC_POLICY_QUIET,
	};
	static unsigned state;
	uint64_t start;
	long before;

	MUST(pc_set_policy(policies[way]) == 0);
	before = interrupts_of(cpu);
	start = ticks_now();
	for (unsigned i = 0; i < CHANGES && way != IDLE; i++, state++) {
		MUST(pc_patch(sites[way] + 64, codes[state % 2], 5) == 0);
		MUST(pc_patch(sites[way] + 61 + 64, codes[state % 2], 5) == 0);
	}
	while (ticks_now() - start < WINDOW)
		;
	return interrupts_of(cpu) - before;
}

/* That of so many throws of a coin at least so many are heads. */
static double tail_of_coin(long n, long heads)
{
	double sum = 0;

	for (long k = heads; k <= n; k++)
		sum += exp(lgamma((double)n + 1) - lgamma((double)k + 1) -
			   lgamma((double)(n - k) + 1) - (double)n * log(2));
	return sum;
}

static void pin(pthread_t thread, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	MUST(pthread_setaffinity_np(thread, sizeof(set), &set) == 0);
}

static double cpu_seconds(pthread_t thread)
{
	struct timespec used;
	clockid_t clock;

	MUST(pthread_getcpuclockid(thread, &clock) == 0 && clock_gettime(clock, &used) == 0);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* The first and the last CPU that this process may have. */
static int take_cpus(int *other)
{
	cpu_set_t set;
	int first = -1;

	MUST(sched_getaffinity(0, sizeof(set), &set) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set)) {
			first = first < 0 ? cpu : first;
			*other = cpu;
		}
	if (first == *other)
		child_skip("one CPU");
	return first;
}

/* Its code runs, in both states, before the windows. */
static void make_sites(void)
{
	for (enum way way = IDLE; way < WAYS; way++) {
		sites[way] = code_map(1, RWX);
		code_put(sites[way] + 64, 0x04030201);
		code_put(sites[way] + 61 + 64, 0x04030201);
		MUST(mprotect(sites[way], CODE_PAGE, RX) == 0);
		if (way != BY_MPROTECT)
			MUST(pc_text_alias(sites[way], 1) == 0);
	}
}

static bool tlbs_are_flushed_by_broadcast(void)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[8192];
	bool found = false;

	while (file && fgets(line, sizeof(line), file))
		found |= strstr(line, " invlpgb") != NULL;
	if (file)
		fclose(file);
	return found;
}

/* Do the ways that break the promise show? */
static bool both_are_seen(const long more[WAYS], const long less[WAYS])
{
	for (enum way way = BY_MEMBARRIER; way < WAYS; way++)
		if (tail_of_coin(more[way] + less[way], more[way]) >= CHANCE)
			return false;
	return true;
}

static void interrupts(const void *arg)
{
	static const char *const names[] = { "idle", "quiet", "membarrier", "mprotect" };
	long more[WAYS] = { 0 }, less[WAYS] = { 0 }, sum[WAYS] = { 0 }, seen[WAYS];
	int patcher, executor = -1;
	double seconds = 0, share, start;
	unsigned round = 0;
	uint64_t random = 1;
	pthread_t thread;
	double p[WAYS];

	(void)arg;
	begin();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier to compare with");
	patcher = take_cpus(&executor);
	if (interrupts_of(executor) < 0)
		child_skip("/proc/interrupts does not say");
	make_sites();
	pin(pthread_self(), patcher);
	MUST(pthread_create(&thread, NULL, execute, NULL) == 0);
	pin(thread, executor);
	for (enum way way = IDLE; way < WAYS; way++)
		count_window(way, executor);
	start = seconds_now();
	for (; seconds < LIMIT_S && (round < ROUNDS || !both_are_seen(more, less)); round++) {
		enum way order[] = { IDLE, QUIET, BY_MEMBARRIER, BY_MPROTECT };

		for (unsigned i = WAYS - 1; i > 0; i--) {
			unsigned j = random_next(&random) % (i + 1);
			enum way way = order[i];

			order[i] = order[j];
			order[j] = way;
		}
		for (unsigned i = 0; i < WAYS; i++)
			seen[order[i]] = count_window(order[i], executor);
		for (enum way way = IDLE; way < WAYS; way++) {
			sum[way] += seen[way];
			more[way] += seen[way] > seen[IDLE];
			less[way] += seen[way] < seen[IDLE];
		}
		seconds = seconds_now() - start;
	}
	share = cpu_seconds(thread) / seconds;
	done = true;
	pthread_join(thread, NULL);
	for (enum way way = IDLE; way < WAYS; way++) {
		p[way] = tail_of_coin(more[way] + less[way], more[way]);
		printf("# %s: %ld interrupts in %u windows, more than idle in %ld, fewer in %ld, "
		       "p = %.2g\n",
		       names[way], sum[way], round, more[way], less[way], p[way]);
	}
	printf("# the executor had %.0f %% of its CPU in %.0f s\n", 100 * share, seconds);
	fflush(stdout);
	MUST(p[QUIET] > CHANCE);
	/* No CPU is interrupted for a thread that does not run. */
	if (share < LEAST_SHARE && !both_are_seen(more, less))
		child_skip("other programs keep the executor off its CPU");
	MUST(p[BY_MEMBARRIER] < CHANCE);
	MUST(p[BY_MPROTECT] < CHANCE || tlbs_are_flushed_by_broadcast());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		child_unit_test(refusals),
		child_unit_test(without_waits),
		child_unit_test(in_flight),
		child_unit_test(interrupts),
	};

	return CHILD_TSAN ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
