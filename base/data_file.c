/* SPDX-License-Identifier: MIT */
#include "base/data_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_data_in(const char *folder, const char *name, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/%s", folder, name);

	if (length < 0 || (size_t)length >= size)
		return -ENAMETOOLONG;
	return access(path, R_OK) ? -errno : 0;
}

int data_file(const char *name, char *path, size_t size)
{
	const char *folder = getenv("TMAX_DATADIR");
	char beside[PATH_MAX + sizeof("/data")], *slash;
	ssize_t length;

	if (folder)
		return find_data_in(folder, name, path, size);
	length = readlink("/proc/self/exe", beside, PATH_MAX);
	beside[length > 0 && length < PATH_MAX ? length : 0] = '\0';
	slash = strrchr(beside, '/');
	if (slash)
		strcpy(slash, "/data");
	if (slash && find_data_in(beside, name, path, size) == 0)
		return 0;
	return find_data_in(PKGDATADIR, name, path, size);
}
