/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "stress/placement/placement.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"

#define PAGE	4096u
#define LINES	64u
#define PRESENT (UINT64_C(1) << 63) /* Documentation/admin-guide/mm/pagemap.rst */
#define FRAME	((UINT64_C(1) << 55) - 1)
#define CODE	(PROT_READ | PROT_WRITE | PROT_EXEC)

struct site_place site_place_of(uint64_t all)
{
	uint32_t place = (uint32_t)all;
	static const uint64_t boundaries[] = { PAGE, 32768, 2097152, 1073741824 };
	unsigned first = (unsigned)(random_at(place, 0) % PLACE_POOL);
	unsigned beyond = 1 + (unsigned)(random_at(place, 1) % (PLACE_POOL - 1));

	return (struct site_place){
		.page = { first, (first + beyond) % PLACE_POOL },
		.line = 1 + (unsigned)(random_at(place, 2) % (LINES - 1)),
		.word = (unsigned)(random_at(place, 3) % LINES),
		.boundary = place ? boundaries[random_at(place, 4) % 4] : PAGE,
	};
}

/* Made by the first caller, which is the parent of all cells: they inherit it. */
static uint8_t *pool;

/* Memory and no file, which a limit on the size of files would forbid. */
int place_open(void)
{
	void *at;

	if (pool)
		return 0;
	at = mmap(NULL, PLACE_POOL * PAGE, CODE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	pool = at;
	return 0;
}

int place_pages(uint8_t *under, unsigned count, uint64_t place)
{
	int ret = place_open();

	for (unsigned i = 0; i < count && ret == 0; i++) {
		uint8_t *from = pool + site_place_of(place).page[i] * PAGE, *to = under + i * PAGE;

		/* Without an old size it is mapped once more, and stays where it was. */
		if (mremap(from, 0, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
			ret = -errno;
		else
			memset(to, 0, PAGE); /* what another cell left there goes */
	}
	return ret;
}

uint64_t place_frame(const void *addr)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)addr / PAGE * sizeof(entry))) < 0)
		entry = 0;
	close(fd);
	return entry & PRESENT ? entry & FRAME : 0;
}
