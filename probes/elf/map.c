/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/elf/elf.h"

static int map_file(struct elf *elf, int fd, int how)
{
	struct stat stat;
	void *map;

	if (fstat(fd, &stat) < 0)
		return -errno;
	if (!S_ISREG(stat.st_mode) || stat.st_size <= 0)
		return -ENOEXEC;
	map = mmap(NULL, (size_t)stat.st_size, PROT_READ, how, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (elf_open(elf, map, (size_t)stat.st_size))
		return 0;
	munmap(map, (size_t)stat.st_size);
	return -ENOEXEC;
}

static int map_path(struct elf *elf, const char *path, int how)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = map_file(elf, fd, how);
	close(fd);
	return ret;
}

int elf_map_fd(struct elf *elf, int fd)
{
	return map_file(elf, fd, MAP_SHARED);
}

int elf_map(struct elf *elf, const char *path)
{
	return map_path(elf, path, MAP_SHARED);
}

int elf_map_patched(struct elf *elf, const char *path)
{
	return map_path(elf, path, MAP_PRIVATE);
}

void elf_unmap(const struct elf *elf)
{
	munmap((void *)(uintptr_t)elf->image, elf->size);
}
