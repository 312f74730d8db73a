/* SPDX-License-Identifier: MIT */
#include "probes/agent/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *file_folder(const char *folder)
{
	static char copy[PATH_MAX];

	return folder && strlen(folder) < sizeof(copy) ? strcpy(copy, folder) : NULL;
}

const char *kind_name(enum fi_kind kind)
{
	static const char *const names[] = { "entry", "exit",  "marker", "branch",
					     "call",  "block", "compare" };

	return kind < sizeof(names) / sizeof(*names) ? names[kind] : "unknown";
}

bool file_put(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

/* Where the first mark cannot be written, the file that is empty tells of it. */
bool file_open(struct file *file, const char *folder)
{
	char path[PATH_MAX];
	struct stat stat;

	quiet_begin(&file->quiet);
	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	file->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	file->size = file->fd >= 0 && !fstat(file->fd, &stat) ? stat.st_size : 0;
	if (file->fd >= 0 && file_put(file->fd, "\f\n", 2))
		return true;
	if (file->fd >= 0)
		close(file->fd);
	quiet_end(&file->quiet);
	return false;
}

void file_close(struct file *file, bool whole)
{
	if (whole)
		file_put(file->fd, "end\n", 4);
	close(file->fd);
	quiet_end(&file->quiet);
}

void file_take_back(const char *folder, off_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	if (!size || truncate(path, size) < 0)
		unlink(path);
}

void file_report(const char *folder, void (*report)(FILE *out))
{
	bool whole = false;
	struct file file;
	FILE *out;
	int fd;

	if (!file_open(&file, folder))
		return;
	/* The stream closes one of its own. */
	fd = fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
	out = fd < 0 ? NULL : fdopen(fd, "a");
	if (out) {
		report(out);
		whole = !ferror(out);
		whole = !fclose(out) && whole;
	} else if (fd >= 0) {
		close(fd);
	}
	file_close(&file, whole);
}
