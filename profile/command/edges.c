/* SPDX-License-Identifier: MIT */
/*
 * The formats that profiles of edges alone have.
 *
 * For these the blocks of an object are sorted by address, each with its function, and it is found
 * which functions the calls in them led to. Where a thread ran a function's first block after
 * another block, and that block has a call of the function, or one call through a pointer, this was
 * the call. A block's second call is not seen: the thread comes to it from a block of the function
 * that the first one called.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "probes/elf/sorted.h"
#include "probes/insn/insn.h"
#include "profile/command/command.h"
#include "profile/command/lines.h"

#define TRACER 5 /* bytes of the call that a block begins with */

void image_open(struct image *image, const char *path)
{
	*image = (struct image){ .path = path };
	if (elf_map(&image->elf, path))
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

ORDER_BY(by_address, struct block, address)

static void add_blocks(struct executed *run, const struct profile *profile,
		       const struct elf_symbols *symbols)
{
	for (size_t f = 0; f < profile->functions; f++) {
		const struct function *block = &profile->function[f];
		const struct elf_symbol *in = elf_function_at(symbols, block->address);

		if (!strcmp(block->object, run->object))
			run->block[run->blocks++] = (struct block){
				.address = block->address,
				.end = in ? in->addr + in->size : 0,
				.count = block->calls.value,
				.function = in ? in->name : NULL,
				.entry = in ? in->addr : 0,
			};
	}
	qsort(run->block, run->blocks, sizeof(*run->block), by_address);
	/* A block goes to where the next one begins, or to the end of its function. */
	for (size_t i = 0; i < run->blocks; i++) {
		struct block *block = &run->block[i];

		block->is_entry = block->function && (!i || block[-1].entry != block->entry);
		if (i + 1 < run->blocks && block[1].entry == block->entry)
			block->end = block[1].address;
	}
}

/* That block of the profile. NULL: it is in another object. */
static const struct block *find_block(const struct executed *run, const struct function *function)
{
	const struct block key = { .address = function->address };

	if (strcmp(function->object, run->object) != 0)
		return NULL;
	return bsearch(&key, run->block, run->blocks, sizeof(key), by_address);
}

/*
 * The call in a block that led to a function: of the function, or the only one through a pointer.
 * 0: there is none, or the block does not decode to its end.
 */
static uint64_t find_call(const struct elf *elf, const struct block *block, uint64_t function)
{
	size_t len = block->end - block->address;
	const uint8_t *code = block->function ? elf_constant(elf, block->address, len) : NULL;
	uint64_t direct = 0, indirect = 0;
	unsigned indirects = 0;
	struct insn insn;

	for (size_t i = 0; code && i < len; i += insn.len) {
		if (!insn_read(&insn, code + i, len - i, block->address + i))
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

ORDER_BY(by_call, struct target, address)

/* Edges that lead to a function's first block: mostly calls, unless a loop leads to it. */
static void add_targets(struct executed *run, const struct profile *profile, const struct elf *elf)
{
	for (size_t i = 0; i < profile->arcs; i++) {
		const struct arc *edge = &profile->arc[i];
		const struct block *from = find_block(run, &profile->function[edge->from]);
		const struct block *to = find_block(run, &profile->function[edge->to]);

		if (from && to && to->is_entry)
			run->target[run->targets++] = (struct target){
				.address = find_call(elf, from, to->entry),
				.function = to->function,
				.count = edge->calls,
				.from = from->address,
				.entry = to->entry,
			};
	}
	qsort(run->target, run->targets, sizeof(*run->target), by_call);
}

/* --- Formats of one object each --------------------------------------------------------------- */

static int write_object(const struct profile *profile, FILE *out, const char *object,
			object_writer *write)
{
	struct executed run = { .object = object };
	struct image image;
	int ret = -ENOMEM;

	run.block = calloc(profile->functions + 1, sizeof(*run.block));
	run.target = calloc(profile->arcs + 1, sizeof(*run.target));
	image_open(&image, object);
	if (run.block && run.target) {
		add_blocks(&run, profile, &image.symbols);
		add_targets(&run, profile, &image.elf);
		ret = write(&run, out);
	}
	image_close(&image);
	free(run.block);
	free(run.target);
	if (ret == -ENODATA)
		complain(0, 0,
			 "%s has no debug information: compile it with -gline-tables-only "
			 "-fdebug-info-for-profiling",
			 object);
	if (ret == -ENOSYS)
		complain(0, 0,
			 "built without libdw, which finds the lines of blocks: install "
			 "libdw-dev and build it again");
	return ret;
}

/*
 * Whether a block is the first of its object. Blocks are mostly sorted by object: the search is
 * short.
 */
static bool is_first(const struct profile *profile, size_t block)
{
	const char *object = profile->function[block].object;

	for (size_t i = block; i-- > 0;)
		if (!strcmp(profile->function[i].object, object))
			return false;
	return true;
}

static int write_objects(const struct profile *profile, FILE *out, object_writer *write)
{
	int ret = 0;

	for (size_t f = 0; f < profile->functions && !ret; f++)
		if (is_first(profile, f))
			ret = write_object(profile, out, profile->function[f].object, write);
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

static bool has_run(const struct block *block)
{
	return block->function && block->count >= 0.5;
}

/*
 * What create_llvm_prof and create_gcov read with --profiler=text: counts of ranges of addresses,
 * of single addresses (none), and of branches. A branch stands there where it leads to a function's
 * first block: the count of the function. A range ends with its last byte: readers look for the
 * instruction there.
 */
static int write_object_autofdo(const struct executed *run, FILE *out)
{
	const struct block *end = run->block + run->blocks;
	size_t ranges = 0;

	for (const struct block *block = run->block; block < end; block++)
		ranges += has_run(block);
	fprintf(out, "%zu\n", ranges);
	for (const struct block *block = run->block; block < end; block++)
		if (has_run(block))
			fprintf(out, "%" PRIx64 "-%" PRIx64 ":%.0f\n",
				block->is_entry ? block->entry : block->address, block->end - 1,
				block->count);
	fprintf(out, "0\n%zu\n", run->targets);
	for (size_t i = 0; i < run->targets; i++)
		fprintf(out, "%" PRIx64 "->%" PRIx64 ":%.0f\n", run->target[i].from,
			run->target[i].entry, run->target[i].count);
	return ferror(out) ? -EIO : 0;
}

static double runs_of(const struct profile *profile, const char *object)
{
	double sum = 0;

	for (size_t f = 0; f < profile->functions; f++)
		if (!strcmp(profile->function[f].object, object))
			sum += profile->function[f].calls.value;
	return sum;
}

/* The format is of one object: the one whose blocks were run most. */
int write_autofdo(const struct profile *profile, FILE *out)
{
	const char *object = NULL;
	double most = -1;

	for (size_t f = 0; f < profile->functions; f++) {
		if (!is_first(profile, f) || runs_of(profile, profile->function[f].object) <= most)
			continue;
		object = profile->function[f].object;
		most = runs_of(profile, object);
	}
	return object ? write_object(profile, out, object, write_object_autofdo) : 0;
}
