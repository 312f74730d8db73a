/* SPDX-License-Identifier: MIT */
/*
 * The objects of the process, as they come and go.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/core/core.h"

static const struct provider *const *providers;
static struct object *objects;
static unsigned long long unloads; /* that the loader had counted at the last look */
static _Atomic int own_threads;
static __thread int own_here; /* the calling thread is one of them */

int fi_own_thread(int change)
{
	if (change == 0)
		return atomic_load_explicit(&own_threads, memory_order_relaxed);
	if (change != 1 && change != -1)
		return -EINVAL;
	atomic_fetch_add_explicit(&own_threads, change, memory_order_relaxed);
	own_here += change;
	return 0;
}

bool process_is_single(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	if (!dir)
		return false;
	while (readdir(dir))
		n++;
	closedir(dir);
	/* "." and ".." are among them. The caller may itself be a thread of the tool. */
	return n == 2 + !own_here + atomic_load_explicit(&own_threads, memory_order_relaxed);
}

/* --- What is loaded --------------------------------------------------------------------------- */

/* Objects of this look: new ones at the head, those that were seen again are marked. */
struct look {
	struct object *found;
	unsigned long long unloads;
	int error;
};

void object_segments(struct object *object, const ElfW(Phdr) * headers, size_t n)
{
	int segments = 0;

	object->start = UINTPTR_MAX;
	for (size_t i = 0; i < n; i++) {
		const ElfW(Phdr) *phdr = &headers[i];
		uintptr_t start = object->base + phdr->p_vaddr;
		uintptr_t end = start + phdr->p_memsz;

		if (phdr->p_type != PT_LOAD)
			continue;
		object->start = start < object->start ? start : object->start;
		object->end = end > object->end ? end : object->end;
		if (segments == SEGMENTS_MAX)
			continue;
		object->segment[segments].start = start;
		object->segment[segments].end = end;
		object->segment[segments++].flags = phdr->p_flags;
	}
}

static void drop_object(struct object *object)
{
	free((char *)object->path);
	free(object);
}

const char *object_string(const char *text)
{
	return strdup(text);
}

/* Where a relative one lies is known now; a program may change its folder. */
static const char *path_of(const char *name)
{
	char buffer[2 * PATH_MAX];
	ssize_t len;

	if (*name == '/' || (*name && (!strchr(name, '/') || !getcwd(buffer, PATH_MAX))))
		return object_string(name);
	if (*name) {
		len = (ssize_t)strlen(buffer);
		snprintf(buffer + len, sizeof(buffer) - (size_t)len, "/%s",
			 strncmp(name, "./", 2) != 0 ? name : name + 2);
		return object_string(buffer);
	}
	len = readlink("/proc/thread-self/exe", buffer, PATH_MAX - 1);
	buffer[len < 0 ? 0 : len] = '\0';
	return object_string(buffer);
}

/* FNV-1a */
static uint64_t hash(uint64_t seed, const void *data, size_t len)
{
	for (const uint8_t *at = data; len--; at++)
		seed = (seed ^ *at) * UINT64_C(0x100000001b3);
	return seed;
}

static uint64_t hash_headers(const ElfW(Phdr) * headers, size_t n)
{
	return hash(UINT64_C(0xcbf29ce484222325), headers, n * sizeof(*headers));
}

/* Of its segments and its notes, of which one is the build-id: a file may be replaced by another of
 * the same name, which is loaded to the same place. */
static uint64_t identity(const struct object *object, const struct dl_phdr_info *info)
{
	uint64_t seed = hash_headers(info->dlpi_phdr, info->dlpi_phnum);

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + phdr->p_vaddr;

		if (phdr->p_type == PT_NOTE && object_covers(object, at, phdr->p_filesz, PF_R))
			seed = hash(seed, (const void *)at, phdr->p_filesz);
	}
	return seed;
}

bool object_is_of(const struct object *object, const struct elf *elf)
{
	Elf64_Phdr headers[ELF_SEGMENTS_MAX];
	size_t n = elf_segments(elf, headers);
	uint64_t seed = hash_headers(headers, n);

	for (size_t i = 0; i < n; i++)
		if (headers[i].p_type == PT_NOTE &&
		    elf_inside(elf, headers[i].p_offset, headers[i].p_filesz))
			seed = hash(seed, elf->image + headers[i].p_offset, headers[i].p_filesz);
	return seed == object->identity;
}

/*
 * What another thread is just loading is listed before it is relocated: neither its tables nor its
 * slots are what they will be. The unwinder is told of it when they are.
 */
