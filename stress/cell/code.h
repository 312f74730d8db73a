/* SPDX-License-Identifier: MIT */
/*
 * The code under test: a site that straddles a boundary, the loop around it, and somewhere to land
 * for every instruction that a mix could form.
 *
 * The codes of a pair differ in every byte that the split separates, and each mix does something of
 * its own (tmax-stress(1), PAIRS):
 *
 *   call-call  three calls in rotation, A -> B -> C -> A. Each (front, back) lands on a pad that
 *              counts it. As X is only ever followed by one Y, the pad tells which part was old.
 *   word       mov eax, imm32 with every byte of the immediate 0, 1 or 2, in rotation; the loop
 *              sorts what it got by lowest and highest byte.
 *   call-nop,  66 66 66 66 90 against E8 (E9) with F9 behind the split and FC from there on.
 *   jmp-nop    Call front + NOP tail lands on a pad. NOP front + call tail is a prefixed STC and
 *              CLDs, and the loop tests the carry flag. Which part was old follows from whether
 *              the toggle's number is even: right as long as a tear runs within `rest` of it.
 *
 * For the crash oracle pads stay unmapped and 06 (invalid) takes the place of F9.
 *
 * A fetch that is two changes old (of A -> B -> C: front A, back C) lands where the opposite kind
 * of C -> A does, so the other wait gets the blame. Where its toggle's number is known, in the
 * ring, it is told to be "other".
 *
 * Every mix also leaves the TSC and the toggle's number in a ring, on pads and behind branches that
 * only a mix takes: cold code, so a stamp is late by the cache misses and page walks on the way to
 * it: hundreds of ticks, up to some thousand.
 *
 * Each executor counts how many changes it has seen: a compare and a branch in the hot loop, which
 * is taken once after a change, when the front end starts anew anyway. A NOP leaves no trace, so
 * there calls count to which another execution is between the last one and them.
 *
 *   own        codes of a protocol's file, of any length. A mix leaves other registers behind than
 *              the whole codes do, see own.c; which part was old is not told.
 *
 * What a cell adds to the loop stands behind the site and what watches it, that is, ahead of the
 * next execution of it.
 *
 * Crossing inside has three sites in one line, across the boundaries of 8, 16 and 32 bytes: an
 * executor that fetches the line once sees three. Each has calls, landings and counters of its own.
 */
#ifndef STRESS_CELL_CODE_H
#define STRESS_CELL_CODE_H

#include <stdbool.h>

#include "patchcore/word/word.h"
#include "stress/cell/cell.h"

#define CODE_LENGTH	 PAIR_LENGTH /* of a site; less or more of pair own alone */
#define CODE_SLOTS	 1024
#define CODE_ARENA_PAGES 8
#define CODE_MARKS	 256 /* the generated code takes a byte for its index */
#define CODE_EXTRA	 3

/* A mix that was run. */
struct code_mark {
	uint64_t tsc;
	uint64_t where; /* toggle << 8 | the counter that it went to */
};

/* code_mark_toggle - number of the toggle that was under way, or over, when it was counted. */
static inline uint64_t code_mark_toggle(const struct code_mark *mark)
{
	return mark->where >> 8;
}

/* Counters of one executor, written by the generated code. */
struct code_slots {
	uint64_t at[CODE_SLOTS];
	/*
	 * Slot of the whole code that it ran last, plus 1; 0: none yet. Of NOP pairs, where
	 * in the round the call was run last, counted down to 1; 0: not right before it.
	 */
	uint64_t last;
	uint64_t seen;	    /* times that this changed; of NOP pairs, calls that follow none */
	uint64_t torn;	    /* toggles of which it ran a mix */
	uint64_t torn_last; /* number of the last of them, plus 1; 0: none yet */
	uint64_t marks;	    /* made so far; the last ones are in the ring */
	uint64_t strange;   /* of pair own: the signature of the last mix */
	struct code_mark mark[CODE_MARKS];
};

struct code_site {
	uint8_t *at;
	/* The codes to rotate through; bytes[0] stands there first. */
	uint8_t bytes[3][SITE_BYTES];
};

