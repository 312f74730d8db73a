/* SPDX-License-Identifier: MIT */
/*
 * What is told of probes, and who is told of new ones.
 */
#include <errno.h>

#include "probes/core/core.h"

#define CALLBACKS 8

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
