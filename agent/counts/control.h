/* SPDX-License-Identifier: MIT */
/*
 * Sockets between agents and commands. Control sockets are in a folder "fastinst" in
 * XDG_RUNTIME_DIR, or /tmp/fastinst-UID; one file PID.sock per process.
 */
#ifndef AGENT_COUNTS_CONTROL_H
#define AGENT_COUNTS_CONTROL_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_PATH sizeof(((struct sockaddr_un *)0)->sun_path)

/* socket_limit - seconds that a read, a write or a connection may take. */
static inline void socket_limit(int fd, long seconds)
{
	const struct timeval most = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
}

/* socket_listen - at a path that does not exist; accept4(2) does not wait. Or a negative errno. */
static inline int socket_listen(const char *path, int backlog)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&addr, sizeof(addr)) && !listen(fd, backlog))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/* socket_connect - a stream to who listens there; @limit: 0 or as above. NULL: errno tells why. */
static inline FILE *socket_connect(const char *path, long limit)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ret, error;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd < 0)
		return NULL;
	if (limit)
		socket_limit(fd, limit);
	do
		ret = connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	while (ret && errno == EINTR);
	if (!ret)
		return fdopen(fd, "r+");
	error = errno;
	close(fd);
	errno = error;
	return NULL;
}

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

/* control_path - the socket of a process in a folder, or NULL: in the one of control_folder(). */
static inline int control_path(const char *folder, pid_t pid, bool make, char *path, size_t size)
{
	char usual[96];
	int ret = folder ? control_trusted(folder) : control_folder(make, usual, sizeof(usual));
	int len = snprintf(path, size, "%s/%d.sock", folder ? folder : usual, (int)pid);

	if (ret < 0)
		return ret;
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

#endif
