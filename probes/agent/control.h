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

/* control_trusted - -EPERM: others own the folder or may enter it, so that it may be a trap. */
static inline int control_trusted(const char *path)
{
	struct stat stat;

	if (lstat(path, &stat) < 0)
		return -errno;
	return S_ISDIR(stat.st_mode) && stat.st_uid == geteuid() && !(stat.st_mode & 077) ? 0
											  : -EPERM;
}

/*
 * control_folder - its path. -EPERM as above; -ENAMETOOLONG. With make it is made where it is
 * missing.
 */
static inline int control_folder(bool make, char *path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int len;

	if (runtime && *runtime == '/')
		len = snprintf(path, size, "%s/fastinst", runtime);
	else
		len = snprintf(path, size, "/tmp/fastinst-%u", (unsigned)geteuid());
	if (len < 0 || (size_t)len >= size)
		return -ENAMETOOLONG;
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	return control_trusted(path);
}

static inline int control_socket(const char *folder, pid_t pid, char *path, size_t size)
{
	int len = snprintf(path, size, "%s/%d.sock", folder, (int)pid);

	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

static inline int control_path(pid_t pid, bool make, char *path, size_t size)
{
	char folder[96];
	int ret = control_folder(make, folder, sizeof(folder));

	return ret < 0 ? ret : control_socket(folder, pid, path, size);
}

#endif
