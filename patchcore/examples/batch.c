/* SPDX-License-Identifier: MIT */
/* Make a thousand changes at the price of few: they share their waits. */
#include <patchcore/batch.h>

#include "example.h"

enum {
	COUNT = 1000,
	SLOT = 13, /* so that some of them straddle a word, and some do not */
	BYTES = COUNT * SLOT
};

static uint8_t load[COUNT][5];
static struct pc_op ops[COUNT];

int main(void)
{
	uint8_t *code = map_code(BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	int ret = pc_init(), refused = 0, wrong = 0;

	for (int i = 0; i < COUNT; i++) {
		put_function(code + i * SLOT, 0);
		put_load(load[i], (uint32_t)i);
		ops[i] = (struct pc_op){ code + i * SLOT, load[i], sizeof(load[i]), 0 };
	}
	close_code(code, BYTES);
	/* One that is refused: INT3 as new code could not be told from a held site. */
	load[COUNT / 2][0] = 0xcc;
	if (ret == 0)
		ret = pc_patch_batch(ops, COUNT);
	/* Each of them is made or not, independently of the others. */
	for (int i = 0; i < COUNT; i++) {
		refused += ops[i].result < 0;
		wrong += run(code + i * SLOT) != (ops[i].result == 0 ? i : 0);
	}
	printf("first error: %s; %d of %d refused\n", pc_strerror(ret), refused, COUNT);
	return ret < 0 && refused >= 1 && wrong == 0 ? 0 : 1;
}
