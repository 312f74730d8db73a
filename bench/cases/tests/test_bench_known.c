/* SPDX-License-Identifier: MIT */
/*
 * The process that knows so many sites: it knows them and no others, answers, and neither it
 * nor its end brings its parent down. This program is that process, too.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/cases/scaling/known.h"
#include "bench/cases/scaling/known_sites.h"
#include "bench/tests/bench_run.h"
#include "bench/tests/serve.h"
#include "patchcore/site/site.h"

#define SITES 3000
#define COUNT 10

static const struct known_waits waits = { BENCH_RUN_WAIT, BENCH_RUN_WAIT, 4 };

static int count_one(struct entry *entry, void *arg)
{
	(void)entry;
	++*(unsigned long *)arg;
	return 0;
}

static unsigned long known_now(void)
{
	unsigned long count = 0;

	sites_each(count_one, &count);
	return count;
}

static void so_many_are_known_and_no_others(void **state)
{
	unsigned long before = known_now();
	struct known_sites sites;

	(void)state;
	assert_int_equal(known_sites_make(&sites, SITES, 5), 0);
	assert_int_equal(known_now() - before, SITES);
	for (unsigned long i = 0; i < SITES; i++) {
		uintptr_t site = known_sites_next(&sites);
		struct site *found = site_find(site);

		assert_non_null(found);
		assert_int_equal(found->entry.addr, site);
		assert_null(site_find(known_sites_miss(site)));
	}
	/* Round and round. */
	assert_int_equal(known_sites_next(&sites), sites.order[0]);
	known_sites_free(&sites);
}

static void their_order_is_not_that_of_their_addresses(void **state)
{
	struct known_sites sites;
	unsigned long up = 0;

	(void)state;
	assert_int_equal(known_sites_make(&sites, SITES, 6), 0);
	for (unsigned long i = 1; i < SITES; i++)
		up += sites.order[i] > sites.order[i - 1];
	assert_in_range(up, SITES * 4 / 10, SITES * 6 / 10);
	known_sites_free(&sites);
}

static void those_that_are_code_are_straddlers(void **state)
{
	struct known_sites sites;
	double ticks;

	(void)state;
	assert_int_equal(known_sites_make(&sites, KNOWN_PATCHED, 7), 0);
	for (unsigned i = 0; i < KNOWN_PATCHED; i++)
		assert_true((uintptr_t)sites.patched[i] % 64 + 5 > 64);
	assert_int_equal(pc_text_open(sites.code, sites.code_bytes), 0);
	/* Each sample changes one of them, and the next round of samples each back. */
	for (unsigned i = 0; i < 2 * KNOWN_PATCHED; i++) {
		uint8_t before = sites.patched[i % KNOWN_PATCHED][1];

		assert_int_equal(known_sites_time(&sites, KNOWN_WAIT, &ticks), 0);
		assert_int_not_equal(sites.patched[i % KNOWN_PATCHED][1], before);
		assert_true(ticks >= 2.0 * BENCH_RUN_WAIT);
	}
	known_sites_free(&sites);
	assert_int_equal(known_sites_make(&sites, KNOWN_PATCHED - 1, 7), -EINVAL);
}

static void open_known(struct known *known, unsigned long sites)
{
	char why[BENCH_WHY] = "";

	if (known_open(known, sites, &waits, why) < 0)
		fail_msg("%s", why);
}

static void every_kind_gives_so_many_samples(void **state)
{
	struct known known;

	(void)state;
	open_known(&known, 100);
	for (int what = 0; what < KNOWN_KINDS; what++) {
		struct samples s = { 0 };
		char why[BENCH_WHY] = "";
		int ret = known_measure(&known, (enum known_what)what, COUNT, &s, why);

		if (what == KNOWN_MEMBARRIER && ret == -ENOTSUP)
			continue;
		assert_int_equal(ret, 0);
		assert_int_equal(s.count, COUNT);
		for (size_t i = 0; i < s.count; i++)
			assert_true(s.value[i] > (what == KNOWN_WAIT ? 2.0 * BENCH_RUN_WAIT : 0));
		samples_free(&s);
	}
	known_close(&known);
}

/* What one process knows, another does not. */
static void the_parent_learns_nothing(void **state)
{
	unsigned long before = known_now();
	struct known known;

	(void)state;
	open_known(&known, SITES);
	known_close(&known);
	assert_int_equal(known_now(), before);
	assert_int_equal(known.pid, 0);
	known_close(&known);
}

static void a_process_that_has_ended_is_told(void **state)
{
	struct samples s = { 0 };
	char why[BENCH_WHY] = "";
	struct known known;
	pid_t pid;

	(void)state;
	open_known(&known, 10);
	pid = known.pid;
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT);
	assert_true(known_measure(&known, KNOWN_FIND, COUNT, &s, why) < 0);
	assert_true(known_measure(&known, KNOWN_FIND, COUNT, &s, why) < 0);
	assert_string_not_equal(why, "");
	assert_int_equal(s.count, 0);
	known_close(&known);
	assert_int_equal(waitpid(pid, NULL, 0), -1);
}

static void what_it_does_not_know_ends_it(void **state)
{
	struct samples s = { 0 };
	char why[BENCH_WHY] = "";
	struct known known;

	(void)state;
	open_known(&known, 10);
	assert_true(known_measure(&known, KNOWN_KINDS, COUNT, &s, why) < 0);
	assert_non_null(strstr(why, "has ended"));
	known_close(&known);
}

static void too_few_and_too_many_are_refused(void **state)
{
	char why[BENCH_WHY] = "";
	struct known known;

	(void)state;
	assert_int_equal(known_open(&known, KNOWN_PATCHED - 1, &waits, why), -EINVAL);
	assert_string_not_equal(why, "");
	assert_int_equal(known_open(&known, 1000000000000, &waits, why), -ENOMEM);
	assert_non_null(strstr(why, "MiB"));
	assert_int_equal(known.pid, 0);
}

static void it_ends_with_its_parent(void **state)
{
	struct known known;
	int status;

	(void)state;
	open_known(&known, 10);
	/* All that the end of the parent is to it: its socket has no other end any more. */
	close(known.socket);
	known.socket = 0;
	assert_int_equal(waitpid(known.pid, &status, 0), known.pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void finds_are_counted_of_known_sites(void **state)
{
	unsigned long before = known_now();

	(void)state;
	assert_int_equal(bench_count_finds(100, 1000), 0);
	assert_int_equal(known_now() - before, 100);
	assert_int_equal(bench_count_finds(1, 1000), -EINVAL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(so_many_are_known_and_no_others),
		cmocka_unit_test(their_order_is_not_that_of_their_addresses),
		cmocka_unit_test(those_that_are_code_are_straddlers),
		cmocka_unit_test(every_kind_gives_so_many_samples),
		cmocka_unit_test(the_parent_learns_nothing),
		cmocka_unit_test(a_process_that_has_ended_is_told),
		cmocka_unit_test(what_it_does_not_know_ends_it),
		cmocka_unit_test(too_few_and_too_many_are_refused),
		cmocka_unit_test(it_ends_with_its_parent),
		cmocka_unit_test(finds_are_counted_of_known_sites),
	};

	if (argc > 1)
		return serve(argc, argv);
	library_assume_waits(BENCH_RUN_WAIT, BENCH_RUN_WAIT, 4);
	if (pc_init() < 0 || pc_set_policy(PC_POLICY_WAIT) < 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
