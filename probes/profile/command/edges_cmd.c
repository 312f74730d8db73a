/* SPDX-License-Identifier: MIT */
/*
 * The order of edges, and the formats that they alone have.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/profile/command/edges.h"
#include "stress/base/command_line.h"

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

/* --- Blocks of an object ---------------------------------------------------------------------- */

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
	int ret = sites_open(&sites, profile, object);

	if (!ret)
		ret = write(&sites, out);
	sites_close(&sites);
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

/* --- AutoFDO ---------------------------------------------------------------------------------- */

/*
 * What create_llvm_prof and create_gcov read with --profiler=text: counts of ranges of addresses,
 * of single addresses (none), and of branches. A branch stands there where it leads to a function's
 * first block: the count of the function.
 */

static uint64_t start_of(const struct sites *sites, const struct block *block)
{
	return sites_is_first(sites, block) ? block->entry : block->address;
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
				sites_end(sites, block) - 1, block->count);
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
		const struct block *from = sites_at(sites, edge->from);
		const struct block *to = sites_at(sites, edge->to);

		if (!from || !to || !sites_is_first(sites, to))
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

/* --- All formats ------------------------------------------------------------------------------ */

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
