/* SPDX-License-Identifier: MIT */
/*
 * Straddlers to patch, as many as one likes, and how far each of them is. For
 * the children of tests.
 */
#ifndef PATCHCORE_TESTS_FLIGHTS_H
#define PATCHCORE_TESTS_FLIGHTS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/start.h"

#define FLIGHT_FRONT 2	 /* bytes before the boundary */
#define FLIGHT_LINE  64u /* bytes from one to the next */

enum flight_bytes {
	FLIGHT_OLD,
	FLIGHT_INT3_OLD, /* INT3, the rest of the old front, old back */
	FLIGHT_INT3_NEW, /* INT3, the rest of the old front, new back */
	FLIGHT_NEW,
	FLIGHT_MIXED, /* must never be */
};

/* The i-th of a mapping; the last of a page would cross into the next. */
static inline uint8_t *flight_site(uint8_t *pages, size_t i)
{
	return pages + FLIGHT_LINE * (i + 1) - FLIGHT_FRONT;
}

static inline void flight_put(uint8_t *site, uint32_t number)
{
	code_put(site, number);
}

static inline enum flight_bytes flight_look(const uint8_t *site)
{
	uint8_t old[CODE_LEN], new[CODE_LEN];
	const size_t back = CODE_LEN - FLIGHT_FRONT;

	code_load(old, CODE_OLD);
	code_load(new, CODE_NEW);
	if (memcmp(site, old, CODE_LEN) == 0)
		return FLIGHT_OLD;
	if (memcmp(site, new, CODE_LEN) == 0)
		return FLIGHT_NEW;
	if (site[0] != CODE_INT3 || site[1] != old[1])
		return FLIGHT_MIXED;
	if (memcmp(site + FLIGHT_FRONT, old + FLIGHT_FRONT, back) == 0)
		return FLIGHT_INT3_OLD;
	return memcmp(site + FLIGHT_FRONT, new + FLIGHT_FRONT, back) == 0 ? FLIGHT_INT3_NEW
									  : FLIGHT_MIXED;
}

static inline void flights_use_wait(uint64_t first, uint64_t second)
{
	struct machine_conf conf = conf_here();

	if (!conf.identity.tsc_invariant)
		child_skip("this machine has no invariant TSC");
	conf.level[0].waits.first = first;
	conf.level[0].waits.second = second;
	conf.level[0].waits.stretch = 0;
	conf.window = 8;
	conf_use(&conf);
	MUST(pc_init() == 0);
	if (pc_set_policy(PC_POLICY_WAIT) < 0)
		child_skip("policy wait is not to be had here");
}

static inline void flights_use_membarrier(void)
{
	start_by_membarrier();
}

/* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE; an errno, or SECCOMP_RET_TRAP. */
static inline void flights_filter_membarrier(uint32_t action)
{
	child_filter(SYS_membarrier, 0, 1 << 5, action);
}

/* Pages with straddlers of the old number, one in each line but the last. */
static inline uint8_t *flights_map(size_t pages, int prot, size_t sites)
{
	uint8_t *code = code_map(pages, RWX);

	for (size_t i = 0; i < sites; i++)
		flight_put(flight_site(code, i), CODE_OLD);
	MUST(mprotect(code, pages * CODE_PAGE, prot) == 0);
	return code;
}

/* The n-th of the CPUs that we may use. Skips the test where there are fewer. */
static inline void flights_pin(int n)
{
	static cpu_set_t all;
	cpu_set_t one;

	if (CPU_COUNT(&all) == 0)
		MUST(sched_getaffinity(0, sizeof(all), &all) == 0);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || n-- > 0)
			continue;
		CPU_SET(cpu, &one);
		MUST(sched_setaffinity(0, sizeof(one), &one) == 0);
		return;
	}
	child_skip("there are too few CPUs");
}

#endif
