/* SPDX-License-Identifier: MIT */
/*
 * Calls, on and off (paper, section 6).
 *
 * DISPLACEMENT. The four bytes lie in one 8-byte word, and one locked exchange
 * replaces them. Nothing else of the call ever changes, so an executor has the
 * old displacement or the new one.
 *
 * FRONT. The first two bytes lie in one 8-byte word: E8 d0 when on, EB 03 when
 * off (67 E8 or FF 15, and EB 04, for the longer forms). The rest is what it is
 * when on, and a jump that skips it does not read it. A compare-exchange and not
 * an exchange, because a word patch may be under way (the first target of its
 * own, below): then the first byte is INT3, and must stay it. As only two values
 * are possible besides, one attempt is enough: if it fails, the bytes were
 * already as wanted, or it is not for us to change them.
 *
 * TAIL. The same with one byte: E9 or FF, and C3.
 *
 * Targets of its own, FRONT and TAIL: a word patch moves the instruction to a
 * stub, once; from then on only the stub's target changes.
 *
 *   1. store the target in the slot, which no executor reads yet
 *   2. word patch: the whole instruction, on, with the stub's displacement
 *   3. moved = 1
 *
 * A thread that turns it on or off may come from before the patch: it has read
 * the front, is held up for any time, and then compares and exchanges. That is
 * harmless because a move does not change what on and off look like: for E8 d0
 * the stub is one whose displacement has the same d0. Without that it could put
 * the old d0 before the new d1 d2 d3.
 *
 * Once moved, the target is stored before the front (both are locked, so seen in
 * that order by all); an executor fetches the front and then executes the stub,
 * which loads the target: an executor that sees the call on sees that target, or a later one.
 */
#include "patchcore/call.h"

#include <errno.h>
#include <string.h>

#include "patchcore/call/call_form.h"
#include "patchcore/machine/policy.h"
#include "patchcore/machine/wait.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/site.h"
#include "patchcore/site/thread.h"
#include "patchcore/text/text.h"

/*
 * The loads and the locked stores of a call. In assembly, because C has no atomic access to
 * unaligned memory; all of them stay inside one 8-byte word, where the processor makes them one
 * access (AMD APM vol. 2, 7.3.2).
 */
