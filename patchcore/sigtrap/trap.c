/* SPDX-License-Identifier: MIT */
/*
 * The handler touches only the stack, the site table (lock-free, entries never freed) and the
 * chain, which is complete before the handler is installed.
 *
 * SIGTRAP is blocked in here: an INT3 in code that it runs would end the process. So all of it is
 * NOPATCH, up to the handler of the program to which it hands what is not its own.
 */
#include "patchcore/sigtrap/trap.h"

#include "patchcore/machine/wait.h"
#include "patchcore/pages/text.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/site.h"
#include "patchcore/syscall/kernel_signal.h"
#include "patchcore/word/flight.h"
#include "patchcore/word/word.h"

/*
 * How often an executor looks at the turn, with a PAUSE of 40 to 140 ticks each time, before it
 * naps (and leaves the CPU to the patcher, if it was the patcher's) and goes back to the INT3. It
 * will trap again at once if the site is still held; but between two traps its other signals get
 * through, so no executor spins for ever with signals held off. Until then, and while the patcher
 * lives, it makes no system call and reads no clock: a thread may be forbidden both.
 */
#define SPINS 25000u

/*
 * After so many looks it helps with a change that no thread is at. A patcher at work should not
 * have to fetch the line with its own state back from executors that wait. But where this thread is
 * the patcher, no other one goes on.
 */
#define WATCH 100u

NOPATCH static bool may_help(struct site *site)
{
	return load_relaxed(&site_lead(site)->needs_help) ||
	       (thread_here && load_relaxed(&thread_here->inside));
}

NOPATCH static bool is_int3(uintptr_t addr)
{
	return load_acquire((const _Atomic(uint8_t) *)addr) == WORD_INT3;
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
	uint64_t turn = site_turn(site), owner;

	for (unsigned spins = 1; turn % 2; spins++) {
		if (spins % WATCH == 0 && (spins == SPINS || may_help(site)) && flight_help(site))
			return true;
		if (spins == SPINS) {
			flight_finish_own();
			owner = load_relaxed(&site_lead(site)->owner);
			if (owner)
				thread_ask_end(owner);
			if (!flight_rescue_as_guest(site))
				nap();
			return true;
		}
		__builtin_ia32_pause();
		turn = site_turn(site);
	}
	return !is_int3(site->entry.addr) || site_turn(site) != turn;
}

/* --- Restartable sequences -------------------------------------------------------------------- */

/* In front of each abort handler: of glibc, librseq and tcmalloc. */
#define RSEQ_SIGNATURE 0x53053053u
#define TRAP_INT3      3 /* the processor's number */

/* Where an INT3 was met inside a restartable sequence, of which only the abort handler is known. */
NOPATCH static bool is_abort(const greg_t *gregs)
{
	uintptr_t at = (uintptr_t)gregs[REG_RIP], front = at - sizeof(uint32_t);

	/* A signature on the page before may be none, nor readable. */
	if (gregs[REG_TRAPNO] != TRAP_INT3 ||
	    (front / TEXT_PAGE != at / TEXT_PAGE && !kernel_reads(front)))
		return false;
	return *(const volatile uint32_t *)front == RSEQ_SIGNATURE;
}

struct held {
	bool is_any;
	struct site *site; /* one that no help ended */
	uint64_t turns;	   /* tells of any change since */
};

NOPATCH static void help_held(struct site *site, void *arg)
{
	struct held *held = arg;
	uint64_t turn = site_turn(site);

	held->turns += site->entry.addr * (turn + UINT64_C(0x9e3779b97f4a7c15));
	if (turn % 2 == 0)
		return;
	held->is_any = true;
	if (!flight_help(site) && !flight_rescue_as_guest(site))
		held->site = site;
}

/*
 * Any INT3 that stands may have been the one, so this is settled for all. One of a change that is
 * over by now is ours, too. But between two looks of a thread at the same even turns none of ours
 * stood: then the program's own has come to the same sequence again.
 */
NOPATCH static bool settle_abort(void)
{
	static __thread uint64_t seen __attribute__((tls_model("initial-exec")));
	struct held held = { 0 };

	sites_each(help_held, &held);
	if (held.site)
		settle_trap(held.site);
	if (!held.is_any && held.turns == seen)
		return false;
	seen = held.turns;
	return true;
}

NOPATCH bool trap_is_served(greg_t *gregs)
{
	greg_t *rip = &gregs[REG_RIP];
	uintptr_t addr = (uintptr_t)*rip - 1;
	bool adopted = fork_is_new();
	struct site *site;

	/* A process that has just become its own has its own code from here on. */
	if (adopted) {
		fork_adopt();
		adopted = !is_int3(addr);
	}
	site = site_find(addr);
	if (site && settle_trap(site)) {
		atomic_fetch_add_explicit(&site->traps, 1, memory_order_relaxed);
		*rip = (greg_t)addr;
		return true;
	}
	if (!site && is_abort(gregs))
		return settle_abort() || adopted;
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
