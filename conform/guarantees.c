/* SPDX-License-Identifier: MIT */
#include <cpuid.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "conform/child.h"

#define BIT(fault) (1u << (fault))

/*
 * An executor that is not synchronised may run an old version of the code. So a stale copy is no
 * failure of word and int3, and neither is a lost INT3.
 */
const struct guarantee guarantees[] = {
	{ "flag", "code that is written, told of by a flag, and run after CPUID is the new code",
	  "Intel SDM vol. 3, cross-modifying code; AMD APM vol. 2, 7.6.1", 2,
	  BIT(FAULT_STALE) | BIT(FAULT_LOST) | BIT(FAULT_UNSYNCED) | BIT(FAULT_UNSERIALIZED), NULL,
	  write_in_turn, execute_in_turn, place_flag, false },
	{ "moved", "the same, for functions of any length at any address, over others",
	  "Intel SDM vol. 3, cross-modifying code; AMD APM vol. 2, 7.6.1", 2,
	  BIT(FAULT_STALE) | BIT(FAULT_LOST) | BIT(FAULT_UNSYNCED) | BIT(FAULT_UNSERIALIZED), NULL,
	  write_in_turn, execute_in_turn, place_moved, false },
	{ "self", "a thread that writes code and jumps to it runs the new code",
	  "Intel SDM vol. 3, self-modifying code; AMD APM vol. 2, 7.6.1", 1,
	  BIT(FAULT_STALE) | BIT(FAULT_LOST), NULL, write_self, NULL, NULL, false },
	{ "word", "one store inside eight aligned bytes of running code is never seen by half",
	  "AMD APM vol. 2, 7.6.1; not promised by Intel", 2, BIT(FAULT_LOST) | BIT(FAULT_TORN),
	  prepare_word, write_word, execute_word, NULL, false },
	{ "int3", "an INT3 over the first byte of running code traps or does not, and nothing else",
	  "AMD APM vol. 2, 7.6.1; Linux relies on it", 2, BIT(FAULT_TORN), prepare_int3, write_int3,
	  execute_int3, NULL, false },
	{ "membarrier", "running code across a page that is changed behind INT3 is old or new",
	  "the same, and membarrier(2) SYNC_CORE", 2,
	  BIT(FAULT_STALE) | BIT(FAULT_LOST) | BIT(FAULT_TORN) | BIT(FAULT_UNSERIALIZED),
	  prepare_membarrier, write_membarrier, execute_membarrier, NULL, false },
	{ "fresh", "a page that is mapped, written, made executable and run has the new code",
	  "mmap(2), mprotect(2): the flush of TLBs interrupts the executor, which serialises", 2,
	  BIT(FAULT_STALE) | BIT(FAULT_LOST), NULL, write_in_turn, execute_in_turn, place_fresh,
	  true },
	{ "reused", "the same, where another thread has just unmapped its page and code",
	  "munmap(2), mmap(2); a page fault serialises", 2, BIT(FAULT_STALE) | BIT(FAULT_LOST),
	  NULL, write_reused, execute_reused, NULL, false },
	{ "executable", "a page that is called all the while runs as soon as it may, and new",
	  "mprotect(2): the flush of TLBs interrupts the executor, which serialises", 2,
	  BIT(FAULT_STALE) | BIT(FAULT_LOST), prepare_executable, write_executable,
	  execute_executable, NULL, true },
	{ "litmus", "no litmus test of instruction fetch shows what the vendor forbids",
	  "each test names its source: tmax litmus --list", 2, BIT(FAULT_EXCHANGED), prepare_litmus,
	  write_litmus, execute_litmus, NULL, false },
	{ 0 },
};

const struct guarantee *guarantee_named(const char *name)
{
	for (const struct guarantee *g = guarantees; g->name; g++)
		if (strcmp(g->name, name) == 0)
			return g;
	return NULL;
}

static const char *const faults[FAULTS] = { "none", "stale",	 "lost",	"unsynced",
					    "torn", "exchanged", "unserialized" };

const char *fault_name(enum fault fault)
{
	return faults[fault];
}

int fault_parse(const char *name)
{
	for (int i = 0; i < FAULTS; i++)
		if (strcmp(faults[i], name) == 0)
			return i;
	return -EINVAL;
}

/* Linux does so from 6.15 on, for a process that is active on four CPUs. */
bool has_broadcast_flush(void)
{
	unsigned eax, ebx, ecx, edx, major, minor;
	struct utsname un;

	if (!__get_cpuid(0x80000008, &eax, &ebx, &ecx, &edx) || !(ebx & 1u << 3))
		return false;
	return uname(&un) < 0 || sscanf(un.release, "%u.%u", &major, &minor) != 2 || major > 6 ||
	       (major == 6 && minor >= 15);
}

double rate_excluded(uint64_t trials)
{
	double missed = log(100);

	return (double)trials > missed ? missed / (double)trials : 1;
}

double seconds_to_exclude(double rate, double trials_per_second)
{
	return log(100) / -log1p(-rate) / trials_per_second;
}
