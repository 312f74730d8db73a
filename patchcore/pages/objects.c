/* SPDX-License-Identifier: MIT */
#include "patchcore/pages/text.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>

#include "patchcore/site/lock.h"

struct loaded_object {
	uintptr_t start;
	uintptr_t end;
	uint64_t identity; /* of file name and notes: the build-id is one */
};

struct view {
	struct loaded_object *list;
	size_t count;
	uint64_t loads, unloads; /* the linker's counts: the same if nothing came or went */
};

static struct lock lock;
static struct view known; /* what was loaded at the last look; under the lock */

/* FNV-1a */
static uint64_t hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		seed = (seed ^ bytes[i]) * UINT64_C(0x100000001b3);
	return seed;
}

/* 1: nothing came or went since the counts of the look. Negative: no memory. */
static int note_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct view *look = data;
	struct loaded_object *object;
	uint64_t seed = UINT64_C(0xcbf29ce484222325);

	(void)size;
	if (!look->count && look->loads == info->dlpi_adds && look->unloads == info->dlpi_subs)
		return 1;
	look->loads = info->dlpi_adds;
	look->unloads = info->dlpi_subs;
	object = realloc(look->list, (look->count + 1) * sizeof(*object));
	if (!object)
		return -ENOMEM;
	look->list = object;
	object += look->count++;
	*object = (struct loaded_object){ .start = UINTPTR_MAX };
	seed = hash_bytes(seed, info->dlpi_name, strlen(info->dlpi_name));
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_NOTE)
			seed = hash_bytes(seed, (const void *)at, part->p_memsz);
		if (part->p_type != PT_LOAD)
			continue;
		if (at < object->start)
			object->start = at;
		if (at + part->p_memsz > object->end)
			object->end = at + part->p_memsz;
	}
	object->identity = seed;
	return 0;
}

/*
 * fork() does not free the lock that dl_iterate_phdr() takes. If another thread
 * had it, it is lost to the child.
 */
static atomic_bool threads_at_fork; /* written by the one thread around fork() */
static atomic_bool lock_may_be_lost;

void objects_before_fork(void)
{
	store_relaxed(&threads_at_fork, !__libc_single_threaded);
}

void objects_in_child(void)
{
	if (load_relaxed(&threads_at_fork))
		store_relaxed(&lock_may_be_lost, true);
}

static bool contains(const struct view *look, const struct loaded_object *object)
{
	for (size_t i = 0; i < look->count; i++)
		if (memcmp(&look->list[i], object, sizeof(*object)) == 0)
			return true;
	return false;
}

int objects_each_gone(void (*gone)(uintptr_t start, uintptr_t end))
{
	struct view look = { .list = NULL };
	struct loaded_object *unused;
	int ret;

	if (load_relaxed(&lock_may_be_lost))
		return 0;
	lock_take(&lock);
	look.loads = known.loads;
	look.unloads = known.unloads;
	lock_drop(&lock);
	/* A thread that a signal handler ended in it would leave that lock behind, too. */
	signals_hold();
	ret = dl_iterate_phdr(note_object, &look);
	signals_let();
	if (ret > 0)
		return 0;
	unused = look.list;
	lock_take(&lock);
	/* Another thread may have looked meanwhile: the later of the two looks counts. */
	if (ret == 0 && look.loads >= known.loads && look.unloads >= known.unloads) {
		for (size_t i = 0; i < known.count; i++)
			if (!contains(&look, &known.list[i]))
				gone(known.list[i].start, known.list[i].end);
		unused = known.list;
		known = look;
	}
	lock_drop(&lock);
	free(unused);
	return ret;
}
