/* SPDX-License-Identifier: MIT */
/*
 * A profile, whatever measured it: functions, the stacks that led to them, what happened when.
 */
#ifndef PROBES_PROFILE_MODEL_PROFILE_H
#define PROBES_PROFILE_MODEL_PROFILE_H

#include <stddef.h>
#include <stdint.h>

struct function {
	char *name;
	char *object;		 /* path of the program or library */
	double calls, low, high; /* estimated; the interval of 95 % */
	double counted;		 /* calls that were seen */
	const char *problem;	 /* why the interval may be wrong; static, or NULL */
};

/* Calls of the last function by this chain of callers. */
struct stack {
	size_t *frame; /* indices of functions, the outermost first */
	size_t frames;
	double calls; /* self: not those of what it calls */
};

struct phase {
	double start, length; /* seconds from the program's start */
	double calls;	      /* estimated */
	double cost;	      /* share of the program's time spent on the profile */
};

struct quality {
	double seconds; /* of the program */
	double epochs;
	double budget; /* share; what the profile was to cost */
	double cost;   /* share; what it says that it cost */
	double toggles;
	double lost;	/* calls of which the caller was not kept */
	double refused; /* functions that could not be watched */
	double processes;
};

struct profile {
	char *program;
	struct function *function;
	struct stack *stack;
	struct phase *phase;
	size_t functions, stacks, phases;
	struct quality quality;
};

/*
 * profile_function - index of a function by name and object; makes one where there is none.
 * Negative errno.
 */
long profile_function(struct profile *profile, const char *name, const char *object);

/* profile_stack, profile_phase - one more. A stack that is there already gets the calls. 0,
 * -ENOMEM. */
int profile_stack(struct profile *profile, const size_t *frame, size_t frames, double calls);
int profile_phase(struct profile *profile, const struct phase *phase);

/* profile_sort - functions by calls, the most first; stacks name them by their new indices.
 * -ENOMEM. */
int profile_sort(struct profile *profile);

void profile_free(struct profile *profile);

#endif
