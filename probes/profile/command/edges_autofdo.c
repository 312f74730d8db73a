/* SPDX-License-Identifier: MIT */
/*
 * AutoFDO's text: counts of ranges of addresses, of single addresses (none), and of branches. A
 * branch is told where it leads to a function's first block: the count of the function.
 *
 * The format is of one object: the one whose blocks were run most.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "probes/profile/command/edges.h"

/* NULL: there is none. */
static const char *most_run(const struct profile *profile)
{
	json_t *sums = json_object();
	const char *object = NULL;
	double most = -1;

	for (size_t f = 0; f < profile->functions; f++) {
		const struct function *block = &profile->function[f];
		double sum =
			block->calls.value + json_real_value(json_object_get(sums, block->object));

		json_object_set_new_nocheck(sums, block->object, json_real(sum));
		if (sum <= most)
			continue;
		most = sum;
		object = block->object;
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

/*
 * Where edges lead to a function's first block. Blocks run one behind the other are no call where a
 * loop leads to it.
 */
static size_t put_branches(const struct sites *sites, FILE *out)
{
	const struct profile *profile = sites->profile;
	size_t n = 0;

	for (size_t i = 0; i < profile->arcs; i++) {
		const struct arc *edge = &profile->arc[i];
		const struct site *to = sites_at(sites, edge->to);

		if (!sites_have(sites, edge->from) || !to || !sites_first(sites, to))
			continue;
		n++;
		if (out)
			fprintf(out, "%" PRIx64 "->%" PRIx64 ":%.0f\n",
				profile->function[edge->from].address, to->entry, edge->calls);
	}
	return n;
}

int edges_write_autofdo(const struct profile *profile, FILE *out)
{
	struct sites sites;
	const char *object = most_run(profile);
	int ret;

	if (!object)
		return 0;
	ret = sites_open(&sites, profile, object);
	if (!ret) {
		put_ranges(&sites, out);
		fputs("0\n", out);
		fprintf(out, "%zu\n", put_branches(&sites, NULL));
		put_branches(&sites, out);
	}
	sites_close(&sites);
	return ret;
}
