/* SPDX-License-Identifier: MIT */
#ifndef PROBES_PROFILE_COMMAND_PROFILE_CMD_H
#define PROBES_PROFILE_COMMAND_PROFILE_CMD_H

#include <stdio.h>

/*
 * write_formats - a profile in each format: one to a file or standard error (NULL), several to
 * OUTPUT.FORMAT. Negative errno, which was told.
 */
int write_formats(const char *formats, const char *output,
		  int (*write)(const char *format, FILE *out, const void *data), const void *data);

/* profile_command - "fastinst profile": argv from its own name on. The exit status. */
int profile_command(int argc, char **argv);

#endif
