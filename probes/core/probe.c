/* SPDX-License-Identifier: MIT */
/*
 * The table of probes, its lock, and who is told of new ones.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/core.h"
#include "probes/core/entry.h"

#define CHUNK	  1024
#define CALLBACKS 8

static struct probe *_Atomic chunks[FI_PROBES_MAX / CHUNK];
static _Atomic uint32_t number;

static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static bool is_open;

/* --- The lock --------------------------------------------------------------------------------- */

int core_lock(void)
{
	int ret = pthread_mutex_lock(&lock);

	if (ret)
		return -ret;
	if (is_open)
		return 0;
	pthread_mutex_unlock(&lock);
	return -ESHUTDOWN;
}

void core_unlock(void)
{
	near_seal();
	pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* The owner that the lock knows is a thread of the parent. */
static void in_child(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	uint32_t n = fi_probes();

	block_forked();
	for (uint32_t id = 0; id < n; id++)
		if (atomic_load_explicit(&probe_slots[id].lost, memory_order_relaxed))
			atomic_store_explicit(&probe_slots[id].lost, 0, memory_order_relaxed);
	lock = unlocked;
}

/* Leaves the lock held: what fi_init() does next must be done before others see it open. */
int core_open(void)
{
	static bool started;
	int ret = pthread_mutex_lock(&lock);

	if (ret)
		return -ret;
	if (!started) {
		entry_start();
		ret = block_start();
		if (!ret)
			ret = -pthread_atfork(before_fork, after_fork, in_child);
		started = !ret;
	}
	if (ret) {
		pthread_mutex_unlock(&lock);
		return ret;
	}
	is_open = true;
	return 0;
}

void core_close(void)
{
	is_open = false;
}

/* --- The table -------------------------------------------------------------------------------- */

uint32_t fi_probes(void)
{
	return atomic_load_explicit(&number, memory_order_acquire);
}

struct probe *probe_get(uint32_t id)
{
	if (id >= fi_probes())
		return NULL;
	return &atomic_load_explicit(&chunks[id / CHUNK], memory_order_acquire)[id % CHUNK];
}

int probe_add(const struct probe *model, uint32_t *id)
{
	uint32_t next = fi_probes();
	struct probe *chunk, *probe;

	if (next == FI_PROBES_MAX)
		return -ENOSPC;
	chunk = atomic_load_explicit(&chunks[next / CHUNK], memory_order_relaxed);
	if (!chunk) {
		chunk = calloc(CHUNK, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		atomic_store_explicit(&chunks[next / CHUNK], chunk, memory_order_release);
	}
	probe = &chunk[next % CHUNK];
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
	atomic_store_explicit(&number, next + 1, memory_order_release);
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

static void describe(const struct probe *probe, struct fi_probe *out)
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
		describe(probe, out);
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
		describe(probe_get(one->told++), news);
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
