/* SPDX-License-Identifier: MIT */
/*
 * The code under test: a site that straddles a boundary, the loop around it,
 * and somewhere to land for every instruction that a mix could form.
 *
 * The codes of a pair differ in every byte that the split separates, and each
 * mix does something of its own:
 *
 *   call-call  three calls in rotation, A -> B -> C -> A. Displacements differ
 *              in every byte; each (front, back) lands on a pad that counts it.
 *              As X is only ever followed by one Y, the pad tells which part
 *              was old. Split 1 has the same opcode in front: no mix exists.
 *   word       mov eax, imm32 with every byte of the immediate 0, 1 or 2, in
 *              rotation; the loop sorts what it got by lowest and highest byte.
 *              Split 1 as above.
 *   call-nop,  66 66 66 66 90 against E8 (E9) with F9 behind the split and FC from
 *   jmp-nop    there on. Call front + NOP tail lands on a pad. NOP front + call tail
 *              is a prefixed STC and CLDs, and the loop tests the carry flag,
 *              which nothing else in it changes. Which part was old follows from
 *              the direction of the toggle, published by the patcher before it;
 *              right as long as a tear runs within `rest` of its toggle.
 *
 * Rather the prefixed NOP than 0F 1F 44 00 00: in that one, three of the eight
 * mixes are still a NOP, harmless by construction and seen by nobody.
 *
 * For the crash oracle pads stay unmapped and 06 (invalid) takes the place of F9.
 */
#ifndef STRESS_CODE_H
#define STRESS_CODE_H

#include <stdint.h>

#include "stress/cell.h"

#define CODE_LENGTH 5
#define CODE_SLOTS  1024

/* Counters of one executor, written by the generated code. */
struct code_slots {
	uint64_t at[CODE_SLOTS];
};

/* Runs the site so often. direction: which way the patcher is changing. */
typedef void code_loop_fn(uint64_t iterations, struct code_slots *slots, const uint64_t *direction);

struct code {
	uint8_t *site;
	uint8_t bytes[3][8]; /* the codes to rotate through; bytes[0] stands there first */
	unsigned codes;	     /* 2 or 3 */
	enum code_pair pair;
	code_loop_fn *loop;
};

/*
 * code_build - map and write everything. Never unmapped: it is made once, in
 * the child that runs the cell. 0 or a negative errno.
 */
int code_build(struct code *code, const struct cell *cell);

/* code_collect - add what an executor counted in so many executions. */
void code_collect(const struct code *code, const struct code_slots *slots, uint64_t executions,
		  struct cell_result *result);

/* code_tears - tears counted so far; cheap enough to ask while executors run. */
uint64_t code_tears(const struct code *code, const struct code_slots *slots);

#endif
