/* SPDX-License-Identifier: MIT */
/* Temporary folders that are locked by the live command, and removed by the next one. */
#include "agent/launch/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHOSEN 6 /* characters that mkdtemp() chooses */
#define TRIES  16

static const int open_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/* Removes the folder of that name, and closes its descriptor. */
static void remove_open(int fd, int parent, const char *name)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		close(fd);
		return;
	}
	/* A process may still make files in it, which no command reads. */
	for (int i = 0; i < TRIES; i++) {
		rewinddir(dir);
		while ((entry = readdir(dir)))
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				unlinkat(dirfd(dir), entry->d_name, 0);
		if (!unlinkat(parent, name, AT_REMOVEDIR) || errno != ENOTEMPTY)
			break;
	}
	closedir(dir);
}

void folder_remove(const char *path)
{
	int fd = open(path, open_flags);

	if (fd >= 0)
		remove_open(fd, AT_FDCWD, path);
}

/* The folder is this user's, and no live process has locked it. */
static void remove_left_over(int parent, const char *name)
{
	int fd = openat(parent, name, open_flags);
	struct stat stat;

	if (fd < 0)
		return;
	if (!fstat(fd, &stat) && stat.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB))
		remove_open(fd, parent, name);
	else
		close(fd);
}

static void sweep_siblings(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	size_t len = strlen(name);
	char parent[PATH_MAX] = "";
	const struct dirent *entry;
	DIR *dir;

	strncat(parent, path, (size_t)(name - path));
	dir = opendir(parent);
	while (dir && (entry = readdir(dir)))
		if (strlen(entry->d_name) == len && !strncmp(entry->d_name, name, len - CHOSEN))
			remove_left_over(dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
}

/* False: another command has removed the folder before it was locked. */
static bool lock_folder(const char *path)
{
	int fd = open(path, open_flags);
	struct stat named, opened;

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &opened) &&
	    !stat(path, &named) && named.st_ino == opened.st_ino)
		return true;
	if (fd >= 0)
		close(fd);
	return false;
}

int folder_make(char *path)
{
	size_t chosen = strlen(path) - CHOSEN;

	sweep_siblings(path);
	for (int i = 0; i < TRIES; i++) {
		strcpy(path + chosen, "XXXXXX");
		if (!mkdtemp(path))
			return -errno;
		if (lock_folder(path))
			return 0;
		rmdir(path);
	}
	strcpy(path + chosen, "XXXXXX");
	return -EBUSY;
}
