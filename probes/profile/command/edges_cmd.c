/* SPDX-License-Identifier: MIT */
#include "probes/profile/command/edges_cmd.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "probes/launch/launch.h"
#include "probes/profile/command/edges.h"
#include "probes/profile/command/edges_calls.h"
#include "probes/profile/command/edges_sites.h"
#include "probes/profile/command/formats.h"
#include "probes/profile/lines/lines.h"
#include "probes/text/demangle.h"
#include "probes/text/text.h"
#include "probes/told/told.h"

#define ROWS 25

/* --- What processes left ---------------------------------------------------------------------- */

static int add_count(json_t *counts, const char *block, double count)
{
	double before = json_real_value(json_object_get(counts, block));

	return json_object_set_new(counts, block, json_real(before + count)) ? -ENOMEM : 0;
}

static int add_moment(struct edges *profile, const double *number)
{
	struct moment *more = reallocarray(profile->moment, profile->moments + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	profile->moment = more;
	more[profile->moments++] =
		(struct moment){ number[0], number[1], number[2], number[3], number[4], number[5] };
	return 0;
}

/* "ID", a tab and the rest of the line, whose escape makes a key of it. */
static int keep_name(json_t *counts, json_t *names, char *line)
{
	char *name = strchr(line, '\t');

	if (!name)
		return 0;
	*name++ = '\0';
	json_object_set_new(names, line, json_string(name));
	return add_count(counts, name, 0);
}

static int add_edge(struct edges *profile, const json_t *names, const char *from, const char *to,
		    const double count[3])
{
	const char *a = json_string_value(json_object_get(names, from));
	const char *b = json_string_value(json_object_get(names, to));
	json_t *known;
	char *key;
	int ret;

	if (!a || !b)
		return 0;
	if (asprintf(&key, "%s\n%s", a, b) < 0)
		return -ENOMEM;
	known = json_object_get(profile->edges, key);
	ret = json_object_set_new(profile->edges, key,
				  json_pack("[f, f, f]",
					    json_real_value(json_array_get(known, 0)) + count[0],
					    json_real_value(json_array_get(known, 1)) + count[1],
					    json_real_value(json_array_get(known, 2)) + count[2]));
	free(key);
	return ret ? -ENOMEM : add_count(profile->counts, b, count[0] + count[1]);
}

struct reading {
	struct edges *profile;
	json_t *names; /* of the blocks of this report, by their numbers */
	bool told;     /* the process that is being read */
};

static int read_line(char *line, void *arg)
{
	struct reading *reading = arg;
	struct edges *profile = reading->profile;
	double number[8];
	char from[16], to[16];

	if (!line) {
		profile->processes += reading->told;
		reading->told = false;
		return 0;
	}
	if (!strncmp(line, "block\t", 6))
		return keep_name(profile->counts, reading->names, line + 6);
	if (sscanf(line, "edge\t%15s\t%15s\t%lf\t%lf\t%lf", from, to, &number[0], &number[1],
		   &number[2]) == 5)
		return add_edge(profile, reading->names, from, to, number);
	if (sscanf(line, "moment\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf", &number[0], &number[1], &number[2],
		   &number[3], &number[4], &number[5]) == 6)
		return add_moment(profile, number);
	if (sscanf(line, "phases\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf", &number[0], &number[1],
		   &number[2], &number[3], &number[4], &number[5], &number[6], &number[7]) != 8)
		return 0;
	reading->told = true;
	profile->phases += number[0];
	profile->wall += number[1];
	profile->on += number[2];
	profile->toggling += number[3];
	profile->late += number[4];
	profile->lost += number[5];
	profile->blocks += number[6];
	profile->refused += number[7];
	return 0;
}

static int read_reports(const char *folder, struct edges *profile)
{
	struct reading reading = { .profile = profile, .names = json_object() };
	int ret = reading.names ? launch_reports(folder, read_line, &reading) : -ENOMEM;

	json_decref(reading.names);
	return ret;
}

/* --- What it says ----------------------------------------------------------------------------- */

static int by_count(const void *a, const void *b)
{
	const struct row *one = a, *two = b;

	if (edges_count(one) != edges_count(two))
		return edges_count(one) > edges_count(two) ? -1 : 1;
	return strcmp(one->from, two->from) ? strcmp(one->from, two->from)
					    : strcmp(one->to, two->to);
}

/* The keys are the profile's, and are cut in two. */
static int make_rows(struct edges *profile)
{
	const char *key;
	json_t *counts;

	profile->row = calloc(json_object_size(profile->edges) + 1, sizeof(*profile->row));
	if (!profile->row)
		return -ENOMEM;
	json_object_foreach(profile->edges, key, counts)
	{
		struct row *row = &profile->row[profile->n++];
		char *to = strchr(key, '\n');

		*to = '\0';
		*row = (struct row){ .from = key, .to = to + 1 };
		for (size_t i = 0; i < 2; i++)
			row->half[i] = json_real_value(json_array_get(counts, i));
		row->seen = json_real_value(json_array_get(counts, 2));
	}
	qsort(profile->row, profile->n, sizeof(*profile->row), by_count);
	return 0;
}

static void put_block(FILE *out, const char *field)
{
	char *name = text_unescaped(field, strcspn(field, "\t"));

	text_put(out, name_for_people(name ? name : "", true));
	free(name);
}

static int write_table(const struct edges *profile, FILE *out)
{
	double all = 0;

	for (size_t i = 0; i < profile->n; i++)
		all += edges_count(&profile->row[i]);
	fprintf(out, "   share        count  edge\n");
	for (size_t i = 0; i < profile->n && i < ROWS; i++) {
		const struct row *row = &profile->row[i];

		fprintf(out, "%7.2f%% %12.0f  ", 100 * edges_count(row) / all, edges_count(row));
		put_block(out, row->from);
		fputs(" -> ", out);
		put_block(out, row->to);
		fputc('\n', out);
	}
	if (profile->n > ROWS)
		fprintf(out, "and %zu more edges: --format json has them\n", profile->n - ROWS);
	fprintf(out,
		"%.0f blocks, %.0f refused; %.0f phases, %.3f s of %.3f s, and %.3f s to turn "
		"blocks on and off; %.0f blocks outside of phases not counted, %.0f lost\n"
		"odd and even phases agree in %.1f%% of the profile\n",
		profile->blocks, profile->refused, profile->phases, profile->on, profile->wall,
		profile->toggling, profile->late, profile->lost, 100 * edges_agreement(profile));
	return ferror(out) ? -EIO : 0;
}

/* --- Blocks of an object ---------------------------------------------------------------------- */

static size_t blocks_of(const struct edges *profile, const char *object, struct block *block)
{
	const char *name, *in;
	uint64_t address;
	json_t *count;
	size_t n = 0, len;

	json_object_foreach(profile->counts, name,
			    count) if (edges_place(name, &in, &len, &address) &&
				       len == strlen(object) && !memcmp(in, object, len))
		block[n++] = (struct block){ address, json_real_value(count) };
	return n;
}

static json_t *objects_of(const struct edges *profile)
{
	json_t *objects = json_object(), *count;
	const char *name, *object;
	uint64_t address;
	size_t len;

	json_object_foreach(profile->counts, name,
			    count) if (edges_place(name, &object, &len, &address))
		json_object_setn_new(objects, object, len, json_true());
	return objects;
}

/* @targets: whether it is asked where calls led. */
static int write_lines(const struct edges *profile, FILE *out, const char *object, bool targets,
		       int (*write)(FILE *, const char *, const struct seen *))
{
	struct sites sites;
	struct target *target = NULL;
	struct block *block = NULL;
	struct seen seen = { 0 };
	char *path = text_unescaped(object, strlen(object));
	int ret = sites_open(&sites, profile, object, strlen(object));

	if (!ret && targets)
		ret = edges_calls(&sites, &target, &seen.targets);
	if (!ret)
		block = calloc(json_object_size(profile->counts) + 1, sizeof(*block));
	if (block && path) {
		seen.block = block;
		seen.blocks = blocks_of(profile, object, block);
		seen.target = target;
		ret = write(out, path, &seen);
	} else if (!ret) {
		ret = -ENOMEM;
	}
	sites_close(&sites);
	free(target);
	free(block);
	free(path);
	return ret;
}

static int each_object(const struct edges *profile, FILE *out, bool targets,
		       int (*write)(FILE *, const char *, const struct seen *))
{
	json_t *objects = objects_of(profile), *unused;
	const char *object;
	int ret = objects ? 0 : -ENOMEM;

	json_object_foreach(objects, object, unused)
	{
		if (!ret)
			ret = write_lines(profile, out, object, targets, write);
		if (ret == -ENODATA)
			complain(0, 0,
				 "%s has no debug information: compile it with -gline-tables-only "
				 "-fdebug-info-for-profiling",
				 object);
		if (ret == -ENOSYS)
			complain(0, 0, "built without libdw, which finds the lines of blocks");
	}
	json_decref(objects);
	return ret;
}

static int write_llvm(const struct edges *profile, FILE *out)
{
	return each_object(profile, out, true, lines_write_llvm);
}

static int write_gcov(const struct edges *profile, FILE *out)
{
	return each_object(profile, out, false, lines_write_gcov);
}

/* --- All -------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*write)(const struct edges *, FILE *);
} formats_known[] = { { "table", write_table },
		      { "json", edges_write_json },
		      { "llvm", write_llvm },
		      { "gcov", write_gcov },
		      { "autofdo", edges_write_autofdo },
		      { "chrome", edges_write_chrome },
		      { "html", edges_write_page } };

static size_t format_index(const char *name)
{
	size_t i = 0;

	while (i < sizeof(formats_known) / sizeof(*formats_known) &&
	       strcmp(name, formats_known[i].name) != 0)
		i++;
	return i;
}

int edges_format(const char *name)
{
	return format_index(name) < sizeof(formats_known) / sizeof(*formats_known);
}

static int write_format(const char *format, FILE *out, const void *profile)
{
	int ret = formats_known[format_index(format)].write(profile, out);

	return ret < 0 ? ret : ferror(out) ? -EIO : 0;
}

/* There are blocks, and no edge was counted. */
static void tell_nothing(const struct edges *profile)
{
	if (profile->phases > 0)
		complain(0, 0,
			 "nothing was counted: no thread ran two of the %.0f blocks in the %.4f s "
			 "that were in phases",
			 profile->blocks, profile->on);
	else
		complain(0, 0,
			 "nothing was counted: the program ended after %.4f s, before its blocks "
			 "were on for the first time",
			 profile->wall);
}

int edges_show(const char *folder, const char *program, const char *output, const char *formats)
{
	struct edges profile = { .program = program,
				 .edges = json_object(),
				 .counts = json_object() };
	int ret = profile.edges && profile.counts ? read_reports(folder, &profile) : -ENOMEM;
	bool lost = ret > 0;

	if (ret >= 0)
		ret = make_rows(&profile);
	if (!ret && !profile.processes && lost)
		; /* That was told. */
	else if (!ret && !profile.processes)
		complain(0, 0,
			 "no process left a profile: the program is linked statically, or the "
			 "loader did not take the agent");
	else if (!ret && !(profile.blocks > 0) && !json_object_size(profile.counts))
		complain(0, 0,
			 "no block could be watched: is the program compiled with "
			 "-fsanitize-coverage=trace-pc and linked with -lfastinst, and has it "
			 "symbols?");
	else if (!ret)
		ret = write_formats(formats, output, write_format, &profile);
	else
		complain(0, ret, "the profile of edges cannot be read");
	if (!ret && profile.blocks > 0 && !profile.n)
		tell_nothing(&profile);
	free(profile.moment);
	free(profile.row);
	json_decref(profile.edges);
	json_decref(profile.counts);
	return ret;
}
