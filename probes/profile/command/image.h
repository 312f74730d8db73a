/* SPDX-License-Identifier: MIT */
#ifndef PROBES_PROFILE_COMMAND_IMAGE_H
#define PROBES_PROFILE_COMMAND_IMAGE_H

#include "probes/elf/elf.h"

/* A program or library in memory, as its file is; the names of its functions are in there. */
struct image {
	struct elf elf;
	bool mapped;
	struct elf_symbols symbols;
};

/* image_open - of what cannot be read there are no functions. */
void image_open(struct image *image, const char *path);
void image_close(struct image *image);

#endif
