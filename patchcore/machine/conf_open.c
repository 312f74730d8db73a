/* SPDX-License-Identifier: MIT */
/*
 * A user who can write to the config decides how long this process waits, and so whether its code
 * tears.
 */
#include "patchcore/machine/machine_conf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel follows */

/* The folder, or the file, which must be a regular one. */
static int judge_owner(int fd, bool is_folder, char *why, size_t size)
{
	const char *what = is_folder ? "its folder" : "it";
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!is_folder && !S_ISREG(st.st_mode)) {
		snprintf(why, size, "it is no regular file");
		return -EINVAL;
	}
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		if (geteuid() == 0)
			snprintf(why, size, "%s belongs to user %u, not to root: chown it", what,
				 (unsigned)st.st_uid);
		else
			snprintf(why, size,
				 "%s belongs to user %u, not to root or user %u, who runs this: "
				 "chown it",
				 what, (unsigned)st.st_uid, (unsigned)geteuid());
		return -EPERM;
	}
	if (!(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	snprintf(why, size, "%s can be written to by others (mode %04o): %s", what,
		 (unsigned)(st.st_mode & 07777),
		 st.st_mode & S_ISVTX ? "move the file to a folder of your own" : "chmod go-w it");
	return -EPERM;
}

/* Opens the folder part of a path that starts at from, and leaves the name in path. */
static int open_folder(int from, char *path)
{
	char *slash = strrchr(path, '/'), folder[PATH_MAX] = ".";
	int fd;

	if (slash == path) {
		snprintf(folder, sizeof(folder), "/");
	} else if (slash) {
		*slash = '\0';
		snprintf(folder, sizeof(folder), "%s", path);
	}
	if (slash)
		memmove(path, slash + 1, strlen(slash + 1) + 1);
	/* "folder/" is the folder itself. */
	if (slash && !path[0])
		strcpy(path, ".");
	fd = openat(from, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
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

/* A link's name becomes what it says. */
static int read_link(int folder, char path[PATH_MAX])
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(folder, path, target, sizeof(target));

	if (n < 0)
		return -errno;
	if (n == PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(path, target, (size_t)n);
	path[n] = '\0';
	return 0;
}

/*
 * One name of the way: opens it in its folder, which becomes *folder. -ELOOP: it is a
 * symbolic link, and path is now where that leads, seen from *folder.
 */
static int open_next_name(int *folder, char path[PATH_MAX], char *why, size_t size)
{
	int ret, file, next = open_folder(*folder, path);

	if (*folder != AT_FDCWD)
		close(*folder);
	*folder = next;
	if (next < 0)
		return next;
	file = open_file(next, path);
	if (file < 0 && file != -ELOOP)
		return file;
	/* The file's own fault is told first. */
	ret = file >= 0 ? judge_owner(file, false, why, size) : 0;
	if (ret == 0)
		ret = judge_owner(next, true, why, size);
	if (ret == 0 && file < 0)
		ret = read_link(next, path);
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
