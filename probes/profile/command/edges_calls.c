/* SPDX-License-Identifier: MIT */
/*
 * Which functions the calls in blocks led to. Where a thread ran a function's first block behind
 * another block, and that one has a call of the function, or one call through a pointer, that was
 * the call. A call behind another one in its block is not seen: the block before it is one of what
 * that one called.
 */
#include "probes/profile/command/edges_sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/calls/starts.h"

#define TRACER 5 /* bytes of the call that a block begins with */

/* The calls of a block: of a function, and the one through a pointer. 0: there is none. */
struct found {
	uint64_t direct, indirect;
	unsigned indirects;
};

/* Behind prefixes that such a call can have. */
static bool is_indirect(const uint8_t *code, size_t len)
{
	size_t at = 0;

	while (at < len && ((code[at] & 0xf0) == 0x40 || code[at] == 0x3e || code[at] == 0x2e))
		at++;
	return at + 1 < len && code[at] == 0xff && (code[at + 1] >> 3 & 7) == 2;
}

static bool is_call_of(const uint8_t *code, size_t len, uint64_t address, uint64_t function)
{
	int32_t by;

	if (len < 5 || code[0] != 0xe8)
		return false;
	memcpy(&by, code + 1, sizeof(by));
	return address + 5 + (uint64_t)(int64_t)by == function;
}

static void find_calls(struct found *found, const uint8_t *code, size_t len, const bool *starts,
		       uint64_t address, uint64_t function)
{
	for (size_t i = TRACER; i < len; i++) {
		if (!starts[i])
			continue;
		if (is_call_of(code + i, len - i, address + i, function))
			found->direct = address + i;
		if (!is_indirect(code + i, len - i))
			continue;
		found->indirect = address + i;
		found->indirects++;
	}
}

/* The call in a block that led to a function, or 0. */
static uint64_t call_in(const struct sites *sites, const struct site *site, uint64_t function)
{
	size_t len = sites_end(sites, site) - site->address;
	const uint8_t *code = elf_constant(&sites->image.elf, site->address, len);
	bool *starts = code ? calloc(len, sizeof(*starts)) : NULL;
	struct found found = { 0 };

	if (starts && !calls_starts(code, len, starts))
		find_calls(&found, code, len, starts, site->address, function);
	free(starts);
	if (found.direct)
		return found.direct;
	return found.indirects == 1 ? found.indirect : 0;
}

static int by_address(const void *a, const void *b)
{
	const struct target *one = a, *two = b;

	return (one->address > two->address) - (one->address < two->address);
}

static void find_targets(const struct sites *sites, struct target *target, size_t *n)
{
	const struct profile *profile = sites->profile;

	for (size_t i = 0; i < profile->stacks; i++) {
		const struct stack *edge = &profile->stack[i];
		const struct site *before = sites_at(sites, edge->frame[0]);
		const struct site *entered = sites_at(sites, edge->frame[1]);
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
	*target = calloc(sites->profile->stacks + 1, sizeof(**target));
	if (!*target)
		return -ENOMEM;
	if (sites->image.mapped)
		find_targets(sites, *target, n);
	return 0;
}
