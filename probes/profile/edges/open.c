/* SPDX-License-Identifier: MIT */
#include "probes/profile/edges/open.h"

#include <errno.h>
#include <stddef.h>

#include <patchcore/mapping.h>

#define SITE 8 /* bytes at most */

static struct open_range opened[256]; /* the others are slower */
static size_t opened_n;

void open_end(struct open_range *range)
{
	size_t len = range->to - range->from;

	if (!len || opened_n == sizeof(opened) / sizeof(*opened))
		return;
	if (pc_text_open((void *)range->from, len) < 0 &&
	    pc_text_alias((void *)range->from, len) < 0)
		return;
	opened[opened_n++] = *range;
}

void open_note(struct open_range *range, const struct fi_probe *probe)
{
	uintptr_t at = (uintptr_t)probe->address;

	if (range->object != probe->object) {
		open_end(range);
		*range = (struct open_range){ probe->object, at, at + SITE };
	}
	range->from = at < range->from ? at : range->from;
	range->to = at + SITE > range->to ? at + SITE : range->to;
}

/* What cannot be closed now stays listed. What is closed already is not found. */
int open_close_all(void)
{
	size_t kept = 0;
	int ret = 0;

	for (size_t i = 0; i < opened_n; i++) {
		int closed = pc_text_close((void *)opened[i].from, opened[i].to - opened[i].from);

		if (closed < 0 && closed != -ENOENT) {
			opened[kept++] = opened[i];
			ret = closed;
		}
	}
	opened_n = kept;
	return ret;
}
