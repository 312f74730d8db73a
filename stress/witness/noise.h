/* SPDX-License-Identifier: MIT */
/* Was a cell disturbed so much that it should be run again before it counts? */
#ifndef STRESS_WITNESS_NOISE_H
#define STRESS_WITNESS_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

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

/* noise_of_cell - the same of a cell's result, counting this machine's CPUs. */
#define noise_of_cell(cell, result, reason, size)                                                  \
	noise_judge(&(struct noise_case){ cell, &(result)->seating, &(result)->witness,            \
					  (result)->seconds,                                       \
					  (unsigned)sysconf(_SC_NPROCESSORS_ONLN) },               \
		    reason, size)

#endif