static uint8_t call_load_byte(const uint8_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static uint16_t call_load_two(const uint8_t *at)
{
	uint16_t two;

	__asm__ volatile("movw %1, %0" : "=r"(two) : "m"(*(const uint8_t(*)[2])at) : "memory");
	return two;
}

static int32_t call_load_four(const uint8_t *at)
{
	int32_t four;

	__asm__ volatile("movl %1, %0" : "=r"(four) : "m"(*(const uint8_t(*)[4])at) : "memory");
	return four;
}

/* True: it was *seen and is now `to`. False: *seen is what it was instead. */
static bool call_exchange_byte(uint8_t *at, uint16_t *seen, uint8_t to)
{
	uint8_t expected = (uint8_t)*seen;
	bool done = __atomic_compare_exchange_n(at, &expected, to, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST);

	*seen = expected;
	return done;
}

static bool call_exchange_two(uint8_t *at, uint16_t *seen, uint16_t to)
{
	bool done;

	__asm__ volatile("lock cmpxchgw %3, %1"
			 : "=@ccz"(done), "+m"(*(uint8_t(*)[2])at), "+a"(*seen)
			 : "r"(to)
			 : "memory");
	return done;
}

static uint16_t off_first(const struct pc_call *call)
{
	uint8_t code[CALL_MAX];

	call_encode_off(code, call->form);
	return call_first(code, call->way);
}

static bool is_known_moved(const struct pc_call *call)
{
	/* Acquire: pairs with the release in move_held(), so own is there. */
	return __atomic_load_n(&call->moved, __ATOMIC_ACQUIRE);
}

/* Also by a thread that has ended, or was left behind by fork(), before it could say so. */
static bool is_moved(const struct pc_call *call, const struct text_span *span)
{
	const struct stub *own;
	int32_t displacement;
	uint8_t bytes[sizeof(displacement)];

	if (is_known_moved(call))
		return true;
	own = call_own(call);
	if (!own)
		return false;
	/* One byte at a time: it may lie on two pages, each with an alias of its own. */
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = call_load_byte(text_at(span, call_operand(call) + i));
	memcpy(&displacement, bytes, sizeof(bytes));
	return displacement == call_to_own(call, own);
}

/* Locked, so that it is visible before the next store. */
static void *aim_stub(struct stub *own, void *target)
{
	if (atomic_load(&own->target) == target)
		return target;
	return atomic_exchange(&own->target, target);
}

/* --- Stores ------------------------------------------------------------------ */

/* Why the first byte is not the expected one. */
static int explain_first_byte(uint8_t first)
{
	return first == WORD_INT3 ? -EAGAIN : -ENOENT;
}

/* first: two bytes, lowest first, of which those behind the opcode do not count. */
static bool has_opcode(const struct pc_call *call, uint16_t first)
{
	const struct call_shape *shape = call_shape(call);

	return (uint8_t)first == shape->code[0] &&
	       (shape->opcode == 1 || first >> 8 == shape->code[1]);
}

static int check_opcode(const struct pc_call *call, const struct text_span *span)
{
	uint8_t first = call_load_byte(text_at(span, call->addr));
	uint8_t second = call_load_byte(text_at(span, call->addr + 1));

	return has_opcode(call, (uint16_t)(first | second << 8)) ? 0 : explain_first_byte(first);
}

/* at: where it can be read; both bytes are on the page of the first. */
static uint16_t load_first(const struct pc_call *call, const uint8_t *at)
{
	return call->way == PC_CALL_TAIL ? call_load_byte(at) : call_load_two(at);
}

/* On to off or off to on. */
static int store_first(const struct pc_call *call, const struct text_span *span, uint16_t from,
		       uint16_t to)
{
	uint8_t *at = text_at(span, call->addr);
	uint16_t seen = load_first(call, at);
	bool done = false;

	if (seen == from) {
		if (!text_follow(span))
			return -EACCES;
		done = call->way == PC_CALL_TAIL ? call_exchange_byte(at, &seen, (uint8_t)to)
						 : call_exchange_two(at, &seen, to);
	}
	return done || seen == to ? 0 : explain_first_byte((uint8_t)seen);
}

/* By way of DISPLACEMENT. */
static int store_displacement(const struct pc_call *call, const struct text_span *span,
			      int32_t displacement)
{
	uint8_t *at = text_at(span, call_operand(call));

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

/* Give it its first target of its own, and turn it on with it. */
static int move_to_stub(struct pc_call *call, void *target, const struct text_span *span)
{
	uint64_t holder = __atomic_load_n(&call->moving, __ATOMIC_RELAXED);
	uint8_t code[CALL_MAX];
	struct stub *own;
	int ret = -EAGAIN;

	/*
	 * Another thread has it, or this one in what its signal handler interrupted. One that
	 * ended in the middle of it, or was left behind by fork(), does not count.
	 */
	if ((holder && !thread_is_gone(holder)) ||
	    !__atomic_compare_exchange_n(&call->moving, &holder, thread_id(), false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return -EAGAIN;
	if (!is_moved(call, span))
		ret = call_own_get(call, &own);
	if (ret == 0) {
		aim_stub(own, target);
		ret = pc_patch(call->addr, code,
			       call_encode(code, call->form, call_to_own(call, own)));
	}
	if (ret == 0)
		__atomic_store_n(&call->moved, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&call->moving, 0, __ATOMIC_RELEASE);
	return ret;
}

/* Where the original one leads now. */
static void *original_target(const struct pc_call *call)
{
	void *original = call_original(call);

	return call_shape(call)->slot && original
		       ? __atomic_load_n((void **)original, __ATOMIC_ACQUIRE)
		       : original;
}

/* By way of FRONT or TAIL. */
static int turn_on(struct pc_call *call, void *target, const struct text_span *span)
{
	uint16_t off = off_first(call), seen;
	bool moved = is_moved(call, span);
	struct stub *own;
	void *before;
	int ret;

	if (!moved && (!target || (!call_shape(call)->slot && target == call_original(call))))
		return store_first(call, span, off, call->on);
	seen = load_first(call, text_at(span, call->addr));
	if (seen != off && seen != call->on)
		return explain_first_byte((uint8_t)seen);
	if (!moved)
		return move_to_stub(call, target, span);
	own = call_own(call);
	if (!target)
		target = original_target(call);
	before = aim_stub(own, target);
	ret = store_first(call, span, off, call->on);
	/* Unless another thread has changed it since. */
	if (ret < 0)
		atomic_compare_exchange_strong(&own->target, &target, before);
	return ret;
}

/* By way of DISPLACEMENT; a target of NULL is the original one. */
static int displace_call(struct pc_call *call, void *target, const struct text_span *span)
{
	void *to = target ? target : call_original(call);
	struct stub *own;
	int ret = check_opcode(call, span);

	if (ret < 0)
		return ret;
	if ((!target || !call_shape(call)->slot) && stub_in_reach(call_end(call), (uintptr_t)to))
		return store_displacement(call, span, call_displacement(call, to));
	ret = call_own_get(call, &own);
	if (ret < 0)
		return ret;
	aim_stub(own, to);
	return store_displacement(call, span, call_to_own(call, own));
}

/* Ask for the line that the store will go to; the other one, if there is, stays the executors'. */
static void expect_store(const struct pc_call *call)
{
	line_for_writing(call->way == PC_CALL_DISPLACEMENT ? call_operand(call) : call->addr);
}

int pc_activate_call(struct pc_call *call, void *target)
{
	void *none = NULL, *original;
	struct text_span span;
	int ret;

	if (!call || !call->addr || (!target && !call_original(call)))
		return -EINVAL;
	/*
	 * Of a call that goes through its stub most likely only the slot will change then: to ask
	 * for the line of the code would take it away from the executors for nothing.
	 */
	if (!target || call->way == PC_CALL_DISPLACEMENT || !is_known_moved(call))
		expect_store(call);
	if (!choice_sync())
		return -ESHUTDOWN;
	ret = text_begin(&span, call->addr, call_shape(call)->len);
	if (ret < 0)
		return ret;
	if (call->way == PC_CALL_DISPLACEMENT)
		ret = displace_call(call, target, &span);
	else
		ret = turn_on(call, target, &span);
	/* A call that never had one remembers the first that it was given. */
	if (ret == 0 && target && !call_original(call)) {
		original = call_shape(call)->slot ? call_own(call) : target;
		__atomic_compare_exchange_n(&call->original, &none, original, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
	if (ret == -EAGAIN)
		call_go_on(call->addr);
	text_end(&span);
	return ret;
}

int pc_deactivate_call(struct pc_call *call)
{
	struct text_span span;
	int ret;

	if (!call || !call->addr)
		return -EINVAL;
	expect_store(call);
	if (!choice_sync())
		return -ESHUTDOWN;
	ret = text_begin(&span, call->addr, call_shape(call)->len);
	if (ret < 0)
		return ret;
	if (call->way != PC_CALL_DISPLACEMENT) {
		ret = store_first(call, &span, call->on, off_first(call));
	} else {
		ret = check_opcode(call, &span);
		if (ret == 0)
			ret = store_displacement(call, &span, call->off);
	}
	if (ret == -EAGAIN)
		call_go_on(call->addr);
	text_end(&span);
	return ret;
}

/* --- A look at it ------------------------------------------------------------ */

/*
 * While the call is moved, its displacement may be read half old and half new. Each byte
 * of it changes once, and one of the two whole displacements is known from the beginning
 * and the other as soon as a store of it can be seen. So what is neither is a mixture,
 * and what is either was the call's while the front was read before it, or is the
 * call's while the front is read after it. Nothing is followed that is not one of them.
 */

/* Looks, of which one may meet a move that ends meanwhile. A plain load tears nothing else. */
#define LOOKS 3

/* Bytes that are wrong in one look may be a mixture; in every look, they are other code. */
#define MIXTURE (-ENOENT)

/* 1: on, 0: off, -EAGAIN, or MIXTURE. */
static int is_on(const struct pc_call *call, uint16_t first)
{
	if (call->way == PC_CALL_DISPLACEMENT)
		return has_opcode(call, first) ? 1 : explain_first_byte((uint8_t)first);
	if (first == call->on)
		return 1;
	return first == off_first(call) ? 0 : explain_first_byte((uint8_t)first);
}

/* Where the code can be read: a copy, if loads from it may fault. */
static int readable_call(const struct pc_call *call, uint8_t copy[CALL_MAX], const uint8_t **at)
{
	int ret = call->hidden ? text_read(copy, call->addr, call_shape(call)->len) : 0;

	*at = call->hidden ? copy : call->addr;
	return ret < 0 ? ret : 0;
}

/* 1: on, and leads to *target; 0: off; or a negative errno. */
static int look_at_call(const struct pc_call *call, void **target)
{
	uint8_t copy[CALL_MAX];
	int32_t displacement;
	const struct stub *own;
	const uint8_t *at;
	void *original;
	bool is_found = true;
	int ret = readable_call(call, copy, &at);

	if (ret == 0)
		ret = is_on(call, load_first(call, at));
	if (ret <= 0)
		return ret;
	displacement = call_load_four(at + call_shape(call)->opcode);
	if (call->way == PC_CALL_DISPLACEMENT && displacement == call->off)
		return 0;
	/* Read after the displacement, as they were stored before it. */
	own = call_own(call);
	original = call_original(call);
	if (own && displacement == call_to_own(call, own)) {
		*target = atomic_load(&((struct stub *)own)->target);
	} else if (original && stub_in_reach(call_end(call), (uintptr_t)original) &&
		   displacement == call_displacement(call, original)) {
		*target = original_target(call);
	} else {
		/* Any target in reach is stored as it is, by one store. Else it is not ours. */
		*target = (void *)(call_end(call) + (uintptr_t)displacement);
		is_found = call->way == PC_CALL_DISPLACEMENT && !call_shape(call)->slot;
	}
	/* The front once more. */
	ret = readable_call(call, copy, &at);
	if (ret == 0)
		ret = is_on(call, load_first(call, at));
	return ret == 1 && !is_found ? MIXTURE : ret;
}

int pc_call_get(const struct pc_call *call, struct pc_call_info *info)
{
	void *target = NULL;
	int on = MIXTURE;

	if (!call || !call->addr || !info)
		return -EINVAL;
	for (int i = 0; i < LOOKS && on == MIXTURE; i++)
		on = look_at_call(call, &target);
	if (on < 0)
		return on;
	*info = (struct pc_call_info){
		.len = call_shape(call)->len,
		.split = call_split(call->addr, call_shape(call)->len),
		.way = (enum pc_call_way)call->way,
		.active = on,
		.target = on ? target : NULL,
	};
	return 0;
}
