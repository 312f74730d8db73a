/* SPDX-License-Identifier: MIT */
/*
 * Counts of basic blocks on the source lines that the blocks were made from, by DWARF.
 *
 * A block goes from its address to that of the next one. A line gets the most of its instructions'
 * blocks, as AutoFDO does it: an instruction is counted in one block, a line may be in several.
 */
#ifndef PROFILE_COMMAND_LINES_H
#define PROFILE_COMMAND_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct block {
	uint64_t address; /* in the file, as its symbols have it */
	double count;
	const char *function; /* function that the block is in; NULL: not known */
	uint64_t entry, end;  /* of the function */
};

/* A function that a call led to. */
struct target {
	uint64_t address; /* of the call */
	const char *function;
	double count;
};

/* All blocks of an object, with counts, and where calls led. Both sorted by address. */
struct executed {
	const char *object;
	struct block *block;
	size_t blocks;
	struct target *target;
	size_t targets;
};

/*
 * lines_write_llvm - LLVM's text of sample profiles: functions, what is inlined in them, lines from
 * the function's first, discriminators, and where calls led. For clang -fprofile-sample-use.
 *
 * 0, -ENODATA: the file has no lines, -ENOSYS: built without libdw, or another negative errno.
 */
int lines_write_llvm(FILE *out, const struct executed *executed);

/*
 * lines_write_gcov - what "gcov --json-format" says of a file of counts, for the object: a line of
 * JSON. Without branches: of two blocks one behind the other, calls between them hide the edge.
 */
int lines_write_gcov(FILE *out, const struct executed *executed);

#endif
