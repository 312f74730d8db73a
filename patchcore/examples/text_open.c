/* SPDX-License-Identifier: MIT */
/* Patch many functions, and change the protection of their pages only once. */
#include "example.h"

enum {
	COUNT = 1000,
	SLOT = 8, /* five bytes inside one 8-byte word, so one store changes them anywhere */
	BYTES = COUNT * SLOT
};

int main(void)
{
	uint8_t *code = map_code(BYTES, PROT_READ | PROT_WRITE), load[5];
	int sum = 0, ret = pc_init();

	for (int i = 0; i < COUNT; i++)
		put_function(code + i * SLOT, 1);
	close_code(code, BYTES);
	if (ret == 0)
		ret = pc_text_open(code, BYTES);
	if (ret < 0) {
		printf("code cannot be made writable: %s\n", strerror(-ret));
		return ret == -EACCES ? SKIPPED : 1;
	}
	put_load(load, 2);
	for (int i = 0; i < COUNT && ret == 0; i++)
		ret = pc_patch(code + i * SLOT, load, sizeof(load));
	if (ret < 0)
		printf("not patched: %s\n", strerror(-ret));
	/* The pages are read-only again from here on. */
	ret = pc_text_close(code, BYTES);
	for (int i = 0; i < COUNT; i++)
		sum += run(code + i * SLOT);
	printf("%d functions return %d\n", COUNT, sum);
	return ret == 0 && sum == 2 * COUNT ? 0 : 1;
}
