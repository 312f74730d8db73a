/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/rest.h"

#define LINE	 64
#define PLACES	 4096 /* by the uppermost bits of a hash: 12 */
#define CPU_BITS 12   /* of TSC_AUX, as Linux sets it; the node above them says nothing more */

/* Between the TSCs of two CPUs: by so many ticks they do not differ where the kernel trusts them.
 */
#define APART (INT64_C(1) << 24)

_Atomic(uint64_t) rest_begun;

static _Atomic(uint64_t) changed[PLACES]; /* 0: not since rest_begun */

NOPATCH uint64_t rest_stamp(void)
{
	struct moment now = moment_now();

	return now.ticks << CPU_BITS | (now.cpu & ((1u << CPU_BITS) - 1));
}

void rest_begin(void)
{
	if (!load_relaxed(&rest_begun))
		store_relaxed(&rest_begun, rest_stamp());
}

NOPATCH static _Atomic(uint64_t) *place_of(uintptr_t line)
{
	return &changed[(line / LINE * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

/* A TSC that stepped back has told nothing: then all of the rest is missing. */
NOPATCH static uint64_t missing_since(uint64_t before, uint64_t now, uint64_t rest)
{
	int64_t rested = (int64_t)(now - before) >> CPU_BITS;

	if ((before ^ now) & ((1u << CPU_BITS) - 1))
		rested -= APART;
	if (rested < 0)
		return rest;
	return (uint64_t)rested < rest ? rest - (uint64_t)rested : 0;
}

NOPATCH uint64_t rest_missing(const void *addr, size_t len, uint64_t rest, uint64_t stamp,
			      bool take)
{
	uintptr_t line = (uintptr_t)addr & ~(uintptr_t)(LINE - 1);
	uint64_t most = 0, before, missing;

	for (; line < (uintptr_t)addr + len; line += LINE) {
		before = take ? atomic_exchange(place_of(line), stamp)
			      : load_relaxed(place_of(line));
		/* Taken along with another site. */
		if (before == stamp)
			continue;
		if (!before)
			before = load_relaxed(&rest_begun);
		missing = missing_since(before, stamp, rest);
		if (missing > most)
			most = missing;
	}
	return most;
}

NOPATCH void rest_note_now(const void *addr, size_t len)
{
	rest_missing(addr, len, 0, rest_stamp(), true);
}
