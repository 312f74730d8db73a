/* SPDX-License-Identifier: MIT */
#include "probes/profile/command/image.h"

void image_open(struct image *image, const char *path)
{
	*image = (struct image){ 0 };
	image->mapped = !elf_map(&image->elf, path);
	if (image->mapped)
		elf_functions(&image->elf, &image->symbols);
}

void image_close(struct image *image)
{
	elf_free(&image->symbols);
	if (image->mapped)
		elf_unmap(&image->elf);
}
