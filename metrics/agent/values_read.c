/* SPDX-License-Identifier: MIT */
/* What processes have left in their files, of which nothing is believed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metrics/agent/values.h"

#define TRIES 1000

int value_read(const struct mdl_value *from, struct value_copy *copy)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t version = atomic_load_explicit(&from->version, memory_order_acquire);

		copy->value = atomic_load_explicit(&from->value, memory_order_relaxed);
		copy->start = atomic_load_explicit(&from->start, memory_order_relaxed);
		copy->depth = atomic_load_explicit(&from->depth, memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		if (version % 2 == 0 &&
		    version == atomic_load_explicit(&from->version, memory_order_relaxed))
			return 0;
	}
	return -EAGAIN;
}

static void read_slots(struct values_file *file, uint32_t values, values_found *found, void *data)
{
	uint32_t taken = atomic_load_explicit(&file->taken, memory_order_acquire);

	if (atomic_load_explicit(&file->magic, memory_order_acquire) != VALUES_MAGIC ||
	    file->values != values)
		return;
	for (uint32_t i = 0; i < taken && i < VALUES_SLOTS; i++) {
		struct values_slot *slot = values_slot_at(file, values, i);

		if (atomic_load_explicit(&slot->tid, memory_order_acquire))
			found(slot, file, data);
	}
}

static void read_file(const char *path, uint32_t values, values_found *found, void *data)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t size = values_file_size(values);
	struct stat stat;
	void *file;

	if (fd < 0)
		return;
	file = fstat(fd, &stat) || !S_ISREG(stat.st_mode) || (size_t)stat.st_size != size
		       ? MAP_FAILED
		       : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return;
	read_slots(file, values, found, data);
	munmap(file, size);
}

int values_read(const char *folder, uint32_t values, values_found *found, void *data)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	char path[PATH_MAX];

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		read_file(path, values, found, data);
	}
	closedir(dir);
	return 0;
}
