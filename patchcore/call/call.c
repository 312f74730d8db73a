/* SPDX-License-Identifier: MIT */
/*
 * Calls, on and off (paper, section 6).
 *
 * DISPLACEMENT. The four bytes lie in one 8-byte word, and one locked exchange replaces them.
 * Nothing else of the call ever changes, so an executor has the old displacement or the new one.
 *
 * FRONT. The first two bytes lie in one 8-byte word: E8 d0 when on, EB 03 when off (67 E8 or FF
 * 15, and EB 04, for the longer forms). The rest is what it is when on, and a jump that skips it
 * does not read it. A compare-exchange and not an exchange, because a word patch may be under way
 * (other targets, below): then the first byte is INT3, and must stay it. As only two
 * values are possible besides, one attempt is enough: if it fails, the bytes were already as
 * wanted, or it is not for us to change them.
 *
 * TAIL. The same with one byte: E9 or FF, and C3.
 *
 * Other targets, FRONT and TAIL: a word patch leads the instruction through a stub, first through
 * the one that calls with that target share, then through one of its own; from then on only the
 * stub's target changes. See enum call_stage.
 *
 *   1. store the target in an own stub, which no executor reads yet
 *   2. word patch: the whole instruction, on, with the stub's displacement
 *   3. moved: the stage that is reached
 *
 * A thread that turns it on or off may come from before the patch: it has read the front, is held
 * up for any time, and then compares and exchanges. That is harmless because a move does not
 * change what on and off look like: for E8 d0 the stub is one whose displacement has the same d0.
 * Without that it could put the old d0 before the new d1 d2 d3.
 *
 * With a stub of its own, the target is stored before the front (both are locked, so seen in that
 * order by all); an executor fetches the front and then executes the stub, which loads the target:
 * an executor that sees the call on sees that target, or a later one.
 */
#include "patchcore/call.h"

#include <errno.h>
#include <string.h>

#include "patchcore/call/call_form.h"
#include "patchcore/machine/policy.h"
#include "patchcore/machine/wait.h"
#include "patchcore/pages/text.h"
#include "patchcore/pages/text_page.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/fork.h"
#include "patchcore/site/site.h"
#include "patchcore/word/flight.h"

/*
 * As call_first(): all loads and locked stores stay inside one 8-byte word, where the processor
 * makes them one access.
 */
static int32_t call_load_four(const uint8_t *at)
{
	int32_t four;

	__asm__ volatile("movl %1, %0" : "=r"(four) : "m"(*(const uint8_t(*)[4])at) : "memory");
	return four;
}

