/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/machine_conf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "machine.conf"

static int join_path(char *path, size_t size, const char *folder, const char *rest)
{
	int n = snprintf(path, size, "%s%s", folder, rest);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int user_path(char *path, size_t size)
{
	const char *config = secure_getenv("XDG_CONFIG_HOME");
	const char *home = secure_getenv("HOME");

	if (config && config[0] == '/')
		return join_path(path, size, config, "/tmax/" FILE_NAME);
	if (home && home[0] == '/')
		return join_path(path, size, home, "/.config/tmax/" FILE_NAME);
	return -ENOENT;
}

static bool exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

int machine_conf_find(char *path, size_t size)
{
	const char *named = secure_getenv("PATCHCORE_MACHINE_CONF");
	int ret;

	/* If the file that the user names is missing, that is an error: no other is looked for. */
	if (named && named[0])
		return join_path(path, size, named, "");
	ret = user_path(path, size);
	if (ret == -ENAMETOOLONG || (ret == 0 && exists(path)))
		return ret;
	ret = join_path(path, size, SYSCONFDIR, "/tmax/" FILE_NAME);
	if (ret < 0 || exists(path))
		return ret;
	ret = join_path(path, size, LOCALSTATEDIR, "/lib/tmax/" FILE_NAME);
	if (ret < 0 || exists(path))
		return ret;
	return -ENOENT;
}

int machine_conf_default_path(char *path, size_t size)
{
	if (geteuid() == 0)
		return join_path(path, size, LOCALSTATEDIR, "/lib/tmax/" FILE_NAME);
	return user_path(path, size);
}
