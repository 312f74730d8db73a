/* SPDX-License-Identifier: MIT */
/*
 * The word protocol (paper, section 5, figure 4).
 */
#include "patchcore/word.h"

#include <errno.h>
#include <string.h>

#include "patchcore/merge_check.h"
#include "patchcore/site.h"
#include "patchcore/wait.h"

#define LINE 64u

/* A patcher that lost its CPU has measured that, not the way to the line. */
#define LATENCY_MAX UINT64_C(100000) /* ticks */

/*
 * The 8 bytes that are stored to change [addr, addr + len): the aligned word
 * where it holds them all, else eight bytes inside the line. Never across a
 * line, so the lock prefix is a cache lock, and no store needs the next page.
 */
static uint8_t *container(uint8_t *addr, size_t len)
{
	uint8_t *word = (uint8_t *)((uintptr_t)addr & ~(uintptr_t)7);
	uint8_t *last = (uint8_t *)((uintptr_t)addr & ~(uintptr_t)(LINE - 1)) + LINE - 8;

	if (addr + len <= word + 8)
		return word;
	return addr < last ? addr : last;
}

/* In assembly, because C has no atomic access to unaligned memory. */
static bool compare_exchange(uint8_t *at, uint64_t *expected, uint64_t desired)
{
	bool done;

	__asm__ volatile("lock cmpxchgq %3, %1"
			 : "=@ccz"(done), "+m"(*(uint8_t(*)[8])at), "+a"(*expected)
			 : "r"(desired)
			 : "memory");
	return done;
}

/* 1 to 8 bytes as a number, by at most two loads that may overlap. */
static uint64_t number_of(const uint8_t *bytes, size_t len)
{
	uint64_t all;
	uint32_t four[2];
	uint16_t two[2];

	if (len == 8) {
		memcpy(&all, bytes, 8);
		return all;
	}
	if (len >= 4) {
		memcpy(&four[0], bytes, 4);
		memcpy(&four[1], bytes + len - 4, 4);
		return four[0] | (uint64_t)four[1] << (8 * (len - 4));
	}
	if (len >= 2) {
		memcpy(&two[0], bytes, 2);
		memcpy(&two[1], bytes + len - 2, 2);
		return two[0] | (uint64_t)two[1] << (8 * (len - 2));
	}
	return bytes[0];
}

static uint64_t mask_of(size_t len)
{
	return ~UINT64_C(0) >> (64 - 8 * len);
}

/* Whether a store depends on there being an INT3 on its first byte. */
enum guard {
	ALWAYS,
	UNLESS_INT3,
	ONLY_INT3
};

static bool permits(enum guard guard, uint8_t first)
{
	return guard == ALWAYS || (guard == ONLY_INT3) == (first == WORD_INT3);
}

/*
 * Change those of len bytes at addr that the mask names to code, the lowest byte
 * first. False: the guard forbade it. *old, if asked for, is what stood there.
 */
static bool store(uint8_t *addr, size_t len, uint64_t code, uint64_t mask, enum guard guard,
		  uint64_t *old)
{
	uint8_t *at = container(addr, len);
	unsigned shift = 8 * (unsigned)(addr - at);
	uint64_t seen;

	mask <<= shift;
	code = code << shift & mask;
	/* This copy may be torn; then the exchange fails and gives a good one. */
	__asm__ volatile("movq %1, %0" : "=r"(seen) : "m"(*(const uint8_t(*)[8])at));
	do {
		if (!permits(guard, (uint8_t)(seen >> shift)))
			return false;
	} while (!compare_exchange(at, &seen, (seen & ~mask) | code));
	if (old)
		*old = seen >> shift & mask_of(len);
	return true;
}

int word_store(uint8_t *at, const uint8_t *bytes, size_t len)
{
	uint64_t mask = mask_of(len);

	return store(at, len, number_of(bytes, len), mask, UNLESS_INT3, NULL) ? 0 : -EAGAIN;
}

void word_release(struct word *word)
{
	for (unsigned i = 0; i < word->also_count; i++)
		if (site_is_owned_by(word->also[i], word->holder))
			site_release(word->also[i]);
	site_release(word->site);
}

/* A byte of 0xff for each bit. */
static uint64_t bytes_of(uint8_t bits)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < 8; i++)
		if (bits & 1u << i)
			mask |= UINT64_C(0xff) << 8 * i;
	return mask;
}

/*
 * Hold the sites of the starts behind the first, so that traps there are ours.
 * Each is noted before it is held: if this thread goes no further, whoever
 * releases the first site finds it.
 */
