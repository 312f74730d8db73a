/* SPDX-License-Identifier: MIT */
/*
 * Who gets the SIGTRAPs that are not ours. Private.
 */
#ifndef PATCHCORE_TRAP_TRAP_CHAIN_H
#define PATCHCORE_TRAP_TRAP_CHAIN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "patchcore/trap/guard.h"

/* trap_chain - do what SIGTRAP did before us, as the kernel would. */
void trap_chain(int signal, siginfo_t *info, void *context);

/*
 * The setters below and pc_set_chained_trap() exclude each other, threads and signal handlers
 * alike; the lock is held with all signals blocked. It returns the mask that unlocking restores.
 */
uint64_t trap_chain_lock(void);
void trap_chain_unlock(uint64_t mask);

/* trap_chain_set, trap_chain_get - the disposition. With the lock held. */
void trap_chain_set(const struct sigaction *action);
void trap_chain_get(struct sigaction *action);

/* trap_chain_use - guard: to ask, or NULL. With the lock held. */
void trap_chain_use(const struct guard *guard);

#endif
