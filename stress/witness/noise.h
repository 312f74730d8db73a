/* SPDX-License-Identifier: MIT */
/*
 * Was a cell disturbed so much that it should be run again before it counts?
 */
#ifndef STRESS_WITNESS_NOISE_H
#define STRESS_WITNESS_NOISE_H

#include <stdbool.h>
#include <stddef.h>

#include "stress/cell/cell.h"

#define NOISE_REASON_MAX 160

/* What is judged. */
struct noise_case {
	const struct cell *cell;
	const struct seating *seating;
	const struct witness *witness;
	double seconds;	 /* that the witness covers */
	unsigned online; /* CPUs of the machine */
};

/*
 * noise_judge - true if it was noisy; then reason says in words what was the
 * matter, all of it that has room. What the witness does not know is no noise.
 */
bool noise_judge(const struct noise_case *noise, char *reason, size_t size);

/* noise_here - the same, counting this machine's CPUs. noise_of_cell - of a cell's result. */
bool noise_here(struct noise_case noise, char *reason, size_t size);
bool noise_of_cell(const struct cell *cell, const struct cell_result *result, char *reason,
		   size_t size);

#endif
