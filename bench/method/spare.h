/* SPDX-License-Identifier: MIT */
/*
 * Sites that nobody runs, to fill a batch: mov eax, imm32, each across a line of its own.
 */
#ifndef BENCH_METHOD_SPARE_H
#define BENCH_METHOD_SPARE_H

#include <stdint.h>

#include "patchcore/batch.h"

struct spare {
	uint8_t *map;
	struct pc_op *op; /* of each site; may be changed, the first to be another's */
	unsigned count;
};

/*
 * spare_open - map and open so many sites of that split. 0 or a negative errno. spare_close -
 * of one that is open, or was not opened, or is zeroed.
 */
int spare_open(struct spare *spare, unsigned count, unsigned split);
void spare_close(struct spare *spare);

/* spare_set - all but the first are to become the first or the second code of the two. */
void spare_set(struct spare *spare, unsigned count, unsigned which);

#endif
