/* SPDX-License-Identifier: MIT */
/*
 * AutoFDO's text: counts of ranges of addresses, of single addresses (none), and of branches. A
 * branch is told where it leads to a function's first block: the count of the function.
 */
#include <errno.h>
#include <inttypes.h>

#include "probes/profile/command/edges.h"

static uint64_t start_of(const struct sites *sites, const struct block *block)
{
	return sites_first(sites, block) ? block->entry : block->address;
}

/* Up to the last byte: that of the last instruction, which is what readers look for. */
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
		const struct block *from = sites_at(sites, edge->from);
		const struct block *to = sites_at(sites, edge->to);

		if (!from || !to || !sites_first(sites, to))
			continue;
		n++;
		if (out)
			fprintf(out, "%" PRIx64 "->%" PRIx64 ":%.0f\n", from->address, to->entry,
				edge->calls);
	}
	return n;
}

int edges_write_autofdo(const struct sites *sites, FILE *out)
{
	fprintf(out, "%zu\n", put_ranges(sites, NULL));
	put_ranges(sites, out);
	fprintf(out, "0\n%zu\n", put_branches(sites, NULL));
	put_branches(sites, out);
	return ferror(out) ? -EIO : 0;
}
