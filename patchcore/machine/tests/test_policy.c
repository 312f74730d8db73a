/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/machine/policy.h"
#include "patchcore/patchcore.h"
#include "patchcore/sigtrap/trap.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/word/word.h"

#define NONE  PC_POLICY_AUTO
#define WAIT  PC_POLICY_WAIT
#define MB    PC_POLICY_MEMBARRIER
#define OTHER 7 /* no such policy */

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

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

/* --- The config and the machine ----------------------------------------------------- */

int __real_identity_read(struct identity *id);
int __wrap_identity_read(struct identity *id);

static enum {
	AS_IT_IS,
	NO_INVARIANT_TSC,
	FAMILY_26, /* of AMD */
	UNREADABLE
} here;

int __wrap_identity_read(struct identity *id)
{
	int ret = __real_identity_read(id);

	id->tsc_invariant = here != NO_INVARIANT_TSC;
	if (here == FAMILY_26) {
		snprintf(id->vendor, sizeof(id->vendor), "AuthenticAMD");
		id->family = 26;
		id->model = 2;
	}
	return here == UNREADABLE ? -ENODATA : ret;
}

const char *__wrap_tsc_problem(char *text, size_t size);

static const char *distrust; /* of the kernel, for the clock of this machine */

const char *__wrap_tsc_problem(char *text, size_t size)
{
	if (!distrust)
		return NULL;
	snprintf(text, size, "%s", distrust);
	return text;
}

static struct facts learn(const struct machine_conf *conf)
{
	struct facts facts;

	conf_use(conf);
	facts_learn(&facts);
	return facts;
}

static void must_refuse(const struct machine_conf *conf, const char *about)
{
	struct facts facts = learn(conf);

	MUST(!facts.have_conf);
	if (!strstr(facts.conf_reason, about))
		dprintf(2, "'%s' is not about '%s'\n", facts.conf_reason, about);
	MUST(strstr(facts.conf_reason, about));
}

/* The value with another last letter, or another number, that the field can hold. */
static void vary(struct identity *id, const char *name, const char *value)
{
	char other[128];
	size_t last;

	snprintf(other, sizeof(other), "%s", value);
	last = strlen(other) - 1;
	if (strcmp(name, "tsc_invariant") == 0)
		snprintf(other, sizeof(other), "no");
	else if (strcmp(name, "cpus") == 0)
		snprintf(other, sizeof(other), "%u", id->cpus + 1);
	else if (strcmp(name, "tsc_khz") == 0)
		snprintf(other, sizeof(other), "%" PRIu64, id->tsc_khz + id->tsc_khz / 50);
	else
		other[last] = other[last] == '1' ? '2' : '1';
	MUST(identity_set(id, name, other) == 0);
}

static void other_machines(const void *arg)
{
	struct machine_conf conf = conf_here();
	const char *name;
	char value[128];

	(void)arg;
	for (unsigned i = 0; identity_field(&conf.identity, i, &name, value, sizeof(value)); i++) {
		struct machine_conf other = conf;
		char about[64];

		snprintf(about, sizeof(about), "another machine: %s differs", name);
		vary(&other.identity, name, value);
		MUST(learn(&other).have_window == (strcmp(name, "kernel") == 0));
		if (strcmp(name, "kernel") == 0)
			MUST(learn(&other).have_conf);
		else
			must_refuse(&other, about);
	}
}

