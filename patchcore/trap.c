/* SPDX-License-Identifier: MIT */
/*
 * The handler touches only the stack, the site table (lock-free, entries never
 * freed) and the chain, which is complete before the handler is installed.
 */
#include "patchcore/trap.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "patchcore/flight.h"
#include "patchcore/site.h"
#include "patchcore/trap_chain.h"
#include "patchcore/trap_test.h"
#include "patchcore/wait.h"
#include "patchcore/word.h"

/*
 * How long, in ticks, an executor only watches before it offers its help: a
 * patcher at work is done by then, and should not have to fetch the line with
 * his own state back from those who wait.
 */
#define WATCH_TICKS UINT64_C(10000)

/*
 * How long, in ticks, an executor spins for the patcher before it backs off (and
 * leaves the CPU to him, if it is his) and goes back to the INT3. It will trap
 * again at once if the site is still held; but between two traps its other
 * signals get through, so nobody can spin for ever with signals held off.
 */
#define SPIN_TICKS UINT64_C(1000000)

#define BACK_OFF_NS 50000

static _Atomic(uint64_t) count; /* relaxed: a statistic */

/* Is this INT3 of a site that is not held a foreign one? */
static bool is_foreign(struct site *site, uint64_t turn)
{
	const _Atomic(uint8_t) *byte = (const _Atomic(uint8_t) *)site->entry.addr;

	return atomic_load_explicit(byte, memory_order_acquire) == WORD_INT3 &&
	       site_turn(site) == turn;
}

/* Yielding would not do: the patcher may have the lower priority. */
void trap_back_off(void)
{
	struct timespec some = { .tv_nsec = BACK_OFF_NS };

	syscall(SYS_nanosleep, &some, NULL);
}

/*
 * Wait for the patcher. True: run the instruction again. False: this INT3 is
 * not ours, though the site was once.
 *
 * Our INT3 stands only in odd turns. So one that is read between two looks at
 * the same even turn is foreign; looking only once is not enough, because the
 * site may be released and held again between two instructions of ours. The
 * wait watches the turn and not the byte: the patcher's stores should not have
 * to fetch the code line back from every executor that waits.
 */
static bool settle(struct site *site)
{
	uint64_t start = ticks_now();
	uint64_t turn = site_turn(site);

	while (turn % 2) {
		uint64_t waited = ticks_now() - start;

		if (waited > WATCH_TICKS && flight_help(site))
			return true;
		if (waited > SPIN_TICKS) {
			flight_finish_own();
			if (!flight_rescue(site, true))
				trap_back_off();
			return true;
		}
		_mm_pause();
		turn = site_turn(site);
	}
	return !is_foreign(site, turn);
}

void trap_on_signal(int signal, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	int saved = errno;
	struct site *site = NULL;

	/* INT3 arrives as SI_KERNEL, with rip behind it; kill() and single steps do not. */
	if (info->si_code == SI_KERNEL)
		site = site_find((uintptr_t)*rip - 1);
	if (site && settle(site)) {
		uintptr_t resume = atomic_load_explicit(&site->resume, memory_order_relaxed);

		*rip = resume ? (greg_t)resume : *rip - 1;
		atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
	} else if (info->si_code != SI_KERNEL || !trap_test_met((uintptr_t)*rip - 1)) {
		trap_chain(signal, info, context);
	}
	errno = saved;
}

uint64_t trap_count(void)
{
	return atomic_load_explicit(&count, memory_order_relaxed);
}
