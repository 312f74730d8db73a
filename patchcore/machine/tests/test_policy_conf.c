/* SPDX-License-Identifier: MIT */
/* Which configs are refused on which machine, and the window and the CPUs that one allows. */
#define _GNU_SOURCE /* memfd_create() */
#include <sched.h>
#include <stdlib.h>

#include "patchcore/machine/tests/policy_case.h"

/* --- The config and the machine ----------------------------------------------------- */

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(other_machines), child_unit_test(bad_calibrations),
		child_unit_test(other_cpus),	 child_unit_test(hostile_conf),
		child_unit_test(widest_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
