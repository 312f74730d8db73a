/* SPDX-License-Identifier: MIT */
/*
 * The file that a process leaves in a folder of a command: a line with a form feed, which no
 * other has, then lines, then "end". Where one of the two is missing, the command knows that more
 * is (probes/launch/launch.h).
 */
#ifndef PROBES_AGENT_FILE_H
#define PROBES_AGENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "probes/agent/quiet.h"
#include "probes/include/fastinst.h"

/*
 * file_folder - the folder that reports go to, as a copy: a program may overwrite what its
 * environment lies in, as setproctitle() does, or clear it. NULL: no folder, or none that a path
 * can name.
 */
const char *file_folder(const char *folder);

struct file {
	int fd;
	off_t size; /* before this report */
	struct quiet quiet;
};

/*
 * file_open - named by the PID; another report of that PID stands before it. False: there can be
 * none. file_close - @whole: all of it was written. Both without memory.
 */
bool file_open(struct file *file, const char *folder);
void file_close(struct file *file, bool whole);

/* file_put - all of that. False: it could not be written. */
bool file_put(int fd, const char *text, size_t len);

/* kind_name - of a probe, as lines have it. */
const char *kind_name(enum fi_kind kind);

/* file_take_back - the last report of this process; its file was so long before. */
void file_take_back(const char *folder, off_t size);

/* file_report - all of it, by a function that writes to a stream. */
void file_report(const char *folder, void (*report)(FILE *out));

#endif
