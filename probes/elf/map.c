/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/elf/elf.h"

/* Shared, as the kernel puts breakpoints of uprobes into private mappings. */
int elf_map_fd(struct elf *elf, int fd)
{
	struct stat stat;
	void *map;

	if (fstat(fd, &stat) < 0)
		return -errno;
	if (!S_ISREG(stat.st_mode) || stat.st_size <= 0)
		return -ENOEXEC;
	map = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (elf_open(elf, map, (size_t)stat.st_size))
		return 0;
	munmap(map, (size_t)stat.st_size);
	return -ENOEXEC;
}

int elf_map(struct elf *elf, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = elf_map_fd(elf, fd);
	close(fd);
	return ret;
}

void elf_unmap(const struct elf *elf)
{
	munmap((void *)(uintptr_t)elf->image, elf->size);
}
