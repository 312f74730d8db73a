/* SPDX-License-Identifier: MIT */
/* The mappings of a range as a list. */
#ifndef PATCHCORE_TESTS_MAPPINGS_H
#define PATCHCORE_TESTS_MAPPINGS_H

#include <errno.h>
#include <stdlib.h>

#include "patchcore/pages/text.h"

struct mappings_list {
	struct mapping *list;
	int count, room;
};

static inline int mappings_add(const struct mapping *map, void *arg)
{
	struct mappings_list *found = arg;
	struct mapping *more;

	if (found->count == found->room) {
		found->room = found->room ? found->room * 2 : 4;
		more = realloc(found->list, (size_t)found->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		found->list = more;
	}
	found->list[found->count++] = *map;
	return 0;
}

/* mappings_read - how many share a byte with [start, end), or an error. The caller frees *list. */
static inline int mappings_read(uintptr_t start, uintptr_t end, struct mapping **list)
{
	struct mappings_list found = { 0 };
	int ret = mappings_each(start, end, MAPPING_ANY, mappings_add, &found);

	*list = found.list;
	return ret < 0 ? ret : found.count;
}

#endif
