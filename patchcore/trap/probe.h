/* SPDX-License-Identifier: MIT */
/*
 * Does INT3 reach the trap handler here? Private.
 */
#ifndef PATCHCORE_TRAP_PROBE_H
#define PATCHCORE_TRAP_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * probe_int3 - run an INT3 in a child that shares this memory, then one
 * here, through the installed handler. Well below a millisecond.
 * @why: what is wrong, in one line, when it fails
 *
 * After trap_install(). The calling thread has SIGTRAP unblocked meanwhile, so
 * one that was sent to it before arrives. 0, -ENOTSUP (INT3 does not arrive as
 * it should), or what the child could not be made or waited for with.
 */
int probe_int3(char *why, size_t size);

/* probe_met - for the trap handler: is this INT3 the one of the test? */
bool probe_met(uintptr_t addr);

#endif
