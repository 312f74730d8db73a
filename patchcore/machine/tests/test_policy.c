/* SPDX-License-Identifier: MIT */
/* Which policy is taken, on machines that are made up and on this one, and what is told of it. */
#define _GNU_SOURCE /* memfd_create() */
#include <math.h>
#include <sys/syscall.h>

#include "patchcore/machine/tests/policy_case.h"

/* --- Choosing, on a machine that is made up ---------------------------------------- */

#define ACCEPTED 1e-9

static struct facts made_up(bool have_conf, bool accepted, bool membarrier)
{
	return (struct facts){
		.have_window = have_conf,
		.have_conf = have_conf,
		.membarrier = membarrier,
		.trap = true,
		.conf = {
			.levels = 1,
			.level = { {
				.waits.first = 1000,
				.waits.second = 2000,
				.waits.stretch = 5,
				.line.upper_p = accepted ? ACCEPTED : ACCEPTED * 1.001,
				.page.upper_p = accepted ? ACCEPTED : ACCEPTED * 1.001,
			} },
			.window = 32,
			.window_p = ACCEPTED * 1.001,
		},
		.conf_reason = "no config here",
		.trap_reason = "SIGTRAP could not be taken",
	};
}

static void expect_choice(const struct facts *facts, enum pc_policy asked, enum pc_policy expected)
{
	struct syncs syncs;
	char reason[256] = "";

	policy_choose(facts, asked, ACCEPTED, &syncs, reason, sizeof(reason));
	assert_int_equal(syncs.page.policy, expected);
	assert_int_equal(syncs.page.waits.first, expected == WAIT ? 1000 : 0);
	assert_int_equal(syncs.page.waits.second, expected == WAIT ? 2000 : 0);
	assert_int_equal(syncs.page.waits.stretch, expected == WAIT ? 5 : 0);
	assert_true(reason[0] && !strchr(reason, '\n'));
}

static void test_choose(void **state)
{
	static const struct {
		bool have_conf, accepted, membarrier;
		enum pc_policy when_auto, when_wait, when_membarrier;
	} rows[] = {
		{ false, false, false, NONE, NONE, NONE }, { false, false, true, MB, NONE, MB },
		{ false, true, false, NONE, NONE, NONE },  { false, true, true, MB, NONE, MB },
		{ true, false, false, NONE, WAIT, NONE },  { true, false, true, MB, WAIT, MB },
		{ true, true, false, WAIT, WAIT, NONE },   { true, true, true, WAIT, WAIT, MB },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct facts facts =
			made_up(rows[i].have_conf, rows[i].accepted, rows[i].membarrier);

		expect_choice(&facts, PC_POLICY_AUTO, rows[i].when_auto);
		expect_choice(&facts, PC_POLICY_WAIT, rows[i].when_wait);
		expect_choice(&facts, PC_POLICY_MEMBARRIER, rows[i].when_membarrier);
		facts.trap = false;
		expect_choice(&facts, PC_POLICY_AUTO, NONE);
		expect_choice(&facts, PC_POLICY_WAIT, NONE);
		expect_choice(&facts, PC_POLICY_MEMBARRIER, NONE);
	}
}

static unsigned window_of(const struct facts *facts, enum pc_policy asked)
{
	struct syncs syncs;
	char reason[256];

	policy_choose(facts, asked, ACCEPTED, &syncs, reason, sizeof(reason));
	return syncs.page.window;
}

static unsigned window_at(struct facts *facts, double accept_window_p)
{
	facts_accept_window(facts, accept_window_p);
	assert_int_equal(window_of(facts, PC_POLICY_MEMBARRIER), window_of(facts, PC_POLICY_AUTO));
	assert_true(facts->window == 8 || facts->window_p <= accept_window_p);
	return window_of(facts, PC_POLICY_AUTO);
}

/* More than the documented 8 bytes only by 30 runs of this machine, or for who takes what one saw.
 */
static void test_window(void **state)
{
	struct facts facts = made_up(true, true, true);

	(void)state;
	facts.conf.window_runs = 30;
	facts.conf.window_p = 1.001e-7;
	assert_int_equal(window_at(&facts, 1e-7), 8);
	assert_int_equal(window_of(&facts, PC_POLICY_WAIT), 32);
	assert_int_equal(window_at(&facts, 1.001e-7), 32);
	facts.conf.window_runs = 29;
	assert_int_equal(window_at(&facts, 0.999), 8);
	assert_int_equal(window_at(&facts, 1), 32);
	facts.conf.window_runs = 30;
	/* It needs no clock, but a run of this machine that saw tears where they had to be. */
	facts.have_conf = false;
	assert_int_equal(window_at(&facts, 1e-6), 32);
	facts.have_window = false;
	assert_int_equal(window_at(&facts, 1), 8);
	assert_int_equal(window_of(&facts, PC_POLICY_WAIT), 8);
}

