/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "probes/core/core.h"

static int by_place(const void *a, const void *b)
{
	uintptr_t one = *(const uintptr_t *)a, two = *(const uintptr_t *)b;

	return one < two ? -1 : one > two;
}

int beside_find(struct beside *beside, const struct object *object, enum fi_kind kind)
{
	uint32_t n = fi_probes();

	*beside = (struct beside){ .site = calloc(n + 1, sizeof(*beside->site)) };
	if (!beside->site)
		return -ENOMEM;
	for (uint32_t id = 0; id < n; id++) {
		const struct probe *probe = probe_get(id);

		if (probe->object == object && probe->kind == kind && !probe->reason)
			beside->site[beside->n++] = (uintptr_t)probe->site;
	}
	qsort(beside->site, beside->n, sizeof(*beside->site), by_place);
	return 0;
}

bool beside_has(const struct beside *beside, uintptr_t start, uintptr_t end)
{
	size_t low = 0, high = beside->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (beside->site[middle] < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < beside->n && beside->site[low] < end;
}
