/* SPDX-License-Identifier: MIT */
/*
 * Runs code one instruction at a time, and calls the test in between. So it meets every moment at
 * which another thread or a signal could come, one after the other and not by luck.
 *
 * The trap flag raises SIGTRAP after each instruction. It is none of the
 * library's, which hands it on to the handler installed before it.
 */
#ifndef PATCHCORE_TESTS_STEP_H
#define PATCHCORE_TESTS_STEP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>
#include <x86intrin.h>

#include "patchcore/tests/child.h"

#define STEP_FLAG 0x100

/* Called between two instructions. False: enough seen, run on. */
typedef bool step_fn(void);

static struct {
	step_fn *look;
	unsigned long count;
} step_now;

/*
 * TRAP_TRACE, but for hypervisors that lose the cause (DR6.BS) when a virtual CPU is
 * preempted in between: then the kernel says TRAP_BRKPT. An INT3 is SI_KERNEL.
 */
static inline bool step_is(const siginfo_t *info)
{
	return info->si_code == TRAP_TRACE || info->si_code == TRAP_BRKPT;
}

static inline void step_on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	MUST(signal == SIGTRAP && step_is(info));
	step_now.count++;
	if (!step_now.look())
		*flags &= ~STEP_FLAG;
}

/* Before pc_init(). */
static inline void step_install(void)
{
	struct sigaction action = { .sa_sigaction = step_on_trap, .sa_flags = SA_SIGINFO };

	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
}

static inline void step_run(void (*run)(void), step_fn *look)
{
	step_now.look = look;
	step_now.count = 0;
	/* The compiler does not know what happens in between. */
	__asm__ volatile("" : : : "memory");
	__writeeflags(__readeflags() | STEP_FLAG);
	run();
	__writeeflags(__readeflags() & ~(unsigned long long)STEP_FLAG);
	__asm__ volatile("" : : : "memory");
	MUST(step_now.count > 0);
}

/* For a look that may itself run into an INT3. */
static inline void step_allow_traps(bool allow)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(allow ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}

#endif
