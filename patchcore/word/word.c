/* SPDX-License-Identifier: MIT */
/* The word protocol (paper, section 5, figure 4). */
#include "patchcore/word/word.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "patchcore/machine/rest.h"
#include "patchcore/merge/merge_check.h"
#include "patchcore/pages/text.h"
#include "patchcore/syscall/sys.h"

#define LINE   64u
#define NO_CPU UINT_MAX /* of a moment that was not read: time counts from when it is asked for */

/*
 * The 8 bytes that are stored to change [addr, addr + len): the aligned word
 * where it holds them all, else eight bytes inside the line. Never across a
 * line, so the lock prefix is a cache lock, and no store needs the next page.
 */
NOPATCH static uint8_t *container(uint8_t *addr, size_t len)
{
	uint8_t *word = (uint8_t *)((uintptr_t)addr & ~(uintptr_t)7);
	uint8_t *last = (uint8_t *)((uintptr_t)addr & ~(uintptr_t)(LINE - 1)) + LINE - 8;

	if (addr + len <= word + 8)
		return word;
	return addr < last ? addr : last;
}

/* In assembly, because C has no atomic access to unaligned memory. */
NOPATCH static bool compare_exchange(uint8_t *at, uint64_t *expected, uint64_t desired)
{
	bool done;

	__asm__ volatile("lock cmpxchgq %3, %1"
			 : "=@ccz"(done), "+m"(*(uint8_t(*)[8])at), "+a"(*expected)
			 : "r"(desired)
			 : "memory");
	return done;
}

/* May be torn; then an exchange that expects it fails, and gives a good one. */
NOPATCH_INLINE uint64_t load(const uint8_t *at)
{
	uint64_t seen;

	__asm__ volatile("movq %1, %0" : "=r"(seen) : "m"(*(const uint8_t(*)[8])at));
	return seen;
}

