/* SPDX-License-Identifier: MIT */
/*
 * Where a profile goes, of either kind.
 */
#ifndef PROBES_PROFILE_COMMAND_FORMATS_H
#define PROBES_PROFILE_COMMAND_FORMATS_H

#include <stdio.h>

/*
 * write_formats - a profile in each format: one to a file or standard error (NULL), several to
 * OUTPUT.FORMAT. Negative errno, which was told.
 */
int write_formats(const char *formats, const char *output,
		  int (*write)(const char *format, FILE *out, const void *data), const void *data);

#endif
