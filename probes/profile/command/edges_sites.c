/* SPDX-License-Identifier: MIT */
/*
 * The blocks of an object, and which functions the calls in them led to. Where a thread ran a
 * function's first block after another block, and that block has a call of the function, or one
 * call through a pointer, this was the call. A block's second call is not seen: the thread comes to
 * it from a block of the function that the first one called.
 */
#include "probes/profile/command/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/elf/sorted.h"
#include "probes/insn/insn.h"

/* --- The blocks of an object ------------------------------------------------------------------ */

ORDER_BY(by_address, struct block, address)

static void add_block(struct sites *sites, const struct function *block)
{
	const struct elf_symbol *in = elf_function_at(&sites->image.symbols, block->address);

	sites->run.block[sites->run.blocks++] = (struct block){
		.address = block->address,
		.count = block->calls.value,
		.function = in ? in->name : NULL,
		.entry = in ? in->addr : 0,
		.end = in ? in->addr + in->size : 0,
	};
}

void sites_close(struct sites *sites)
{
	image_close(&sites->image);
	free(sites->run.block);
	free(sites->run.target);
}

const struct block *sites_at(const struct sites *sites, size_t block)
{
	const struct function *function = &sites->profile->function[block];
	const struct block key = { .address = function->address };

	if (strcmp(function->object, sites->run.object) != 0)
		return NULL;
	return bsearch(&key, sites->run.block, sites->run.blocks, sizeof(key), by_address);
}

bool sites_is_first(const struct sites *sites, const struct block *block)
{
	return block->function && (block == sites->run.block || block[-1].entry != block->entry);
}

uint64_t sites_end(const struct sites *sites, const struct block *block)
{
	const struct block *next = block + 1;
	bool last = next == sites->run.block + sites->run.blocks || next->entry != block->entry;

	return last ? block->end : next->address;
}

/* --- Calls in them ---------------------------------------------------------------------------- */

#define TRACER 5 /* bytes of the call that a block begins with */

/* Calls in a block: of one function, and the last one through a pointer. 0: there is none. */
struct found {
	uint64_t direct, indirect;
	unsigned indirects;
};

/* The calls in a block; none, where it does not decode to its end. */
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
static uint64_t call_in(const struct sites *sites, const struct block *block, uint64_t function)
{
	size_t len = sites_end(sites, block) - block->address;
	const uint8_t *code = elf_constant(&sites->image.elf, block->address, len);
	struct found found = { 0 };

	if (code)
		found = find_calls(code, len, block->address, function);
	if (found.direct)
		return found.direct;
	return found.indirects == 1 ? found.indirect : 0;
}

ORDER_BY(by_call, struct target, address)

static void find_targets(struct sites *sites)
{
	const struct profile *profile = sites->profile;
	struct executed *run = &sites->run;

	for (size_t i = 0; i < profile->arcs; i++) {
		const struct arc *edge = &profile->arc[i];
		const struct block *before = sites_at(sites, edge->from);
		const struct block *callee = sites_at(sites, edge->to);
		uint64_t call;

		if (!before || !before->function || !callee || !sites_is_first(sites, callee))
			continue;
		call = call_in(sites, before, callee->entry);
		if (call)
			run->target[run->targets++] =
				(struct target){ call, callee->function, edge->calls };
	}
	qsort(run->target, run->targets, sizeof(*run->target), by_call);
}

int sites_open(struct sites *sites, const struct profile *profile, const char *object)
{
	*sites = (struct sites){ .profile = profile, .run.object = object };
	sites->run.block = calloc(profile->functions + 1, sizeof(*sites->run.block));
	sites->run.target = calloc(profile->arcs + 1, sizeof(*sites->run.target));
	if (!sites->run.block || !sites->run.target)
		return -ENOMEM;
	image_open(&sites->image, object);
	for (size_t f = 0; f < profile->functions; f++)
		if (!strcmp(profile->function[f].object, object))
			add_block(sites, &profile->function[f]);
	qsort(sites->run.block, sites->run.blocks, sizeof(*sites->run.block), by_address);
	if (sites->image.mapped)
		find_targets(sites);
	return 0;
}
