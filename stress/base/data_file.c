/* SPDX-License-Identifier: MIT */
#include "stress/base/data_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_in(const char *folder, const char *name, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/%s", folder, name);

	if (length < 0 || (size_t)length >= size)
		return -ENAMETOOLONG;
	return access(path, R_OK) ? -errno : 0;
}

static int find_beside_program(const char *name, char *path, size_t size)
{
	char folder[PATH_MAX + sizeof("/data")];
	ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX);
	char *end;

	if (length < 0 || length == PATH_MAX)
		return -ENOENT;
	folder[length] = '\0';
	end = strrchr(folder, '/');
	if (!end)
		return -ENOENT;
	strcpy(end, "/data");
	return find_in(folder, name, path, size);
}

int data_file(const char *name, char *path, size_t size)
{
	const char *folder = getenv("TMAX_DATADIR");

	if (folder)
		return find_in(folder, name, path, size);
	if (find_beside_program(name, path, size) == 0)
		return 0;
	return find_in(PKGDATADIR, name, path, size);
}
