/* SPDX-License-Identifier: MIT */
/*
 * The handler touches only the stack, the site table (lock-free, entries never freed) and the
 * chain, which is complete before the handler is installed.
 *
 * SIGTRAP is blocked in here: an INT3 in code that it runs would end the process. So all of it is
 * NOPATCH, up to the handler of the program to which it hands what is not its own.
 */
#include "patchcore/trap/trap.h"

#include "patchcore/kernel/clock.h"
#include "patchcore/machine/wait.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/site.h"
#include "patchcore/text/text.h"
#include "patchcore/word/flight.h"
#include "patchcore/word/word.h"

/*
 * How long, in ticks, an executor only watches before it offers its help: a patcher at work is done
 * by then, and should not have to fetch the line with its own state back from those that wait.
 */
#define WATCH_TICKS UINT64_C(10000)

/*
 * How long, in ticks, an executor spins for the patcher before it naps (and leaves the CPU to the
 * patcher, if it was the patcher's) and goes back to the INT3. It will trap again at once if the
 * site is still held; but between two traps its other signals get through, so no executor spins
 * for ever with signals held off.
 */
#define SPIN_TICKS UINT64_C(1000000)

NOPATCH static bool is_int3(uintptr_t addr)
{
	return atomic_load_explicit((const _Atomic(uint8_t) *)addr, memory_order_acquire) ==
	       WORD_INT3;
}

/*
 * Wait for the patcher. True: run the instruction again. False: this INT3 is not ours, though the
 * site was once.
 *
 * Our INT3 stands only in odd turns. So one that is read between two looks at the same even turn is
 * foreign; looking only once is not enough, because the site may be released and held again between
 * two instructions of ours. The wait watches the turn and not the byte: the patcher's stores should
 * not have to fetch the code line back from every executor that waits.
 */
NOPATCH static bool settle_trap(struct site *site)
{
	uint64_t start = ticks_now();
	uint64_t turn = site_turn(site);

	while (turn % 2) {
		uint64_t waited = ticks_now() - start;

		if (waited > WATCH_TICKS && flight_help(site))
			return true;
		if (waited > SPIN_TICKS) {
			flight_finish_own();
			if (!flight_rescue_as_guest(site))
				nap();
			return true;
		}
		_mm_pause();
		turn = site_turn(site);
	}
	return !is_int3(site->entry.addr) || site_turn(site) != turn;
}

NOPATCH bool trap_is_served(greg_t *rip)
{
	uintptr_t addr = (uintptr_t)*rip - 1, resume;
	bool adopted = fork_is_new();
	struct site *site;

	/* A process that has just become its own has its own code from here on. */
	if (adopted) {
		fork_adopt();
		adopted = !is_int3(addr);
	}
	site = site_find(addr);
	if (site && settle_trap(site)) {
		resume = atomic_load_explicit(&site->resume, memory_order_relaxed);
		atomic_fetch_add_explicit(&site->traps, 1, memory_order_relaxed);
		*rip = (greg_t)(resume ? resume : addr);
		return true;
	}
	/*
	 * In a child that shares its code with the parent (no copy of the alias could be made), the
	 * parent's INT3 may stand where this process knows of no change. It is gone soon.
	 */
	if (!adopted && !text_is_stale(addr))
		return false;
	if (!adopted)
		nap();
	*rip = (greg_t)addr;
	return true;
}

uint64_t trap_count(void)
{
	return sites_count().traps;
}
