/* SPDX-License-Identifier: MIT */
/*
 * Before patching: would every thread survive the INT3 of a straddler? And a
 * handler of the program's own for SIGTRAP, behind the library's.
 */
#include <patchcore/signals.h>

#include "example.h"

static volatile sig_atomic_t breakpoints;

static void on_breakpoint(int signal)
{
	(void)signal;
	breakpoints++;
}

static int check(void)
{
	struct pc_signals report;
	int ret = pc_check_signals(&report);

	if (ret < 0 && ret != -EBUSY)
		return ret;
	printf("straddlers are %ssafe to patch: %u of %u threads have SIGTRAP blocked\n",
	       ret < 0 ? "not " : "", report.threads_blocking, report.threads);
	printf("guarded: %s\n", report.guarded ? "yes" : "no");
	if (report.advice[0])
		printf("advice: %s\n", report.advice);
	return 0;
}

int main(void)
{
	const struct sigaction action = { .sa_handler = on_breakpoint };

	if (pc_init() < 0 || check() < 0 || pc_set_chained_trap(&action, NULL) < 0)
		return 1;
	/* A breakpoint of the program's own: not a site, so it goes to on_breakpoint(). */
	__asm__ volatile("int3");
	printf("traps of the program's own: %d\n", (int)breakpoints);
	return breakpoints == 1 ? 0 : 1;
}
