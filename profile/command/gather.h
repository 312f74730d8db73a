/* SPDX-License-Identifier: MIT */
/*
 * The lines that processes left (profile/sampler/session_report.h), as one profile.
 */
#ifndef PROFILE_COMMAND_GATHER_H
#define PROFILE_COMMAND_GATHER_H

#include "probes/elf/elf.h"
#include "profile/statistics/profile.h"

/*
 * gather - read all files of a folder, and remove it. profile->edges says of which kind they are. 1
 * after a complaint: a report is incomplete. Negative errno.
 */
int gather(struct profile *profile, const char *folder);

/* A program or library, mapped as its file is; the names of its functions are in the mapping. */
struct image {
	struct elf elf;
	bool mapped;
	struct elf_symbols symbols;
};

/* image_open - a file that cannot be read has no functions. */
void image_open(struct image *image, const char *path);
void image_close(struct image *image);

#endif
