/* SPDX-License-Identifier: MIT */
/* The objects of the process, as they are loaded and unloaded. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <patchcore/patchcore.h>

#include "probes/core/core.h"

static const struct provider *const *providers;
static struct object *objects;		  /* as the loader lists them */
static struct object *unloaded;		  /* they may come again */
static unsigned long long loads, unloads; /* that the loader had counted at the last look */
static bool is_half_loaded;		  /* one was, at that look */

/* --- What is loaded --------------------------------------------------------------------------- */

struct object_look {
	struct object **next;	 /* the one that the loader should come to */
	bool takes;		 /* new ones, too */
	bool unloaded;		 /* an object was, since the last look */
	int (*what)(void *data); /* to be called with the loader's lock; NULL: nothing */
	void *data;
	int ret;
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

/* A relative path is completed now, as a program may change its folder. */
static const char *find_path(const char *name)
{
	char buffer[PATH_MAX], *path;
	ssize_t len;

	if (!*name) {
		len = readlink("/proc/thread-self/exe", buffer, sizeof(buffer) - 1);
		buffer[len < 0 ? 0 : len] = '\0';
		return strdup(buffer);
	}
	if (*name == '/' || !strchr(name, '/') || !getcwd(buffer, sizeof(buffer)))
		return strdup(name);
	name += strncmp(name, "./", 2) ? 0 : 2;
	return asprintf(&path, "%s/%s", buffer, name) < 0 ? NULL : path;
}

#define FNV_SEED UINT64_C(0xcbf29ce484222325)

/* FNV-1a */
static uint64_t hash_bytes(uint64_t seed, const void *data, size_t len)
{
	for (const uint8_t *at = data; len--; at++)
		seed = (seed ^ *at) * UINT64_C(0x100000001b3);
	return seed;
}

static uint64_t hash_headers(const ElfW(Phdr) * headers, size_t n)
{
	return hash_bytes(FNV_SEED, headers, n * sizeof(*headers));
}

/* A hash of program headers and notes, among them the build ID: another file of the same name may
 * be loaded to the same place. */
static uint64_t find_identity(const struct object *object, const struct dl_phdr_info *info)
{
	uint64_t seed = hash_headers(info->dlpi_phdr, info->dlpi_phnum);

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + phdr->p_vaddr;

		if (phdr->p_type == PT_NOTE && object_covers(object, at, phdr->p_filesz, PF_R))
			seed = hash_bytes(seed, (const void *)at, phdr->p_filesz);
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
			seed = hash_bytes(seed, elf->image + headers[i].p_offset,
					  headers[i].p_filesz);
	return seed == object->identity;
}

/*
 * The loader lists an object before it relocates it, while tables and slots have other contents.
 * The unwinder knows the object only afterwards.
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

static bool is_same(const struct object *a, const struct object *b)
{
	return a->base == b->base && a->start == b->start && a->end == b->end &&
	       a->identity == b->identity && a->name == b->name;
}

bool object_is_own(const struct object *object)
{
	return object_covers(object, (uintptr_t)object_is_own, 1, PF_X);
}

const struct object *object_at(uintptr_t address)
{
	for (const struct object *object = objects; object; object = object->next)
		if (object_covers(object, address, 1, PF_X))
			return object;
	return NULL;
}

/*
 * Between two looks a file may have been unloaded and loaded again to the same place. Only the
 * bytes that were written there show it: then the code is as in the file.
 */
static bool is_anew(const struct object *object)
{
	for (const struct probe *probe = object->probes; probe; probe = probe->sibling)
		if (!probe->reason && probe_is_anew(probe))
			return true;
	for (const struct provider *const *one = providers; *one; one++)
		if ((*one)->stands && !(*one)->stands(object))
			return true;
	return false;
}

void object_list_missing(struct object *object)
{
	struct probe **end = object->last ? object->last : &object->probes;

	*end = object->missing;
	object->missing = NULL;
	for (; *end; end = &(*end)->sibling)
		(*end)->reason = "the file was loaded again, and has it no more";
	object->last = end;
}

static void leave_probe(struct probe *probe)
{
	probe->again |= probe->is_on;
	probe->is_on = false;
}

/* Mark the objects from there on gone, up to one that stays. */
static void leave_objects(struct object **from, const struct object *to)
{
	while (*from != to) {
		struct object *object = *from;

		object->gone = true;
		object_list_missing(object);
		for (struct probe *probe = object->probes; probe; probe = probe->sibling)
			leave_probe(probe);
		*from = object->next;
		object->next = unloaded;
		unloaded = object;
	}
}

/* Take a file that was loaded before, with its probes, from the list of unloaded ones. */
static struct object *take_unloaded(const char *path, uint64_t identity)
{
	struct object **link = &unloaded, *object;

