/* SPDX-License-Identifier: MIT */
/* New objects: each provider looks at the file of each. */
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
	int ret = 0;

	/* The vdso has no file. */
	if (!elf_map(&d.elf, object->path, ELF_PLAIN)) {
		if (object_is_of(object, &d.elf)) {
			object->gone = false;
			ret = objects_hold(ask_providers, &d);
		}
		elf_unmap(&d.elf);
	}
	object_list_missing(object);
	/* It needs no hold: it only does something while there is one thread. */
	site_merge_early(object);
	return ret ? ret : objects_hold(object_turn_on, object);
}

static fi_progress *_Atomic tell_progress;

void fi_set_progress(fi_progress *progress)
{
	tell_progress = progress;
}

/* The first object whose probes have not been looked for, and how many there are. */
static struct object *find_new_object(unsigned *n)
{
	struct object *first = NULL;

	*n = 0;
	for (struct object *object = objects_list(); object; object = object->next) {
		if (!first && object->is_new)
			first = object;
		*n += object->is_new;
	}
	return first;
}

/* Marking unloaded objects changes the list, so each search begins at its head. */
static int discover_new(const struct provider *const *by)
{
	fi_progress *tell = tell_progress;
	struct object *object;
	unsigned left;
	int ret = 0;

	for (unsigned done = 0; !ret && (object = find_new_object(&left)); done++) {
		if (tell)
			tell(done, done + left);
		object->is_new = false;
		ret = discover_all(object, by);
	}
	return ret;
}

int object_scan(const struct provider *const *providers)
{
	int ret = objects_look(providers);

	return ret ? ret : discover_new(providers);
}

int object_again(const struct provider *provider)
{
	const struct provider *const by[] = { provider, NULL };

	for (struct object *object = objects_list(); object; object = object->next)
		object->is_new = true;
	return discover_new(by);
}
