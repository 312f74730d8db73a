/* SPDX-License-Identifier: MIT */
/*
 * What providers find in the files of objects.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/core/core.h"

/*
 * Shared, as the kernel puts breakpoints of uprobes into private mappings. NULL: no file, as the
 * vdso has none, or it cannot be read.
 */
static const void *map_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	void *map = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_size > 0)
		map = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	*size = (size_t)stat.st_size;
	return map == MAP_FAILED ? NULL : map;
}

struct discovery {
	const struct provider *const *providers;
	struct object *object;
	const void *image;
	size_t size;
};

static int ask_providers(void *data)
{
	const struct discovery *d = data;
	int ret = 0;

	for (const struct provider *const *one = d->providers; *one && !ret && !d->object->gone;
	     one++)
		ret = (*one)->discover(d->object, d->image, d->size);
	return ret;
}

static int discover_all(struct object *object, const struct provider *const *by)
{
	struct discovery d = { .providers = by, .object = object };
	uint32_t first = fi_probes();
	int ret;

	d.image = map_file(object->path, &d.size);
	if (!d.image)
		return 0;
	ret = object_is_of(object, d.image, d.size) ? objects_hold(ask_providers, &d) : 0;
	munmap((void *)d.image, d.size);
	/* Where it does something, no thread is left to unload the object. */
	site_merge_early(first, fi_probes());
	return ret;
}

/*
 * All new ones are listed before one of them is read: what marks those that went looks in that
 * list, and is done with it when the next one is read.
 */
int object_scan(const struct provider *const *providers)
{
	const struct object *const old = objects_list();
	int ret = objects_look(providers);

	for (struct object *object = objects_list(); object != old && !ret; object = object->next)
		ret = discover_all(object, providers);
	return ret;
}

int object_again(const struct provider *provider)
{
	const struct provider *const by[] = { provider, NULL };
	int ret = 0;

	for (struct object *object = objects_list(); object && !ret; object = object->next)
		if (!object->gone)
			ret = discover_all(object, by);
	return ret;
}