static void bad_calibrations(const void *arg)
{
	struct machine_conf conf = conf_here();
	struct facts facts;

	(void)arg;
	facts = learn(&conf);
	MUST(facts.have_conf && facts.conf_reason[0] == '\0' && facts.conf_path[0]);
	conf.usable = false;
	must_refuse(&conf, "no wait that is safe");
	MUST(!learn(&conf).have_window);
	conf.usable = true;
	here = NO_INVARIANT_TSC;
	must_refuse(&conf, "tsc_invariant differs");
	conf.identity.tsc_invariant = false;
	must_refuse(&conf, "no invariant TSC");
	MUST(learn(&conf).have_window);
	here = UNREADABLE;
	must_refuse(&conf, "cannot be identified");
	MUST(!learn(&conf).have_window);
	here = AS_IT_IS;
	conf = conf_here();
	distrust = "the kernel keeps time by hpet, not by the TSC";
	must_refuse(&conf, "keeps time by hpet");
	/* A store needs no clock. */
	MUST(learn(&conf).have_window);
	distrust = NULL;
	MUST(learn(&conf).have_conf);
	setenv("PATCHCORE_MACHINE_CONF", conf_file("[tmax]\n", 7), 1);
	facts_learn(&facts);
	MUST(!facts.have_conf && strstr(facts.conf_reason, "is missing"));
	MUST(!facts.have_window);
	conf_use_none();
	facts_learn(&facts);
	MUST(!facts.have_conf && strstr(facts.conf_reason, "cannot be read"));
}

static void first_and_rest(const struct cpus *all, struct cpus *first, struct cpus *rest)
{
	*first = (struct cpus){ 0 };
	for (unsigned i = 0; i < CPUS_MAX / 64 && !cpus_count(first); i++)
		first->word[i] = all->word[i] & -all->word[i];
	cpus_beyond(all, first, rest);
}

/* Waits of some CPUs do not count on others; waits of unknown CPUs count on none. */
static void other_cpus(const void *arg)
{
	struct machine_conf conf = conf_here();
	struct cpus all = conf.cpus, first, rest;
	char list[64], about[128];

	(void)arg;
	MUST(learn(&conf).have_conf);
	first_and_rest(&all, &first, &rest);
	conf.cpus = (struct cpus){ 0 };
	conf.cpus.word[CPUS_MAX / 64 - 1] = UINT64_C(1) << 63;
	cpus_print(&all, list, 40);
	snprintf(about, sizeof(about), "not calibrated on CPU %s", list);
	must_refuse(&conf, about);
	MUST(!learn(&conf).have_window);
	conf.cpus = all;
	MUST(learn(&conf).have_conf);
	if (!cpus_count(&rest))
		child_skip("one CPU");
	conf.cpus = first;
	cpus_print(&rest, list, 40);
	snprintf(about, sizeof(about), "not calibrated on CPU %s", list);
	must_refuse(&conf, about);
	conf.cpus = rest;
	cpus_print(&first, list, 40);
	snprintf(about, sizeof(about), "not calibrated on CPU %s", list);
	must_refuse(&conf, about);
	/* More than a program uses are no harm; what it keeps off does not count. */
	if (CHILD_TSAN)
		child_skip("the sanitizer has a thread of its own");
	MUST(sched_setaffinity(0, sizeof(rest), (cpu_set_t *)&rest) == 0);
	MUST(learn(&conf).have_conf);
	conf.cpus = all;
	MUST(learn(&conf).have_conf);
	conf.cpus = first;
	must_refuse(&conf, "not calibrated on CPU");
}

static struct pc_status status_now(void)
{
	struct pc_status status;

	MUST(pc_init() == 0 && pc_get_status(&status) == 0);
	MUST(status.reason[0] && !strchr(status.reason, '\n'));
	return status;
}

#define KINDS "# one line of each kind\nvendor\tfamily\tmodel\twindow\tstores\n"

/* The table that the library reads, as far as it goes. A file that lasts as long as the process. */
static void use_kinds(const char *lines)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "%s%s", KINDS, lines);
	static char path[64];

	snprintf(path, sizeof(path), "%s", conf_file(text, (size_t)n));
	kinds_path = path;
}

static unsigned window_by(const struct machine_conf *conf, const char *kinds)
{
	use_kinds(kinds);
	conf_use(conf);
	MUST(pc_fini() == 0);
	return status_now().atomic_window;
}

