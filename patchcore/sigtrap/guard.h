/* SPDX-License-Identifier: MIT */
/*
 * Where the library and libpatchcore_guard meet. Private. The library looks the guard up by name
 * when it takes SIGTRAP, because either may be linked statically, preloaded or loaded late.
 */
#ifndef PATCHCORE_SIGTRAP_GUARD_H
#define PATCHCORE_SIGTRAP_GUARD_H

#include <signal.h>
#include <stdbool.h>

#define GUARD_NAME   "pc_guard_1" /* with the version of struct guard */
#define GUARD_OBJECT pc_guard_1

typedef int guard_sigaction_fn(int signal, const struct sigaction *now, struct sigaction *old);
typedef int guard_chain_fn(const struct sigaction *now, struct sigaction *old);

struct guard {
	/* sigaction() as it is without the guard. */
	guard_sigaction_fn *sigaction;
	/* Hand the program's own SIGTRAP dispositions to chain; NULL: no longer. */
	void (*attach)(guard_chain_fn *chain);
	/*
	 * For the trap handler: a SIGTRAP was sent to a thread that believes to have it blocked.
	 * True: it is kept until the thread wants it.
	 */
	bool (*holds)(const siginfo_t *info, void *context);
};

#endif
