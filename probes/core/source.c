/* SPDX-License-Identifier: MIT */
/*
 * Where probes are in the source. Nothing is looked for before it is asked: reading debug
 * information takes memory and time, which most programs with probes have no use for.
 */
#include <errno.h>

#include "probes/core/core.h"
#include "probes/source/source.h"

int source_look_up(struct probe *probe)
{
	struct object *object = probe->object;
	const char *file;

	if (probe->file)
		return 0;
	if (!object->source_asked)
		object->source = source_open(object->path);
	object->source_asked = true;
	if (!object->source || !source_line(object->source, (uintptr_t)probe->site - object->base,
					    &file, &probe->line))
		return -ENODATA;
	/* The object's debug information stays open, and with it the name. */
	probe->file = file;
	return 0;
}

int fi_source(uint32_t id, const char **file, unsigned *line)
{
	struct probe *probe;
	int ret;

	if (!file || !line)
		return -EINVAL;
	/* Before the lock: the loader may wait for threads that wait for it. */
	source_ready();
	ret = core_lock();
	if (ret < 0)
		return ret;
	probe = probe_get(id);
	ret = probe ? source_look_up(probe) : -ENOENT;
	if (!ret) {
		*file = probe->file;
		*line = probe->line;
	}
	core_unlock();
	return ret;
}
