/* SPDX-License-Identifier: MIT */
/* The command: what processes left (profile/sampler/session_report.h) becomes one profile. */
#ifndef PROFILE_COMMAND_COMMAND_H
#define PROFILE_COMMAND_COMMAND_H

#include "probes/elf/elf.h"
#include "profile/command/write.h"
#include "profile/statistics/profile.h"

/* profile_command - "fastinst profile": argv from its own name on. The exit status. */
int profile_command(int argc, char **argv);

/*
 * gather - read all files of a folder, and remove it. profile->edges says of which kind they are. 1
 * after a complaint: a report is incomplete. Negative errno.
 */
int gather(struct profile *profile, const char *folder);

/* A program or library, mapped as its file is; the names of its functions are in the mapping. */
struct image {
	struct elf elf;
	struct elf_symbols symbols;
};

/* image_open - a file that cannot be read has no functions. */
void image_open(struct image *image, const char *path);
void image_close(struct image *image);

#endif