/*
 * A run that met no tear does not widen the window beyond what machines of its kind keep: AMD of
 * family 26 gets 32 bytes by its kind, never 64.
 */
static void widest_window(const void *arg)
{
	struct machine_conf conf;
	struct facts facts;

	(void)arg;
	here = FAMILY_26;
	conf = conf_here();
	conf.window = 64;
	conf.window_p = 1e-10;
	conf_use(&conf);
	facts_learn(&facts);
	MUST(facts.have_conf && facts.have_window);
	MUST(facts.conf.window == 32);

	conf.window_runs = 1;
	MUST(window_by(&conf, "") == 8);
	MUST(window_by(&conf,
		       "AuthenticAMD\t26\t2\t32\t680000000\t37000000\t30\t10\t1\t0\t0\t9\n") == 32);
	MUST(status_now().window_p == 1 / 37e6 && pc_set_accept_window_p(1e-8) == 0);
	MUST(status_now().atomic_window == 8 && status_now().window_p == 0);
	MUST(pc_set_accept_window_p(1) == 0 && status_now().atomic_window == 32);
	MUST(pc_set_accept_window_p(0) == -EINVAL && pc_set_accept_window_p(1.1) == -EINVAL);
	MUST(pc_set_accept_window_p(PC_ACCEPT_WINDOW_P_DEFAULT) == 0);
	MUST(window_by(&conf,
		       "AuthenticAMD\t26\t2\t32\t680000000\t37000000\t30\t9\t1\t0\t0\t9\n") == 8);
	MUST(window_by(&conf,
		       "AuthenticAMD\t26\t3\t32\t680000000\t37000000\t30\t10\t1\t0\t0\t9\n") == 8);
	MUST(window_by(&conf,
		       "AuthenticAMD\t25\t2\t32\t680000000\t37000000\t30\t10\t1\t0\t0\t9\n") == 8);
	/* A window wider than where stores tore, and a bound lower than its stores: no line at all.
	 */
	MUST(window_by(&conf,
		       "AuthenticAMD\t26\t2\t64\t680000000\t37000000\t30\t10\t1\t0\t0\t9\n") == 8);
	MUST(window_by(&conf,
		       "AuthenticAMD\t26\t2\t32\t68000000\t37000000\t30\t10\t1\t0\t0\t9\n") == 8);
	/* A library that is not installed finds the table that the environment names. */
	setenv("PATCHCORE_KINDS", kinds_path, 1);
	kinds_path = "/nowhere/kinds.tsv";
	conf_use(&conf);
	MUST(pc_fini() == 0 && status_now().atomic_window == 8);
	use_kinds("AuthenticAMD\t26\t2\t32\t680000000\t37000000\t30\t10\t1\t0\t0\t9\n");
	setenv("PATCHCORE_KINDS", kinds_path, 1);
	kinds_path = "/nowhere/kinds.tsv";
	MUST(pc_fini() == 0 && status_now().atomic_window == 32);
	unsetenv("PATCHCORE_KINDS");
	MUST(pc_fini() == 0 && status_now().atomic_window == 8);
	/* Where others tore, no run of this machine helps. */
	conf.window_runs = 30;
	MUST(window_by(&conf, "") == 32);
	MUST(window_by(&conf,
		       "AuthenticAMD\t26\t2\t16\t680000000\t37000000\t30\t10\t1\t0\t1\t9\n") == 16);
	/* Nor does its kind, where this machine's own run was blind, or was a fleet's. */
	conf.window_runs = 1;
	conf.usable = false;
	conf.verdict = MACHINE_CONF_INCONCLUSIVE;
	MUST(window_by(&conf,
		       "AuthenticAMD\t26\t2\t32\t680000000\t37000000\t30\t10\t1\t0\t0\t9\n") == 8);
}

