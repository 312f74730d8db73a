/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "probes/core/core.h"
#include "probes/elf/sorted.h"

ORDER_BY(by_place, struct beside_site, at)

int beside_find(struct beside *beside, const struct object *object, enum fi_kind kind)
{
	size_t n = 1;

	for (const struct probe *probe = object->probes; probe; probe = probe->sibling)
		n++;
	*beside = (struct beside){ .site = calloc(n, sizeof(*beside->site)) };
	if (!beside->site)
		return -ENOMEM;
	for (const struct probe *probe = object->probes; probe; probe = probe->sibling)
		if (probe->kind == kind && !probe->reason)
			beside->site[beside->n++].at = (uintptr_t)probe->site;
	qsort(beside->site, beside->n, sizeof(*beside->site), by_place);
	return 0;
}

bool beside_has(const struct beside *beside, uintptr_t start, uintptr_t end)
{
	size_t i = SORTED_FROM(beside->site, beside->n, at, start);

	return i < beside->n && beside->site[i].at < end;
}
