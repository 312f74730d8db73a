/* SPDX-License-Identifier: MIT */
/*
 * The order of edges, and the formats of them that are about lines.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/profile/command/edges.h"
#include "probes/profile/lines/lines.h"
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
static void tell_nothing(const struct quality *quality)
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
		tell_nothing(&profile->quality);
}

/* --- Blocks of an object ---------------------------------------------------------------------- */

/* Sorted by object, or nearly so: most are behind one of the same. */
static bool is_first(const struct profile *profile, size_t block)
{
	const char *object = profile->function[block].object;

	for (size_t i = block; i-- > 0;)
		if (!strcmp(profile->function[i].object, object))
			return false;
	return true;
}

/* @targets: whether it is asked where calls led. */
static int write_lines(const struct profile *profile, FILE *out, const char *object, bool targets,
		       int (*write)(FILE *, const char *, const struct seen *))
{
	struct sites sites;
	struct target *target = NULL;
	struct block *block = NULL;
	struct seen seen = { 0 };
	int ret = sites_open(&sites, profile, object);

	if (!ret && targets)
		ret = edges_calls(&sites, &target, &seen.targets);
	if (!ret)
		block = calloc(profile->functions + 1, sizeof(*block));
	if (block) {
		for (size_t f = 0; f < profile->functions; f++)
			if (sites_have(&sites, f))
				block[seen.blocks++] =
					(struct block){ profile->function[f].address,
							profile->function[f].calls.value };
		seen.block = block;
		seen.target = target;
		ret = write(out, object, &seen);
	} else if (!ret) {
		ret = -ENOMEM;
	}
	sites_close(&sites);
	free(target);
	free(block);
	return ret;
}

static int each_object(const struct profile *profile, FILE *out, bool targets,
		       int (*write)(FILE *, const char *, const struct seen *))
{
	int ret = 0;

	for (size_t f = 0; f < profile->functions; f++) {
		const char *object = profile->function[f].object;

		if (!ret && is_first(profile, f))
			ret = write_lines(profile, out, object, targets, write);
		if (ret == -ENODATA)
			complain(0, 0,
				 "%s has no debug information: compile it with -gline-tables-only "
				 "-fdebug-info-for-profiling",
				 object);
		if (ret == -ENOSYS)
			complain(0, 0,
				 "built without libdw, which finds the lines of blocks: install "
				 "libdw-dev and build it again");
		if (ret)
			break;
	}
	return ret;
}

static int write_samples(const struct profile *profile, FILE *out)
{
	return each_object(profile, out, true, lines_write_llvm);
}

static int write_coverage(const struct profile *profile, FILE *out)
{
	return each_object(profile, out, false, lines_write_gcov);
}

const struct profile_format *edges_format(const char *name)
{
	static const struct profile_format own[] = {
		{ "llvm", write_samples, true },
		{ "gcov", write_coverage, true },
		{ "autofdo", edges_write_autofdo, true },
	};
	const struct profile_format *format = profile_format(name);

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(own[i].name, name))
			return &own[i];
	return format && format->edges ? format : NULL;
}