/* The config that made policy auto wait for no time at all, in the place where it is found. */
static void hostile_conf(const void *arg)
{
	struct machine_conf conf = conf_here();
	char folder[] = "/tmp/test_policy.XXXXXX", path[64], command[64];
	struct conf_lines lines;
	char text[CONF_TEXT];
	struct facts facts;
	FILE *f;

	(void)arg;
	conf.level[0].waits.first = conf.level[0].waits.second = conf.level[0].waits.stretch = 0;
	conf.verdict = MACHINE_CONF_FAIL;
	conf.level[0].page.toggles = 1;
	conf.level[0].page.upper_p = conf.window_p = 1e-300;
	conf.confidence = 0.500001;
	conf.window = 64;
	lines = conf_lines(&conf);
	conf_use_lines(&lines);
	facts_learn(&facts);
	MUST(!facts.have_conf && strstr(facts.conf_reason, "[wait] confidence"));
	/* Nor is a good one taken that others may have written. */
	conf = conf_here();
	lines = conf_lines(&conf);
	conf_text(&lines, text);
	MUST(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/machine.conf", folder);
	f = fopen(path, "w");
	MUST(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(path, 0644) == 0);
	setenv("PATCHCORE_MACHINE_CONF", path, 1);
	facts_learn(&facts);
	MUST(facts.have_conf);
	MUST(chmod(path, 0666) == 0);
	facts_learn(&facts);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	MUST(system(command) == 0);
	MUST(!facts.have_conf && strstr(facts.conf_reason, "can be written to by others"));
}

/* --- Through the public functions ---------------------------------------------------- */

static void must_use(enum pc_policy asked, enum pc_policy in_use)
{
	struct pc_status status = status_now();

	MUST(status.asked == asked && status.in_use == in_use);
	MUST(status.first_wait == (in_use == WAIT ? 600 : 0));
	MUST(status.second_wait == (in_use == WAIT ? 700 : 0));
	MUST(status.stretch == (in_use == WAIT ? 4 : 0));
}

static bool have_membarrier(void)
{
	return membarrier_register() == 0;
}

static void deny_membarrier(void)
{
	child_filter(SYS_membarrier, 0, 0, SECCOMP_RET_ERRNO | ENOSYS);
}

static void use_conf(double upper_p, unsigned window)
{
	struct machine_conf conf = conf_here();

	conf.level[0].line.upper_p = conf.level[0].page.upper_p = upper_p;
	conf.window = window;
	conf.window_p = 1e-6;
	conf.window_runs = 30;
	conf_use(&conf);
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

/* --- Starting and ending -------------------------------------------------------------- */

static void plain_handler(int signal)
{
	(void)signal;
}

static void info_handler(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
}

static bool same_action(const struct sigaction *a, const struct sigaction *b)
{
	const int flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_NOCLDSTOP;

	for (int i = 1; i < SIGRTMAX; i++)
		if (sigismember(&a->sa_mask, i) != sigismember(&b->sa_mask, i))
			return false;
	return a->sa_handler == b->sa_handler && (a->sa_flags & flags) == (b->sa_flags & flags);
}

static void must_give_back(const struct sigaction *own)
{
	struct sigaction before, after;

	MUST(sigaction(SIGTRAP, own, NULL) == 0 && sigaction(SIGTRAP, NULL, &before) == 0);
	MUST(pc_init() == 0 && trap_is_ours());
	MUST(pc_init() == 0 && trap_is_ours());
	MUST(pc_fini() == 0 && !trap_is_ours());
	MUST(sigaction(SIGTRAP, NULL, &after) == 0 && same_action(&before, &after));
	MUST(pc_fini() == 0);
	MUST(sigaction(SIGTRAP, NULL, &after) == 0 && same_action(&before, &after));
}

static void cycles(const void *arg)
{
	struct sigaction own[] = {
		{ .sa_handler = SIG_DFL },
		{ .sa_handler = plain_handler, .sa_flags = SA_RESTART | SA_NODEFER },
		{ .sa_handler = SIG_IGN },
		{ .sa_sigaction = info_handler, .sa_flags = SA_SIGINFO | SA_ONSTACK },
	};

	(void)arg;
	sigaddset(&own[3].sa_mask, SIGUSR1);
	conf_use_none();
	MUST(pc_fini() == 0);
	for (int i = 0; i < 3; i++)
		for (size_t k = 0; k < LENGTH(own); k++)
			must_give_back(&own[k]);
}

/* What was read before pc_fini() does not count after the next pc_init(). */
static void conf_is_read_again(const void *arg)
{
	(void)arg;
	use_conf(1e-12, 8);
	MUST(pc_init() == 0);
	MUST(pc_set_policy(PC_POLICY_WAIT) == 0);
	MUST(pc_fini() == 0);
	conf_use_none();
	MUST(pc_init() == 0);
	must_use(PC_POLICY_WAIT, NONE);
	MUST(!status_now().conf_valid);
	MUST(pc_fini() == 0);
	use_conf(1e-11, 16);
	must_use(PC_POLICY_WAIT, WAIT);
	MUST(status_now().upper_p == 1e-11 && status_now().atomic_window == 16);
}

static void busy_fini(const void *arg)
{
	uint8_t *page = code_map(1, RWX), *site = code_straddler(page), bytes[CODE_LEN];
	struct sigaction other = { .sa_handler = plain_handler }, ours, now;
	struct change change = change_in_place(site, bytes, sizeof(bytes));
	struct sync sync = { .window = 8 };
	struct word *word;

	(void)arg;
	conf_use_none();
	code_put(site, CODE_OLD);
	code_load(bytes, CODE_NEW);
	MUST(pc_init() == 0);
	MUST(word_hold(&word, &change, &sync) == 0);
	MUST(pc_fini() == -EBUSY && trap_is_ours());
	word_release(word);
	sigaction(SIGTRAP, &other, &ours);
	MUST(pc_fini() == -EBUSY);
	sigaction(SIGTRAP, &ours, &now);
	MUST(now.sa_handler == plain_handler);
	MUST(pc_fini() == 0 && !trap_is_ours());
}

/* Had by name, and by AUTO only for a caller that accepts 1; also after a new start. */
static void assumed_waits(const void *unused)
{
	struct pc_status status;

	(void)unused;
	setenv("PATCHCORE_MACHINE_CONF", "/nonexistent/machine.conf", 1);
	MUST(pc_init() == 0 && pc_set_policy(PC_POLICY_WAIT) == -ENOTSUP);
	MUST(pc_fini() == 0);
	policy_assume_waits(1234, 567, 3);
	for (int i = 0; i < 2; i++) {
		MUST(pc_init() == 0 && pc_set_policy(PC_POLICY_AUTO) == 0);
		MUST(pc_get_status(&status) == 0 && status.in_use == PC_POLICY_MEMBARRIER);
		MUST(status.upper_p == 1);
		MUST(pc_set_policy(PC_POLICY_WAIT) == 0 && pc_get_status(&status) == 0);
		MUST(status.in_use == PC_POLICY_WAIT && status.stretch == 3);
		MUST(status.first_wait == 1234 && status.second_wait == 567);
		MUST(status.atomic_window == 8);
		MUST(pc_fini() == 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choose),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_window_of_kind),
		cmocka_unit_test(test_reasons),
		child_unit_test(other_machines),
		child_unit_test(bad_calibrations),
		child_unit_test(good_conf),
		child_unit_test(weak_conf),
		child_unit_test(foreign_conf),
		child_unit_test(nothing_is_safe),
		child_unit_test(accept_p),
		child_unit_test(cycles),
		child_unit_test(conf_is_read_again),
		child_unit_test(busy_fini),
		child_unit_test(assumed_waits),
		child_unit_test(other_cpus),
		child_unit_test(hostile_conf),
		child_unit_test(widest_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
