/* SPDX-License-Identifier: MIT */
#include "stress/cell/toggle.h"

#include <string.h>

#include "patchcore/machine/wait.h"
#include "stress/cell/code.h"
#include "stress/cell/variant.h"

/* So that a tear of a broken protocol can be told with when it was. */
static void note(const struct sync *sync, unsigned store)
{
	if (sync->trace)
		sync->trace->visible[store] = ticks_now();
}

/* Where no site is held, the first store is all there is to prepare. */
static void prepared(const struct sync *sync)
{
	if (sync->trace && sync->trace->prepared)
		sync->trace->prepared(sync->trace->arg);
}

static int toggle_library(uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	struct change change = change_in_place(site, bytes, CODE_LENGTH);

	return word_patch(&change, sync);
}

static int toggle_atomic(uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	int ret;

	prepared(sync);
	ret = word_store(site, bytes, CODE_LENGTH);
	note(sync, 2);
	return ret;
}

/* Broken: one plain store of 8 bytes, boundary or not. The neighbours never change here. */
static int toggle_naive(uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	uint64_t word;

	memcpy(&word, site, sizeof(word));
	memcpy(&word, bytes, CODE_LENGTH);
	prepared(sync);
	__asm__ volatile("movq %1, %0" : "=m"(*(uint8_t(*)[8])site) : "r"(word) : "memory");
	note(sync, 2);
	return 0;
}

/* Broken: nobody is kept out between the two parts. */
static int toggle_no_int3(uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	struct change change = change_in_place(site, bytes, CODE_LENGTH);
	struct word *word;
	int ret = word_hold(&word, &change, sync);

	if (ret < 0)
		return ret;
	word_prepared(word);
	note(sync, 0);
	ticks_wait(sync->first_wait);
	word_put_back(word);
	note(sync, 1);
	ticks_wait(sync->second_wait);
	word_put_front(word);
	note(sync, 2);
	word_release(word);
	return 0;
}

/* Broken: the first byte is whole again before the back part is there. */
static int toggle_front_first(uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	struct change change = change_in_place(site, bytes, CODE_LENGTH);
	struct word *word;
	int ret = word_hold(&word, &change, sync);

	if (ret < 0)
		return ret;
	word_prepared(word);
	word_put_int3(word);
	note(sync, 0);
	ticks_wait(sync->first_wait);
	word_put_front(word);
	note(sync, 2);
	ticks_wait(sync->second_wait);
	word_put_back(word);
	note(sync, 1);
	word_release(word);
	return 0;
}

toggle_fn *toggle_of(enum protocol protocol)
{
	static toggle_fn *const fn[PROTOCOL_COUNT] = {
		[PROTOCOL_WAIT] = toggle_library,    [PROTOCOL_MEMBARRIER] = toggle_library,
		[PROTOCOL_ATOMIC] = toggle_atomic,   [PROTOCOL_NAIVE] = toggle_naive,
		[PROTOCOL_NO_INT3] = toggle_no_int3, [PROTOCOL_FRONT_FIRST] = toggle_front_first,
		[PROTOCOL_TOUCH] = toggle_touch,     [PROTOCOL_READ] = toggle_read,
		[PROTOCOL_HALVES] = toggle_halves,   [PROTOCOL_AGAIN] = toggle_again,
	};

	return fn[protocol];
}

struct sync toggle_sync(const struct cell *cell)
{
	return (struct sync){
		.policy = cell->protocol == PROTOCOL_MEMBARRIER ? PC_POLICY_MEMBARRIER
								: PC_POLICY_WAIT,
		.first_wait = cell->first_wait,
		.second_wait = cell->second_wait,
		.stretch = cell->stretch,
		/* The smallest window, so that every crossing is one to be straddled. */
		.window = 8,
	};
}
