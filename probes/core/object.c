/* SPDX-License-Identifier: MIT */
/*
 * The objects of the process, as they come and go.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/core/core.h"

static struct object *objects;
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
	/* "." and ".." are among them. A thread of the tool may itself be who asks. */
	return n == 2 + !own_here + atomic_load_explicit(&own_threads, memory_order_relaxed);
}

/* --- What is loaded --------------------------------------------------------------------------- */

/* Objects of this look: new ones at the head, those that were seen again are marked. */
struct look {
	struct object *found;
	int error;
};

static void segments(struct object *object, const struct dl_phdr_info *info)
{
	int n = 0;

	object->start = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + phdr->p_vaddr;
		uintptr_t end = start + phdr->p_memsz;

		if (phdr->p_type != PT_LOAD)
			continue;
		object->start = start < object->start ? start : object->start;
		object->end = end > object->end ? end : object->end;
		if (n == 8)
			continue;
		object->segment[n].start = start;
		object->segment[n].end = end;
		object->segment[n++].flags = phdr->p_flags;
	}
}

static const char *path_of(const char *name)
{
	char buffer[PATH_MAX];
	ssize_t len;

	if (*name)
		return object_string(name);
	len = readlink("/proc/thread-self/exe", buffer, sizeof(buffer) - 1);
	buffer[len < 0 ? 0 : len] = '\0';
	return object_string(buffer);
}

/* Runs with the loader's lock, so that nothing but memory is asked for. */
static int take(struct dl_phdr_info *info, size_t size, void *data)
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
	segments(object, info);
	object->next = look->found;
	look->found = object;
	return 0;
}

static bool same(const struct object *a, const struct object *b)
{
	return a->base == b->base && a->start == b->start && a->end == b->end &&
	       !strcmp(a->path, b->path);
}

static void drop(struct object *object)
{
	free((char *)object->path);
	free(object);
}

void object_drop_all(struct object *list)
{
	struct object *next;

	for (; list; list = next) {
		next = list->next;
		drop(list);
	}
}

static bool is_among(const struct object *list, const struct object *object)
{
	for (; list; list = list->next)
		if (!list->gone && same(list, object))
			return true;
	return false;
}

static void leave(struct object *object)
{
	uint32_t n = fi_probes();

	object->gone = true;
	for (uint32_t id = 0; id < n; id++) {
		struct probe *probe = probe_get(id);

		if (probe->object == object)
			probe->is_on = false;
	}
}

static void mark_gone(const struct object *loaded)
{
	for (struct object *old = objects; old; old = old->next)
		if (!old->gone && !is_among(loaded, old))
			leave(old);
}

/* --- Their files ------------------------------------------------------------------------------ */

/* NULL: no file, as the vdso has none, or it cannot be read. */
static const void *map_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	void *map = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_size > 0)
		map = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	*size = (size_t)stat.st_size;
	return map == MAP_FAILED ? NULL : map;
}

static int discover(struct object *object, const struct provider *const *providers)
{
	uint32_t first = fi_probes();
	size_t size;
	const void *image = map_file(object->path, &size);
	int ret = 0;

	if (!image)
		return 0;
	for (; *providers && !ret; providers++)
		ret = (*providers)->discover(object, image, size);
	munmap((void *)image, size);
	site_merge_early(first, fi_probes());
	return ret;
}

/* All that are loaded. An error leaves none. */
static int look_around(struct object **found)
{
	struct look look = { 0 };

	dl_iterate_phdr(take, &look);
	if (look.error) {
		object_drop_all(look.found);
		look.found = NULL;
	}
	*found = look.found;
	return look.error;
}

int object_new(struct object **list)
{
	struct object *object, *next;
	int ret = look_around(&object);

	*list = NULL;
	for (; object; object = next) {
		next = object->next;
		if (is_among(objects, object)) {
			drop(object);
			continue;
		}
		object->next = *list;
		*list = object;
	}
	return ret;
}

int object_scan(const struct provider *const *providers, struct object *const *held)
{
	struct object *object, *next;
	int ret = look_around(&object);

	if (ret)
		return ret;
	mark_gone(object);
	for (; object; object = next) {
		next = object->next;
		if (is_among(objects, object) || (held && !is_among(*held, object))) {
			drop(object);
			continue;
		}
		object->next = objects;
		objects = object;
		if (!ret)
			ret = discover(object, providers);
	}
	return ret;
}
