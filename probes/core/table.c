/* SPDX-License-Identifier: MIT */
/*
 * The table of probes, what stands at their sites, and what they counted.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/core.h"
#include "probes/core/entry.h"

#define NOP  0x90
#define INT3 0xcc

struct probe *_Atomic probe_chunks[FI_PROBES_MAX / PROBE_CHUNK];
_Atomic uint32_t probe_number;

uint32_t fi_probes(void)
{
	return atomic_load_explicit(&probe_number, memory_order_acquire);
}

static bool is_nops(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (code[i] != NOP)
			return false;
	return true;
}

static bool has_breakpoint(const struct probe *probe)
{
	for (size_t i = 0; i < probe->len; i++)
		if (probe->site[i] == INT3 && probe->off[i] != INT3)
			return true;
	return false;
}

static void prepare(struct probe *probe)
{
	if (probe->reason)
		return;
	if (probe->len < 1 || probe->len > SITE_MAX)
		probe->reason = "the provider named no length";
	else if (probe->off[0] != NOP && is_nops(probe->site, probe->len))
		probe->merge = true;
	else if (has_breakpoint(probe))
		probe->reason = PROBE_BREAKPOINT;
	else if (memcmp(probe->site, probe->off, probe->len))
		probe->reason = "other bytes stand there than the compiler puts there";
}

static int list_probe(const struct probe *model)
{
	struct object *object = model->object;
	struct probe *more;

	if (object->end_probe % PROBE_CHUNK == 0) {
		more = reallocarray(object->listed, object->end_probe + PROBE_CHUNK, sizeof(*more));
		if (!more)
			return -ENOMEM;
		object->listed = more;
	}
	object->listed[object->end_probe] = *model;
	prepare(&object->listed[object->end_probe++]);
	return 0;
}

int probe_add(const struct probe *model, uint32_t *id)
{
	uint32_t next = fi_probes();
	struct probe *chunk, *probe;

	if (model->object->is_file)
		return list_probe(model);
	if (next == FI_PROBES_MAX)
		return -ENOSPC;
	chunk = atomic_load_explicit(&probe_chunks[next / PROBE_CHUNK], memory_order_relaxed);
	if (!chunk) {
		chunk = calloc(PROBE_CHUNK, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		atomic_store_explicit(&probe_chunks[next / PROBE_CHUNK], chunk,
				      memory_order_release);
	}
	probe = &chunk[next % PROBE_CHUNK];
	*probe = *model;
	if (!probe->object->end_probe)
		probe->object->first_probe = next;
	probe->object->end_probe = next + 1;
	probe->id = next;
	probe->armed = !model->provider->arm;
	probe->is_on = false;
	probe->has_call = false;
	probe->merge = false;
	prepare(probe);
	probe_slots[next].site = probe->site;
	if (id)
		*id = next;
	atomic_store_explicit(&probe_number, next + 1, memory_order_release);
	return 0;
}

bool probe_is_anew(const struct probe *probe)
{
	bool is_off = !memcmp(probe->site, probe->off, probe->len);

	if (*probe->site == INT3)
		return false;
	if (probe->has_call)
		return is_off || is_nops(probe->site, probe->len);
	if (probe->is_on)
		return memcmp(probe->site, probe->on, probe->len) != 0;
	return !probe->merge && !is_off;
}

/* --- Counts ----------------------------------------------------------------------------------- */

uint64_t fi_count(uint32_t id)
{
	uint64_t sum = 0;

	if (id >= fi_probes())
		return 0;
	for (const struct block *block = block_list(); block; block = block->next)
		sum += atomic_load_explicit(&block->counts[id], memory_order_relaxed);
	return sum;
}

uint64_t fi_lost(uint32_t id)
{
	if (id >= fi_probes())
		return 0;
	return atomic_load_explicit(&probe_slots[id].lost, memory_order_relaxed);
}