/* 1 to 8 bytes as a number, by at most two loads that may overlap. */
NOPATCH_INLINE uint64_t number_of(const uint8_t *bytes, size_t len)
{
	uint32_t four[2];
	uint16_t two[2];

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

NOPATCH static uint64_t mask_of(size_t len)
{
	return ~UINT64_C(0) >> (64 - 8 * len);
}

/* Whether a store depends on there being an INT3 on its first byte. */
enum store_guard {
	ALWAYS,
	UNLESS_INT3,
	ONLY_INT3
};

/*
 * Store those bytes of code that the mask names into the len bytes at addr, the lowest byte
 * first. False: the guard forbade it. *old, unless old is NULL, gets the bytes from before.
 */
NOPATCH static bool store_bytes(uint8_t *addr, size_t len, uint64_t code, uint64_t mask,
				enum store_guard guard, uint64_t *old)
{
	uint8_t *at = container(addr, len);
	unsigned shift = 8 * (unsigned)(addr - at);
	uint64_t seen;

	mask <<= shift;
	code = code << shift & mask;
	seen = load(at);
	do {
		bool is_int3 = (uint8_t)(seen >> shift) == WORD_INT3;

		if (guard != ALWAYS && is_int3 != (guard == ONLY_INT3))
			return false;
	} while (!compare_exchange(at, &seen, (seen & ~mask) | code));
	if (old)
		*old = seen >> shift & mask_of(len);
	return true;
}

/* Hold the sites of the starts behind the first, so that traps there are ours. */
static int hold_also(struct word *word, uint8_t starts)
{
	for (unsigned left = starts & ((1u << word->front) - 2); left; left &= left - 1) {
		uintptr_t addr = (uintptr_t)word->span.addr + (unsigned)__builtin_ctz(left);
		struct site *site = site_get(addr);

		if (!site)
			return -ENOMEM;
		if (!word_hold_also(word, site, addr))
			return -EAGAIN;
	}
	return 0;
}

struct site *word_expect(uint8_t *addr, const struct sync *sync)
{
	struct site *site = site_find((uintptr_t)addr);

	if (site) {
		line_for_writing(&site->owner);
		line_for_writing(&site->word.since);
		line_for_writing(&site->turn);
	}
	if (!word_is_timed(sync))
		line_for_writing(addr);
	return site;
}

/* The bytes of the front of a straddler. */
static size_t front_of(const uint8_t *addr, const struct sync *sync)
{
	return sync->window - ((uintptr_t)addr & (sync->window - 1));
}

/* What is new with each change; from here on it is held. -EILSEQ, and it is held all the same. */
static int fill_word(struct word *word, const uint8_t *bytes, unsigned starts, bool merges)
{
	size_t front = word->front, len = word->span.len;
	uint8_t old[PC_PATCH_MAX + 8];
	uint64_t part;

	word->new_front = number_of(bytes, front);
	word->new_back = number_of(bytes + front, len - front);
	word->latency = 0;
	word->since.cpu = NO_CPU;
	word->seen = 0;
	word->failures = 0;
	word->also_count = 0;
	WORD_KEEP(word, holder, load_relaxed(&word->site->owner));
	store_relaxed(&word->site->by_barrier, word->sync->policy == PC_POLICY_MEMBARRIER);
	site_set_state(word->site, WORD_HELD);
	/*
	 * The old code is read only now that the line is on its way for writing: to fetch it for
	 * reading first would cost the patcher as much again.
	 */
	part = number_of(word->front_at, front);
	memcpy(old, &part, sizeof(part));
	part = number_of(word->back_at, len - front);
	memcpy(old + front, &part, sizeof(part));
	return !merges && merge_loses_starts(old, bytes, len, starts) ? -EILSEQ : 0;
}

int word_hold(struct word **held, const struct change *change, const struct sync *sync)
{
	uint8_t *addr = change->span.addr;
	size_t front = front_of(addr, sync);
	struct site *site = site_get((uintptr_t)addr);
	uint64_t id = thread_id(), int3_mask = 0;
	struct word *word;
	struct moment asked;
	int ret;

	if (!site || !id)
		return -ENOMEM;
	asked = word_is_timed(sync) ? moment_now() : (struct moment){ .cpu = 0 };
	line_for_writing(text_at(&change->span, addr));
	if (!site_try_hold(site, (uintptr_t)addr, id))
		return -EAGAIN;
	word = &site->word;
	for (unsigned left = change->starts & ((1u << front) - 1); left; left &= left - 1)
		int3_mask |= UINT64_C(0xff) << 8 * __builtin_ctz(left);
	word->asked = asked;
	WORD_KEEP(word, site, site);
	if (memcmp(&word->span, &change->span, sizeof(word->span)) != 0)
		word->span = change->span;
	WORD_KEEP(word, front_at, text_at(&change->span, addr));
	WORD_KEEP(word, back_at, text_at(&change->span, addr + front));
	WORD_KEEP(word, front, front);
	WORD_KEEP(word, int3_mask, int3_mask);
	WORD_KEEP(word, sync, sync);
	ret = fill_word(word, change->bytes, change->starts, change->merges);
	if (ret == 0)
		ret = hold_also(word, change->starts);
	if (ret < 0) {
		word_release(word);
		return ret;
	}
	*held = word;
	return 0;
}

struct word *word_hold_again(struct site *site, uint8_t *addr, const uint8_t *bytes, size_t len,
			     const struct sync *sync)
{
	struct moment asked = word_is_timed(sync) ? moment_now() : (struct moment){ .cpu = 0 };
	struct word *word = &site->word;

	line_for_writing(addr);
	if (!site_try_hold(site, (uintptr_t)addr, thread_id()))
		return NULL;
	if (word->site == site && word->span.addr == addr && word->span.len == len &&
	    !(word->span.shift[0] | word->span.shift[1]) && !word->span.loan &&
	    word->sync == sync && word->front == front_of(addr, sync) && word->int3_mask == 0xff &&
	    !sync->trace && !sync->rest) {
		word->asked = asked;
		if (fill_word(word, bytes, 1, false) == 0 && word_put_int3(word) == 0)
			return word;
	}
	site_release(site);
	return NULL;
}

/* The harness may have pushed out the line that word_hold() asked for: time counts from now. */
void word_prepared(struct word *word)
{
	const struct word_trace *trace = word->sync->trace;

	if (!trace || !trace->prepared)
		return;
	trace->prepared(trace->arg);
	word->asked = moment_now();
}

int word_begin(struct word **held, const struct change *change, const struct sync *sync)
{
	const uint8_t *expected = change->expected;
	struct word *word;
	int ret = word_hold(&word, change, sync);
	size_t back;

	if (ret < 0)
		return ret;
	word_await_rest(&word->site, 1);
	word_prepared(word);
	ret = word_put_int3(word);
	back = word->span.len - word->front;
	/* Only the site's owner changes the back part. */
	if (ret == 0 && expected &&
	    (word->old_front != number_of(expected, word->front) ||
	     number_of(word->back_at, back) != number_of(expected + word->front, back))) {
		word_undo(word);
		ret = -ESTALE;
	}
	if (ret < 0) {
		word_release(word);
		return ret;
	}
	*held = word;
	return 0;
}

/* --- The writes ------------------------------------------------------------------------------- */

NOPATCH int word_put_int3(struct word *word)
{
	uint64_t all = ~UINT64_C(0) / 0xff * WORD_INT3;

	if (!text_follow(&word->span))
		return -EACCES;
	return store_bytes(word->front_at, word->front, all, word->int3_mask, UNLESS_INT3,
			   &word->old_front)
		       ? 0
		       : -EAGAIN;
}

NOPATCH void word_put_back(struct word *word)
{
	size_t len = word->span.len - word->front;

	store_bytes(word->back_at, len, word->new_back, mask_of(len), ALWAYS, NULL);
}

NOPATCH void word_put_front(struct word *word)
{
	store_bytes(word->front_at, word->front, word->new_front, mask_of(word->front), ALWAYS,
		    NULL);
}

/* --- The transitions that go with them -------------------------------------------------------- */

NOPATCH void word_settle(struct word *word)
{
	if (!text_follow(&word->span))
		return;
	if (site_state(word->site) == WORD_WRITTEN)
		store_bytes(word->front_at, word->front, word->new_front, mask_of(word->front),
			    ONLY_INT3, NULL);
	else if (site_state(word->site) == WORD_UNDONE)
		store_bytes(word->front_at, word->front, word->old_front, word->int3_mask,
			    ONLY_INT3, NULL);
	rest_note(word->span.addr, word->span.len);
}

NOPATCH bool word_undo(struct word *word)
{
	struct site *site = word->site;

	if (!site_move(site, WORD_HELD, WORD_UNDONE) &&
	    !site_move(site, WORD_FIRST_WAIT, WORD_UNDONE) && site_state(site) != WORD_UNDONE)
		return false;
	store_relaxed(&site->undone, true);
	word_settle(word);
	return true;
}

NOPATCH void word_store_back(struct word *word)
{
	struct site *site = word->site;

	if (site_move(site, WORD_HELD, WORD_COMMITTED) ||
	    site_move(site, WORD_FIRST_WAIT, WORD_COMMITTED) ||
	    site_state(site) == WORD_COMMITTED) {
		if (text_follow(&word->span))
			word_put_back(word);
		site_move(site, WORD_COMMITTED, WORD_SECOND_WAIT);
	}
}

NOPATCH void word_store_front(struct word *word)
{
	if (site_move(word->site, WORD_SECOND_WAIT, WORD_WRITTEN))
		site_count_change(word->site);
	word_settle(word);
}

NOPATCH struct moment word_note_store(struct word *word, enum word_part which, struct moment asked)
{
	struct moment visible = moment_visible(asked);

	word_note_visible(word, which, asked, visible);
	return visible;
}

/* RDTSCP waits for what comes before it, so for the locked store. */
NOPATCH void word_set_since(struct word *word)
{
	word->since = moment_now();
	word->seen = 0;
}

NOPATCH void word_note_since(struct word *word, enum word_part which, struct moment asked)
{
	if (which == WORD_PART_INT3 && !word_is_timed(word->sync))
		return;
	word_set_since(word);
	word_note_visible(word, which, asked, word->since);
}

/*
 * Two TSC are compared only if they are the same CPU's. On another one the time counts from when
 * the step was first asked for there, by a clock that the kernel keeps in step between CPUs. A
 * nanosecond for every tick is long enough with any TSC above 1 GHz; two are on the safe side.
 */
NOPATCH bool word_has_passed(struct word *word, uint64_t ticks)
{
	struct moment now = moment_now();
	struct timespec raw;
	uint64_t ns;

	if (now.cpu == word->since.cpu) {
		/* It stepped back (a guest that was moved): how long that was cannot be told. */
		if (!moment_known(word->since, now))
			word->since = now;
		return now.ticks - word->since.ticks >= ticks;
	}
	sys_call(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &raw);
	ns = (uint64_t)raw.tv_sec * UINT64_C(1000000000) + (uint64_t)raw.tv_nsec;
	if (!word->seen)
		word->seen = ns;
	return ns - word->seen > 2 * ticks;
}

NOPATCH void word_note_visible(struct word *word, enum word_part which, struct moment asked,
			       struct moment visible)
{
	struct word_trace *trace = word->sync->trace;
	uint64_t latency =
		moment_known(asked, visible) ? visible.ticks - asked.ticks : SYNC_LATENCY_MAX;

	if (latency > word->latency)
		word->latency = latency < SYNC_LATENCY_MAX ? latency : SYNC_LATENCY_MAX;
	if (trace) {
		trace->visible[which] = visible.ticks;
		trace->latency[which] = latency;
	}
}

/* --- The protocol ----------------------------------------------------------------------------- */

NOPATCH bool word_has_failed(struct word *word, int error)
{
	return error != -ENOMEM || ++word->failures >= SYNC_TRIES;
}

NOPATCH static bool awaits_first(const struct site *site)
{
	enum word_state state = site_state(site);

	return state == WORD_HELD || state == WORD_FIRST_WAIT;
}

/*
 * The sync whose cost is to be noted: the one that all sites have. NULL: they differ, so their
 * cost says nothing of each, and no clock is read.
 */
NOPATCH static const struct sync *noted_sync(struct site *const *sites, size_t n)
{
	const struct sync *noted = sites[0]->word.sync;

	for (size_t i = 0; i < n && noted->other; i++)
		if (!awaits_first(sites[i]) || sites[i]->word.sync != noted)
			return NULL;
	return noted->other ? noted : NULL;
}

NOPATCH static uint64_t ticks_if(const struct sync *noted)
{
	return noted ? __builtin_ia32_rdtsc() : 0;
}

/*
 * One sync for all that need it: as long a wait as any of them calls for, and a membarrier if any
 * is under that policy. From now on, not from a store of each: the last store is just behind us.
 */
NOPATCH static int sync_all(struct site *const *sites, size_t n, bool first)
{
	struct word_trace *trace = sites[0]->word.sync->trace;
	struct moment start = { .cpu = 0 };
	bool barrier = false;
	uint64_t ticks = 0, longest;
	int ret = 0;

	for (size_t i = 0; i < n; i++) {
		const struct word *word = &sites[i]->word;
		const struct sync *sync = word->sync;
		uint64_t wait = word_stretch(word, first ? sync->waits.first : sync->waits.second);

		if (first ? !awaits_first(sites[i]) : site_state(sites[i]) != WORD_SECOND_WAIT)
			continue;
		if (sync->policy == PC_POLICY_MEMBARRIER)
			barrier = true;
		else if (wait > ticks)
			ticks = wait;
	}
	if (ticks)
		start = moment_now();
	if (barrier && first)
		ret = membarrier_sync();
	else if (barrier)
		/* There is no way back, so there must be one forward. */
		membarrier_sync_surely();
	if (ret < 0 || !ticks)
		return ret;
	longest = ticks_wait_since(start, ticks);
	if (trace) {
		trace->step[!first] = longest;
		trace->waited[!first] = ticks_now() - start.ticks;
	}
	return 0;
}

/*
 * The protocol for a straddler. F and B are its old front and back part, f and b the new
 * ones; 3 is INT3 over the first byte of F. word_begin() holds it and takes step 1.
 *
 *   1. F B -> 3 B  An executor that fetches the first byte from now on traps and waits in
 *                  the handler. One that fetched F before may be about to fetch B.
 *   2. sync        longer than the longest gap between the two fetches: no executor
 *                  is left with F and without its B.
 *   3. 3 B -> 3 b  Only trapped executors come here, and they do not get to b.
 *   4. sync        No executor is left that fetched B ahead of an INT3 that it has
 *                  not yet seen (the two parts may be fetched in any order).
 *   5. 3 b -> f b  The first byte is whole again: every executor runs the new
 *                  instruction, and those that trapped run it again.
 *
 * Without 2 an executor could run F b, without 4 f B. A sync that fails in
 * step 2 is undone by putting the first byte back: B was never touched. In step 4 undoing
 * would itself need a sync, so there membarrier is tried again, and in the end a wait of
 * SYNC_LAST_RESORT does: longer by orders of magnitude than any fetch was ever seen to lag.
 *
 * All steps are taken also where F or B stays the same. One store would do for
 * this change alone, but not for two in a row: of F B -> F b -> f b an executor
 * could see the second without the first, f B, which never stood there.
 *
 * No step is needed at the end. Executors with a stale INT3 trap once more and
 * find the site in the table.
 */
NOPATCH int word_finish_all(struct site *const *sites, size_t n)
{
	const struct sync *noted = noted_sync(sites, n);
	uint64_t start, between;
	struct moment asked;
	int ret;

	for (size_t i = 0; i < n; i++)
		/* Right after the INT3, where that is not noted yet. */
		if (awaits_first(sites[i]) && !sites[i]->word.latency)
			word_note_store(&sites[i]->word, WORD_PART_INT3, sites[i]->word.asked);
	start = ticks_if(noted);
	ret = sync_all(sites, n, true);
	if (ret < 0)
		return ret;
	between = ticks_if(noted);
	asked = moment_now();
	for (size_t i = 0; i < n; i++) {
		word_store_back(&sites[i]->word);
		if (site_state(sites[i]) == WORD_SECOND_WAIT)
			asked = word_note_store(&sites[i]->word, WORD_PART_BACK, asked);
	}
	start += ticks_if(noted) - between;
	sync_all(sites, n, false);
	if (noted)
		sync_note_cost(noted, __builtin_ia32_rdtsc() - start);
	for (size_t i = 0; i < n; i++) {
		bool is_traced = sites[i]->word.sync->trace;

		if (is_traced)
			asked = moment_now();
		word_store_front(&sites[i]->word);
		if (is_traced)
			word_note_store(&sites[i]->word, WORD_PART_FRONT, asked);
	}
	return 0;
}

NOPATCH int word_finish(struct word *word)
{
	int ret = word_finish_all(&word->site, 1);

	return ret == 0 && site_state(word->site) == WORD_UNDONE ? -ECANCELED : ret;
}

/*
 * One store at @at. @span: NULL if that is where the code runs; then a 1-byte NOP is refused.
 * @expected: NULL, or the old bytes, without which nothing is stored (-ESTALE).
 */
NOPATCH_INLINE int put_inside(const struct text_span *span, uint8_t *at, const uint8_t *bytes,
			      const uint8_t *expected, size_t len)
{
	uint8_t *word = container(at, len);
	unsigned shift = 8 * (unsigned)(at - word);
	uint64_t mask = mask_of(len) << shift, new = number_of(bytes, len) << shift;
	uint64_t old = expected ? number_of(expected, len) << shift : 0, seen = load(word);

	do {
		uint8_t first = (uint8_t)(seen >> shift);

		if ((first == WORD_INT3 && !(expected && expected[0] == WORD_INT3)) ||
		    (first == MERGE_NOP && !span))
			return -EAGAIN;
		if (expected && (seen & mask) != old)
			return -ESTALE;
		if (span && !text_follow(span))
			return -EACCES;
	} while (!compare_exchange(word, &seen, (seen & ~mask) | new));
	rest_note(span ? span->addr : at, len);
	return 0;
}

static int patch_inside(const struct text_span *span, const uint8_t *bytes, const uint8_t *expected,
			size_t len)
{
	return put_inside(span, text_at(span, span->addr), bytes, expected, len);
}

bool word_put(uint8_t *at, const uint8_t *bytes, size_t len)
{
	return put_inside(NULL, at, bytes, NULL, len) == 0;
}

int word_patch(const struct change *change, const struct sync *sync)
{
	struct word *word;
	int ret;

	if (!word_straddles(change->span.addr, change->span.len, sync->window))
		return patch_inside(&change->span, change->bytes, change->expected,
				    change->span.len);
	sync = word_sync(sync, change->span.addr, change->span.len);
	if (sync->policy == PC_POLICY_AUTO)
		return -ENOTSUP;
	sync = sync_within_rate(sync_pick(sync));
	ret = word_begin(&word, change, sync);
	if (ret < 0)
		return ret;
	ret = word_finish(word);
	/*
	 * Unless a signal handler of this thread has met the INT3 meanwhile and
	 * has done the rest: then there is no error to tell of.
	 */
	if (ret < 0 && !word_undo(word))
		ret = 0;
	if (ret == 0 && !text_follow(&word->span))
		ret = -EACCES;
	word_release(word);
	return ret;
}

/* One word at a time, so that neighbours keep what they hold. */
int word_publish(const struct change *change, const struct sync *sync)
{
	const struct text_span *span = &change->span;
	uint8_t *addr = span->addr;
	size_t len = span->len, front = sync->window - ((uintptr_t)addr & (sync->window - 1));
	uint64_t back;

	if (front >= len)
		return patch_inside(span, change->bytes, change->expected, len);
	if (*(const volatile uint8_t *)text_at(span, addr) == WORD_INT3)
		return -EAGAIN;
	if (change->expected &&
	    (memcmp(text_at(span, addr), change->expected, front) != 0 ||
	     memcmp(text_at(span, addr + front), change->expected + front, len - front) != 0))
		return -ESTALE;
	back = number_of(change->bytes + front, len - front);
	if (!text_follow(span))
		return -EACCES;
	store_bytes(text_at(span, addr + front), len - front, back, mask_of(len - front), ALWAYS,
		    NULL);
	return patch_inside(span, change->bytes, NULL, front);
}
