/* SPDX-License-Identifier: MIT */
/*
 * The blocks of an object, and which functions the calls in them led to. Where a thread ran a
 * function's first block behind another block, and that one has a call of the function, or one call
 * through a pointer, that was the call. A call behind another one in its block is not seen: the
 * block before it is one of what that one called.
 */
#include "probes/profile/command/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/elf/sorted.h"
#include "probes/insn/insn.h"

/* --- The blocks of an object ------------------------------------------------------------------ */

bool sites_have(const struct sites *sites, size_t block)
{
	return !strcmp(sites->profile->function[block].object, sites->object);
}

ORDER_BY(by_site, struct site, address)

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
								 symbol->name, block->calls.value };
	}
	qsort(sites->site, sites->n, sizeof(*sites->site), by_site);
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
	return bsearch(&key, sites->site, sites->n, sizeof(key), by_site);
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

/* --- Calls in them -----------------------------------------------------------------------------
 */

#define TRACER 5 /* bytes of the call that a block begins with */

/* The calls of a block: of a function, and the one through a pointer. 0: there is none. */
struct found {
	uint64_t direct, indirect;
	unsigned indirects;
};

/* All of a block, or nothing where not all of it comes out as instructions. */
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
static uint64_t call_in(const struct sites *sites, const struct site *site, uint64_t function)
{
	size_t len = sites_end(sites, site) - site->address;
	const uint8_t *code = elf_constant(&sites->image.elf, site->address, len);
	struct found found = { 0 };

	if (code)
		found = find_calls(code, len, site->address, function);
	if (found.direct)
		return found.direct;
	return found.indirects == 1 ? found.indirect : 0;
}

ORDER_BY(by_address, struct target, address)

static void find_targets(const struct sites *sites, struct target *target, size_t *n)
{
	const struct profile *profile = sites->profile;

	for (size_t i = 0; i < profile->arcs; i++) {
		const struct arc *edge = &profile->arc[i];
		const struct site *before = sites_at(sites, edge->from);
		const struct site *entered = sites_at(sites, edge->to);
		uint64_t call;

		if (!before || !entered || !sites_first(sites, entered))
			continue;
		call = call_in(sites, before, entered->entry);
		if (call)
			target[(*n)++] = (struct target){ call, entered->function, edge->calls };
	}
	qsort(target, *n, sizeof(*target), by_address);
}

int edges_calls(const struct sites *sites, struct target **target, size_t *n)
{
	*n = 0;
	*target = calloc(sites->profile->arcs + 1, sizeof(**target));
	if (!*target)
		return -ENOMEM;
	if (sites->image.mapped)
		find_targets(sites, *target, n);
	return 0;
}
