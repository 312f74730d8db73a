/* SPDX-License-Identifier: MIT */
/*
 * What providers find in the files of objects.
 */
#include "probes/core/core.h"

struct discovery {
	const struct provider *const *providers;
	struct object *object;
	struct elf elf;
};

static int ask_providers(void *data)
{
	const struct discovery *d = data;
	int ret = 0;

	for (const struct provider *const *one = d->providers; *one && !ret && !d->object->gone;
	     one++)
		ret = (*one)->discover(d->object, &d->elf);
	return ret;
}

static int discover_all(struct object *object, const struct provider *const *by)
{
	struct discovery d = { .providers = by, .object = object };
	uint32_t first = fi_probes();
	int ret;

	/* The vdso has no file. */
	if (elf_map(&d.elf, object->path) < 0)
		return 0;
	ret = object_is_of(object, &d.elf) ? objects_hold(ask_providers, &d) : 0;
	elf_unmap(&d.elf);
	/* Where it does something, no thread is left to unload the object. */
	site_merge_early(first, fi_probes());
	return ret;
}

static fi_progress *_Atomic tell_progress;

void fi_set_progress(fi_progress *progress)
{
	tell_progress = progress;
}

/* Those from the newest one down to one that is left out. */
static int discover_some(struct object *object, const struct object *end,
			 const struct provider *const *by)
{
	fi_progress *tell = tell_progress;
	unsigned done = 0, of = 0;
	int ret = 0;

	for (const struct object *one = object; one != end; one = one->next)
		of++;
	for (; object != end && !ret; object = object->next) {
		if (tell)
			tell(done++, of);
		if (!object->gone)
			ret = discover_all(object, by);
	}
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

	return ret ? ret : discover_some(objects_list(), old, providers);
}

int object_again(const struct provider *provider)
{
	return discover_some(objects_list(), NULL,
			     (const struct provider *const[]){ provider, NULL });
}
