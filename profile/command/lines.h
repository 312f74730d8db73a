/* SPDX-License-Identifier: MIT */
/*
 * Counts of basic blocks on the source lines that the blocks were made from, by DWARF.
 *
 * A line gets the most of its instructions' blocks, as AutoFDO does it: an instruction is counted
 * in one block, a line may be in several.
 */
#ifndef PROFILE_COMMAND_LINES_H
#define PROFILE_COMMAND_LINES_H

#include "profile/command/command.h"

/* A function that was run behind a block. Addresses are as the file's symbols have them. */
struct called_function {
	uint64_t address; /* of the call that led there; 0: none is known */
	const char *function;
	double count;
	uint64_t from, entry; /* of the block, and of the function */
};

/* The blocks of an object, and where calls led. Both are sorted by address. */
struct executed {
	const struct profile *profile;
	size_t first;
	const struct function *block; /* from the first on */
	size_t blocks;
	struct image image;
	struct called_function *target;
	size_t targets;
};

/* Where in a function: 32 bits of lines from its first, and 32 of the blocks on that line. */
typedef uint64_t line_offset;

struct sample {
	line_offset offset;
	double count;
	struct called_function
		*target; /* functions that calls there led to; addresses are not used */
	size_t targets;
};

/* A function, or what is inlined at an offset of another. */
struct body {
	const char *name; /* as linkers know it */
	const char *plain, *file;
	int first, column; /* where it is declared */
	line_offset at;
	double head; /* count of the first block */
	uint64_t low;
	double total;
	unsigned blocks, run; /* all blocks of a function, and those that ran */
	struct sample *sample;
	size_t samples;
	struct body *inlined, *next;
};

/*
 * lines_each - call a function for every outermost function of an object. 0, -ENODATA: the file has
 * no lines, or another negative errno.
 */
int lines_each(const struct executed *executed, void (*function)(struct body *, void *), void *arg);

/*
 * Writers of an object's part of a profile of edges; as lines_each().
 *
 * lines_write_llvm - LLVM's text of sample profiles: functions, what is inlined in them, lines from
 * the function's first, discriminators, and where calls led. For clang -fprofile-sample-use.
 *
 * lines_write_gcov - what "gcov --json-format" says of a file of counts, for the object: a line of
 * JSON. Without branches: of two blocks one behind the other, calls between them hide the edge.
 */
typedef int object_writer(const struct executed *executed, FILE *out);
object_writer lines_write_llvm, lines_write_gcov;

#endif
