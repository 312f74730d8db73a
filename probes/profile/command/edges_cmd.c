/* SPDX-License-Identifier: MIT */
/*
 * A profile of edges from what processes left, and its formats that are about lines.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/launch/launch.h"
#include "probes/profile/command/edges.h"
#include "probes/profile/command/edges_sites.h"
#include "probes/profile/lines/lines.h"
#include "probes/text/demangle.h"
#include "probes/text/text.h"
#include "stress/base/command_line.h"

/* --- What processes left ---------------------------------------------------------------------- */

struct reading {
	struct profile *profile;
	json_t *blocks; /* of this report: by number, which function of the profile each is */
	bool told;	/* the process that is being read */
};

/* ID, FUNCTION+OFFSET, OBJECT, ADDRESS. */
static int add_block(struct reading *reading, char *line)
{
	char *field[4];
	long block;

	for (int i = 0; i < 4; i++) {
		field[i] = strsep(&line, "\t");
		if (!field[i])
			return 0;
		text_unescape(field[i]);
	}
	block = profile_function(reading->profile, field[1], field[2],
				 strtoull(field[3], NULL, 16));
	if (block < 0)
		return -ENOMEM;
	return json_object_set_new_nocheck(reading->blocks, field[0], json_integer(block)) ? -ENOMEM
											   : 0;
}

static int add_edge(struct reading *reading, const char *from, const char *to,
		    const double count[3])
{
	const json_t *a = json_object_get(reading->blocks, from);
	const json_t *b = json_object_get(reading->blocks, to);
	struct profile *profile = reading->profile;
	size_t frame[2];

	if (!a || !b)
		return 0;
	frame[0] = (size_t)json_integer_value(a);
	frame[1] = (size_t)json_integer_value(b);
	profile->function[frame[1]].calls += count[0] + count[1];
	return profile_stack(profile, &(struct stack){ .frame = frame,
						       .frames = 2,
						       .calls = count[0] + count[1],
						       .half = { count[0], count[1] },
						       .seen = count[2] });
}

static void add_sums(struct quality *sum, const double *number)
{
	sum->epochs += number[0];
	sum->seconds += number[1];
	sum->on += number[2];
	sum->toggling += number[3];
	sum->late += number[4];
	sum->lost += number[5];
	sum->blocks += number[6];
	sum->refused += number[7];
}

static int read_line(char *line, void *arg)
{
	struct reading *reading = arg;
	double number[8];
	char from[16], to[16];

	if (!line) {
		reading->profile->quality.processes += reading->told;
		reading->told = false;
		return 0;
	}
	if (!strncmp(line, "block\t", 6))
		return add_block(reading, line + 6);
	if (sscanf(line, "edge\t%15s\t%15s\t%lf\t%lf\t%lf", from, to, &number[0], &number[1],
		   &number[2]) == 5)
		return add_edge(reading, from, to, number);
	if (sscanf(line, "moment\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf", &number[0], &number[1], &number[2],
		   &number[3], &number[4], &number[5]) == 6)
		return profile_phase(reading->profile, &(struct phase){ .start = number[0],
									.length = number[1],
									.phases = number[2],
									.on = number[3],
									.toggling = number[4],
									.calls = number[5] });
	if (sscanf(line, "phases\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf", &number[0], &number[1],
		   &number[2], &number[3], &number[4], &number[5], &number[6], &number[7]) != 8)
		return 0;
	reading->told = true;
	add_sums(&reading->profile->quality, number);
	return 0;
}

static int by_calls(const void *a, const void *b, void *profile)
{
	const struct stack *one = a, *two = b;
	const struct function *function = ((const struct profile *)profile)->function;
	int order;

	if (one->calls != two->calls)
		return one->calls > two->calls ? -1 : 1;
	order = strcmp(function[one->frame[0]].name, function[two->frame[0]].name);
	return order ? order : strcmp(function[one->frame[1]].name, function[two->frame[1]].name);
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

int edges_gather(struct profile *profile, const char *folder)
{
	struct reading reading = { .profile = profile, .blocks = json_object() };
	int ret = reading.blocks ? launch_reports(folder, read_line, &reading) : -ENOMEM;

	profile->edges = true;
	json_decref(reading.blocks);
	if (profile->stacks)
		qsort_r(profile->stack, profile->stacks, sizeof(*profile->stack), by_calls,
			profile);
	else if (ret >= 0 && profile->quality.blocks > 0)
		tell_nothing(&profile->quality);
	return ret;
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
				block[seen.blocks++] = (struct block){ profile->function[f].address,
								       profile->function[f].calls };
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
		{ "llvm", write_samples, "for clang -fprofile-sample-use", true },
		{ "gcov", write_coverage, "as gcov --json-format", true },
		{ "autofdo", edges_write_autofdo, "for create_llvm_prof and create_gcov", true },
	};
	const struct profile_format *format = profile_format(name);

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(own[i].name, name))
			return &own[i];
	return format && format->edges ? format : NULL;
}