/* Or by 30 runs in ten hours of its kind, and no further than those saw. */
static void test_window_of_kind(void **state)
{
	static const struct {
		unsigned own, kind, runs, hours;
		uint64_t one_in;
		unsigned window;
	} rows[] = {
		{ 64, 64, 30, 10, 20000000, 64 }, { 64, 32, 30, 10, 20000000, 32 },
		{ 16, 64, 30, 10, 20000000, 16 }, { 8, 64, 30, 10, 20000000, 8 },
		{ 64, 64, 29, 10, 20000000, 8 },  { 64, 64, 30, 9, 20000000, 8 },
		{ 64, 64, 30, 10, 9000000, 8 },	  { 64, 0, 0, 0, 0, 8 },
		{ 64, 8, 30, 10, 20000000, 8 },	  { 64, 64, 1000, 2, 2000000000, 8 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct facts facts = made_up(true, true, true);

		facts.conf.window = rows[i].own;
		facts.conf.window_p = 1e-12;
		facts.conf.window_runs = 1;
		facts.kind = (struct kind){ .window = rows[i].kind,
					    .runs = rows[i].runs,
					    .hours = rows[i].hours,
					    .one_in = rows[i].one_in };
		assert_int_equal(window_at(&facts, PC_ACCEPT_WINDOW_P_DEFAULT), rows[i].window);
		/* Other machines say nothing where this one was not calibrated. */
		facts.have_window = false;
		assert_int_equal(window_at(&facts, PC_ACCEPT_WINDOW_P_DEFAULT), 8);
	}
}

static void expect_reason(const struct facts *facts, enum pc_policy asked, const char *about)
{
	struct syncs syncs;
	char reason[256] = "";

	policy_choose(facts, asked, ACCEPTED, &syncs, reason, sizeof(reason));
	if (!strstr(reason, about))
		fail_msg("'%s' is not about '%s'", reason, about);
}

static void test_reasons(void **state)
{
	struct facts facts = made_up(false, false, false);

	(void)state;
	expect_reason(&facts, PC_POLICY_WAIT, "no config here");
	expect_reason(&facts, PC_POLICY_AUTO, "no config here");
	expect_reason(&facts, PC_POLICY_AUTO, "membarrier");
	expect_reason(&facts, PC_POLICY_MEMBARRIER, "membarrier");
	facts.have_conf = true;
	expect_reason(&facts, PC_POLICY_AUTO, "1e-09");
	facts.trap = false;
	expect_reason(&facts, PC_POLICY_AUTO, "SIGTRAP");
}

/* --- Through the public functions ---------------------------------------------------- */

static void deny_membarrier(void)
{
	child_filter(SYS_membarrier, 0, 0, SECCOMP_RET_ERRNO | ENOSYS);
}

static void good_conf(const void *arg)
{
	struct pc_status status;

	(void)arg;
	use_conf(1e-12, 32);
	must_use(PC_POLICY_AUTO, WAIT);
	status = status_now();
	MUST(status.conf_valid == 1 && status.upper_p == 1e-12);
	MUST(status.accept_p == PC_ACCEPT_P_DEFAULT && status.atomic_window == 8);
	MUST(status.accept_window_p == PC_ACCEPT_WINDOW_P_DEFAULT && status.window_p == 0);
	MUST(strcmp(status.conf_path, getenv("PATCHCORE_MACHINE_CONF")) == 0);
	MUST(pc_set_policy(PC_POLICY_WAIT) == 0);
	must_use(PC_POLICY_WAIT, WAIT);
	MUST(status_now().atomic_window == 32);
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0);
	must_use(PC_POLICY_AUTO, WAIT);
	MUST(status_now().atomic_window == 8);
	MUST(pc_set_policy((enum pc_policy)OTHER) == -EINVAL);
	must_use(PC_POLICY_AUTO, WAIT);
	MUST(pc_get_status(NULL) == -EINVAL);
}

