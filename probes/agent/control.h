/* SPDX-License-Identifier: MIT */
/*
 * Where control sockets are: a folder "fastinst" in XDG_RUNTIME_DIR, or /tmp/fastinst-UID; one file
 * PID.sock per process.
 */
#ifndef PROBES_AGENT_CONTROL_H
#define PROBES_AGENT_CONTROL_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * control_folder - its path. -EPERM: others own it or may enter it, so that it may be a trap.
 * -ENAMETOOLONG. With make it is made where it is missing.
 */
static inline int control_folder(bool make, char *path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat stat;
	int len;

	if (runtime && *runtime == '/')
		len = snprintf(path, size, "%s/fastinst", runtime);
	else
		len = snprintf(path, size, "/tmp/fastinst-%u", (unsigned)geteuid());
	if (len < 0 || (size_t)len >= size)
		return -ENAMETOOLONG;
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &stat) < 0)
		return -errno;
	if (!S_ISDIR(stat.st_mode) || stat.st_uid != geteuid() || stat.st_mode & 077)
		return -EPERM;
	return 0;
}

static inline int control_path(pid_t pid, bool make, char *path, size_t size)
{
	char folder[96];
	int ret = control_folder(make, folder, sizeof(folder));
	int len;

	if (ret < 0)
		return ret;
	len = snprintf(path, size, "%s/%d.sock", folder, (int)pid);
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

#endif