static int hold_also(struct word *word, uint8_t starts)
{
	for (size_t i = 1; i < word->front; i++) {
		struct site *site;

		if (!(starts & 1u << i))
			continue;
		site = site_get((uintptr_t)word->addr + i);
		if (!site)
			return -ENOMEM;
		word->also[word->also_count++] = site;
		if (!site_try_hold(site)) {
			word->also_count--;
			return -EAGAIN;
		}
		site_set_resume(site, 0);
		site_set_lead(site, word->site);
		atomic_store_explicit(&site->state, WORD_HELD, memory_order_relaxed);
	}
	return 0;
}

static void fill_in(struct word *word, const struct change *change, const struct sync *sync)
{
	uint8_t *addr = change->span.addr;
	size_t len = change->span.len,
	       front = sync->window - ((uintptr_t)addr & (sync->window - 1));

	word->addr = addr;
	word->len = len;
	word->front = front;
	word->front_at = text_at(&change->span, addr);
	word->back_at = text_at(&change->span, addr + front);
	word->new_front = number_of(change->bytes, front);
	word->new_back = number_of(change->bytes + front, len - front);
	word->int3_mask = bytes_of(change->starts) & mask_of(front);
	word->sync = sync;
	word->latency = 0;
	word->span = change->span;
	word->holder = thread_id();
	word->also_count = 0;
}

/*
 * Read only now that the line is under way to us: to fetch it from the executors
 * for reading first would cost as much again.
 */
static bool loses_starts(const struct word *word, const struct change *change)
{
	uint8_t old[PC_PATCH_MAX];

	memcpy(old, word->front_at, word->front);
	memcpy(old + word->front, word->back_at, word->len - word->front);
	return !change->merges && merge_loses_starts(old, change->bytes, word->len, change->starts);
}

int word_hold(struct word **held, const struct change *change, const struct sync *sync)
{
	uint8_t *addr = change->span.addr;
	struct site *site = site_get((uintptr_t)addr);
	struct word *word;
	uint64_t asked;
	int ret;

	if (!site)
		return -ENOMEM;
	/*
	 * Ask for all lines that will be written at once, the front's included: one
	 * trip instead of three in a row. Only here: during the waits it would take
	 * lines away from executors in mid-fetch, which is what makes them tear.
	 */
	line_for_writing(&site->owner);
	line_for_writing(&site->turn);
	asked = ticks_now();
	line_for_writing(text_at(&change->span, addr));
	if (!site_try_hold(site))
		return -EAGAIN;
	word = &site->word;
	word->site = site;
	word->asked = asked;
	fill_in(word, change, sync);
	site_set_resume(site, 0);
	atomic_store_explicit(&site->state, WORD_HELD, memory_order_relaxed);
	ret = loses_starts(word, change) ? -EILSEQ : hold_also(word, change->starts);
	if (ret < 0) {
		word_release(word);
		return ret;
	}
	*held = word;
	return 0;
}

int word_begin(struct word **held, const struct change *change, const struct sync *sync)
{
	struct word *word;
	int ret = word_hold(&word, change, sync);

	if (ret < 0)
		return ret;
	ret = word_put_int3(word);
	if (ret < 0) {
		word_release(word);
		return ret;
	}
	*held = word;
	return 0;
}

/* All three writes of a straddler: see store() above, and text_store_begin(). */
static bool put(const struct word *word, uint8_t *at, size_t len, uint64_t code, uint64_t mask,
		enum guard guard, uint64_t *old)
{
	bool done;

	text_store_begin(&word->span);
	done = store(at, len, code, mask, guard, old);
	text_store_end(&word->span);
	return done;
}

int word_put_int3(struct word *word)
{
	uint64_t all = ~UINT64_C(0) / 0xff * WORD_INT3;
	bool done = put(word, word->front_at, word->front, all, word->int3_mask, UNLESS_INT3,
			&word->old_front);

	return done ? 0 : -EAGAIN;
}

void word_put_back(struct word *word)
{
	size_t len = word->len - word->front;

	put(word, word->back_at, len, word->new_back, mask_of(len), ALWAYS, NULL);
}

void word_put_front(struct word *word)
{
	put(word, word->front_at, word->front, word->new_front, mask_of(word->front), ALWAYS, NULL);
}

bool word_undo(const struct word *word)
{
	return put(word, word->front_at, word->front, word->old_front, word->int3_mask, ONLY_INT3,
		   NULL);
}

uint64_t word_stretch(const struct word *word, uint64_t ticks)
{
	uint64_t stretched = word->sync->stretch * word->latency;

	return stretched > ticks ? stretched : ticks;
}

