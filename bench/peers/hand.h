/* SPDX-License-Identifier: MIT */
/*
 * What careful people write without a library: the protocol of Linux text_poke_bp()
 * (arch/x86/kernel/alternative.c) in a program, after the SDM's rules for cross-modifying
 * code (vol. 3, 9.1.3).
 *
 *	INT3 on the first byte		membarrier SYNC_CORE
 *	all other bytes			membarrier SYNC_CORE
 *	the new first byte		membarrier SYNC_CORE
 *
 * An executor that meets the INT3 gets SIGTRAP; the handler sends it back to the site, and
 * leaves the CPU once if the INT3 is still there. The third membarrier is text_poke_bp()'s too:
 * when the call returns no CPU is left with the INT3. One thread patches at a time.
 *
 * Correct, as far as tests can tell, and general: it asks nothing about the site but that it
 * is one instruction before and after, and that its page is writable.
 */
#ifndef BENCH_PEERS_HAND_H
#define BENCH_PEERS_HAND_H

#include <stddef.h>

#define HAND_SITES 64 /* that can be patched between open and close */
#define HAND_MAX   8  /* bytes of a change */

/*
 * hand_open - register for membarrier, and take SIGTRAP, on top of the handler that has it: a trap
 * at no site of ours is handed on. -EALREADY: it is open. -ENOTSUP: no membarrier SYNC_CORE. Else
 * what sigaction(2) failed with.
 */
int hand_open(void);

/*
 * hand_patch - make one change; pc_patch() says what the arguments are. 0, or with the code as it
 * was: -ESHUTDOWN (not open), -EINVAL, -EAGAIN (an INT3 stands there), -ENOSPC (too many sites).
 */
int hand_patch(void *addr, const void *bytes, size_t len);

/*
 * hand_close - give SIGTRAP back to the handler that had it. No thread may be inside a site: a
 * trap that is on its way would come to a handler that does not know it. Nothing if not open.
 */
void hand_close(void);

#endif
