/* SPDX-License-Identifier: MIT */
/*
 * Memory that takes the place of a site's lines in the second-level cache.
 *
 * A line goes into the set that bits 6 to 16 of its physical address name, or fewer: no second
 * level of this ISA has had ways of more than 128 KiB. So lines of pages that agree with the site's
 * page in bits 12 to 16, at the same place in the page, compete with it. The first level of
 * instructions holds nothing that the second does not, where that is inclusive (AMD since Zen).
 */
#define _GNU_SOURCE
#include "stress/provoke/provoker_work.h"

#include <errno.h>
#include <sys/mman.h>

#include "stress/placement/place.h"

#define PAGE	4096u
#define PAGES	4096u /* of which one in COLOURS competes */
#define COLOURS 32u   /* pages in 128 KiB */
#define LINE	64u

bool evict_possible(void)
{
	int here = 0;

	return place_frame(&here) != 0;
}

static void choose_lines(struct evict *e, unsigned part, const uint8_t *at)
{
	uint64_t colour = place_frame(at) % COLOURS;
	size_t offset = (uintptr_t)at % PAGE / LINE * LINE;

	for (size_t i = 0; i < PAGES && e->lines[part] < EVICT_LINES; i++) {
		const uint8_t *page = e->memory + i * PAGE;

		if (place_frame(page) % COLOURS == colour)
			e->line[part][e->lines[part]++] = page + offset;
	}
}

int evict_start(struct evict *e, const uint8_t *front, const uint8_t *back)
{
	void *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	e->memory = at;
	choose_lines(e, 0, front);
	choose_lines(e, 1, back);
	return e->lines[0] == EVICT_LINES && e->lines[1] == EVICT_LINES ? 0 : -ENOMEM;
}

void evict_stop(struct evict *e)
{
	if (e->memory)
		munmap(e->memory, PAGES * PAGE);
	e->memory = NULL;
}

uint64_t evict_lines(const struct evict *e)
{
	for (unsigned i = 0; i < EVICT_LINES; i++) {
		(void)*(const volatile uint8_t *)e->line[0][i];
		(void)*(const volatile uint8_t *)e->line[1][i];
	}
	return 2 * EVICT_LINES;
}
