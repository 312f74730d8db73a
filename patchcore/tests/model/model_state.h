/* SPDX-License-Identifier: MIT */
/* The state of a model (model.h), and one step of it. */
#ifndef PATCHCORE_TESTS_MODEL_MODEL_STATE_H
#define PATCHCORE_TESTS_MODEL_MODEL_STATE_H

#include "patchcore/tests/model/model.h"

#define DEPTH	 10 /* values of a line that may still be seen */
#define VERSIONS 8
#define GONE	 0xff /* pc of a thread that died */

/* Only bytes, so that equal states are equal as memory. */
struct line {
	uint8_t count, value[DEPTH], age[DEPTH]; /* age: ticks since the next one came */
};

struct thread {
	uint8_t pc, timer, memory, pending;
	uint8_t floor[MODEL_LINES]; /* it has seen so much of each line */
	uint8_t last[MODEL_SITES];  /* version that it ran */
};

struct state {
	struct line lines[MODEL_LINES];
	struct thread threads[MODEL_THREADS];
	uint8_t turn[MODEL_SITES], turns[MODEL_SITES], stamp[MODEL_SITES];
	uint8_t versions[MODEL_SITES], version[MODEL_SITES][VERSIONS];
	uint8_t vars[MODEL_VARS];
	uint8_t died;
};

/* What one step is taken in. */
struct scene {
	struct check *check;
	const struct model *model;
	const struct state *from;
	struct state to;
	unsigned who;
};

/* --- model_memory.c: what stands in memory, and what can be seen of it --------------- */

/* newest - all of the line that a half of a site is in, as it is now. */
uint8_t newest(const struct state *state, const struct model_site *site, unsigned half);

uint8_t part_of(uint8_t value, unsigned part);
uint8_t with_part(uint8_t value, unsigned part, uint8_t set);

/* now_at - the part of a site that stands there now. */
uint8_t now_at(const struct state *state, const struct model_site *site, unsigned half);

/* code_of - which instruction these parts are, 0: none. */
uint8_t code_of(const struct model *model, uint8_t front, uint8_t back);

void put_line(struct scene *scene, unsigned index, uint8_t value);
void put_part(struct scene *scene, unsigned site, unsigned half, uint8_t set);

/* note_version - an instruction stands there from now on; again says nothing new. */
void note_version(struct scene *scene, unsigned site, uint8_t is);

/* bring_up_to_date - the thread sees nothing old any more. */
void bring_up_to_date(struct scene *scene, unsigned who);

/* fetches - does the thread ever run the code? */
bool fetches(const struct model *model, unsigned who);

/* trim - forget what no thread can see any more, so that equal states look equal. */
void trim(struct scene *scene);

/* --- model_steps.c ---------------------------------------------------------------------- */

/* op_at - the step of the program of a thread. */
static inline const struct model_op *op_at(const struct model *model, unsigned who, unsigned pc)
{
	return &model->threads[who].program[pc];
}

/* settle_pc - where a program goes on from there: labels and jumps are no steps. */
uint8_t settle_pc(const struct model *model, unsigned who, unsigned pc);

/* step_thread - tell all outcomes of the next step of thread `who`. */
void step_thread(struct scene *scene);

/* step_serialise - the membarrier of thread `who` reaches another. */
void step_serialise(struct scene *scene, unsigned which);

#endif
