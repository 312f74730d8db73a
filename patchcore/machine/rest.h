/* SPDX-License-Identifier: MIT */
/*
 * When lines of code were last changed, so that a change can wait until they have rested. Private.
 *
 * A store takes a line away from the executors, who fetch it again. A site that is changed again
 * within some thousand ticks meets such fetches, and tears tens of times as often as one at rest.
 * So a level of machine.conf that was measured at rest holds only for lines that have rested as
 * long.
 *
 * Noted are lines, not sites: neighbours share them. All that the library stores is noted, also by
 * one store and by membarrier; what the program itself writes to its code is not. A line whose
 * place in the table another one has taken counts as changed with that one, so it rests longer.
 */
#ifndef PATCHCORE_MACHINE_REST_H
#define PATCHCORE_MACHINE_REST_H

#include "patchcore/machine/wait.h"

/* A moment in one number: its ticks above the CPU. 0: changes are not noted. */
extern _Atomic(uint64_t) rest_begun __attribute__((visibility("hidden")));

/* rest_begin - note changes from now on. Lines that nothing has changed since rest since now. */
void rest_begin(void);

/* rest_stamp - now. */
uint64_t rest_stamp(void);

/*
 * rest_missing - the ticks that the lines of [addr, addr + len) still have to rest at that stamp.
 * take: they count as changed then. Of two patchers who take a line one sees the other's stamp.
 */
uint64_t rest_missing(const void *addr, size_t len, uint64_t rest, uint64_t stamp, bool take);

/* rest_note_now - the lines have just been changed. */
void rest_note_now(const void *addr, size_t len);

/* rest_note - the same where changes are noted. No clock is read where they are not. */
NOPATCH_INLINE void rest_note(const void *addr, size_t len)
{
	if (__builtin_expect(load_relaxed(&rest_begun) != 0, false))
		rest_note_now(addr, len);
}

#endif
