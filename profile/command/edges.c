/* SPDX-License-Identifier: MIT */
/*
 * Profiles of edges: their order, and the formats that they alone have.
 *
 * For these the blocks of an object are sorted by address, each with its function, and it is found
 * which functions the calls in them led to. Where a thread ran a function's first block after
 * another block, and that block has a call of the function, or one call through a pointer, this was
 * the call. A block's second call is not seen: the thread comes to it from a block of the function
 * that the first one called.
 */
#include "profile/command/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "probes/elf/array.h"
#include "probes/insn/insn.h"
#include "profile/command/lines.h"

static int by_calls(const void *a, const void *b, void *profile)
{
	const struct arc *one = a, *two = b;
	const struct function *function = ((const struct profile *)profile)->function;
	int order;

	if (one->calls != two->calls)
		return one->calls > two->calls ? -1 : 1;
	order = strcmp(function[one->from].name, function[two->from].name);
	return order ? order : strcmp(function[one->to].name, function[two->to].name);
}

/* There are blocks, and no edge was counted. */
static void complain_of_nothing(const struct quality *quality)
{
	if (quality->epochs > 0)
		complain(0, 0,
			 "nothing was counted: no thread ran two of the %.0f blocks in the %.4f s "
			 "that were in phases",
			 quality->blocks, quality->on);
	else
		complain(0, 0,
			 "nothing was counted: the program ended after %.4f s, before its blocks "
			 "were on for the first time",
			 quality->seconds);
}

void edges_sort(struct profile *profile)
{
	if (profile->arcs)
		qsort_r(profile->arc, profile->arcs, sizeof(*profile->arc), by_calls, profile);
	else if (profile->quality.blocks > 0)
		complain_of_nothing(&profile->quality);
}

/* --- The blocks of an object ----------------------------------------------------------------- */

/* What was run of one object. Names of functions are in the image. */
struct sites {
	const struct profile *profile;
	struct image image;
	struct executed run;
};

ORDER_BY(by_address, struct block, address)

static void add_block(struct sites *sites, const struct function *block)
{
	const struct elf_symbol *in = elf_function_at(&sites->image.symbols, block->address);

	sites->run.block[sites->run.blocks++] = (struct block){
		.address = block->address,
		.count = block->calls.value,
		.function = in ? in->name : NULL,
		.entry = in ? in->addr : 0,
		.end = in ? in->addr + in->size : 0,
	};
}

static void close_sites(struct sites *sites)
{
	image_close(&sites->image);
	free(sites->run.block);
	free(sites->run.target);
}

/* That block of the profile. NULL: it is in another object. */
static const struct block *find_block(const struct sites *sites, size_t block)
{
	const struct function *function = &sites->profile->function[block];
	const struct block key = { .address = function->address };

	if (strcmp(function->object, sites->run.object) != 0)
		return NULL;
	return bsearch(&key, sites->run.block, sites->run.blocks, sizeof(key), by_address);
}

/* Whether it is the first block of a function. */
static bool is_entry(const struct sites *sites, const struct block *block)
{
	return block->function && (block == sites->run.block || block[-1].entry != block->entry);
}

/* Where the next block begins, or the function ends. */
static uint64_t end_of_block(const struct sites *sites, const struct block *block)
{
	const struct block *next = block + 1;
	bool last = next == sites->run.block + sites->run.blocks || next->entry != block->entry;

	return last ? block->end : next->address;
}

/* --- Calls in them --------------------------------------------------------------------------- */

#define TRACER 5 /* bytes of the call that a block begins with */

/* Calls in a block: of one function, and the last one through a pointer. 0: there is none. */
struct found {
	uint64_t direct, indirect;
	unsigned indirects;
};

/* The calls in a block; none, where it does not decode to its end. */
static struct found find_calls(const uint8_t *code, size_t len, uint64_t address, uint64_t function)
{
	struct found found = { 0 };
	struct insn insn;

	for (size_t i = 0; i < len; i += insn.len) {
		if (!insn_read(&insn, code + i, len - i, address + i))
			return (struct found){ 0 };
		if (insn.flow != FLOW_CALL || i < TRACER)
			continue;
		if (insn.target == function)
			found.direct = insn.at;
		if (insn.target)
			continue;
		found.indirect = insn.at;
		found.indirects++;
	}
	return found;
}

/* The call in a block that led to a function, or 0. */
static uint64_t call_in(const struct sites *sites, const struct block *block, uint64_t function)
{
	size_t len = end_of_block(sites, block) - block->address;
	const uint8_t *code = elf_constant(&sites->image.elf, block->address, len);
	struct found found = { 0 };

	if (code)
		found = find_calls(code, len, block->address, function);
	if (found.direct)
		return found.direct;
	return found.indirects == 1 ? found.indirect : 0;
}

ORDER_BY(by_call, struct target, address)

