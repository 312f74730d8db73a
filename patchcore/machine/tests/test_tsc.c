/* SPDX-License-Identifier: MIT */
/* Which TSC may be waited by: the kernel decides, not CPUID alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <x86intrin.h>

#include "patchcore/machine/policy.h"
#include "patchcore/machine/wait.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/recorded.h"

#define CLOCKS	  "/sys/devices/system/clocksource/clocksource0/"
#define AVAILABLE CLOCKS "available_clocksource"
#define CURRENT	  CLOCKS "current_clocksource"

static const char *problem_of(struct machine *m, char text[160])
{
	struct identity_source src = { .root = m->root, .cpuid = recorded_cpuid, .arg = m };

	return tsc_problem_of(&src, text, 160);
}

static void expect_trusted(struct machine *m)
{
	char text[160];
	const char *problem = problem_of(m, text);

	if (problem)
		fail_msg("%s", problem);
}

static void expect_problem(struct machine *m, const char *about)
{
	char text[160];
	const char *problem = problem_of(m, text);

	if (!problem || !strstr(problem, about) || strchr(problem, '\n'))
		fail_msg("'%s' is not about '%s'", problem ? problem : "", about);
}

static void put_clocks(struct machine *m, const char *available, const char *current)
{
	put(m, AVAILABLE, available);
	put(m, CURRENT, current);
}

/* As kernels tell of it, with the blank that they leave behind the last. */
static void test_trusted(void **state)
{
	static const char *const clocks[][2] = {
		{ "tsc hpet acpi_pm \n", "tsc\n" },
		{ "tsc kvm-clock \n", "tsc\n" },
		{ "kvm-clock tsc hpet acpi_pm \n", "kvm-clock\n" },
		{ "hyperv_clocksource_tsc_page hyperv_clocksource_msr tsc acpi_pm \n",
		  "hyperv_clocksource_tsc_page\n" },
		{ "xen tsc hpet acpi_pm \n", "xen\n" },
		{ "tsc\n", "tsc \n" },
		{ "tsc", "tsc" },
	};
	struct machine m;

	(void)state;
	make_machine(&m);
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		put_clocks(&m, clocks[i][0], clocks[i][1]);
		expect_trusted(&m);
	}
	remove_machine(&m);
}

/* The kernel found it unstable, or was told so: it is in the list no more. */
static void test_not_available(void **state)
{
	static const char *const clocks[][2] = {
		{ "hpet acpi_pm \n", "hpet\n" },
		{ "acpi_pm \n", "acpi_pm\n" },
		{ "kvm-clock acpi_pm \n", "kvm-clock\n" },
		{ "hyperv_clocksource_tsc_page hyperv_clocksource_msr acpi_pm \n",
		  "hyperv_clocksource_tsc_page\n" },
		{ "tsc-early hpet \n", "tsc-early\n" },
		{ "xtsc tscx \n", "xtsc\n" },
		{ " \n", "tsc\n" },
		{ "hpet tsc-early acpi_pm\n", "tsc\n" },
	};
	struct machine m;

	(void)state;
	make_machine(&m);
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		put_clocks(&m, clocks[i][0], clocks[i][1]);
		expect_problem(&m, "the kernel does not trust the TSC");
	}
	put_clocks(&m, "hpet acpi_pm \n", "hpet\n");
	expect_problem(&m, "its clock sources are hpet acpi_pm");
	remove_machine(&m);
}

static void test_not_current(void **state)
{
	static const char *const current[] = { "hpet",	    "acpi_pm", "refined-jiffies",
					       "jiffies",   "pit",     "hyperv_clocksource_msr",
					       "tsc-early", "new-one" };
	struct machine m;
	char line[64], about[96];

	(void)state;
	make_machine(&m);
	for (size_t i = 0; i < sizeof(current) / sizeof(current[0]); i++) {
		snprintf(line, sizeof(line), "%s\n", current[i]);
		snprintf(about, sizeof(about), "keeps time by %s, not", current[i]);
		put_clocks(&m, "tsc hpet acpi_pm \n", line);
		expect_problem(&m, about);
	}
	remove_machine(&m);
}

/* A container may have no such files: then the kernel's command line is what there is. */
static void test_no_files(void **state)
{
	struct machine m;

	(void)state;
	make_machine(&m);
	expect_trusted(&m);
	put(&m, "/proc/cmdline", "quiet tsc=reliable clocksource=tsc\n");
	expect_trusted(&m);
	put(&m, "/proc/cmdline", "quiet tsc=unstable ro\n");
	expect_problem(&m, "tsc=unstable");
	put(&m, "/proc/cmdline", "notsc\n");
	expect_problem(&m, "notsc");
	put(&m, "/proc/cmdline", "xnotsc notscx tsc=unstables\n");
	expect_trusted(&m);
	/* One of the two tells enough. */
	put(&m, CURRENT, "hpet\n");
	expect_problem(&m, "by hpet");
	put(&m, CURRENT, "tsc\n");
	expect_trusted(&m);
	put(&m, AVAILABLE, "hpet\n");
	expect_problem(&m, "does not trust");
	remove_machine(&m);
}

/* The reason is one line of bounded length with any content of the files. */
static void test_odd_files(void **state)
{
	static char text[8192];
	struct machine m;

	(void)state;
	make_machine(&m);
	memset(text, 'x', sizeof(text) - 1);
	put_clocks(&m, text, text);
	expect_problem(&m, "xxxx");
	put_clocks(&m, "tsc\n", text);
	expect_problem(&m, "xxxx");
	remove_machine(&m);
}

static void test_no_rdtscp(void **state)
{
	struct machine m;

	(void)state;
	make_machine(&m);
	put_clocks(&m, "tsc \n", "tsc\n");
	expect_trusted(&m);
	find(&m, 0x80000001, 0)->regs[3] &= ~(1u << 27);
	expect_problem(&m, "no RDTSCP");
	load(&m, "intel-prescott");
	expect_problem(&m, "no RDTSCP");
}

static struct moment moment_with(bool lacks)
{
	struct moment moment;

	moment_lacks_cpu = lacks;
	moment = moment_now();
	moment_lacks_cpu = false;
	return moment;
}

/* Without RDTSCP there is a time still, though not whose. */
static void test_moment(void **state)
{
	uint64_t before = __rdtsc();
	struct moment with = moment_with(false), without = moment_with(true);

	(void)state;
	assert_true(with.ticks >= before || without.ticks >= before);
	assert_int_equal(without.cpu, 0);
	tsc_learn();
	assert_false(moment_lacks_cpu);
}

/* Here: no wait is possible for other reasons, or it is told why. */
static void test_here(void **state)
{
	char text[160] = "";
	const char *problem = tsc_problem(text, sizeof(text));

	(void)state;
	if (problem)
		print_message("here: %s\n", problem);
	assert_true(!problem || (problem[0] && !strchr(problem, '\n')));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trusted),	    cmocka_unit_test(test_not_available),
		cmocka_unit_test(test_not_current), cmocka_unit_test(test_no_files),
		cmocka_unit_test(test_odd_files),   cmocka_unit_test(test_no_rdtscp),
		cmocka_unit_test(test_moment),	    cmocka_unit_test(test_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
