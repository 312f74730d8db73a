/* SPDX-License-Identifier: MIT */
/*
 * Exact counting: each execution is one of the old code or one of the new, for every way to
 * change code, every split, policy and mapping, and beside every kind of noise. TMAX_STRESS_SCALE
 * lengthens it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "patchcore/tests/child.h"
#include "patchcore/tests/scale.h"
#include "patchcore/tests/storm/storm.h"

#define MAPPINGS (sizeof(mapping_names) / sizeof(*mapping_names))

static const char *const mapping_names[] = { "open", "closed", "alias" };

static struct storm_result *shared; /* with the child */
static struct storm_result sum;	    /* of all storms of a test */

static void child(const void *arg)
{
	storm_run(arg, shared);
}

static const char *policy_name(const struct storm *storm)
{
	if (!storm->way->syncs)
		return "no sync";
	return storm->policy == PC_POLICY_WAIT ? "wait" : "membarrier";
}

static void report(const struct storm *storm, const struct storm_result *r)
{
	print_message("# %s, %s, %s, noise %02x: %llu toggles (%llu refused), %llu executions = "
		      "%llu old + %llu new + %llu off + %llu between + %llu torn; %llu lost\n",
		      storm->way->name, policy_name(storm), mapping_names[storm->mapping],
		      storm->noise, (unsigned long long)r->toggles, (unsigned long long)r->refused,
		      (unsigned long long)r->executions, (unsigned long long)r->ran[0],
		      (unsigned long long)r->ran[1], (unsigned long long)r->ran[2],
		      (unsigned long long)r->between, (unsigned long long)storm_torn(r),
		      (unsigned long long)r->lost);
}

static void judge(const struct storm *storm, const struct storm_result *r)
{
	assert_int_equal(r->ran[0] + r->ran[1] + r->ran[2] + r->between + storm_torn(r),
			 r->executions);
	assert_true(storm->way->shape == STORM_CALLS || r->ran[2] == 0);
	assert_true(storm->way->shape == STORM_PAIRS || r->between == 0);
	assert_true(storm_torn(r) <= storm_tears_allowed(storm, r->toggles));
	assert_int_equal(r->lost, 0);
	assert_int_equal(r->foreign[0], r->foreign[1]);
	assert_int_equal(r->stray, 0);
}

static void add_up(const struct storm_result *r)
{
	const uint64_t *from = (const uint64_t *)r;
	uint64_t *to = (uint64_t *)&sum;

	for (size_t i = 0; i < sizeof(*r) / sizeof(*from); i++)
		to[i] += from[i];
}

#define AGAIN 20 /* times */

/*
 * Patching that changes nothing is safe too. In all, and again if need be, since on a busy machine
 * a thread may sleep through a short storm.
 */
static bool all_was_run(unsigned done, unsigned times)
{
	bool all = sum.toggles > 0 && sum.ran[0] > 0 && sum.ran[1] > 0 && sum.ran[2] > 0;

	if (!done)
		skip();
	assert_true(all || times < AGAIN);
	return all;
}

/* False: this machine has not got it. */
static bool one_storm(const struct storm *storm)
{
	int status = child_run(child, storm);

	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED)
		return false;
	report(storm, shared);
	if (WIFSIGNALED(status))
		fail_msg("the child died of signal %d", WTERMSIG(status));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	judge(storm, shared);
	add_up(shared);
	return true;
}

static unsigned milliseconds(unsigned at_scale_1)
{
	double ms = at_scale_1 * test_scale();

	return ms < 30 ? 30 : (unsigned)ms;
}

/* Every way, policy and mapping; every split, of a line and of a page, in each. */
static unsigned storms_of_all(void)
{
	unsigned done = 0;

	for (const struct storm_way *way = storm_ways; way->name; way++)
		for (int p = PC_POLICY_WAIT; p <= PC_POLICY_MEMBARRIER; p++)
			for (unsigned m = 0; m < MAPPINGS; m++) {
				struct storm storm = { .way = way,
						       .policy = (enum pc_policy)p,
						       .mapping = (enum storm_mapping)m,
						       .noise = STORM_FOREIGN,
						       .ms = milliseconds(80) };

				if (way->syncs || p == PC_POLICY_MEMBARRIER)
					done += one_storm(&storm);
			}
	return done;
}

