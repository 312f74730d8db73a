/* SPDX-License-Identifier: MIT */
/*
 * A small explicit-state checker: visits every state that can be reached, the
 * nearest first, so that a counterexample is as short as can be.
 *
 * Two things are checked. Safety: no reachable state, and no step out of one,
 * is wrong. Progress: from every reachable state an end can be reached, so no thread can be stuck
 * for ever.
 */
#ifndef PATCHCORE_TESTS_MODEL_MODEL_CHECK_H
#define PATCHCORE_TESTS_MODEL_MODEL_CHECK_H

#include <stdbool.h>
#include <stddef.h>

struct check;

struct check_model {
	size_t size;	   /* of a state; compared as bytes, so no padding in it */
	const void *start; /* the first state */
	/* Tell all steps out of a state by the three calls below. */
	void (*next)(struct check *check, const void *state, const void *context);
	const void *context;
};

struct check_verdict {
	size_t states;	 /* reached, each counted once */
	size_t steps;	 /* between them */
	bool complete;	 /* all of them were visited; false also when out of memory */
	bool is_wrong;	 /* a counterexample was found */
	char wrong[128]; /* what it breaks; "" if nothing */
};

/* check_step - there is a step to state `next`; the text says which, for a trace. */
__attribute__((format(printf, 3, 4))) void check_step(struct check *check, const void *next,
						      const char *format, ...);

/* check_wrong - a step out of this state breaks the rules. */
__attribute__((format(printf, 2, 3))) void check_wrong(struct check *check, const char *format,
						       ...);

/* check_end - this state is one in which everything may stop. */
void check_end(struct check *check);

/*
 * check_run - visit all states, or as many as it takes to find a wrong one.
 * Prints the steps that lead there if `trace`.
 */
void check_run(const struct check_model *model, bool trace, struct check_verdict *verdict);

#endif
