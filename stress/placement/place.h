/* SPDX-License-Identifier: MIT */
/*
 * Where in physical memory a site lies. Rates of tears differ from place to place, so a cell
 * takes its pages out of a pool that lives as long as the program that runs the cells: a place
 * is a choice of pages and of a line, other places are others, and the same place is the same
 * memory again.
 */
#ifndef STRESS_PLACEMENT_PLACE_H
#define STRESS_PLACEMENT_PLACE_H

#include <stdint.h>

#define PLACE_POOL 64 /* pages */

/* What a place chooses. */
struct place {
	unsigned page[2];  /* of the pool: the first, and the second that a site may need */
	unsigned line;	   /* of its page that the site's boundary begins, from 1 to 63 */
	unsigned word;	   /* a number that is as free, for what is smaller than a line */
	uint64_t boundary; /* bytes: the largest power of two that divides the address of the page
			    * behind the boundary: an ordinary page's, or 32 KiB, 2 MiB or 1 GiB,
			    * where a walk of the page tables goes another way. Place 0: 4096 */
};

struct place place_of(uint64_t place);

/* place_open - make the pool, if need be, before cells are forked. 0 or a negative errno. */
int place_open(void);

/*
 * place_pages - put so many pages of the pool, 1 or 2, under what is mapped at this
 * address, filled with zeros. What stood there is lost. 0 or a negative errno.
 */
int place_pages(uint8_t *under, unsigned count, uint64_t place);

/* place_frame - number of the physical page, 0 where the kernel does not tell. */
uint64_t place_frame(const void *addr);

#endif
