/* SPDX-License-Identifier: MIT */
/*
 * A user who can write to the config decides how long this process waits, and so whether its code
 * tears.
 */
#include "patchcore/machine/conf_open.h"

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

struct complaint {
	char *why;
	size_t size;
};

static bool is_trusted(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

/* what: "it", or "its folder". */
static int judge_owner(const struct complaint *c, const char *what, const struct stat *st)
{
	if (is_trusted(st->st_uid))
		return 0;
	if (geteuid() == 0)
		snprintf(c->why, c->size, "%s belongs to user %u, not to root: chown it", what,
			 (unsigned)st->st_uid);
	else
		snprintf(c->why, c->size,
			 "%s belongs to user %u, not to root or user %u, who runs this: chown it",
			 what, (unsigned)st->st_uid, (unsigned)geteuid());
	return -EPERM;
}

static int judge_mode(const struct complaint *c, const char *what, const struct stat *st)
{
	if (!(st->st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	snprintf(c->why, c->size, "%s can be written to by others (mode %04o): %s", what,
		 (unsigned)(st->st_mode & 07777),
		 st->st_mode & S_ISVTX ? "move the file to a folder of your own" : "chmod go-w it");
	return -EPERM;
}

static int judge_folder(const struct complaint *c, int folder)
{
	struct stat st;
	int ret;

	if (fstat(folder, &st) < 0)
		return -errno;
	ret = judge_owner(c, "its folder", &st);
	return ret < 0 ? ret : judge_mode(c, "its folder", &st);
}

static int judge_file(const struct complaint *c, int file)
{
	struct stat st;
	int ret;

	if (fstat(file, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		snprintf(c->why, c->size, "it is no regular file");
		return -EINVAL;
	}
	ret = judge_owner(c, "it", &st);
	return ret < 0 ? ret : judge_mode(c, "it", &st);
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
static int open_name(int folder, const char *name, int flags)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);

	return fd < 0 ? -errno : fd;
}

static bool is_proc(int folder)
{
	struct statfs fs;

	return fstatfs(folder, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
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
static int open_next_name(const struct complaint *c, int *folder, char path[PATH_MAX])
{
	int ret, file, next = open_folder(*folder, path);

	if (*folder != AT_FDCWD)
		close(*folder);
	*folder = next;
	if (next < 0)
		return next;
	file = open_name(next, path, O_NOFOLLOW);
	if (file == -ELOOP && is_proc(next))
		file = open_name(next, path, 0);
	if (file < 0 && file != -ELOOP)
		return file;
	/* The file's own fault is told first. */
	ret = file >= 0 ? judge_file(c, file) : 0;
	if (ret == 0)
		ret = judge_folder(c, next);
	if (ret < 0 && file >= 0)
		close(file);
	if (ret < 0)
		return ret;
	if (file >= 0)
		return file;
	ret = read_link(next, path);
	return ret < 0 ? ret : -ELOOP;
}

int conf_open(const char *path, char *why, size_t size)
{
	const struct complaint complaint = { why, size };
	int ret = -ELOOP, folder = AT_FDCWD;
	char rest[PATH_MAX];

	why[0] = '\0';
	if (!path[0])
		ret = -ENOENT;
	else if (snprintf(rest, sizeof(rest), "%s", path) >= (int)sizeof(rest))
		ret = -ENAMETOOLONG;
	else
		for (int links = 0; ret == -ELOOP && links <= LINKS_MAX; links++)
			ret = open_next_name(&complaint, &folder, rest);
	if (folder >= 0)
		close(folder);
	if (ret < 0 && !why[0])
		snprintf(why, size, "it cannot be read: %s", strerror(-ret));
	return ret;
}
