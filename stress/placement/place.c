/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "stress/placement/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stress/base/random.h"

#define PAGE	4096u
#define LINES	64u
#define PRESENT (UINT64_C(1) << 63) /* Documentation/admin-guide/mm/pagemap.rst */
#define FRAME	((UINT64_C(1) << 55) - 1)
#define CODE	(PROT_READ | PROT_WRITE | PROT_EXEC)

/* What is drawn from a place, in this order. */
enum draw {
	DRAW_FIRST,
	DRAW_SECOND,
	DRAW_LINE,
	DRAW_WORD,
	DRAW_BOUNDARY
};

static uint64_t draw_number(uint64_t place, enum draw which)
{
	uint64_t value = random_next(&place);

	for (unsigned i = 0; i < which; i++)
		value = random_next(&place);
	return value;
}

unsigned place_index(uint64_t place, unsigned which)
{
	unsigned first = (unsigned)(draw_number(place, DRAW_FIRST) % PLACE_POOL);

	if (which == 0)
		return first;
	return (first + 1 + (unsigned)(draw_number(place, DRAW_SECOND) % (PLACE_POOL - 1))) %
	       PLACE_POOL;
}

unsigned place_line(uint64_t place)
{
	return 1 + (unsigned)(draw_number(place, DRAW_LINE) % (LINES - 1));
}

unsigned place_word(uint64_t place)
{
	return (unsigned)(draw_number(place, DRAW_WORD) % LINES);
}

uint64_t place_boundary(uint64_t place)
{
	static const uint64_t boundaries[] = { PAGE, 32768, 2097152, 1073741824 };

	return place ? boundaries[draw_number(place, DRAW_BOUNDARY) % 4] : PAGE;
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

/* Without an old size it is mapped once more, and stays where it was. */
static int put_page(uint8_t *under, unsigned index)
{
	if (mremap(pool + index * PAGE, 0, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, under) ==
	    MAP_FAILED)
		return -errno;
	/* What another cell left there goes. */
	memset(under, 0, PAGE);
	return 0;
}

int place_pages(uint8_t *under, unsigned count, uint64_t place)
{
	int ret = place_open();

	for (unsigned i = 0; i < count && ret == 0; i++)
		ret = put_page(under + i * PAGE, place_index(place, i));
	return ret;
}

uint64_t place_frame(const void *addr)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	bool told;

	if (fd < 0)
		return 0;
	told = pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)addr / PAGE * sizeof(entry))) ==
	       (ssize_t)sizeof(entry);
	close(fd);
	return told && entry & PRESENT ? entry & FRAME : 0;
}