/* Of one byte or two. True: it was *seen and is now `to`. False: *seen is what it was instead. */
NOPATCH_INLINE bool call_exchange(uint8_t *at, uint16_t *seen, uint16_t to, bool is_byte)
{
	bool done;

	if (is_byte)
		return __atomic_compare_exchange_n(at, (uint8_t *)seen, (uint8_t)to, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	__asm__ volatile("lock cmpxchgw %3, %1"
			 : "=@ccz"(done), "+m"(*(uint8_t(*)[2])at), "+a"(*seen)
			 : "r"(to)
			 : "memory");
	return done;
}

static unsigned known_stage(const struct pc_call *call)
{
	/* Acquire: pairs with the release in move_to_stub(), so the stub is there. */
	return __atomic_load_n(&call->moved, __ATOMIC_ACQUIRE);
}

/* Why the first byte is not the expected one. */
static int explain_first_byte(uint8_t first)
{
	return first == WORD_INT3 ? -EAGAIN : -ENOENT;
}

/* 1: it is there. */
NOPATCH_INLINE int check_opcode(const struct pc_call *call, const uint8_t *at,
				const uint8_t *behind)
{
	const struct call_shape *shape = call_shape(call);
	uint8_t first = __atomic_load_n(at, __ATOMIC_ACQUIRE);

	if (first == shape->code[0] &&
	    (shape->opcode == 1 || __atomic_load_n(behind, __ATOMIC_ACQUIRE) == shape->code[1]))
		return 1;
	return explain_first_byte(first);
}

/* 1: on, 0: off, -EAGAIN, or -ENOENT. */
static int is_on(const struct pc_call *call, const uint8_t *at)
{
	uint16_t first;

	if (call->way == PC_CALL_DISPLACEMENT)
		return check_opcode(call, at, at + 1);
	first = call_first(call, at);
	if (first == call->on)
		return 1;
	return first == call_shape(call)->off ? 0 : explain_first_byte((uint8_t)first);
}

/* The same, where it runs, and then its displacement. A copy, if loads may fault. */
static int load_call(const struct pc_call *call, int32_t *displacement)
{
	const uint8_t *at = call->addr;
	uint8_t copy[CALL_MAX];
	int ret = 0;

	if (call->hidden) {
		ret = text_read(copy, at, call_shape(call)->len);
		at = copy;
	}
	if (ret >= 0)
		ret = is_on(call, at);
	if (ret >= 0)
		*displacement = call_load_four(at + call_shape(call)->opcode);
	return ret;
}

/* Where a stub is known, its code tells. */
__attribute__((noinline)) static enum call_stage read_stage(const struct pc_call *call,
							    enum call_stage known)
{
	const struct stub *stub;
	int32_t displacement;

	if (load_call(call, &displacement) < 0)
		return known;
	stub = call_stub_at(call, displacement);
	return !stub ? known : stub == call_own(call) ? CALL_OWN : CALL_SHARED;
}

/* As the code shows it: a thread that moved the call may have ended before it noted that. */
NOPATCH_INLINE enum call_stage call_stage(const struct pc_call *call)
{
	enum call_stage known = known_stage(call);

	if (known == CALL_OWN || !(call_own(call) || (known == CALL_ORIGINAL && call_shared(call))))
		return known;
	return read_stage(call, known);
}

/* By way of FRONT or TAIL. */
NOPATCH_INLINE int store_first(const struct pc_call *call, const struct text_span *span, bool on)
{
	uint16_t off = call_shape(call)->off, from = on ? off : call->on, to = on ? call->on : off;
	uint8_t *at = text_at(span, call->addr);
	uint16_t seen = call_first(call, at);

	if (seen == from && !text_follow(span))
		return -EACCES;
	if (seen == from && call_exchange(at, &seen, to, call->way == PC_CALL_TAIL))
		return 0;
	return seen == to ? 0 : explain_first_byte((uint8_t)seen);
}

/* By way of DISPLACEMENT. */
NOPATCH_INLINE int store_displacement(const struct pc_call *call, const struct text_span *span,
				      int32_t displacement)
{
	uint8_t *at = text_at(span, call->addr + call_shape(call)->opcode);

	/* Saves the executors the loss of the line where nothing changes. */
	if (call_load_four(at) == displacement)
		return 0;
	if (!text_follow(span))
		return -EACCES;
	/* xchg locks without being told. */
	__asm__ volatile("xchgl %1, %0"
			 : "+m"(*(uint8_t(*)[4])at), "+r"(displacement)
			 :
			 : "memory");
	return 0;
}

/* --- On and off -------------------------------------------------------------- */

/* Locked, so that it is visible before the next store. What it was. */
static void *aim_stub(struct stub *own, void *target)
{
	return atomic_load(&own->target) == target ? target : atomic_exchange(&own->target, target);
}

/* Lead it through a stub to that target, and turn it on with it. */
static int move_to_stub(struct pc_call *call, enum call_stage stage, void *target)
{
	uint64_t holder = __atomic_load_n(&call->moving, __ATOMIC_RELAXED);
	uint8_t code[CALL_MAX];
	struct stub *stub;
	int ret = -EAGAIN;

	/*
	 * Another thread has it, or this one in what its signal handler interrupted. One that
	 * ended in the middle of it, or was left behind by fork(), does not count.
	 */
	if ((holder && !thread_is_gone(holder)) ||
	    !__atomic_compare_exchange_n(&call->moving, &holder, thread_id(), false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return -EAGAIN;
	if (call_stage(call) == stage) {
		/* A thread that has ended may not have noted it. */
		__atomic_store_n(&call->moved, stage, __ATOMIC_RELEASE);
		ret = call_stub_get(call, target, stage == CALL_ORIGINAL, &stub);
	}
	if (ret == 0 && stub == call_own(call)) {
		aim_stub(stub, target);
		/* The call never leads through the shared stub again: see look_at_call(). */
		if (stage == CALL_ORIGINAL)
			__atomic_store_n(&call->shared, NULL, __ATOMIC_RELEASE);
	}
	if (ret == 0)
		ret = pc_patch(call->addr, code,
			       call_encode(code, call->form, call_to_stub(call, stub)));
	if (ret == 0)
		__atomic_store_n(&call->moved, stub == call_own(call) ? CALL_OWN : CALL_SHARED,
				 __ATOMIC_RELEASE);
	__atomic_store_n(&call->moving, 0, __ATOMIC_RELEASE);
	return ret;
}

/* Where the original one leads now. */
static void *original_target(const struct pc_call *call)
{
	void *original = call_original(call);

	if (!call_shape(call)->slot || !original)
		return original;
	return __atomic_load_n((void **)original, __ATOMIC_ACQUIRE);
}

/* By way of FRONT or TAIL, for a call that has not always led there. */
static int turn_on_elsewhere(struct pc_call *call, void *target, const struct text_span *span)
{
	enum call_stage stage = call_stage(call);
	struct stub *own;
	void *before;
	int ret;

	/* Its stubs may lead other calls by now. */
	if (call_is_forgotten(call))
		return -ENOENT;
	if (!target)
		target = original_target(call);
	if (stage == CALL_SHARED && target == atomic_load(&call_shared(call)->target))
		return store_first(call, span, true);
	ret = is_on(call, text_at(span, call->addr));
	if (ret < 0)
		return ret;
	if (stage != CALL_OWN)
		return move_to_stub(call, stage, target);
	own = call_own(call);
	before = aim_stub(own, target);
	ret = store_first(call, span, true);
	/* Unless another thread has changed it since. */
	if (ret < 0)
		atomic_compare_exchange_strong(&own->target, &target, before);
	return ret;
}

/* The stub that leads there, or can be made to by one store; NULL: there is none yet. */
static struct stub *known_stub(const struct pc_call *call, const void *target)
{
	struct stub *shared = call_shared(call);

	return shared && atomic_load(&shared->target) == target ? shared : call_own(call);
}

/* By way of DISPLACEMENT. */
static int displace_through_stub(struct pc_call *call, void *target, const struct text_span *span)
{
	struct stub *stub = known_stub(call, target);
	int ret = stub ? 0 : call_stub_get(call, target, true, &stub);

	if (ret < 0)
		return ret;
	if (call_is_forgotten(call))
		return -ENOENT;
	if (stub == call_own(call))
		aim_stub(stub, target);
	return store_displacement(call, span, call_to_stub(call, stub));
}

/* A target of NULL is the original one. */
NOPATCH_INLINE int change_call(struct pc_call *call, bool on, void *target,
			       const struct text_span *span)
{
	void *original = call_original(call), *to = target ? target : original;
	bool is_direct = !target || !call_shape(call)->slot;
	int ret;

	if (call->way != PC_CALL_DISPLACEMENT && !on)
		return store_first(call, span, false);
	if (call->way != PC_CALL_DISPLACEMENT)
		return is_direct && to == original && call_stage(call) == CALL_ORIGINAL
			       ? store_first(call, span, true)
			       : turn_on_elsewhere(call, target, span);
	ret = check_opcode(call, text_at(span, call->addr), text_at(span, call->addr + 1));
	if (ret < 0)
		return ret;
	if (!on)
		return store_displacement(call, span, call->off);
	return is_direct && stub_in_reach(call_end(call), (uintptr_t)to)
		       ? store_displacement(call, span, call_displacement(call, to))
		       : displace_through_stub(call, to, span);
}

/* A call that never had one remembers the first that it was given. */
static void note_original(struct pc_call *call, void *target)
{
	void *original = call_shape(call)->slot ? known_stub(call, target) : target, *none = NULL;

	__atomic_compare_exchange_n(&call->original, &none, original, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

__attribute__((noinline)) static int turn_anywhere(struct pc_call *call, bool on, void *target)
{
	struct text_span span;
	int ret = text_begin(&span, call->addr, call_shape(call)->len);

	if (ret < 0)
		return ret;
	ret = change_call(call, on, target, &span);
	text_end(&span);
	return ret;
}

/* Is it all on one page, which is open and written where it runs? Inside only. */
NOPATCH_INLINE bool is_open(const struct pc_call *call, struct thread *self)
{
	uintptr_t addr = (uintptr_t)call->addr;

	return addr % TEXT_PAGE <= TEXT_PAGE - CALL_MAX && page_find_plain(self, addr);
}

NOPATCH_INLINE int turn_call(struct pc_call *call, bool on, void *target)
{
	/* Written where it runs: what comes before the store is inline, and has nothing to ask. */
	static const struct text_span plain;
	bool displaces = call->way == PC_CALL_DISPLACEMENT;
	struct thread *self;
	struct site *site;
	int ret;

	/*
	 * Ask for the line that the store will go to. Not of a call through a stub of its own, of
	 * which most likely only the slot will change: executors would lose the line for nothing.
	 */
	if (!target || displaces || known_stage(call) != CALL_OWN)
		line_for_writing(displaces ? call->addr + call_shape(call)->opcode : call->addr);
	if (!choice_sync())
		return -ESHUTDOWN;
	ret = fork_enter_in_handler(&self);
	if (ret < 0)
		return ret;
	ret = is_open(call, self) ? change_call(call, on, target, &plain)
				  : turn_anywhere(call, on, target);
	site = ret == -EAGAIN ? site_find((uintptr_t)call->addr) : NULL;
	/* A word patch of it is under way, which a thread may have left behind. */
	if (site)
		flight_step(site);
	fork_leave(self);
	return ret;
}

int pc_activate_call(struct pc_call *call, void *target)
{
	int ret;

	if (!call || !call->addr || (!target && !call_original(call)))
		return -EINVAL;
	ret = turn_call(call, true, target);
	if (ret == 0 && target && !call_original(call))
		note_original(call, target);
	return ret;
}

int pc_deactivate_call(struct pc_call *call)
{
	return call && call->addr ? turn_call(call, false, NULL) : -EINVAL;
}

/* --- A look at it ------------------------------------------------------------ */

/*
 * While the call is moved, its displacement may be read half old and half new. Each byte of it
 * changes once. One of the two whole displacements is known from the beginning, the other as soon
 * as a store of it can be seen. A value that equals neither is a mixture, and no address is taken
 * from it. A value that equals one was the call's while the front was read before it, or is the
 * call's while the front is read after it. There are two moves at most, and a look that meets both,
 * by the stage, does not count.
 */

/*
 * Looks, of which a move may spoil two. A plain load tears nothing else. Bytes that are wrong in
 * one look may be a mixture; in every look, they are other code.
 */
#define LOOKS 5

/* 1: on, and leads to *target; 0: off; or a negative errno. */
static int look_at_call(const struct pc_call *call, void **target)
{
	bool displaces = call->way == PC_CALL_DISPLACEMENT, is_found = true;
	unsigned stage = known_stage(call);
	struct stub *stub;
	int32_t displacement, later;
	void *original;
	int ret = load_call(call, &displacement);

	if (ret <= 0)
		return ret;
	if (displaces && displacement == call->off)
		return 0;
	/* Read after the displacement, as they were stored before it. */
	stub = call_stub_at(call, displacement);
	original = displaces || stage == CALL_ORIGINAL ? call_original(call) : NULL;
	if (stub) {
		*target = atomic_load(&stub->target);
	} else if (original && stub_in_reach(call_end(call), (uintptr_t)original) &&
		   displacement == call_displacement(call, original)) {
		*target = original_target(call);
	} else {
		/* Any target in reach is stored as it is, by one store. Else it is not ours. */
		*target = (void *)(call_end(call) + (uintptr_t)displacement);
		is_found = displaces && !call_shape(call)->slot;
	}
	/* The front once more. */
	ret = load_call(call, &later);
	return ret == 1 && (!is_found || known_stage(call) != stage) ? -ENOENT : ret;
}

int pc_call_get(const struct pc_call *call, struct pc_call_info *info)
{
	void *target = NULL;
	int on = -ENOENT;

	if (!call || !call->addr || !info)
		return -EINVAL;
	if (!choice_sync())
		return -ESHUTDOWN;
	for (int i = 0; i < LOOKS && on == -ENOENT; i++)
		on = look_at_call(call, &target);
	if (on < 0)
		return on;
	*info = (struct pc_call_info){
		.len = call_shape(call)->len,
		.split = call_split(call),
		.way = (enum pc_call_way)call->way,
		.active = on,
		.target = on ? target : NULL,
	};
	return 0;
}
