/* SPDX-License-Identifier: MIT */
/*
 * Opening a config that only root and the caller can have written. Private.
 */
#ifndef PATCHCORE_MACHINE_CONF_OPEN_H
#define PATCHCORE_MACHINE_CONF_OPEN_H

#include <stddef.h>

/*
 * conf_open - open a config for reading, and judge what was opened.
 *
 * It must be a regular file, and it and the folder that holds it must belong to root or to
 * the effective user, with no write permission for group or others (a sticky folder is no
 * exception). For a symbolic link the same holds of the folder with the link, and of all that
 * it leads through. What is judged are the open descriptors, so that nothing can be put in
 * their place afterwards. A link of /proc (/proc/self/fd/3) leads to a file that is open
 * already and may have no folder: there the file counts, and the folder in /proc.
 *
 * Returns a descriptor, or with one line in why: -EINVAL: no regular file; -EPERM: others
 * could have written it; else what open(2) failed with.
 */
int conf_open(const char *path, char *why, size_t size);

#endif
