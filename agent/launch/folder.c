/* SPDX-License-Identifier: MIT */
/* Temporary folders that are locked by the live command, and removed by the next one. */
#include "agent/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHOSEN 6 /* characters that mkdtemp() chooses */
#define TRIES  16

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *at)
{
	(void)stat;
	(void)type;
	(void)at;
	return remove(path) && errno != ENOENT ? -1 : 0;
}

void folder_remove(const char *path)
{
	/* A process may still make files in it, which no command reads. */
	for (int i = 0; i < TRIES; i++)
		if (!nftw(path, remove_one, TRIES, FTW_DEPTH | FTW_PHYS) || errno != ENOTEMPTY)
			break;
}

/* A descriptor that holds the folder locked; -1: another process has, or it is not this user's. */
static int lock_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat named, opened;

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &opened) &&
	    opened.st_uid == geteuid() && !stat(path, &named) && named.st_ino == opened.st_ino)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Removes folders that no live process has locked. */
static void sweep_siblings(const char *path)
{
	char pattern[PATH_MAX];
	glob_t found = { 0 };

	snprintf(pattern, sizeof(pattern), "%.*s??????", (int)(strlen(path) - CHOSEN), path);
	glob(pattern, GLOB_NOSORT, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int fd = lock_folder(found.gl_pathv[i]);

		if (fd >= 0) {
			folder_remove(found.gl_pathv[i]);
			close(fd);
		}
	}
	globfree(&found);
}

int folder_make(char *path)
{
	size_t chosen = strlen(path) - CHOSEN;

	sweep_siblings(path);
	for (int i = 0; i < TRIES; i++) {
		strcpy(path + chosen, "XXXXXX");
		if (!mkdtemp(path))
			return -errno;
		if (lock_folder(path) >= 0)
			return 0;
		/* Another command has removed the folder before it was locked. */
		rmdir(path);
	}
	strcpy(path + chosen, "XXXXXX");
	return -EBUSY;
}