/*
 * Runs the site so often; called by code_run(). toggle: number of the patcher's, from 0. last, of
 * NOP pairs: the iterations that were left when the call was run last, in and out.
 */
typedef uint64_t code_loop_fn(uint64_t iterations, struct code_slots *slots, const uint64_t *toggle,
			      uint64_t last);

struct code {
	struct code_site site[CELL_INSIDE];
	unsigned sites; /* 1, or CELL_INSIDE of crossing inside */
	unsigned codes; /* 2 or 3 */
	unsigned length, split;
	enum code_pair pair;
	const struct protocol_file *protocol; /* NULL: a compiled one */
	code_loop_fn *loop;
	const uint8_t *again;	    /* where a thread goes on that shall run the site once more */
	uint8_t *extra[CODE_EXTRA]; /* the straddlers of provoker sites, or NULL */
};

/* code_build - once, in the child that runs the cell: map and write all. 0 or a negative errno. */
int code_build(struct code *code, const struct cell *cell);

/* code_place_site - where in an arena: at a boundary of just that size, by place or seed. */
uint8_t *code_place_site(uint8_t *arena, const struct cell *cell);

/* code_is_nop_pair - is one of its two codes a NOP, which leaves no trace? */
static inline bool code_is_nop_pair(const struct code *code)
{
	return code->codes == 2 && code->pair != PAIR_OWN;
}

/* code_collect - add what an executor counted in so many executions. */
void code_collect(const struct code *code, const struct code_slots *slots, uint64_t executions,
		  struct cell_result *result);

/* code_run - run the site so often: one round of an executor. */
void code_run(const struct code *code, uint64_t iterations, struct code_slots *slots,
	      const uint64_t *toggle);

/* code_exposed - toggles before which it had run what they replaced, of a site: rather too few. */
uint64_t code_exposed(const struct code *code, const struct code_slots *slots, uint64_t toggles);

/* code_tears - tears counted so far; cheap enough to ask while executors run. */
uint64_t code_tears(const struct code *code, const struct code_slots *slots);

/* code_mark - read that mark. False: it is not there yet, or no more. The executor may run. */
bool code_mark(const struct code_slots *slots, uint64_t number, struct code_mark *mark);

/* code_mark_kind - which part was old. */
enum tear_kind code_mark_kind(const struct code *code, const struct code_mark *mark);

/* code_stir - rewrite the extra sites, and say how many there are. */
unsigned code_stir(const struct code *code, uint64_t number);

/* --- own.c: sites of pair own ----------------------------------------------------------------- */

#define CODE_OWN_MIX 1 /* the slot of any mix; the whole codes have 0 and 4 */

/* own_build - write codes, loop and landings; code->site[0].at and the protocol are set. */
int own_build(struct code *code, const struct cell *cell);

/* --- shared_code.c ---------------------------------------------------------------------------- */

#define CODE_CHAIN   40
#define CODE_INVALID 0x06 /* PUSH ES: #UD in 64-bit mode, with any prefix */

struct emit;

/*
 * code_map - just there; -EEXIST: something is. code_map_landing - the page of a landing place, and
 * the next one, unless that was done before. 0 or a negative errno.
 */
int code_map(uint64_t addr, size_t length);
int code_map_landing(const uint8_t *at);

/* code_put_additions - what the cell adds to the loop; leaves the carry clear, and uses rdx. */
void code_put_additions(struct emit *e, struct code *code, const struct cell *cell);

/* --- toggle.c: one change of the site, by the protocol of a cell ---------------------------- */

/* toggle - to that code of the site, from the one before it. 0 or a negative errno. */
int toggle(enum protocol protocol, const struct code *code, unsigned site, unsigned next,
	   const struct sync *sync);

/* toggle_settle - at the end of a cell whose protocol is a file: the code that is to stand there.
 */
void toggle_settle(const struct code *code, unsigned site, unsigned standing);

/* toggle_sync - its trace is left to the caller. */
struct sync toggle_sync(const struct cell *cell);

#endif
