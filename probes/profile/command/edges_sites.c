/* SPDX-License-Identifier: MIT */
#include "probes/profile/command/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/elf/sorted.h"

bool sites_have(const struct sites *sites, size_t block)
{
	return !strcmp(sites->profile->function[block].object, sites->object);
}

ORDER_BY(by_address, struct site, address)

int sites_open(struct sites *sites, const struct profile *profile, const char *object)
{
	*sites = (struct sites){ .profile = profile, .object = object };
	sites->site = calloc(profile->functions + 1, sizeof(*sites->site));
	if (!sites->site)
		return -ENOMEM;
	image_open(&sites->image, object);
	for (size_t f = 0; f < profile->functions; f++) {
		const struct function *block = &profile->function[f];
		const struct elf_symbol *symbol = NULL;

		if (sites_have(sites, f))
			symbol = elf_function_at(&sites->image.symbols, block->address);
		if (symbol)
			sites->site[sites->n++] = (struct site){ block->address, symbol->addr,
								 symbol->addr + symbol->size,
								 symbol->name, block->calls };
	}
	qsort(sites->site, sites->n, sizeof(*sites->site), by_address);
	return 0;
}

void sites_close(struct sites *sites)
{
	image_close(&sites->image);
	free(sites->site);
}

const struct site *sites_at(const struct sites *sites, size_t block)
{
	const struct site key = { .address = sites->profile->function[block].address };

	if (!sites_have(sites, block))
		return NULL;
	return bsearch(&key, sites->site, sites->n, sizeof(key), by_address);
}

bool sites_first(const struct sites *sites, const struct site *site)
{
	return site == sites->site || site[-1].entry != site->entry;
}

uint64_t sites_end(const struct sites *sites, const struct site *site)
{
	const struct site *next = site + 1;
	bool last = next == sites->site + sites->n || sites_first(sites, next);

	return last ? site->end : next->address;
}