static void weak_conf(const void *arg)
{
	enum pc_policy fallback = have_membarrier() ? MB : NONE;

	(void)arg;
	use_conf(1e-6, 16);
	must_use(PC_POLICY_AUTO, fallback);
	MUST(status_now().conf_valid == 1 && status_now().upper_p == 1e-6);
	MUST(pc_set_accept_p(1e-7) == 0);
	must_use(PC_POLICY_AUTO, fallback);
	MUST(status_now().atomic_window == 8 && pc_set_accept_window_p(1e-6) == 0);
	MUST(status_now().atomic_window == 16);
	MUST(pc_set_accept_p(1e-6) == 0);
	must_use(PC_POLICY_AUTO, WAIT);
	MUST(status_now().accept_p == 1e-6);
	MUST(pc_set_accept_p(9e-7) == 0);
	must_use(PC_POLICY_AUTO, fallback);
	/* By name: the caller owns the risk. */
	MUST(pc_set_policy(PC_POLICY_WAIT) == 0);
	must_use(PC_POLICY_WAIT, WAIT);
	MUST(pc_set_accept_p(1e-12) == 0);
	must_use(PC_POLICY_WAIT, WAIT);
}

static void foreign_conf(const void *arg)
{
	struct machine_conf conf = conf_here();
	struct pc_status status;

	(void)arg;
	if (!have_membarrier())
		child_skip("no membarrier");
	conf.identity.stepping++;
	conf_use(&conf);
	must_use(PC_POLICY_AUTO, MB);
	status = status_now();
	MUST(!status.conf_valid && status.upper_p == 1 && status.atomic_window == 8);
	MUST(strcmp(status.conf_path, getenv("PATCHCORE_MACHINE_CONF")) == 0);
	MUST(strstr(status.reason, "stepping differs"));
	MUST(pc_set_policy(PC_POLICY_WAIT) == -ENOTSUP);
	must_use(PC_POLICY_AUTO, MB);
	MUST(pc_set_policy(PC_POLICY_MEMBARRIER) == 0);
	MUST(pc_set_policy(PC_POLICY_WAIT) == -ENOTSUP);
	must_use(PC_POLICY_MEMBARRIER, MB);
	/* The worst that a caller may accept is not: no number at all. */
	MUST(pc_set_policy(PC_POLICY_AUTO) == 0 && pc_set_accept_p(1) == 0);
	must_use(PC_POLICY_AUTO, MB);
}

static void nothing_is_safe(const void *arg)
{
	uint8_t *page = code_map(1, RWX), *site = code_straddler(page), bytes[CODE_LEN];

	(void)arg;
	conf_use_none();
	deny_membarrier();
	code_put(site, CODE_OLD);
	code_put(page, CODE_OLD);
	MUST(pc_init() == 0);
	must_use(PC_POLICY_AUTO, NONE);
	MUST(strstr(status_now().reason, "membarrier"));
	MUST(pc_set_policy(PC_POLICY_AUTO) == -ENOTSUP);
	MUST(pc_set_policy(PC_POLICY_WAIT) == -ENOTSUP);
	MUST(pc_set_policy(PC_POLICY_MEMBARRIER) == -ENOTSUP);
	must_use(PC_POLICY_AUTO, NONE);
	code_load(bytes, CODE_NEW);
	MUST(pc_patch(site, bytes, sizeof(bytes)) == -ENOTSUP);
	MUST(code_run(site) == CODE_OLD);
	MUST(pc_patch(page, bytes, sizeof(bytes)) == 0);
	MUST(code_run(page) == CODE_NEW);
}

static void accept_p(const void *arg)
{
	static const double bad[] = { 0, -1e-9, 1.0000001, 2, NAN, INFINITY, -INFINITY, -0.0 };

	(void)arg;
	conf_use_none();
	MUST(pc_set_accept_p(0.5) == -ESHUTDOWN);
	for (int initialised = 0; initialised < 2; initialised++) {
		for (size_t i = 0; i < LENGTH(bad); i++)
			MUST(pc_set_accept_p(bad[i]) == -EINVAL);
		MUST(status_now().accept_p == PC_ACCEPT_P_DEFAULT);
	}
	MUST(pc_set_accept_p(1) == 0 && status_now().accept_p == 1);
	MUST(pc_set_accept_p(5e-324) == 0 && status_now().accept_p == 5e-324);
	/* It is the process's choice and outlives a restart. */
	MUST(pc_fini() == 0 && pc_set_accept_p(0.25) == -ESHUTDOWN);
	MUST(pc_init() == 0 && status_now().accept_p == 5e-324);
	MUST(pc_set_accept_p(0.25) == 0 && status_now().accept_p == 0.25);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choose),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_window_of_kind),
		cmocka_unit_test(test_reasons),
		child_unit_test(good_conf),
		child_unit_test(weak_conf),
		child_unit_test(foreign_conf),
		child_unit_test(nothing_is_safe),
		child_unit_test(accept_p),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
