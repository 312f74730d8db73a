/* SPDX-License-Identifier: MIT */
#include "profile/sample/sample.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include <patchcore/mapping.h>

#define SITE 8 /* bytes at most */

static struct span {
	uintptr_t from, to;
} opened[256], noted; /* further ranges stay closed, which is slower */
static size_t opened_n;
static const char *noted_object;

void pages_open(void)
{
	void *from = (void *)noted.from;
	size_t len = noted.to - noted.from;

	if (len && opened_n < sizeof(opened) / sizeof(*opened) &&
	    (pc_text_open(from, len) >= 0 || pc_text_alias(from, len) >= 0))
		opened[opened_n++] = noted;
	noted = (struct span){ 0, 0 };
	noted_object = NULL;
}

void pages_note(const char *object, const void *site)
{
	uintptr_t at = (uintptr_t)site;

	if (noted_object != object) {
		pages_open();
		noted = (struct span){ at, at + SITE };
		noted_object = object;
	}
	noted.from = at < noted.from ? at : noted.from;
	noted.to = at + SITE > noted.to ? at + SITE : noted.to;
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
