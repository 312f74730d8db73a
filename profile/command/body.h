/* SPDX-License-Identifier: MIT */
/* Counts of the lines of a function, from which formats are written. */
#ifndef PROFILE_COMMAND_BODY_H
#define PROFILE_COMMAND_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "profile/command/lines.h"

/* Where in a function: lines from its first, and which of the blocks on that line. */
struct line_offset {
	int line;
	unsigned discriminator;
};

struct sample {
	struct line_offset offset;
	double count;
	struct target *target; /* functions that calls there led to; address is not used */
	size_t targets;
};

/* A function, or what is inlined at an offset of another. */
struct body {
	const char *name; /* as linkers know it */
	const char *plain, *file;
	int first, column; /* where it is declared */
	struct line_offset at;
	double head; /* count of the first block */
	uint64_t low;
	double total;
	unsigned blocks, run; /* all blocks of a function, and those that ran */
	struct sample *sample;
	size_t samples;
	struct body *inlined, *next;
};

/*
 * lines_each - call a function for every outermost function of an object. Returns as
 * lines_write_llvm().
 */
int lines_each(const struct executed *executed, void (*function)(struct body *, void *), void *arg);

#endif