static bool is_ready(const struct object *object)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE /* glibc 2.35 */
	struct dl_find_object found;

	return object->stays || !_dl_find_object((void *)object->start, &found);
#else
	(void)object;
	return true;
#endif
}

/* Runs with the loader's lock, so that nothing but memory is asked for. */
static int take_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct look *look = data;
	struct object *object = calloc(1, sizeof(*object));

	(void)size;
	if (object)
		object->path = path_of(info->dlpi_name);
	if (!object || !object->path) {
		free(object);
		look->error = -ENOMEM;
		return 1;
	}
	object->base = info->dlpi_addr;
	object->stays = !*info->dlpi_name;
	object_segments(object, info->dlpi_phdr, info->dlpi_phnum);
	object->identity = identity(object, info);
	look->unloads = info->dlpi_subs;
	if (is_ready(object)) {
		object->next = look->found;
		look->found = object;
	} else {
		drop_object(object);
	}
	return 0;
}

static bool same(const struct object *a, const struct object *b)
{
	return a->base == b->base && a->start == b->start && a->end == b->end &&
	       a->identity == b->identity && !strcmp(a->path, b->path);
}

static bool known(const struct object *object)
{
	for (const struct object *old = objects; old; old = old->next)
		if (!old->gone && same(old, object))
			return true;
	return false;
}

const struct object *object_at(uintptr_t address)
{
	for (const struct object *object = objects; object; object = object->next)
		if (!object->gone && object_covers(object, address, 1, PF_X))
			return object;
	return NULL;
}

static void leave_object(struct object *object)
{
	object->gone = true;
	for (uint32_t id = object->first_probe; id < object->end_probe; id++) {
		struct probe *probe = probe_get(id);

		if (probe->object == object)
			probe->is_on = false;
	}
}

/*
 * Between two looks a file may have gone and come again, to the same place, as nothing but what was
 * written there shows: then its code is as it is in the file.
 */
static bool is_anew(const struct object *object)
{
	for (uint32_t id = object->first_probe; id < object->end_probe; id++) {
		const struct probe *probe = probe_get(id);

		if (probe->object == object && !probe->reason && probe_is_anew(probe))
			return true;
	}
	for (const struct provider *const *one = providers; *one; one++)
		if ((*one)->stands && !(*one)->stands(object))
			return true;
	return false;
}

static void mark_gone(const struct look *look)
{
	for (struct object *old = objects; old; old = old->next) {
		const struct object *now = look->found;

		if (old->gone)
			continue;
		while (now && !same(old, now))
			now = now->next;
		if (!now || (look->unloads != unloads && !old->stays && is_anew(old)))
			leave_object(old);
	}
	unloads = look->unloads;
}

/* With the loader's lock, as it reads what was written to those that are known. */
static int look_at_all(struct dl_phdr_info *info, size_t size, void *data)
{
	struct look *look = data;

	(void)info;
	(void)size;
	*look = (struct look){ 0 };
	dl_iterate_phdr(take_object, look);
	if (!look->error)
		mark_gone(look);
	return 1;
}

int objects_look(const struct provider *const *all_providers)
{
	struct object *const old = objects;
	struct look look;
	struct object **end = &look.found;

	providers = all_providers;
	dl_iterate_phdr(look_at_all, &look);
	while (*end) {
		struct object *object = *end;

		if (!look.error && !known(object)) {
			end = &object->next;
			continue;
		}
		*end = object->next;
		drop_object(object);
	}
	*end = old;
	objects = look.found;
	return look.error;
}

struct object *objects_list(void)
{
	return objects;
}

/* --- Held ------------------------------------------------------------------------------------- */

struct hold {
	int (*what)(void *data);
	void *data;
	int ret;
};

/* dlclose() takes the loader's lock to unmap anything, and to count it. */
static int run_held(struct dl_phdr_info *info, size_t size, void *data)
{
	struct hold *hold = data;
	struct object *next;
	struct look look;

	if (info->dlpi_subs != unloads) {
		look_at_all(info, size, &look);
		hold->ret = look.error;
		for (struct object *object = look.found; object; object = next) {
			next = object->next;
			drop_object(object);
		}
	}
	if (!hold->ret)
		hold->ret = hold->what(hold->data);
	return 1;
}

int objects_hold(int (*what)(void *data), void *data)
{
	struct hold hold = { .what = what, .data = data };

	dl_iterate_phdr(run_held, &hold);
	return hold.ret;
}

int objects_lock_hold(int (*what)(void *data), void *data)
{
	int ret = core_lock();

	if (ret < 0)
		return ret;
	ret = objects_hold(what, data);
	core_unlock();
	return ret;
}