uint64_t word_note_store(struct word *word, enum word_part which, uint64_t asked)
{
	uint64_t visible = ticks_now();

	word_note_visible(word, which, asked, visible);
	return visible;
}

void word_note_visible(struct word *word, enum word_part which, uint64_t asked, uint64_t visible)
{
	struct word_trace *trace = word->sync->trace;
	uint64_t latency = visible - asked;

	if (latency > word->latency)
		word->latency = latency < LATENCY_MAX ? latency : LATENCY_MAX;
	if (trace) {
		trace->visible[which] = visible;
		trace->latency[which] = latency;
	}
}

static void wait_since(const struct word *word, unsigned which, uint64_t visible, uint64_t ticks)
{
	struct word_trace *trace = word->sync->trace;

	if (!trace) {
		ticks_wait_since(visible, ticks);
		return;
	}
	trace->step[which] = ticks_wait_watched(visible, ticks);
	trace->waited[which] = ticks_now() - visible;
}

/* Right after a store that was asked for then. */
static int sync_cores(struct word *word, enum word_part which, uint64_t asked, uint64_t ticks)
{
	uint64_t visible = word_note_store(word, which, asked);

	if (word->sync->policy == PC_POLICY_MEMBARRIER)
		return membarrier_sync();
	wait_since(word, which, visible, word_stretch(word, ticks));
	return 0;
}

/* Steps 2 to 5 below. */
int word_finish(struct word *word)
{
	const struct sync *sync = word->sync;
	int ret = sync_cores(word, WORD_PART_INT3, word->asked, sync->first_wait);
	uint64_t asked;

	if (ret < 0)
		return ret;
	asked = ticks_now();
	word_put_back(word);
	while (sync_cores(word, WORD_PART_BACK, asked, sync->second_wait) < 0)
		;
	asked = sync->trace ? ticks_now() : 0;
	word_put_front(word);
	if (sync->trace)
		word_note_store(word, WORD_PART_FRONT, asked);
	return 0;
}

/*
 * The protocol for a straddler that is held. F and B are its old front and
 * back part, f and b the new ones; 3 is INT3 over the first byte of F.
 *
 *   1. F B -> 3 B  Who fetches the first byte from now on traps and waits in
 *                  the handler. Who fetched F before may be about to fetch B.
 *   2. sync        longer than the longest gap between the two fetches, so
 *                  nobody is left with F and without its B.
 *   3. 3 B -> 3 b  Only the trapped can come here, and they do not get to B.
 *   4. sync        Nobody is left who fetched B ahead of an INT3 that he has
 *                  not yet seen (the two parts may be fetched in any order).
 *   5. 3 b -> f b  The first byte is whole again: everybody runs the new
 *                  instruction, and the trapped run it again.
 *
 * Without 2 an executor could run F b, without 4 f B. A sync that fails in
 * step 2 is undone by putting the first byte back: B was never touched. In step 4 undoing
 * would itself need a sync, so there it is repeated: membarrier has just worked
 * and can then only fail for want of memory.
 *
 * All steps are taken also where F or B stays the same. One store would do for
 * this change alone, but not for two in a row: of F B -> F b -> f b somebody
 * could see the second without the first, f B, which never stood there.
 *
 * No step is needed at the end. Executors with a stale INT3 trap once more and
 * find the site in the table.
 */
static int patch_straddler(const struct change *change, const struct sync *sync)
{
	uint64_t start = __rdtsc();
	struct word *word;
	int ret = word_begin(&word, change, sync);

	if (ret < 0)
		return ret;
	ret = word_finish(word);
	/*
	 * Unless a signal handler of this thread has met the INT3 meanwhile and
	 * has done the rest: then there is no error to tell of.
	 */
	if (ret < 0 && !word_undo(word))
		ret = 0;
	word_release(word);
	if (sync->other)
		sync_note_cost(sync->policy, __rdtsc() - start);
	return ret;
}

static int patch_inside(const struct change *change)
{
	const struct text_span *span = &change->span;
	int ret;

	text_store_begin(span);
	ret = word_store(text_at(span, span->addr), change->bytes, span->len);
	text_store_end(span);
	return ret;
}

int word_patch(const struct change *change, const struct sync *sync)
{
	if (!word_straddles(change->span.addr, change->span.len, sync->window))
		return patch_inside(change);
	if (sync->policy == PC_POLICY_AUTO)
		return -ENOTSUP;
	return patch_straddler(change, sync_pick(sync));
}
