/* SPDX-License-Identifier: MIT */
#include "probes/profile/sample/pages.h"

#include <errno.h>
#include <stddef.h>

#include <patchcore/mapping.h>

#define SITE 8 /* bytes at most */

struct span {
	uintptr_t from, to;
};

static struct span opened[256]; /* the others are slower */
static size_t opened_n;

void pages_open(uintptr_t from, uintptr_t to)
{
	size_t len = to - from;

	if (to <= from || opened_n == sizeof(opened) / sizeof(*opened))
		return;
	if (pc_text_open((void *)from, len) < 0 && pc_text_alias((void *)from, len) < 0)
		return;
	opened[opened_n++] = (struct span){ from, to };
}

void pages_note(struct pages_range *range, const struct fi_probe *probe)
{
	uintptr_t at = (uintptr_t)probe->address;

	if (range->object != probe->object) {
		pages_open(range->from, range->to);
		*range = (struct pages_range){ probe->object, at, at + SITE };
	}
	range->from = at < range->from ? at : range->from;
	range->to = at + SITE > range->to ? at + SITE : range->to;
}

int pages_close(void)
{
	size_t kept = 0;
	int ret = 0;

	for (size_t i = 0; i < opened_n; i++) {
		size_t len = opened[i].to - opened[i].from;
		int closed = pc_text_close((void *)opened[i].from, len);

		if (closed < 0 && closed != -ENOENT) {
			opened[kept++] = opened[i];
			ret = closed;
		}
	}
	opened_n = kept;
	return ret;
}
