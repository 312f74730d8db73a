/* SPDX-License-Identifier: MIT */
#include "bench/method/spare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "patchcore/patchcore.h"

/* Lines to spare between two sites, or the prefetchers would bring one with the other. */
enum {
	LENGTH = 5,
	LINE = 64,
	STRIDE = 256
};

/* mov eax, imm32 */
static const uint8_t codes[2][8] = { { 0xb8, 1, 2, 3, 4 }, { 0xb8, 5, 6, 7, 8 } };

static size_t bytes_of(const struct spare *spare)
{
	return (size_t)spare->count * STRIDE;
}

int spare_open(struct spare *spare, unsigned count, unsigned split)
{
	void *map = mmap(NULL, (size_t)count * STRIDE, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*spare = (struct spare){ .count = count };
	if (map == MAP_FAILED)
		return -errno;
	spare->map = map;
	spare->op = calloc(count, sizeof(*spare->op));
	if (!spare->op)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		uint8_t *at = spare->map + i * STRIDE + LINE - split;

		memcpy(at, codes[0], LENGTH);
		spare->op[i] = (struct pc_op){ .addr = at, .len = LENGTH };
	}
	return pc_text_open(map, bytes_of(spare));
}

void spare_close(struct spare *spare)
{
	if (spare->map) {
		pc_text_close(spare->map, bytes_of(spare));
		pc_forget(spare->map, bytes_of(spare));
		munmap(spare->map, bytes_of(spare));
	}
	free(spare->op);
	*spare = (struct spare){ 0 };
}

void spare_set(struct spare *spare, unsigned count, unsigned which)
{
	for (unsigned i = 1; i < count; i++)
		spare->op[i].bytes = codes[which];
}
