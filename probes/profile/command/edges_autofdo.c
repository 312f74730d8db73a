/* SPDX-License-Identifier: MIT */
/*
 * AutoFDO's text: counts of ranges of addresses, of single addresses (none), and of branches. A
 * branch is told where it leads to a function's first block: the count of the function.
 *
 * The format is of one object: the one whose blocks were run most.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "probes/profile/command/edges_sites.h"

/* NULL: there is none. */
static const char *most_run(const struct edges *profile, size_t *found)
{
	json_t *sums = json_object(), *count;
	const char *name, *in, *object = NULL;
	uint64_t address;
	double most = -1;
	size_t len;

	json_object_foreach(profile->counts, name, count)
	{
		double sum;
		json_t *before;

		if (!edges_place(name, &in, &len, &address))
			continue;
		before = json_object_getn(sums, in, len);
		sum = json_real_value(before) + json_real_value(count);
		json_object_setn_new(sums, in, len, json_real(sum));
		if (sum <= most)
			continue;
		most = sum;
		object = in;
		*found = len;
	}
	json_decref(sums);
	return object;
}

static uint64_t start_of(const struct sites *sites, const struct site *site)
{
	return sites_first(sites, site) ? site->entry : site->address;
}

/* Up to the last byte: that of the last instruction, which is what readers look for. */
static void put_ranges(const struct sites *sites, FILE *out)
{
	const struct site *end = sites->site + sites->n;
	size_t n = 0;

	for (const struct site *site = sites->site; site < end; site++)
		n += site->count >= 0.5;
	fprintf(out, "%zu\n", n);
	for (const struct site *site = sites->site; site < end; site++)
		if (site->count >= 0.5)
			fprintf(out, "%" PRIx64 "-%" PRIx64 ":%.0f\n", start_of(sites, site),
				sites_end(sites, site) - 1, site->count);
}

/* Where an edge leads, if that is a function's first block; else 0. */
static uint64_t entered_function(const struct sites *sites, uint64_t to)
{
	const struct site *site = sites_at(sites, to);

	return site && sites_first(sites, site) ? site->entry : 0;
}

/* Blocks run one behind the other are no call where a loop leads to the first block. */
static size_t put_branches(const struct sites *sites, FILE *out)
{
	const struct edges *profile = sites->profile;
	size_t n = 0;

	for (size_t i = 0; i < profile->n; i++) {
		uint64_t from, to, entry;

		if (!sites_have(sites, profile->row[i].from, &from) ||
		    !sites_have(sites, profile->row[i].to, &to))
			continue;
		entry = entered_function(sites, to);
		if (!entry)
			continue;
		n++;
		if (out)
			fprintf(out, "%" PRIx64 "->%" PRIx64 ":%.0f\n", from, entry,
				edges_count(&profile->row[i]));
	}
	return n;
}

int edges_write_autofdo(const struct edges *profile, FILE *out)
{
	struct sites sites;
	size_t len;
	const char *object = most_run(profile, &len);
	int ret;

	if (!object)
		return 0;
	ret = sites_open(&sites, profile, object, len);
	if (!ret) {
		put_ranges(&sites, out);
		fputs("0\n", out);
		fprintf(out, "%zu\n", put_branches(&sites, NULL));
		put_branches(&sites, out);
	}
	sites_close(&sites);
	return ret;
}
