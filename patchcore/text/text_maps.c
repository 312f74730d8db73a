/* SPDX-License-Identifier: MIT */
#include "patchcore/text/text_maps.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "patchcore/kernel/sys.h"
#include "patchcore/text/pkeys.h"
#include "patchcore/text/text.h"

/* By the calling thread: what is told of the process is nothing once its main thread has ended. */
int mappings_read(uintptr_t start, uintptr_t end, struct mapping **list)
{
	FILE *file = fopen("/proc/thread-self/maps", "re");
	unsigned long from, to, offset, inode;
	struct mapping *found = NULL, *more;
	unsigned major, minor;
	int count = 0, room = 0;
	char *line = NULL, prot[5];
	size_t size = 0;

	*list = NULL;
	if (!file)
		return errno == ENOMEM ? -ENOMEM : -EACCES;
	while (getline(&line, &size, file) > 0) {
		if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu", &from, &to, prot, &offset, &major,
			   &minor, &inode) != 7 ||
		    to <= start)
			continue;
		if (from >= end)
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
		found[count++] = (struct mapping){
			.start = from,
			.end = to,
			.prot = (prot[0] == 'r' ? PROT_READ : 0) |
				(prot[1] == 'w' ? PROT_WRITE : 0) |
				(prot[2] == 'x' ? PROT_EXEC : 0),
			.shared = prot[3] == 's',
			.origin = { makedev(major, minor), inode, offset },
		};
	}
	free(line);
	fclose(file);
	*list = found;
	return count;
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
	FILE *file = fopen("/proc/thread-self/smaps", "re");
	unsigned long start, end, kib;
	size_t size = 0, page = TEXT_PAGE;
	char *line = NULL;
	bool inside = false;

	while (file && getline(&line, &size, file) > 0) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
			inside = addr >= start && addr < end;
		} else if (inside && sscanf(line, "KernelPageSize: %lu kB", &kib) == 1) {
			page = kib * 1024;
			break;
		}
	}
	free(line);
	if (file)
		fclose(file);
	return page;
}

int text_read(void *buffer, const void *addr, size_t len)
{
	struct iovec to = { .iov_base = buffer, .iov_len = len };
	struct iovec from = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };
	long mem, forced,
		got = sys_call(SYS_process_vm_readv, sys_call(SYS_gettid), &to, 1, &from, 1, 0);

	if (got == (long)len)
		return 0;
	/* What is only executed is -EFAULT to that way, as what is not mapped; but not to this. */
	mem = sys_call(SYS_openat, AT_FDCWD, "/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		/* Some of it was there, or it is said that it is not: that much can be told. */
		return got > 0 || got == -EFAULT ? -EFAULT : -EACCES;
	forced = sys_call(SYS_pread64, mem, buffer, len, addr);
	sys_call(SYS_close, mem);
	return forced == (long)len ? 1 : -EFAULT;
}

/* --- Protection keys -------------------------------------------------------------------------- */

#define OSPKE (1u << 4) /* leaf 7, ECX: the kernel has switched them on */

bool pkeys_on;

__attribute__((constructor)) static void look_for_pkeys(void)
{
	unsigned a, b, c, d;

	pkeys_on = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & OSPKE);
}
