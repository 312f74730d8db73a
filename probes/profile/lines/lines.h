/* SPDX-License-Identifier: MIT */
/*
 * Counts of basic blocks on the source lines that the blocks were made from, by DWARF.
 *
 * A block goes from its address to that of the next one. A line gets the most of its instructions'
 * blocks, as AutoFDO does it: an instruction is counted in one block, a line may be in several.
 */
#ifndef PROBES_PROFILE_LINES_LINES_H
#define PROBES_PROFILE_LINES_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct block {
	uint64_t address; /* in the file, as its symbols have it */
	double count;
};

/*
 * lines_write_llvm - LLVM's text of sample profiles: functions, what is inlined in them, lines from
 * the function's first, and discriminators. For clang -fprofile-sample-use.
 * @block: of this object, in any order; sorted here. All of them, also those that were not run.
 *
 * 0, -ENODATA: the file has no lines, -ENOSYS: built without libdw, or another negative errno.
 */
int lines_write_llvm(FILE *out, const char *object, struct block *block, size_t n);

/*
 * lines_write_gcov - what "gcov --json-format" says of a file of counts, for the object: a line of
 * JSON. Without branches: of two blocks one behind the other, calls between them hide the edge.
 */
int lines_write_gcov(FILE *out, const char *object, struct block *block, size_t n);

#endif
