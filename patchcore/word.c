/* SPDX-License-Identifier: MIT */
/*
 * The word protocol (paper, section 5, figure 4).
 */
#include "patchcore/word.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/*
 * Change len bytes at addr to code, the lowest byte first. Returns the first of
 * them as it was; changes nothing if that is `stop`.
 */
static int store(uint8_t *addr, uint64_t code, size_t len, int stop)
{
	uint8_t *at = container(addr, len);
	unsigned shift = 8 * (unsigned)(addr - at);
	uint64_t mask = mask_of(len) << shift, seen;
	uint8_t first;

	/* This copy may be torn; then the exchange fails and gives a good one. */
	memcpy(&seen, at, sizeof(seen));
	do {
		first = (uint8_t)(seen >> shift);
		if (first == stop)
			break;
	} while (!compare_exchange(at, &seen, (seen & ~mask) | code << shift));
	return first;
}

int word_store(uint8_t *addr, const uint8_t *bytes, size_t len)
{
	return store(addr, number_of(bytes, len), len, WORD_INT3) == WORD_INT3 ? -EAGAIN : 0;
}

void word_release(struct word *word)
{
	atomic_store_explicit(&word->site->patcher, 0, memory_order_relaxed);
	site_release(word->site);
}

int word_hold(struct word *word, uint8_t *addr, const uint8_t *bytes, size_t len, unsigned window)
{
	struct site *site = site_get((uintptr_t)addr);
	uint64_t asked = ticks_now();

	/*
	 * Ask for the front line for writing while the site's own line is under
	 * way. Only here: during the waits it would take lines away from
	 * executors in mid-fetch, which is what makes them tear.
	 */
	__asm__ volatile("prefetchw %0" : : "m"(*addr));
	if (!site)
		return -ENOMEM;
	if (!site_try_hold(site))
		return -EAGAIN;
	*word = (struct word){
		.site = site,
		.asked = asked,
		.addr = addr,
		.len = len,
		.front = window - ((uintptr_t)addr & (window - 1)),
	};
	word->new_front = number_of(bytes, word->front);
	word->new_back = number_of(bytes + word->front, len - word->front);
	atomic_store_explicit(&site->word, word, memory_order_relaxed);
	atomic_store_explicit(&site->patcher, thread_self(), memory_order_relaxed);
	return 0;
}

int word_put_int3(struct word *word)
{
	word->old_first = (uint8_t)store(word->addr, WORD_INT3, 1, WORD_INT3);
	return word->old_first == WORD_INT3 ? -EAGAIN : 0;
}

void word_put_back(struct word *word)
{
	store(word->addr + word->front, word->new_back, word->len - word->front, -1);
}

void word_put_front(struct word *word)
{
	store(word->addr, word->new_front, word->front, -1);
}

uint64_t word_stretch(const struct word *word, uint64_t ticks)
{
	uint64_t stretched = word->sync->stretch * word->latency;

	return stretched > ticks ? stretched : ticks;
}

int membarrier_register(void)
{
	/* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE */
	return syscall(SYS_membarrier, 1 << 6, 0, 0) < 0 ? -ENOTSUP : 0;
}

int membarrier_sync(void)
{
	/* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE */
	return syscall(SYS_membarrier, 1 << 5, 0, 0) < 0 ? -errno : 0;
}

/* The three stores of a change, as a trace counts them. */
enum {
	STORE_INT3,
	STORE_BACK,
	STORE_FRONT
};

/* Called right after such a store. Returns when it was visible. */
static uint64_t note_store(struct word *word, unsigned which, uint64_t asked)
{
	struct word_trace *trace = word->sync->trace;
	uint64_t visible = ticks_now(), latency = visible - asked;

	if (latency > word->latency)
		word->latency = latency < LATENCY_MAX ? latency : LATENCY_MAX;
	if (trace) {
		trace->visible[which] = visible;
		trace->latency[which] = latency;
	}
	return visible;
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
static int sync_cores(struct word *word, unsigned which, uint64_t asked, uint64_t ticks)
{
	uint64_t visible = note_store(word, which, asked);

	if (word->sync->policy == PC_POLICY_MEMBARRIER)
		return membarrier_sync();
	wait_since(word, which, visible, word_stretch(word, ticks));
	return 0;
}

/*
 * Steps 2 to 5 below. Doing them again, or starting them anew from any point,
 * changes nothing: every store is of the same bytes. word_help() relies on it.
 */
static int change_rest(struct word *word)
{
	const struct sync *sync = word->sync;
	int ret = sync_cores(word, STORE_INT3, word->asked, sync->first_wait);
	uint64_t asked;

	if (ret < 0)
		return ret;
	asked = ticks_now();
	word_put_back(word);
	while (sync_cores(word, STORE_BACK, asked, sync->second_wait) < 0)
		;
	asked = sync->trace ? ticks_now() : 0;
	word_put_front(word);
	if (sync->trace)
		note_store(word, STORE_FRONT, asked);
	return 0;
}

/*
 * The first sync failed: put the first byte back. Unless a signal handler of
 * this thread has met the INT3 meanwhile and has done the rest: then the change
 * is made, and there is no error to tell of.
 */
static int undo_int3(const struct word *word, int error)
{
	uint8_t int3 = WORD_INT3;

	return __atomic_compare_exchange_n(word->addr, &int3, word->old_first, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)
		       ? error
		       : 0;
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
static int change(struct word *word)
{
	int ret = word_put_int3(word);

	if (ret < 0)
		return ret;
	ret = change_rest(word);
	return ret < 0 ? undo_int3(word, ret) : 0;
}

bool word_help(struct site *site)
{
	/* Relaxed: whatever this thread wrote itself, its signal handlers see in order. */
	if (atomic_load_explicit(&site->patcher, memory_order_relaxed) != thread_self())
		return false;
	return change_rest(atomic_load_explicit(&site->word, memory_order_relaxed)) == 0;
}

static int patch_straddler(uint8_t *addr, const uint8_t *bytes, size_t len, const struct sync *sync)
{
	struct word word;
	int ret = word_hold(&word, addr, bytes, len, sync->window);

	if (ret < 0)
		return ret;
	word.sync = sync;
	ret = change(&word);
	word_release(&word);
	return ret;
}

int word_patch(uint8_t *addr, const uint8_t *bytes, size_t len, const struct sync *sync)
{
	if (!word_straddles(addr, len, sync->window))
		return word_store(addr, bytes, len);
	if (sync->policy == PC_POLICY_AUTO)
		return -ENOTSUP;
	return patch_straddler(addr, bytes, len, sync);
}
