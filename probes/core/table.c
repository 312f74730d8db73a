/* SPDX-License-Identifier: MIT */
/* The table of probes, what stands at their sites, what they counted, and who hears of new ones. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "probes/core/core.h"
#include "probes/core/entry.h"

#define NOP  0x90
#define INT3 0xcc

#define CALLBACKS 8

struct probe *_Atomic probe_chunks[FI_PROBES_MAX / PROBE_CHUNK];
_Atomic uint32_t probe_number;
uint32_t probes_found;

uint32_t fi_probes(void)
{
	return atomic_load_explicit(&probe_number, memory_order_acquire);
}

static bool has_breakpoint(const struct probe *probe)
{
	for (size_t i = 0; i < probe->len; i++)
		if (probe->site[i] == INT3 && probe->off[i] != INT3)
			return true;
	return false;
}

static void check_site(struct probe *probe)
{
	if (probe->reason)
		return;
	if (probe->len < 1 || probe->len > SITE_MAX)
		probe->reason = "the provider named no length";
	else if (probe->off[0] != NOP && site_is_nops(probe->site, probe->len))
		probe->merge = true;
	else if (has_breakpoint(probe))
		probe->reason = PROBE_BREAKPOINT;
	else if (memcmp(probe->site, probe->off, probe->len))
		probe->reason = "other bytes stand there than the compiler puts there";
}

static bool has_name(const struct probe *probe, const char *name)
{
	return probe->name && name ? !strcmp(probe->name, name) : probe->name == name;
}

/* Probes are found in the same order as before, so the first one is mostly the right one. */
static struct probe *find_missing(const struct probe *model)
{
	struct probe **link = &model->object->missing, *probe;

	while ((probe = *link) &&
	       (probe->site != model->site || probe->provider != model->provider ||
		probe->kind != model->kind || !has_name(probe, model->name)))
		link = &probe->sibling;
	if (probe)
		*link = probe->sibling;
	return probe;
}

/* At the same place its stub, and so its bytes when on, are those of before. */
static bool is_still_armed(const struct probe *probe, const struct probe *model)
{
	return probe->armed && model->provider->arm && !model->object->has_moved &&
	       !memcmp(probe->off, model->off, model->len);
}

static void add_again(struct probe *probe, const struct probe *model)
{
	const struct probe before = *probe;

	if (model->provider->owns_extra)
		free(probe->extra);
	free((char *)model->name);
	memcpy(probe, model, offsetof(struct probe, id));
	probe->name = before.name;
	probe->armed = is_still_armed(&before, model);
	if (probe->armed)
		memcpy(probe->on, before.on, sizeof(probe->on));
}

/* The memory for the next id, or for a probe of a file, which has none. */
static struct probe *take_room(const struct object *object)
{
	uint32_t id = fi_probes();
	struct probe *_Atomic *chunk = &probe_chunks[id / PROBE_CHUNK], *probe;

	if (object->is_file)
		return calloc(1, sizeof(*probe));
	if (!*chunk)
		atomic_store_explicit(chunk, calloc(PROBE_CHUNK, sizeof(*probe)),
				      memory_order_release);
	probe = *chunk ? *chunk + id % PROBE_CHUNK : NULL;
	if (probe)
		probe->id = id;
	return probe;
}

int probe_add(const struct probe *model, uint32_t *id)
{
	struct object *object = model->object;
	struct probe *probe = find_missing(model);

	if (!probe && !object->is_file && fi_probes() == FI_PROBES_MAX)
		return -ENOSPC;
	if (probe) {
		add_again(probe, model);
	} else {
		probe = take_room(object);
		if (!probe)
			return -ENOMEM;
		memcpy(probe, model, offsetof(struct probe, id));
	}
	probe->armed |= !model->provider->arm;
	probe->is_on = false;
	probe->has_call = false;
	probe->merge = false;
	probe->sibling = NULL;
	*(object->last ? object->last : &object->probes) = probe;
	object->last = &probe->sibling;
	check_site(probe);
	if (object->is_file)
		return 0;
	probe_slots[probe->id].site = probe->site;
	if (id)
		*id = probe->id;
	probes_found++;
	if (probe->id == fi_probes())
		atomic_store_explicit(&probe_number, probe->id + 1, memory_order_release);
	return 0;
}

bool probe_is_anew(const struct probe *probe)
{
	bool is_off = !memcmp(probe->site, probe->off, probe->len);

	if (*probe->site == INT3)
		return false;
	if (probe->has_call)
		return is_off || site_is_nops(probe->site, probe->len);
	if (probe->is_on)
		return memcmp(probe->site, probe->on, probe->len) != 0;
	return !probe->merge && !is_off;
}

/* --- Probes of one kind ---------------------------------------------------------------------- */

ORDER_BY(by_place, struct beside_site, at)

int beside_find(struct beside *beside, const struct object *object, enum fi_kind kind)
{
	int ret = 0;

	*beside = (struct beside){ 0 };
	for (const struct probe *probe = object->probes; probe && !ret; probe = probe->sibling)
		if (probe->kind == kind && !probe->reason)
			ret = ARRAY_ADD(beside->site, beside->n,
					(struct beside_site){ (uintptr_t)probe->site });
	if (beside->n)
		qsort(beside->site, beside->n, sizeof(*beside->site), by_place);
	return ret;
}

bool beside_has(const struct beside *beside, uintptr_t start, uintptr_t end)
{
	size_t i = SORTED_FROM(beside->site, beside->n, at, start);

	return i < beside->n && beside->site[i].at < end;
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

/* --- What is said of a probe ------------------------------------------------------------------ */

static enum fi_state get_state(const struct probe *probe)
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
		.state = get_state(probe),
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

/* --- Callbacks -------------------------------------------------------------------------------- */

static struct callback {
	fi_callback *callback;
	void *data;
	uint32_t told; /* of ids below that */
} callbacks[CALLBACKS];

/* The next callback that has not been told of a probe, and that probe. */
static bool take_news(struct callback *callback, struct fi_probe *news)
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

	while (take_news(&callback, &news))
		callback.callback(&news, callback.data);
}

/* NULL, NULL: a free place. */
static struct callback *find_callback(fi_callback *callback, const void *data)
{
	for (int i = 0; i < CALLBACKS; i++)
		if (callbacks[i].callback == callback && (!callback || callbacks[i].data == data))
			return &callbacks[i];
	return NULL;
}

int fi_register_callback(fi_callback *callback, void *data)
{
	struct callback *place;
	int ret;

	if (!callback)
		return -EINVAL;
	ret = core_lock();
	if (ret < 0)
		return ret;
	place = find_callback(NULL, NULL);
	if (place)
		*place = (struct callback){ .callback = callback, .data = data };
	core_unlock();
	if (!place)
		return -ENOSPC;
	callback_tell();
	return 0;
}

int fi_unregister_callback(fi_callback *callback, void *data)
{
	struct callback *place;
	int ret = core_lock();

	if (ret < 0)
		return ret;
	place = callback ? find_callback(callback, data) : NULL;
	if (place)
		place->callback = NULL;
	core_unlock();
	return place ? 0 : -ENOENT;
}
