/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <string.h>

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

/* Broken: no INT3; or the front before the back, so that the first byte is whole too early. */
static int toggle_wrongly(const struct change *change, const struct sync *sync, bool front_first)
{
	struct word *word;
	int ret = word_hold(&word, change, sync);

	if (ret < 0)
		return ret;
	word_prepared(word);
	if (front_first)
		word_put_int3(word);
	note_visible(sync, 0);
	for (unsigned i = 0; i < 2; i++) {
		bool front = front_first == (i == 0);

		ticks_wait(i ? sync->waits.second : sync->waits.first);
		if (front)
			word_put_front(word);
		else
			word_put_back(word);
		note_visible(sync, front ? 2 : 1);
	}
	word_release(word);
	return 0;
}

int toggle(enum protocol protocol, uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	struct change change = change_in_place(site, bytes, CODE_LENGTH);
	uint64_t word;
	int ret = 0;

	switch (protocol) {
	case PROTOCOL_WAIT:
	case PROTOCOL_MEMBARRIER:
		return word_patch(&change, sync);
	case PROTOCOL_ATOMIC:
		tell_prepared(sync);
		ret = word_put(site, bytes, CODE_LENGTH) ? 0 : -EAGAIN;
		note_visible(sync, 2);
		return ret;
	case PROTOCOL_NAIVE:
		/* Broken: a plain store of 8 bytes, boundary or not. No neighbour changes. */
		memcpy(&word, site, sizeof(word));
		memcpy(&word, bytes, CODE_LENGTH);
		tell_prepared(sync);
		__asm__ volatile("movq %1, %0" : "=m"(*(uint8_t(*)[8])site) : "r"(word) : "memory");
		note_visible(sync, 2);
		return 0;
	case PROTOCOL_NO_INT3:
	case PROTOCOL_FRONT_FIRST:
		return toggle_wrongly(&change, sync, protocol == PROTOCOL_FRONT_FIRST);
	default: /* cell_check() refuses the others */
		return -EINVAL;
	}
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
