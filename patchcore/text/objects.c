/* SPDX-License-Identifier: MIT */
#include "patchcore/text/objects.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>

struct object {
	uintptr_t start;
	uintptr_t end;
	uint64_t identity; /* of base, file name and build-id */
};

/* FNV-1a */
static uint64_t hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		seed = (seed ^ bytes[i]) * UINT64_C(0x100000001b3);
	return seed;
}

#define PADDED(len) (((len) + 3) & ~(size_t)3) /* as the fields of a note are */

static uint64_t hash_build_id(uint64_t seed, const uint8_t *notes, size_t len)
{
	while (len >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)notes;
		size_t name = sizeof(*note), data = name + PADDED(note->n_namesz);
		size_t next = data + PADDED(note->n_descsz);

		if (next > len)
			break;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0)
			return hash_bytes(seed, notes + data, note->n_descsz);
		notes += next;
		len -= next;
	}
	return seed;
}

/* Every object tells the counts. */
static int count_only(struct dl_phdr_info *info, size_t size, void *data)
{
	struct objects_view *look = data;

	(void)size;
	look->loads = info->dlpi_adds;
	look->unloads = info->dlpi_subs;
	return 1;
}

/* Not 0: no memory. */
static int add_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct objects_view *look = data;
	struct object *object;
	uint64_t seed =
		hash_bytes(UINT64_C(0xcbf29ce484222325), &info->dlpi_addr, sizeof(uintptr_t));

	count_only(info, size, look);
	object = realloc(look->list, (look->count + 1) * sizeof(*object));
	if (!object)
		return -ENOMEM;
	look->list = object;
	object += look->count++;
	*object = (struct object){ .start = UINTPTR_MAX };
	seed = hash_bytes(seed, info->dlpi_name, strlen(info->dlpi_name));
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_NOTE)
			seed = hash_build_id(seed, (const void *)at, part->p_memsz);
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
	atomic_store_explicit(&threads_at_fork, !__libc_single_threaded, memory_order_relaxed);
}

void objects_in_child(void)
{
	if (atomic_load_explicit(&threads_at_fork, memory_order_relaxed))
		atomic_store_explicit(&lock_may_be_lost, true, memory_order_relaxed);
}

uint64_t objects_unloads(void)
{
	static _Atomic(uint64_t) guesses; /* relaxed: only to differ each time */
	struct objects_view look = OBJECTS_VIEW_INIT;

	if (atomic_load_explicit(&lock_may_be_lost, memory_order_relaxed))
		return UINT64_MAX - atomic_fetch_add_explicit(&guesses, 1, memory_order_relaxed);

	dl_iterate_phdr(count_only, &look);
	return look.unloads;
}

static bool contains(const struct objects_view *look, const struct object *object)
{
	for (size_t i = 0; i < look->count; i++)
		if (look->list[i].identity == object->identity &&
		    look->list[i].start == object->start && look->list[i].end == object->end)
			return true;
	return false;
}

int objects_each_gone(struct objects_view *view, void (*gone)(uintptr_t start, uintptr_t end))
{
	struct objects_view look = OBJECTS_VIEW_INIT;
	struct object *unused;
	bool is_new;
	int ret;

	if (atomic_load_explicit(&lock_may_be_lost, memory_order_relaxed))
		return 0;
	dl_iterate_phdr(count_only, &look);
	lock_take(&view->lock);
	is_new = look.loads != view->loads || look.unloads != view->unloads;
	lock_drop(&view->lock);
	if (!is_new)
		return 0;
	ret = dl_iterate_phdr(add_object, &look);
	unused = look.list;
	lock_take(&view->lock);
	/* Another thread may have looked meanwhile: the later of the two looks counts. */
	if (ret == 0 && look.loads >= view->loads && look.unloads >= view->unloads) {
		for (size_t i = 0; i < view->count; i++)
			if (!contains(&look, &view->list[i]))
				gone(view->list[i].start, view->list[i].end);
		unused = view->list;
		view->list = look.list;
		view->count = look.count;
		view->loads = look.loads;
		view->unloads = look.unloads;
	}
	lock_drop(&view->lock);
	free(unused);
	return ret;
}
