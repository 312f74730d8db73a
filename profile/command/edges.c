/* SPDX-License-Identifier: MIT */
/*
 * The formats that profiles of edges alone have.
 *
 * For these it is found which functions the calls in them led to. Where a thread ran a function's
 * first block after another block, and that block has a call of the function, or one call through a
 * pointer, this was the call. A block's second call is not seen: the thread comes to it from a
 * block of the function that the first one called.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/command_line.h"
#include "probes/insn/insn.h"
#include "profile/command/lines.h"

#define TRACER 5 /* bytes of the call that a block begins with */

void image_open(struct image *image, const char *path)
{
	*image = (struct image){ .path = path };
	if (elf_map(&image->elf, path, ELF_PLAIN))
		image->elf = (struct elf){ 0 };
	elf_functions(&image->elf, &image->symbols);
}

void image_close(struct image *image)
{
	elf_free(&image->symbols);
	if (image->elf.size)
		elf_unmap(&image->elf);
}

/* --- The blocks of an object ------------------------------------------------------------------ */

static bool has_block(const struct executed *run, size_t block)
{
	return block - run->first < run->blocks;
}

/* The function that a block is in; NULL: not known. */
static const struct elf_symbol *function_of(const struct executed *run, size_t block)
{
	if (!has_block(run, block))
		return NULL;
	return elf_function_at(&run->image.symbols, run->profile->function[block].address);
}

/* Whether it is the first block of its function. */
static bool is_entry(const struct executed *run, size_t block)
{
	const struct elf_symbol *in = function_of(run, block);

	return in && function_of(run, block - 1) != in;
}

/* Where the next block begins, or the function ends. */
static uint64_t end_of_block(const struct executed *run, size_t block)
{
	const struct elf_symbol *in = function_of(run, block);

	return function_of(run, block + 1) == in ? run->profile->function[block + 1].address
						 : in->addr + in->size;
}

/*
 * The call in a block that led to a function: of the function, or the only one through a pointer.
 * 0: there is none, or the block does not decode to its end.
 */
static uint64_t find_call(const struct executed *run, size_t block, uint64_t function)
{
	uint64_t from = run->profile->function[block].address, direct = 0, indirect = 0;
	size_t len = function_of(run, block) ? end_of_block(run, block) - from : 0;
	const uint8_t *code = elf_constant(&run->image.elf, from, len);
	unsigned indirects = 0;
	struct insn insn;

	for (size_t i = 0; code && i < len; i += insn.len) {
		if (!insn_read(&insn, code + i, len - i, from + i))
			return 0;
		if (insn.flow != FLOW_CALL || i < TRACER)
			continue;
		if (insn.target == function)
			direct = insn.at;
		if (insn.target)
			continue;
		indirect = insn.at;
		indirects++;
	}
	return direct ? direct : indirects == 1 ? indirect : 0;
}

ORDER_BY(by_call, struct called_function, address)

/* Edges that lead to a function's first block: mostly calls, unless a loop leads to it. */
static void add_targets(struct executed *run)
{
	for (size_t i = 0; i < run->profile->arcs; i++) {
		const struct arc *edge = &run->profile->arc[i];
		const struct elf_symbol *to = function_of(run, edge->to);

		if (has_block(run, edge->from) && is_entry(run, edge->to))
			run->target[run->targets++] = (struct called_function){
				.address = find_call(run, edge->from, to->addr),
				.function = to->name,
				.count = edge->calls,
				.from = run->profile->function[edge->from].address,
				.entry = to->addr,
			};
	}
	qsort(run->target, run->targets, sizeof(*run->target), by_call);
}

/* --- Formats of one object each --------------------------------------------------------------- */

/* The blocks from the first of an object on, which stand together. */
static struct executed find_object(const struct profile *profile, size_t first)
{
	struct executed run = { .profile = profile,
				.first = first,
				.block = &profile->function[first] };

	while (first + run.blocks < profile->functions &&
	       !strcmp(run.block[run.blocks].object, run.block->object))
		run.blocks++;
	return run;
}

static int write_object(struct executed *run, FILE *out, object_writer *write)
{
	const char *object = run->block->object;
	int ret = -ENOMEM;

	run->target = calloc(run->profile->arcs + 1, sizeof(*run->target));
	image_open(&run->image, object);
	if (run->target) {
		add_targets(run);
		ret = write(run, out);
	}
	image_close(&run->image);
	free(run->target);
	if (ret == -ENODATA)
		remark("%s has no debug information: compile it with -gline-tables-only "
		       "-fdebug-info-for-profiling",
		       object);
	return ret;
}

static int write_objects(const struct profile *profile, FILE *out, object_writer *write)
{
	struct executed run;
	int ret = 0;

	for (size_t f = 0; f < profile->functions && !ret; f += run.blocks) {
		run = find_object(profile, f);
		ret = write_object(&run, out, write);
	}
	return ret;
}

int write_llvm_lines(const struct profile *profile, FILE *out)
{
	return write_objects(profile, out, lines_write_llvm);
}

int write_gcov(const struct profile *profile, FILE *out)
{
	return write_objects(profile, out, lines_write_gcov);
}

/* --- AutoFDO ---------------------------------------------------------------------------------- */

static bool has_run(const struct executed *run, size_t block)
{
	return function_of(run, block) && run->profile->function[block].calls.value >= 0.5;
}

/*
 * What create_llvm_prof and create_gcov read with --profiler=text: counts of ranges of addresses,
 * of single addresses (none), and of branches. A branch stands there where it leads to a function's
 * first block: the count of the function. A range ends with its last byte: readers look for the
 * instruction there.
 */
static int write_object_autofdo(const struct executed *run, FILE *out)
{
	size_t end = run->first + run->blocks, ranges = 0;

	for (size_t i = run->first; i < end; i++)
		ranges += has_run(run, i);
	fprintf(out, "%zu\n", ranges);
	for (size_t i = run->first; i < end; i++)
		if (has_run(run, i))
			fprintf(out, "%" PRIx64 "-%" PRIx64 ":%.0f\n",
				is_entry(run, i) ? function_of(run, i)->addr
						 : run->profile->function[i].address,
				end_of_block(run, i) - 1, run->profile->function[i].calls.value);
	fprintf(out, "0\n%zu\n", run->targets);
	for (size_t i = 0; i < run->targets; i++)
		fprintf(out, "%" PRIx64 "->%" PRIx64 ":%.0f\n", run->target[i].from,
			run->target[i].entry, run->target[i].count);
	return 0;
}

/* The format is of one object: the one whose blocks were run most. */
int write_autofdo(const struct profile *profile, FILE *out)
{
	struct executed run, best = { 0 };
	double most = -1;

	for (size_t f = 0; f < profile->functions; f += run.blocks) {
		double sum = 0;

		run = find_object(profile, f);
		for (size_t i = 0; i < run.blocks; i++)
			sum += run.block[i].calls.value;
		if (sum <= most)
			continue;
		best = run;
		most = sum;
	}
	return best.blocks ? write_object(&best, out, write_object_autofdo) : 0;
}
