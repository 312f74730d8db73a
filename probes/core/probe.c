/* SPDX-License-Identifier: MIT */
/*
 * The table of probes, and who is told of new ones.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/core.h"
#include "probes/core/entry.h"

#define CALLBACKS 8

struct probe *_Atomic probe_chunks[FI_PROBES_MAX / PROBE_CHUNK];
_Atomic uint32_t probe_number;

/* --- The table -------------------------------------------------------------------------------- */

uint32_t fi_probes(void)
{
	return atomic_load_explicit(&probe_number, memory_order_acquire);
}

int probe_add(const struct probe *model, uint32_t *id)
{
	uint32_t next = fi_probes();
	struct probe *chunk, *probe;

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
	probe->id = next;
	probe->armed = !model->provider->arm;
	probe->is_on = false;
	probe->has_call = false;
	probe->merge = false;
	site_prepare(probe);
	probe_slots[next].site = probe->site;
	if (id)
		*id = next;
	atomic_store_explicit(&probe_number, next + 1, memory_order_release);
	return 0;
}

static enum fi_state state_of(const struct probe *probe)
{
	if (probe->object->gone)
		return FI_GONE;
	if (probe->reason)
		return FI_REFUSED;
	return probe->is_on ? FI_ON : FI_OFF;
}

static void describe_probe(const struct probe *probe, struct fi_probe *out)
{
	*out = (struct fi_probe){
		.id = probe->id,
		.kind = probe->kind,
		.state = state_of(probe),
		.function = probe->name ? probe->name : "",
		.object = probe->object->path,
		.provider = probe->provider->name,
		.file = probe->file ? probe->file : "",
		.line = probe->line,
		.address = probe->site,
		.reason = probe->reason ? probe->reason : "",
	};
}

int fi_get(uint32_t id, struct fi_probe *out)
{
	const struct probe *probe;
	int ret;

	if (!out)
		return -EINVAL;
	ret = core_lock();
	if (ret < 0)
		return ret;
	probe = probe_get(id);
	if (probe)
		describe_probe(probe, out);
	core_unlock();
	return probe ? 0 : -ENOENT;
}

const char *object_string(const char *text)
{
	return strdup(text);
}

/* --- Callbacks -------------------------------------------------------------------------------- */

static struct callback {
	fi_callback *callback;
	void *data;
	uint32_t told; /* of ids below that */
} callbacks[CALLBACKS];

/* The callback and the probe that it has to be told of next. */
static bool next_news(struct callback *callback, struct fi_probe *news)
{
	bool found = false;

	if (core_lock() < 0)
		return false;
	for (int i = 0; i < CALLBACKS && !found; i++) {
		struct callback *one = &callbacks[i];

		if (!one->callback || one->told >= fi_probes())
			continue;
		describe_probe(probe_get(one->told++), news);
		*callback = *one;
		found = true;
	}
	core_unlock();
	return found;
}

void callback_tell(void)
{
	struct callback callback;
	struct fi_probe news;

	while (next_news(&callback, &news))
		callback.callback(&news, callback.data);
}

int fi_register_callback(fi_callback *callback, void *data)
{
	int ret;

	if (!callback)
		return -EINVAL;
	ret = core_lock();
	if (ret < 0)
		return ret;
	ret = -ENOSPC;
	for (int i = 0; i < CALLBACKS && ret; i++) {
		if (callbacks[i].callback)
			continue;
		callbacks[i] = (struct callback){ .callback = callback, .data = data };
		ret = 0;
	}
	core_unlock();
	if (!ret)
		callback_tell();
	return ret;
}

int fi_unregister_callback(fi_callback *callback, void *data)
{
	int ret = core_lock();

	if (ret < 0)
		return ret;
	ret = -ENOENT;
	for (int i = 0; i < CALLBACKS && ret; i++) {
		if (callbacks[i].callback != callback || callbacks[i].data != data)
			continue;
		callbacks[i].callback = NULL;
		ret = 0;
	}
	core_unlock();
	return ret;
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
