/* SPDX-License-Identifier: MIT */
#include "probes/profile/command/edges_sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/text/text.h"

bool sites_have(const struct sites *sites, const char *name, uint64_t *address)
{
	const char *in;
	size_t len;

	return edges_place(name, &in, &len, address) && len == sites->len &&
	       !memcmp(in, sites->object, len);
}

static int by_address(const void *a, const void *b)
{
	const struct site *one = a, *two = b;

	return (one->address > two->address) - (one->address < two->address);
}

static int find_sites(struct sites *sites)
{
	const char *name;
	uint64_t address;
	json_t *count;

	sites->site = calloc(json_object_size(sites->profile->counts) + 1, sizeof(*sites->site));
	if (!sites->site)
		return -ENOMEM;
	json_object_foreach(sites->profile->counts, name, count)
	{
		const struct elf_symbol *symbol;

		if (!sites_have(sites, name, &address))
			continue;
		symbol = elf_function_at(&sites->image.symbols, address);
		if (symbol)
			sites->site[sites->n++] =
				(struct site){ address, symbol->addr, symbol->addr + symbol->size,
					       symbol->name, json_real_value(count) };
	}
	qsort(sites->site, sites->n, sizeof(*sites->site), by_address);
	return 0;
}

int sites_open(struct sites *sites, const struct edges *profile, const char *object, size_t len)
{
	char *path = text_unescaped(object, len);

	*sites = (struct sites){ .profile = profile, .object = object, .len = len };
	if (!path)
		return -ENOMEM;
	image_open(&sites->image, path);
	free(path);
	return find_sites(sites);
}

void sites_close(struct sites *sites)
{
	image_close(&sites->image);
	free(sites->site);
}

const struct site *sites_at(const struct sites *sites, uint64_t address)
{
	const struct site key = { .address = address };

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
