/* SPDX-License-Identifier: MIT */
/* The files of protocols that were asked for by name. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text_file.h"
#include "stress/protocol/protocol.h"

#define SUFFIX ".protocol"

static struct known_protocol {
	char name[PATH_MAX];
	struct protocol_file protocol;
} * *known;
static size_t count;

int protocol_path(const char *name, char *path, size_t size)
{
	size_t length = strlen(name), suffix = strlen(SUFFIX);
	char file[PATH_MAX];

	if (length > suffix && strcmp(name + length - suffix, SUFFIX) == 0)
		length -= suffix;
	if (strchr(name, '/'))
		return snprintf(path, size, "%s", name) >= (int)size ? -ENAMETOOLONG : 0;
	snprintf(file, sizeof(file), "protocols/%.*s" SUFFIX, (int)length, name);
	return data_file(file, path, size);
}

static int read_file(const char *name, struct protocol_file *p, char *why)
{
	char path[PATH_MAX];
	int ret = protocol_path(name, path, sizeof(path));
	FILE *stream = ret == 0 ? fopen(path, "re") : NULL;

	if (ret == 0 && !stream)
		ret = -errno;
	if (stream) {
		ret = protocol_read(stream, path, p, why);
		fclose(stream);
	}
	if (ret < 0 && ret != -EINVAL)
		snprintf(why, WORDS_WHY, "%.200s: %s", ret == -ENOENT ? name : path,
			 strerror(-ret));
	return ret;
}

int protocol_find(const char *name, const struct protocol_file **p, char *why)
{
	struct known_protocol *fresh;
	int ret;

	for (size_t i = 0; i < count; i++)
		if (strcmp(known[i]->name, name) == 0) {
			*p = &known[i]->protocol;
			return 0;
		}
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	ret = snprintf(fresh->name, sizeof(fresh->name), "%s", name) >= (int)sizeof(fresh->name)
		      ? -ENAMETOOLONG
		      : read_file(name, &fresh->protocol, why);
	if (ret == 0)
		ret = ARRAY_ADD(known, count, fresh);
	if (ret < 0) {
		free(fresh);
		return ret;
	}
	*p = &fresh->protocol;
	return 0;
}
