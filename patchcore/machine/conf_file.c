/* SPDX-License-Identifier: MIT */
/*
 * Where machine.conf is, and opening it. A user who can write to the config decides how long this
 * process waits, and so whether its code tears.
 */
#include "patchcore/machine/machine_conf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FILE_NAME "machine.conf"
#define STATE_DIR LOCALSTATEDIR "/lib/tmax/" FILE_NAME
#define LINKS_MAX 40 /* as the kernel follows */

/* --- Where ------------------------------------------------------------------------------------ */

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

int machine_conf_find(char *path, size_t size)
{
	const char *const places[] = { NULL, SYSCONFDIR "/tmax/" FILE_NAME, STATE_DIR };
	const char *named = secure_getenv("PATCHCORE_MACHINE_CONF");
	struct stat st;

	/* If the file that the user names is missing, that is an error: no other is looked for. */
	if (named && named[0])
		return join_path(path, size, named, "");
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int ret = places[i] ? join_path(path, size, places[i], "") : user_path(path, size);

		if (ret == -ENAMETOOLONG)
			return ret;
		if (ret == 0 && (stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR)))
			return 0;
	}
	return -ENOENT;
}

int machine_conf_default_path(char *path, size_t size)
{
	return geteuid() == 0 ? join_path(path, size, STATE_DIR, "") : user_path(path, size);
}

/* --- Opening ---------------------------------------------------------------------------------- */

/* The folder, or the file, which must be a regular one. */
static int judge_owner(int fd, bool is_folder, char *why, size_t size)
{
	const char *what = is_folder ? "its folder" : "it";
	char self[48] = "";
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!is_folder && !S_ISREG(st.st_mode)) {
		snprintf(why, size, "it is no regular file");
		return -EINVAL;
	}
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		if (geteuid() != 0)
			snprintf(self, sizeof(self), " or user %u, who runs this", geteuid());
		snprintf(why, size, "%s belongs to user %u, not to root%s: chown it", what,
			 st.st_uid, self);
		return -EPERM;
	}
	if (!(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	snprintf(why, size, "%s can be written to by others (mode %04o): %s", what,
		 (unsigned)(st.st_mode & 07777),
		 st.st_mode & S_ISVTX ? "move the file to a folder of your own" : "chmod go-w it");
	return -EPERM;
}

/* Does not block: the name may be that of a pipe or a device. */
static int open_file(int folder, const char *name)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int file = openat(folder, name, flags | O_NOFOLLOW), error = errno;
	struct statfs fs;

	if (file >= 0)
		return file;
	/* A link of /proc may lead to what has no name. */
	if (error != ELOOP || fstatfs(folder, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return -error;
	file = openat(folder, name, flags);
	return file < 0 ? -errno : file;
}

/*
 * One name of the way: opens it in its folder, which becomes *folder. -ELOOP: it is a
 * symbolic link, and path is now where that leads, seen from *folder.
 */
static int open_next_name(int *folder, char path[PATH_MAX], char *why, size_t size)
{
	char *slash = strrchr(path, '/'), target[PATH_MAX] = ".";
	int ret = 0, file, next;
	ssize_t n;

	if (slash) {
		snprintf(target, sizeof(target), "%.*s", slash > path ? (int)(slash - path) : 1,
			 path);
		memmove(path, slash + 1, strlen(slash + 1) + 1);
		/* "folder/" is the folder itself. */
		if (!path[0])
			strcpy(path, ".");
	}
	next = openat(*folder, target, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (next < 0)
		ret = -errno;
	if (*folder != AT_FDCWD)
		close(*folder);
	*folder = next;
	if (ret < 0)
		return ret;
	file = open_file(next, path);
	if (file < 0 && file != -ELOOP)
		return file;
	/* The file's own fault is told first. */
	if (file >= 0)
		ret = judge_owner(file, false, why, size);
	if (ret == 0)
		ret = judge_owner(next, true, why, size);
	if (ret == 0 && file < 0) {
		n = readlinkat(next, path, target, sizeof(target));
		if (n == PATH_MAX)
			ret = -ENAMETOOLONG;
		else if (n < 0)
			ret = -errno;
		else
			snprintf(path, PATH_MAX, "%.*s", (int)n, target);
	}
	if (ret < 0 && file >= 0)
		close(file);
	return ret < 0 ? ret : file;
}

int conf_open(const char *path, char *why, size_t size)
{
	int ret = -ELOOP, folder = AT_FDCWD;
	char rest[PATH_MAX];

	why[0] = '\0';
	if (!path[0])
		ret = -ENOENT;
	else if (snprintf(rest, sizeof(rest), "%s", path) >= (int)sizeof(rest))
		ret = -ENAMETOOLONG;
	else
		for (int links = 0; ret == -ELOOP && links <= LINKS_MAX; links++)
			ret = open_next_name(&folder, rest, why, size);
	if (folder >= 0)
		close(folder);
	if (ret < 0 && !why[0])
		snprintf(why, size, "it cannot be read: %s", strerror(-ret));
	return ret;
}