	while (*link && ((*link)->identity != identity || strcmp((*link)->path, path) != 0))
		link = &(*link)->next;
	object = *link;
	if (object)
		*link = object->next;
	return object;
}

static struct object *take_object(const struct object *now, const char *name)
{
	const char *path = find_path(name);
	struct object *object = path ? take_unloaded(path, now->identity) : NULL;
	const struct object before = object ? *object : *now;
	bool again = object;

	if (again)
		free((char *)path);
	else if (path)
		object = calloc(1, sizeof(*object));
	if (!object)
		return NULL;
	*object = *now;
	object->path = before.path ? before.path : path;
	object->source = before.source;
	object->source_asked = before.source_asked;
	object->has_moved = before.base != now->base;
	object->is_new = true;
	object->gone = again;
	object->missing = before.probes;
	for (struct probe *probe = object->missing; probe; probe = probe->sibling)
		probe->site += now->base - before.base;
	/* libpatchcore cannot see that the same file at the same place was unloaded meanwhile. */
	if (again && !object->has_moved)
		pc_forget((void *)object->start, object->end - object->start);
	return object;
}

/*
 * Runs with the loader's lock, so it only allocates memory. The loader lists objects in the order
 * of loading: known objects before this one have been unloaded, and all have if this one is new.
 */
static int look_at_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object_look *look = data;
	struct object now = { .base = info->dlpi_addr, .stays = !*info->dlpi_name };
	struct object *known = *look->next;

	(void)size;
	if (!known || look->unloaded) {
		object_segments(&now, info->dlpi_phdr, info->dlpi_phnum);
		now.identity = find_identity(&now, info);
		now.name = hash_bytes(FNV_SEED, info->dlpi_name, strlen(info->dlpi_name));
		while (known && !is_same(known, &now))
			known = known->next;
		leave_objects(look->next, known);
		if (known && look->unloaded && !known->stays && !known->gone && is_anew(known)) {
			leave_objects(look->next, known->next);
			known = NULL;
		}
	}
	if (!known && look->takes && !is_ready(&now)) {
		is_half_loaded = true;
	} else if (!known && look->takes) {
		known = take_object(&now, info->dlpi_name);
		if (!known) {
			look->ret = -ENOMEM;
			return 1;
		}
		known->next = *look->next;
		*look->next = known;
	}
	if (known)
		look->next = &known->next;
	return 0;
}

static void look_at_all(const struct dl_phdr_info *counts, struct object_look *look)
{
	look->next = &objects;
	look->unloaded = counts->dlpi_subs != unloads;
	if (!look->unloaded && (!look->takes || (counts->dlpi_adds == loads && !is_half_loaded)))
		return;
	is_half_loaded &= !look->takes;
	dl_iterate_phdr(look_at_object, look);
	if (look->ret)
		return;
	leave_objects(look->next, NULL);
	unloads = counts->dlpi_subs;
	loads = look->takes ? counts->dlpi_adds : loads;
}

/*
 * With the loader's lock, since it reads the code of known objects: dlclose() takes that lock to
 * unmap anything, and to count it.
 */
static int look_with_lock(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object_look *look = data;

	(void)size;
	look_at_all(info, look);
	if (look->what)
		look->ret = look->what(look->data);
	return 1;
}

int objects_look(const struct provider *const *all_providers)
{
	struct object_look look = { .takes = true };

	providers = all_providers;
	dl_iterate_phdr(look_with_lock, &look);
	return look.ret;
}

struct object *objects_list(void)
{
	return objects;
}

/* --- Held ------------------------------------------------------------------------------------- */

int objects_hold(int (*what)(void *data), void *data)
{
	struct object_look look = { .what = what, .data = data };

	dl_iterate_phdr(look_with_lock, &look);
	return look.ret;
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
