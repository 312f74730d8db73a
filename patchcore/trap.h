/* SPDX-License-Identifier: MIT */
/*
 * SIGTRAP: executors that met the INT3 of a held site. Private.
 */
#ifndef PATCHCORE_TRAP_H
#define PATCHCORE_TRAP_H

#include <stdbool.h>
#include <stdint.h>

/* trap_install - take SIGTRAP, remembering who had it. Idempotent. */
int trap_install(void);

/* trap_remove - give it back. -EBUSY if somebody installed another on top. */
int trap_remove(void);

/* trap_is_ours - does SIGTRAP still come here? One system call. */
bool trap_is_ours(void);

/* trap_was_ours_lately - the same, but up to a million ticks old. */
bool trap_was_ours_lately(void);

/* trap_count - how often an executor met one of our INT3 so far. */
uint64_t trap_count(void);

/* trap_back_off - leave the CPU to a patcher that may need it. Async-signal-safe. */
void trap_back_off(void);

#endif
