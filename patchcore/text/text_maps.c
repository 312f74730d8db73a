/* SPDX-License-Identifier: MIT */
#include "patchcore/text/text_maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "patchcore/site/span.h"

static bool parse_mapping(const char *line, struct mapping *map)
{
	unsigned long start, end, offset, inode;
	unsigned major, minor;
	char prot[5];

	if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu", &start, &end, prot, &offset, &major, &minor,
		   &inode) != 7)
		return false;
	*map = (struct mapping){
		.start = start,
		.end = end,
		.prot = (prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
			(prot[2] == 'x' ? PROT_EXEC : 0),
		.shared = prot[3] == 's',
		.origin = { .device = makedev(major, minor), .inode = inode, .offset = offset },
	};
	return true;
}

int mappings_read(uintptr_t start, uintptr_t end, struct mapping **list)
{
	FILE *file = fopen("/proc/self/maps", "re");
	struct mapping *found = NULL, *more, map;
	int count = 0, room = 0;
	char *line = NULL;
	size_t size = 0;

	*list = NULL;
	if (!file)
		return errno == ENOMEM ? -ENOMEM : -EACCES;
	while (getline(&line, &size, file) > 0) {
		if (!parse_mapping(line, &map) || map.end <= start)
			continue;
		if (map.start >= end)
			break;
		if (count == room) {
			room = room ? room * 2 : 4;
			more = realloc(found, room * sizeof(*more));
			if (!more) {
				free(found);
				found = NULL;
				count = -ENOMEM;
				break;
			}
			found = more;
		}
		found[count++] = map;
	}
	free(line);
	fclose(file);
	*list = found;
	return count;
}

bool mappings_cover(const struct mapping *list, int count, uintptr_t start, uintptr_t end)
{
	uintptr_t reached = start;

	for (int i = 0; i < count && list[i].start <= reached; i++)
		reached = list[i].end;
	return reached >= end;
}

const struct mapping *mappings_find(const struct mapping *list, int count, uintptr_t addr)
{
	int low = 0, high = count;

	while (low < high) {
		int middle = low + (high - low) / 2;

		if (list[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && list[low].start <= addr ? &list[low] : NULL;
}

struct origin mapping_origin(const struct mapping *map, uintptr_t addr)
{
	struct origin origin = map->origin;

	/* Private memory has no file, and so no place in one. */
	if (origin.inode)
		origin.offset += addr - map->start;
	return origin;
}

size_t mapping_page_size(uintptr_t addr)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	unsigned long start, end, kib;
	size_t size = 0, page = TEXT_PAGE;
	char *line = NULL;
	bool inside = false;

	while (file && getline(&line, &size, file) > 0) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = addr >= start && addr < end;
		else if (inside && sscanf(line, "KernelPageSize: %lu kB", &kib) == 1)
			break;
	}
	if (file && inside && !feof(file))
		page = kib * 1024;
	free(line);
	if (file)
		fclose(file);
	return page;
}