static void find_targets(struct sites *sites)
{
	const struct profile *profile = sites->profile;
	struct executed *run = &sites->run;

	for (size_t i = 0; i < profile->arcs; i++) {
		const struct arc *edge = &profile->arc[i];
		const struct block *before = find_block(sites, edge->from);
		const struct block *callee = find_block(sites, edge->to);
		uint64_t call;

		if (!before || !before->function || !callee || !is_entry(sites, callee))
			continue;
		call = call_in(sites, before, callee->entry);
		if (call)
			run->target[run->targets++] =
				(struct target){ call, callee->function, edge->calls };
	}
	qsort(run->target, run->targets, sizeof(*run->target), by_call);
}

/* 0 or -ENOMEM. */
static int open_sites(struct sites *sites, const struct profile *profile, const char *object)
{
	*sites = (struct sites){ .profile = profile, .run.object = object };
	sites->run.block = calloc(profile->functions + 1, sizeof(*sites->run.block));
	sites->run.target = calloc(profile->arcs + 1, sizeof(*sites->run.target));
	if (!sites->run.block || !sites->run.target)
		return -ENOMEM;
	image_open(&sites->image, object);
	for (size_t f = 0; f < profile->functions; f++)
		if (!strcmp(profile->function[f].object, object))
			add_block(sites, &profile->function[f]);
	qsort(sites->run.block, sites->run.blocks, sizeof(*sites->run.block), by_address);
	if (sites->image.mapped)
		find_targets(sites);
	return 0;
}

/* --- Formats of one object each -------------------------------------------------------------- */

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

typedef int object_writer(const struct sites *sites, FILE *out);

static int write_object(const struct profile *profile, FILE *out, const char *object,
			object_writer *write)
{
	struct sites sites;
	int ret = open_sites(&sites, profile, object);

	if (!ret)
		ret = write(&sites, out);
	close_sites(&sites);
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

static int write_objects(const struct profile *profile, FILE *out, object_writer *write)
{
	int ret = 0;

	for (size_t f = 0; f < profile->functions && !ret; f++)
		if (is_first(profile, f))
			ret = write_object(profile, out, profile->function[f].object, write);
	return ret;
}

static int write_object_llvm(const struct sites *sites, FILE *out)
{
	return lines_write_llvm(out, &sites->run);
}

static int write_llvm_lines(const struct profile *profile, FILE *out)
{
	return write_objects(profile, out, write_object_llvm);
}

static int write_object_gcov(const struct sites *sites, FILE *out)
{
	return lines_write_gcov(out, &sites->run);
}

static int write_gcov(const struct profile *profile, FILE *out)
{
	return write_objects(profile, out, write_object_gcov);
}

/* --- AutoFDO --------------------------------------------------------------------------------- */

/*
 * What create_llvm_prof and create_gcov read with --profiler=text: counts of ranges of addresses,
 * of single addresses (none), and of branches. A branch stands there where it leads to a function's
 * first block: the count of the function.
 */

static uint64_t start_of(const struct sites *sites, const struct block *block)
{
	return is_entry(sites, block) ? block->entry : block->address;
}

/* A range ends with its last byte: readers look for the instruction there. */
static size_t put_ranges(const struct sites *sites, FILE *out)
{
	const struct block *end = sites->run.block + sites->run.blocks;
	size_t n = 0;

	for (const struct block *block = sites->run.block; block < end; block++) {
		if (!block->function || !(block->count >= 0.5))
			continue;
		n++;
		if (out)
			fprintf(out, "%" PRIx64 "-%" PRIx64 ":%.0f\n", start_of(sites, block),
				end_of_block(sites, block) - 1, block->count);
	}
	return n;
}

/* Edges that lead to a function's first block: mostly calls, unless a loop leads to it. */
static size_t put_branches(const struct sites *sites, FILE *out)
{
	const struct profile *profile = sites->profile;
	size_t n = 0;

	for (size_t i = 0; i < profile->arcs; i++) {
		const struct arc *edge = &profile->arc[i];
		const struct block *from = find_block(sites, edge->from);
		const struct block *to = find_block(sites, edge->to);

		if (!from || !to || !is_entry(sites, to))
			continue;
		n++;
		if (out)
			fprintf(out, "%" PRIx64 "->%" PRIx64 ":%.0f\n", from->address, to->entry,
				edge->calls);
	}
	return n;
}

static int write_object_autofdo(const struct sites *sites, FILE *out)
{
	fprintf(out, "%zu\n", put_ranges(sites, NULL));
	put_ranges(sites, out);
	fprintf(out, "0\n%zu\n", put_branches(sites, NULL));
	put_branches(sites, out);
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
static int write_autofdo(const struct profile *profile, FILE *out)
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

/* --- All formats ----------------------------------------------------------------------------- */

const struct profile_format *edges_format(const char *name)
{
	static const struct profile_format own[] = {
		{ "llvm", write_llvm_lines, true },
		{ "gcov", write_gcov, true },
		{ "autofdo", write_autofdo, true },
	};
	const struct profile_format *format = profile_format(name);

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(own[i].name, name))
			return &own[i];
	return format && format->edges ? format : NULL;
}