static void every_execution_is_counted(void **state)
{
	unsigned times = 1;

	(void)state;
	sum = (struct storm_result){ 0 };
	while (!all_was_run(storms_of_all(), times))
		times++;
}

static unsigned storms_once(unsigned noise, enum pc_policy policy)
{
	static unsigned turn; /* so that each storm has its turn of mappings */
	unsigned done = 0;

	for (const struct storm_way *way = storm_ways; way->name; way++) {
		struct storm storm = { .way = way,
				       .policy = policy,
				       .mapping = (enum storm_mapping)(turn++ % MAPPINGS),
				       .noise = noise,
				       .ms = milliseconds(120) };

		/* A patcher that starts and forgets waits for its own code to appear. */
		if (!way->lasts && noise & (STORM_CONTENTION | STORM_THREADS))
			continue;
		done += one_storm(&storm);
	}
	return done;
}

static void storms(unsigned noise, enum pc_policy policy)
{
	sum = (struct storm_result){ 0 };
	for (unsigned times = 1; !all_was_run(storms_once(noise, policy), times); times++)
		;
}

static void neighbours_lose_nothing(void **state)
{
	(void)state;
	storms(STORM_NEIGHBOURS, PC_POLICY_MEMBARRIER);
	storms(STORM_NEIGHBOURS, PC_POLICY_WAIT);
}

static void many_may_want_the_same_site(void **state)
{
	(void)state;
	storms(STORM_NEIGHBOURS | STORM_CONTENTION, PC_POLICY_MEMBARRIER);
}

static void threads_may_lose_their_cpu(void **state)
{
	(void)state;
	storms(STORM_NEIGHBOURS | STORM_LOAD, PC_POLICY_MEMBARRIER);
}

static void signals_may_come_at_any_time(void **state)
{
	(void)state;
	storms(STORM_NEIGHBOURS | STORM_SIGNALS | STORM_FOREIGN, PC_POLICY_MEMBARRIER);
	assert_true(sum.signals > 0 && sum.foreign[1] > 0);
}

/*
 * Not with the address sanitizer: the runtime of gcc 12 has no fork handlers, so a child may find a
 * lock of its allocator taken by a thread that is not there any more. Tried 85 times, 8 children
 * hung, each in SizeClassAllocator64::GetFromAllocator() under malloc, realloc or a new thread.
 */
#define FORKS (CHILD_ASAN ? 0 : STORM_FORKS)

static void children_patch_their_own_code(void **state)
{
	(void)state;
	if (!FORKS)
		skip();
	storms(STORM_NEIGHBOURS | FORKS, PC_POLICY_MEMBARRIER);
	assert_true(sum.forks > 0);
}

static void objects_may_come_and_go(void **state)
{
	(void)state;
	storms(STORM_DLOPEN, PC_POLICY_MEMBARRIER);
	if (!sum.loads) {
		print_message("# no object to load and unload here\n");
		skip();
	}
}

static void threads_may_come_and_go(void **state)
{
	(void)state;
	storms(STORM_NEIGHBOURS | STORM_THREADS, PC_POLICY_MEMBARRIER);
	assert_true(sum.threads > 0);
}

static void everything_at_once(void **state)
{
	(void)state;
	storms(STORM_NEIGHBOURS | STORM_CONTENTION | STORM_LOAD | STORM_SIGNALS | FORKS |
		       STORM_DLOPEN | STORM_THREADS | STORM_FOREIGN,
	       PC_POLICY_MEMBARRIER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_execution_is_counted),
		cmocka_unit_test(neighbours_lose_nothing),
		cmocka_unit_test(many_may_want_the_same_site),
		cmocka_unit_test(threads_may_lose_their_cpu),
		cmocka_unit_test(signals_may_come_at_any_time),
		cmocka_unit_test(children_patch_their_own_code),
		cmocka_unit_test(objects_may_come_and_go),
		cmocka_unit_test(threads_may_come_and_go),
		cmocka_unit_test(everything_at_once),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
