/* SPDX-License-Identifier: MIT */
/* SIGTRAP: executors that met the INT3 of a held site. Private. */
#ifndef PATCHCORE_SIGTRAP_TRAP_H
#define PATCHCORE_SIGTRAP_TRAP_H

#include <stddef.h>
#include <ucontext.h>

#include "patchcore/syscall/kernel_signal.h"

/*
 * What the handler takes of the stack below the kernel's frame, bytes. Measured by
 * test_trap_stack; a sanitizer makes every frame larger.
 */
#define TRAP_STACK 1024

/*
 * trap_is_served - an INT3 was met, with those registers. Is it one of ours, and has it come to its
 * end? Then the instruction pointer is where to.
 */
bool trap_is_served(greg_t *gregs);

/*
 * trap_install - take SIGTRAP, and remember the handler before. Idempotent. trap_remove - give it
 * back. -EBUSY if there is another on top.
 */
int trap_install(void);
int trap_remove(void);

/*
 * trap_is_ours - does SIGTRAP still come here? One system call. trap_was_ours_lately - the same,
 * but up to a million ticks old.
 */
bool trap_is_ours(void);
bool trap_was_ours_lately(void);

/*
 * trap_chain_get - what is done with a SIGTRAP that is not ours, which changes meanwhile. Returns
 * the number of the change that it comes from. Async-signal-safe.
 */
unsigned trap_chain_get(struct kernel_action *now);

/*
 * probe_int3 - after trap_install(): does INT3 arrive? Well below a millisecond.
 * @why: what is wrong, in one line, when it fails
 *
 * The calling thread has SIGTRAP unblocked meanwhile, so one that was sent to it before arrives. 0,
 * -ENOTSUP (INT3 does not arrive as it should), or what the child could not be made or waited for
 * with.
 */
int probe_int3(char *why, size_t size);

/* probe_met - for the trap handler: is this INT3 the one of the test? */
bool probe_met(uintptr_t addr);

#endif
