/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include "patchcore/machine/wait.h"
#include "stress/cell/code.h"

/* A tear of a broken protocol is recorded with its time, too. */
static void note_visible(const struct sync *sync, unsigned store)
{
	if (sync->trace)
		sync->trace->visible[store] = ticks_now();
}

/* Where no site is held, the first store is all there is to prepare. */
static void tell_prepared(const struct sync *sync)
{
	if (sync->trace && sync->trace->prepared)
		sync->trace->prepared(sync->trace->arg);
}

int toggle(enum protocol protocol, const struct code *code, unsigned site, unsigned next,
	   const struct sync *sync)
{
	const struct code_site *at = &code->site[site];
	unsigned before = next ? next - 1 : code->codes - 1;
	struct change change = change_in_place(at->at, at->bytes[next], CODE_LENGTH);
	struct protocol_site changed = { at->at, code->length, code->split, at->bytes[before],
					 at->bytes[next] };
	int ret;

	if (!protocol_is_compiled(protocol))
		/* A NOP, or the old code, is what a file changes from. */
		return protocol_change(code->protocol,
				       code->codes == 2 && next == code_is_nop_pair(code), &changed,
				       sync);
	if (protocol != PROTOCOL_ATOMIC)
		return word_patch(&change, sync);
	tell_prepared(sync);
	ret = word_put(at->at, at->bytes[next], CODE_LENGTH) ? 0 : -EAGAIN;
	note_visible(sync, 2);
	return ret;
}

void toggle_settle(const struct code *code, unsigned site, unsigned standing)
{
	const struct code_site *at = &code->site[site];
	const struct protocol_site changed = { at->at, code->length, code->split,
					       at->bytes[standing], at->bytes[standing] };

	protocol_settle(code->protocol, &changed);
}

struct sync toggle_sync(const struct cell *cell)
{
	return (struct sync){
		.policy = cell->protocol == PROTOCOL_MEMBARRIER ? PC_POLICY_MEMBARRIER
								: PC_POLICY_WAIT,
		.waits = cell->waits,
		/* The smallest window, so that every crossing is one to be straddled. */
		.window = 8,
	};
}
