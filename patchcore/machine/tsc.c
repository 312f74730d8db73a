/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/policy.h"

#include <stdio.h>
#include <string.h>

#include "patchcore/machine/wait.h"
#include "patchcore/syscall/sys.h"

#define CLOCKS	   "/sys/devices/system/clocksource/clocksource0/"
#define TRIES	   100
#define CPU_NUMBER 0xfffu /* its bits of TSC_AUX; the node is above them */

bool moment_lacks_cpu;

/* What the kernel may keep time by if it trusts the TSC: the TSC, or what reckons from it. */
static const char by_tsc[] = "tsc kvm-clock hyperv_clocksource_tsc_page xen";

static bool has_word(const char *line, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = line; (at = strstr(at, word)); at += length)
		if ((at == line || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

static bool has_rdtscp(const struct identity_source *src)
{
	uint32_t regs[4] = { 0 };

	src->cpuid(src->arg, 0x80000000, 0, regs);
	if (regs[0] < 0x80000001)
		return false;
	src->cpuid(src->arg, 0x80000001, 0, regs);
	return regs[3] >> 27 & 1;
}

const char *tsc_problem_of(const struct identity_source *src, char *text, size_t size)
{
	char available[256], current[64], booted[4096];
	bool have;

	if (!has_rdtscp(src))
		return "this CPU has no RDTSCP, which tells the CPU that a TSC is of";
	have = identity_line(src, CLOCKS "available_clocksource", available, sizeof(available));
	if (have && !has_word(available, "tsc")) {
		snprintf(text, size,
			 "the kernel does not trust the TSC: its clock sources are %.100s",
			 available);
		return text;
	}
	if (identity_line(src, CLOCKS "current_clocksource", current, sizeof(current))) {
		if (has_word(by_tsc, current))
			return NULL;
		snprintf(text, size, "the kernel keeps time by %s, not by the TSC", current);
		return text;
	}
	/* Where sysfs lists no clock sources, the kernel's command line has to do. */
	identity_line(src, "/proc/cmdline", booted, sizeof(booted));
	if (!have && (has_word(booted, "tsc=unstable") || has_word(booted, "notsc")))
		return "the kernel was told not to trust the TSC (tsc=unstable or notsc)";
	return NULL;
}

const char *tsc_problem(char *text, size_t size)
{
	const char *problem = tsc_problem_of(&identity_here, text, size);

	for (int i = 0; !problem && i < TRIES; i++) {
		struct moment before = moment_now(), after;
		unsigned cpu = 0;

		if (sys_call(SYS_getcpu, &cpu, NULL, NULL) < 0)
			break;
		after = moment_now();
		/* Between two readings that say the same the thread has stayed where it was. */
		if (before.cpu == after.cpu && (before.cpu & CPU_NUMBER) == (cpu & CPU_NUMBER))
			return NULL;
		if (before.cpu == after.cpu)
			break;
	}
	return problem ? problem : "RDTSCP does not tell the CPU here";
}

void tsc_learn(void)
{
	bool lacks = !has_rdtscp(&identity_here);

	/* Stored only if it changes: at a second pc_init() other threads may be waiting by it. */
	if (lacks != moment_lacks_cpu)
		moment_lacks_cpu = lacks;
}
