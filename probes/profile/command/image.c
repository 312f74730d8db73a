/* SPDX-License-Identifier: MIT */
#include "probes/profile/command/image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void image_open(struct image *image, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;

	*image = (struct image){ 0 };
	if (fd < 0)
		return;
	if (!fstat(fd, &stat) && stat.st_size > 0)
		image->bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (!image->bytes || image->bytes == MAP_FAILED) {
		image->bytes = NULL;
		return;
	}
	image->size = (size_t)stat.st_size;
	image->is_elf = elf_open(&image->elf, image->bytes, image->size);
	if (image->is_elf)
		elf_functions(&image->elf, &image->symbols);
}

void image_close(struct image *image)
{
	elf_free(&image->symbols);
	if (image->bytes)
		munmap(image->bytes, image->size);
}
