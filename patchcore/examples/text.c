/* SPDX-License-Identifier: MIT */
/*
 * Patch many functions, and change the protection of their pages only once: kept writable; by an
 * alias, with which no page is ever writable and executable; or where other processes map the same
 * memory, which the library refuses unless it is asked to.
 */
#include "example.h"

enum {
	COUNT = 1000,
	SLOT = 8, /* five bytes inside one 8-byte word, so one store changes them anywhere */
	BYTES = COUNT * SLOT
};

/* Or an error. */
static int patch_all(uint8_t *code, uint32_t number, int open_text(void *addr, size_t len))
{
	enum pc_text_way way;
	char reason[128];
	uint8_t load[5];
	int ret = open_text(code, BYTES), sum = 0;

	if (ret < 0)
		return ret;
	pc_text_way(code, BYTES, &way, reason, sizeof(reason));
	put_load(load, number);
	for (int i = 0; i < COUNT && ret == 0; i++)
		ret = pc_patch(code + i * SLOT, load, sizeof(load));
	/* The pages have their own protection again from here on; what was patched stays so. */
	if (ret == 0)
		ret = pc_text_close(code, BYTES);
	for (int i = 0; i < COUNT; i++)
		sum += run(code + i * SLOT);
	printf("%s: %d functions return %d\n", reason, COUNT, sum);
	return ret == 0 && sum != (int)number * COUNT ? -EPROTO : ret;
}

static uint8_t *make_functions(int sharing)
{
	uint8_t *code = map_code(BYTES, PROT_READ | PROT_WRITE, sharing);

	for (int i = 0; i < COUNT; i++)
		put_function(code + i * SLOT, 1);
	return close_code(code, BYTES);
}

int main(void)
{
	uint8_t *code = make_functions(MAP_PRIVATE), *shared = make_functions(MAP_SHARED);
	int ret = pc_init();

	if (ret == 0)
		ret = patch_all(code, 2, pc_text_open);
	if (ret == 0)
		ret = patch_all(code, 3, pc_text_alias);
	if (ret == 0 && patch_all(shared, 2, pc_text_open) != -EPERM)
		ret = -EPROTO;
	if (ret == 0)
		ret = patch_all(shared, 2, pc_text_open_shared);
	if (ret < 0)
		printf("not patched: %s\n", pc_strerror(ret));
	return ret == -EACCES ? SKIPPED : ret < 0;
}
